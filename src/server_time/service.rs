//! The layer and the service.

use super::{future::ResponseFuture, query};
use crate::{
    gate::Exempted,
    leadership::Leadership,
    request::{RequestInfo, Verb},
};
use http::{Request, Response};
use std::{
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll},
};
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
    pub fn new(leadership: Leadership) -> Self {
        leadership.marks().store(true, Relaxed);
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
        // A follower too may send what the policy exempts. No deadline holds for it.
        if asked.is_read() || request.extensions().get::<Exempted>().is_some() {
            return ResponseFuture::new(self.inner.call(request), None);
        }
        if let Some(deadline) = self.leadership.deadline()
            && asked.verb_on_resource().is_some_and(Verb::changes_a_resource)
        {
            let left = deadline.saturating_since(self.leadership.now());
            if let Some(uri) = query::within(request.uri(), left) {
                *request.uri_mut() = uri;
            }
        }
        ResponseFuture::new(self.inner.call(request), Some(self.leadership.clone()))
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;
    use crate::{
        gate::WriteGateLayer,
        leadership::{Grantor, Term},
        policy::{Policy, Preset},
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

    /// It passes on every replica, so it is no leader's write. Its 504 holds up no term either (rule S4).
    #[tokio::test]
    async fn exempted_request_has_no_deadline() {
        let clock = Arc::new(ManualClock::new());
        let grantor = Grantor::with_clock(clock.clone());
        let leadership = grantor.leadership();
        let deadline = grantor.now().saturating_add(Duration::from_secs(8));
        let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
        let refuse = service_fn(|request: Request<()>| async move {
            assert_eq!(request.uri().query(), None);
            Ok::<_, Infallible>(Response::builder().status(504).body(()).expect("an answer"))
        });
        let policy = Policy::strict().allow(Preset::TokenReviews);
        let gate = WriteGateLayer::new(leadership.clone()).with_policy(policy);
        let stack = gate.layer(ServerTimeLayer::new(leadership.clone()).layer(refuse));
        for late in [false, true] {
            if late {
                clock.advance(Duration::from_secs(9));
            }
            let review =
                Request::post("/apis/authentication.k8s.io/v1/tokenreviews").body(()).expect("a request");
            assert_eq!(stack.clone().oneshot(review).await.expect("an answer").status(), 504);
            assert_eq!(leadership.unanswered(), None, "late: {late}");
        }
    }

    #[tokio::test]
    async fn stricter_gate_below_takes_the_exemption_back() {
        let grantor = Grantor::with_clock(Arc::new(ManualClock::new()));
        let leadership = grantor.leadership();
        let deadline = grantor.now().saturating_add(Duration::from_secs(8));
        let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
        let echo = service_fn(|request: Request<()>| async move {
            Ok::<_, Infallible>(Response::new(request.uri().query().map(str::to_owned)))
        });
        let strict = WriteGateLayer::new(leadership.clone());
        let outer = strict.clone().with_policy(Policy::strict().allow(Preset::TokenReviews));
        let stack = outer.layer(strict.layer(ServerTimeLayer::new(leadership).layer(echo)));
        let review =
            Request::post("/apis/authentication.k8s.io/v1/tokenreviews").body(()).expect("a request");
        let query = stack.oneshot(review).await.expect("an answer").into_body();
        assert_eq!(query.as_deref(), Some("timeout=8000ms"));
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
