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
            && asked.verb_on_resource().is_some_and(Verb::changes_a_resource)
        {
            let left = deadline.saturating_since(self.leadership.now());
            if let Some(uri) = query::within(request.uri(), left) {
                *request.uri_mut() = uri;
            }
        }
        ResponseFuture::write(self.inner.call(request), self.leadership.clone())
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;
    use crate::{
        leadership::{Grantor, Term},
        testing::ManualClock,
    };
    use std::{convert::Infallible, sync::Arc, time::Duration};
    use tower::{ServiceExt, service_fn};

    /// The URI that the layer passes on, for a leader that has 8 s left.
    async fn passed_on(method: &str, uri: &str) -> String {
        let grantor = Grantor::with_clock(Arc::new(ManualClock::new()));
        let deadline = grantor.now().saturating_add(Duration::from_secs(8));
        let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
        let echo = service_fn(|request: Request<()>| async move {
            Ok::<_, Infallible>(Response::new(request.uri().to_string()))
        });
        let layer = ServerTimeLayer::new(grantor.leadership());
        let request = Request::builder().method(method).uri(uri).body(()).expect("a request");
        layer.layer(echo).oneshot(request).await.expect("an answer").into_body()
    }

    #[tokio::test]
    async fn each_write_to_a_resource_carries_what_is_left() {
        let writes = [
            ("POST", "/api/v1/namespaces/a/pods"),
            ("PUT", "/apis/apps/v1/namespaces/a/deployments/x/status"),
            ("PATCH", "/api/v1/nodes/x"),
            ("DELETE", "/api/v1/namespaces/a/pods/x"),
            ("DELETE", "/api/v1/namespaces/a/pods"),
        ];
        for (method, uri) in writes {
            assert_eq!(passed_on(method, uri).await, format!("{uri}?timeout=8000ms"), "{method}");
        }
    }

    /// Some change nothing. A backend answers the others, and could read the parameter.
    #[tokio::test]
    async fn reads_and_requests_for_a_backend_stay() {
        let others = [
            ("GET", "/api/v1/nodes/x"),
            ("GET", "/api/v1/namespaces/a/pods?watch=true"),
            ("POST", "/api/v1/namespaces/a/pods/x/exec?command=ls"),
            ("POST", "/api/v1/namespaces/a/services/x/proxy/path"),
            ("POST", "/webhook"),
            ("PUT", "/apis"),
        ];
        for (method, uri) in others {
            assert_eq!(passed_on(method, uri).await, uri, "{method}");
        }
    }
}
