//! Request bodies that may still be on their way when the answer begins.

use super::error::ErrLeadershipLost;
use crate::leadership::{Moment, WritePermit};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use std::{
    any::Any,
    error::Error,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::futures::OwnedNotified;

type BoxError = Box<dyn Error + Send + Sync>;
type Streamed = UnsyncBoxBody<Bytes, BoxError>;

/// The right of a body. The write counts until it is dropped.
struct Right {
    admission: WritePermit,
    /// None if a backend gets the body.
    began: Option<Moment>,
}

/// A body that streams, of an admitted write.
struct Followed {
    inner: Streamed,
    right: Arc<Right>,
    ended: Pin<Box<OwnedNotified>>,
}

/// Bytes of a body, until the connection has sent, copied or dropped them.
struct Piece {
    bytes: Bytes,
    _right: Arc<Right>,
}

/// Lets an admitted write count until its body is over, and cuts the body off with the term. Returns whether there is a
/// body. None if this is a type that the gate cannot look into.
pub(super) fn follow<B: 'static>(body: &mut B, admission: &WritePermit, is_change: bool) -> Option<bool> {
    let body: &mut dyn Any = body;
    let right = || {
        let (admission, began) = admission.of_body();
        Arc::new(Right { admission, began: is_change.then_some(began) })
    };
    if let Some(kube) = body.downcast_mut::<kube_client::client::Body>() {
        let has_body = !kube.is_end_stream();
        // The API server reads a change to its end, so the rest of one in memory matters only to a backend.
        let bytes = || kube.try_clone()?.collect_bytes().now_or_never()?.ok();
        if has_body
            && !is_change
            && let Some(bytes) = bytes()
        {
            *kube = Piece::of(bytes, &right()).into();
        }
        return Some(has_body);
    }
    let streamed = body.downcast_mut::<Streamed>()?;
    if streamed.is_end_stream() {
        return Some(false);
    }
    let inner = mem::take(streamed);
    *streamed = Followed { inner, right: right(), ended: Box::pin(admission.term_ended()) }.boxed_unsync();
    Some(true)
}

impl Drop for Right {
    fn drop(&mut self) {
        // The answer settles a change. If an answer was lost meanwhile, it may be this one, and the write ends here.
        if self.began.is_some_and(|began| self.admission.unanswered() < Some(began)) {
            self.admission.answered();
        }
    }
}

impl Piece {
    fn of(bytes: Bytes, right: &Arc<Right>) -> Bytes {
        Bytes::from_owner(Self { bytes, _right: right.clone() })
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for Followed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { inner, right, ended } = &mut *self;
        let admission = &right.admission;
        loop {
            // Before each poll, since what it returns is sent (rule S2).
            if !admission.is_valid() {
                let lost = ErrLeadershipLost::new("the body of a request", admission.loss());
                return Poll::Ready(Some(Err(lost.into())));
            }
            if let Poll::Ready(frame) = Pin::new(&mut *inner).poll_frame(cx) {
                let held = |frame: Frame<Bytes>| frame.map_data(|bytes| Piece::of(bytes, right));
                return Poll::Ready(frame.map(|frame| frame.map(held)));
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
