//! The body of a request on its way up.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};

/// What an API server takes at most.
const MOST: u64 = 3 * 1024 * 1024;
/// How long the rest of a body may take to come in.
const PATIENCE: Duration = Duration::from_secs(5);

/// Passes everything on as it comes.
///
/// When it is dropped before its end, a task reads the rest and throws it away. The answer does not wait for that task.
/// Without the task, the connection would be reset while the caller still sends, and the caller could lose the answer.
pub struct Upload {
    body: Option<Incoming>,
    /// The caller sends no body before it is told to, and it has not been told.
    is_held_back: bool,
}

// === impl Upload ===

impl Upload {
    /// `is_held_back`: the caller waits for `100 Continue`, which hyper sends when the body is first asked for.
    pub fn new(body: Incoming, is_held_back: bool) -> Self {
        Self { body: Some(body), is_held_back }
    }

    /// Whether the caller's connection ends if this body is not wanted: its rest is not sent, or longer than is read.
    pub fn ends_connection(&self) -> bool {
        self.is_held_back && !self.is_end_stream() || self.size_hint().lower() > MOST
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_held_back = false;
        self.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.is_held_back || self.is_end_stream() {
            return;
        }
        // There is no runtime any more when the process ends.
        if let (Some(body), Ok(runtime)) = (self.body.take(), Handle::try_current()) {
            runtime.spawn(discard(body));
        }
    }
}

/// Reads the rest, within bounds. The connection of a caller that sends on and on is closed.
async fn discard(mut body: Incoming) {
    let read = async {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, |data| data.len() as u64);
            if length > MOST {
                return;
            }
        }
    };
    let _ = timeout(PATIENCE, read).await;
}
