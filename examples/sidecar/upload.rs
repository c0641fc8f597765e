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
use tokio::{sync::oneshot, time::timeout};

/// What an API server takes at most.
const MOST: usize = 3 * 1024 * 1024;
/// How long the rest of a body may take to come in.
const PATIENCE: Duration = Duration::from_secs(5);

/// Passes everything on as it comes. Dropped before its end, it hands what is left to its [`Rest`].
pub struct Upload {
    body: Option<Incoming>,
    back: Option<oneshot::Sender<Incoming>>,
}

/// What nobody has read.
pub struct Rest(oneshot::Receiver<Incoming>);

// === impl Upload ===

impl Upload {
    pub fn new(body: Incoming) -> (Self, Rest) {
        let (back, rest) = oneshot::channel();
        (Self { body: Some(body), back: Some(back) }, Rest(rest))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
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
        if let (Some(body), Some(back)) =
            (self.body.take().filter(|body| !body.is_end_stream()), self.back.take())
        {
            // Nobody waits for it if the API server has answered.
            let _ = back.send(body);
        }
    }
}

// === impl Rest ===

impl Rest {
    /// Reads it out, within bounds: an answer that comes while the caller still sends is lost when the connection closes.
    pub async fn discard(self) {
        let read = async {
            let Ok(mut body) = self.0.await else { return };
            let mut length = 0;
            while let Some(Ok(frame)) = body.frame().await {
                length += frame.data_ref().map_or(0, Bytes::len);
                if length > MOST {
                    return;
                }
            }
        };
        // A caller that sends on and on is hung up on.
        let _ = timeout(PATIENCE, read).await;
    }
}
