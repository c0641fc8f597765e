//! Request bodies that may still be on their way when the answer begins.

use super::{error::ErrLeadershipLost, future::Right};
use crate::{leadership::WritePermit, request::Receiver};
use bytes::Bytes;
#[cfg(feature = "election")]
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

/// The most bytes that a connection gets at a time. After a loss, the connection may still send the bytes that it already has.
const PIECE: usize = 64 * 1024;

/// The body of an admitted write, if it streams.
struct Followed {
    inner: Streamed,
    /// Bytes that `inner` has yielded, and that the connection has not received yet.
    rest: Bytes,
    permit: Arc<WritePermit>,
    ended: Pin<Box<OwnedNotified>>,
}

/// Bytes of a body. The write counts until the connection has sent, copied or dropped them.
struct Piece {
    bytes: Bytes,
    _permit: Arc<WritePermit>,
}

/// Lets an admitted write count until its body is over, and cuts the body off when the term ends. Also returns whether the
/// request has a body: none if the gate cannot look into this type of body.
pub(super) fn follow<B: 'static>(
    body: &mut B,
    permit: WritePermit,
    receiver: Receiver,
) -> (Right, Option<bool>) {
    let body: &mut dyn Any = body;
    #[cfg(feature = "election")]
    if let Some(kube) = body.downcast_mut::<kube_client::client::Body>() {
        let has_body = !kube.is_end_stream();
        // The API server reads the whole body before it answers. Only a backend may answer while a body is still on its way.
        let bytes = || kube.try_clone()?.collect_bytes().now_or_never()?.ok();
        if has_body
            && receiver != Receiver::ApiServer
            && let Some(bytes) = bytes()
        {
            let permit = Arc::new(permit);
            *kube = Piece::of(bytes, &permit).into();
            return (Right::WithBody(permit), Some(true));
        }
        return (Right::Whole(permit), Some(has_body));
    }
    #[cfg(not(feature = "election"))]
    let _ = receiver;
    let Some(streamed) = body.downcast_mut::<Streamed>() else { return (Right::Whole(permit), None) };
    if streamed.is_end_stream() {
        return (Right::Whole(permit), Some(false));
    }
    let (inner, permit) = (mem::take(streamed), Arc::new(permit));
    let ended = Box::pin(permit.term_ended());
    *streamed = Followed { inner, rest: Bytes::new(), permit: permit.clone(), ended }.boxed_unsync();
    (Right::WithBody(permit), Some(true))
}

impl Piece {
    fn of(bytes: Bytes, permit: &Arc<WritePermit>) -> Bytes {
        Bytes::from_owner(Self { bytes, _permit: permit.clone() })
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
        let Self { inner, rest, permit, ended } = &mut *self;
        loop {
            // Check before each poll, since the connection sends what the poll returns (rule S2).
            if !permit.is_valid() {
                let lost = ErrLeadershipLost::new(None, Some("the body of a request"), permit.loss());
                return Poll::Ready(Some(Err(lost.into())));
            }
            if !rest.is_empty() {
                let piece = rest.split_to(rest.len().min(PIECE));
                return Poll::Ready(Some(Ok(Frame::data(Piece::of(piece, permit)))));
            }
            if let Poll::Ready(frame) = Pin::new(&mut *inner).poll_frame(cx) {
                match frame {
                    Some(Ok(frame)) if frame.data_ref().is_some_and(|data| !data.is_empty()) => {
                        *rest = frame.into_data().unwrap_or_default();
                        continue;
                    }
                    end_or_trailers => return Poll::Ready(end_or_trailers),
                }
            }
            ready!(ended.as_mut().poll(cx));
            ended.set(permit.term_ended());
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.inner.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
