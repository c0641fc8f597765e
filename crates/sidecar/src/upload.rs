//! The body of a request on its way to the API server.

use crate::headers;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};

/// What an API server takes at most.
const MOST: u32 = 3 * 1024 * 1024;
/// How long the rest of a body may take to come in.
const PATIENCE: Duration = Duration::from_secs(5);

/// Passes all bytes on as they arrive.
///
/// If it is dropped before the end of the body, a task reads the rest and discards it. The answer does not wait for
/// that task. Without the task, the connection would be reset while the caller still sends, and the caller could lose
/// the answer.
pub(crate) struct Upload(Option<Incoming>);

// === impl Upload ===

impl Upload {
    pub(crate) fn new(body: Incoming) -> Self {
        Self(Some(body))
    }

    /// Whether the body is longer than the rest that the task reads.
    pub(crate) fn is_too_long(&self) -> bool {
        self.size_hint().lower() > MOST.into()
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = self.0.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(cx));
        frame.map_ok(|mut frame| {
            frame.trailers_mut().map(headers::clean_trailers);
            frame
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let rest = self.0.take().filter(|body| !body.is_end_stream());
        // The runtime is gone when the process ends.
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(discard(rest));
        }
    }
}

/// Reads the rest, within limits. Closes the connection of a caller that does not stop sending.
async fn discard(body: Incoming) {
    let mut body = Limited::new(body, MOST as usize);
    let _ = timeout(PATIENCE, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}
