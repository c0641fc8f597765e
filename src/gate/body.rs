//! Request bodies that may still be on their way when the answer begins.

use super::error::ErrLeadershipLost;
use crate::{leadership::Admission, request::Verb};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, combinators::UnsyncBoxBody};
use std::{
    any::Any,
    error::Error,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};
use tokio::sync::futures::OwnedNotified;

type BoxError = Box<dyn Error + Send + Sync>;
type Streamed = UnsyncBoxBody<Bytes, BoxError>;

/// A body that streams, of an admitted write.
struct Followed {
    inner: Streamed,
    admission: Arc<Admission>,
    ended: Pin<Box<OwnedNotified>>,
}

/// Bytes of it, until the connection has sent or dropped them.
struct Piece {
    bytes: Bytes,
    _admission: Arc<Admission>,
}

/// Lets an admitted write count until its body has left, if that may be after the head of the answer.
///
/// The API server reads a body to its end before it carries a change out. So the rest of a body in memory matters only to
/// a backend. An upgrade has no body.
pub(super) fn follow<B: 'static>(body: &mut B, verb: Verb, upgrade: bool, admission: &Admission) {
    let body: &mut dyn Any = body;
    if let Some(streamed) = body.downcast_mut::<Streamed>().filter(|body| !body.is_end_stream()) {
        let inner = mem::replace(streamed, Empty::new().map_err(Into::into).boxed_unsync());
        let ended = Box::pin(admission.term_ended());
        *streamed = Followed { inner, admission: admission.of_body(), ended }.boxed_unsync();
    } else if !verb.changes_a_resource()
        && !upgrade
        && let Some(kube) = body.downcast_mut::<kube_client::client::Body>()
        && let Some(mut whole) = kube.try_clone()
        && let Poll::Ready(Some(Ok(frame))) =
            Pin::new(&mut whole).poll_frame(&mut Context::from_waker(Waker::noop()))
        && let Ok(bytes) = frame.into_data()
    {
        let admission = admission.of_body();
        admission.body_ended();
        *kube = Bytes::from_owner(Piece { bytes, _admission: admission }).into();
    }
}

impl Body for Followed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { inner, admission, ended } = &mut *self;
        loop {
            // Before each poll, since what it returns is sent (rule S2).
            if !admission.is_valid() {
                let lost = ErrLeadershipLost::new("the body of a request", admission.loss());
                return Poll::Ready(Some(Err(lost.into())));
            }
            if let Poll::Ready(frame) = Pin::new(&mut *inner).poll_frame(cx) {
                // A connection need not ask again after the last bytes of a known length, nor after trailers.
                let is_last = frame.as_ref().is_none_or(|it| it.as_ref().is_ok_and(Frame::is_trailers));
                if is_last || inner.is_end_stream() {
                    admission.body_ended();
                }
                let hold = |bytes| Bytes::from_owner(Piece { bytes, _admission: admission.clone() });
                return Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(hold))));
            }
            ready!(ended.as_mut().poll(cx));
            ended.set(admission.term_ended());
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
