//! The body of an answer: bytes, or the stream of a watch.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::error::ConnectionDropped;
use crate::http::watch::WatchBody;
use crate::store::piece::WatchBreak;

/// The body of an answer. Dropping the body of a watch ends the watch.
#[derive(Debug)]
pub struct ApiBody(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    Watch(Box<WatchBody>),
}

// === impl ApiBody ===

impl ApiBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes).filter(|it| !it.is_empty())))
    }

    pub(crate) fn watch(watch: WatchBody) -> Self {
        Self(Inner::Watch(Box::new(watch)))
    }

    /// Breaks a watch after its initial events.
    pub(crate) fn break_off(&mut self, how: WatchBreak) {
        if let Inner::Watch(watch) = &mut self.0 {
            watch.break_off(how);
        }
    }

    /// Makes a watch late.
    pub(crate) fn delay(&mut self, by: Duration) {
        if let Inner::Watch(watch) = &mut self.0 {
            watch.delay(by);
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = ConnectionDropped;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionDropped>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            Inner::Watch(watch) => watch.poll_piece(context).map(|it| it.map(|it| it.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64)),
            Inner::Watch(_) => SizeHint::default(),
        }
    }
}
