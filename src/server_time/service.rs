//! The layer and the service.

use super::{future::ResponseFuture, query};
use crate::{
    leadership::Leadership,
    request::{RequestInfo, Verb},
};
use http::{Request, Response};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Puts a [`ServerTime`] in front of a service. The [module](super) describes it.
#[derive(Clone, Debug)]
pub struct ServerTimeLayer {
    leadership: Leadership,
}

/// A service that limits how long the API server works on a write. The [module](super) describes it.
#[derive(Clone, Debug)]
pub struct ServerTime<S> {
    inner: S,
    leadership: Leadership,
}

// === impl ServerTimeLayer ===

impl ServerTimeLayer {
    /// Limits writes to the validity deadline of `leadership`.
    #[must_use]
    pub const fn new(leadership: Leadership) -> Self {
        Self { leadership }
    }
}

impl<S> Layer<S> for ServerTimeLayer {
    type Service = ServerTime<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ServerTime { inner, leadership: self.leadership.clone() }
    }
}

// === impl ServerTime ===

impl<S, B, R> Service<Request<B>> for ServerTime<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let asked = RequestInfo::of(&request);
        if asked.is_read() {
            return ResponseFuture::read(self.inner.call(request));
        }
        // A follower's exempted write has no deadline.
        if let Some(deadline) = self.leadership.deadline()
            && changes_a_resource(&asked)
        {
            let left = deadline.saturating_since(self.leadership.now());
            if let Some(uri) = query::within(request.uri(), left) {
                *request.uri_mut() = uri;
            }
        }
        ResponseFuture::write(self.inner.call(request), self.leadership.clone())
    }
}

/// Whether the API server itself carries the request out, and no backend reads its query.
fn changes_a_resource(asked: &RequestInfo<'_>) -> bool {
    matches!(
        asked.verb_on_resource(),
        Some(Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection)
    )
}
