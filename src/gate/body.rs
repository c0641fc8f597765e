//! Request bodies that may still be on their way when the answer begins.

use super::error::ErrLeadershipLost;
use crate::{leadership::Admission, request::Verb};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use std::{
    any::Any,
    error::Error,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};
use tokio::sync::futures::OwnedNotified;

type BoxError = Box<dyn Error + Send + Sync>;

/// A request body that is not in memory. The gate knows this type: it counts the write until its body has left or was
/// dropped, also after the answer has begun. After a loss the body fails with [`ErrLeadershipLost`].
#[derive(Debug)]
pub struct StreamedBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    admitted: Option<(Arc<Admission>, Pin<Box<OwnedNotified>>)>,
}

/// Bytes that count until the connection has sent or dropped them.
struct Piece {
    bytes: Bytes,
    _admission: Arc<Admission>,
}

/// Counts the body of an admitted write, if it may still be on its way when the answer begins.
///
/// The API server reads a body to its end before it carries a change out. So the rest of a body in memory matters only to
/// a backend. An upgrade has no body.
pub(super) fn follow<B: 'static>(body: &mut B, verb: Verb, upgrade: bool, admission: &Admission) {
    let body: &mut dyn Any = body;
    if let Some(streamed) = body.downcast_mut::<StreamedBody>() {
        let ended = || Box::pin(admission.term_ended());
        streamed.admitted = (!streamed.is_end_stream()).then(|| (admission.of_body(), ended()));
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

impl StreamedBody {
    /// Wraps a body.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self { inner: body.map_err(Into::into).boxed_unsync(), admitted: None }
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { inner, admitted } = &mut *self;
        let mut inner = Pin::new(inner);
        let Some((admission, ended)) = admitted else { return inner.poll_frame(cx) };
        loop {
            // Before each poll, since what it returns is sent (rule S2).
            if !admission.is_valid() {
                let lost = ErrLeadershipLost::new("the body of a request", admission.loss());
                tracing::warn!(label = lost.label(), loss = lost.loss().as_str(), "{lost}");
                return Poll::Ready(Some(Err(lost.into())));
            }
            if let Poll::Ready(frame) = inner.as_mut().poll_frame(cx) {
                // A connection need not ask again after the last bytes of a known length, nor after trailers.
                let is_last = frame.as_ref().is_none_or(|it| it.as_ref().is_ok_and(Frame::is_trailers));
                if is_last || inner.is_end_stream() || inner.size_hint().exact() == Some(0) {
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
