//! The tower layer and its service.

use super::{
    attempt::{Attempt, Refused},
    body, deadline,
    future::{ResponseFuture, Sent},
    observer::WriteObserver,
    settings::Settings,
};
use crate::{
    leadership::Leadership,
    policy::Policy,
    request::{Receiver, RequestInfo},
};
use http::{Method, Request, Response};
use std::{
    error::Error,
    sync::Arc,
    task::{Context, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

/// Puts a [`WriteGate`] in front of a Kubernetes client.
#[derive(Clone, Debug)]
pub struct WriteGateLayer {
    settings: Settings,
    policy: Arc<Policy>,
    has_request_deadline: bool,
}

/// A service that lets writes pass only while this process leads. A [`WriteGateLayer`] makes it.
#[derive(Clone, Debug)]
pub struct WriteGate<S> {
    inner: S,
    layer: WriteGateLayer,
}

// === impl WriteGateLayer ===

impl WriteGateLayer {
    /// Makes a layer with the strict policy: its gates let only the leader write.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        let settings = Settings::new(leadership, None);
        Self { settings, policy: Arc::default(), has_request_deadline: false }
    }

    /// Exempts the requests that `policy` permits. It replaces any earlier policy. An invalid rule permits nothing,
    /// and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        if let Err(invalid) = policy.validate() {
            tracing::error!("{invalid}");
        }
        Self { policy: Arc::new(policy), ..self }
    }

    /// Adds an observer, and reports the outcome of each write to it. The observers that were added before, for example the
    /// metrics, receive each report first.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { settings: self.settings.with_observer(observer), ..self }
    }

    /// Says whether the API server learns [until when it may work on a write](super#the-deadline-of-a-request). Default: it
    /// does not.
    #[must_use]
    pub fn with_request_deadline(self, request_deadline: bool) -> Self {
        Self { has_request_deadline: request_deadline, ..self }
    }
}

impl<S> Layer<S> for WriteGateLayer {
    type Service = WriteGate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WriteGate { inner, layer: self.clone() }
    }
}

// === impl WriteGate ===

impl<S> WriteGate<S> {
    /// The service behind the gate. A request that you send to it directly does not go through the gate.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service behind the gate, to change it.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Takes the gate away, and returns the service that was behind it.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, R> Service<Request<B>> for WriteGate<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: 'static,
{
    type Response = S::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = ResponseFuture<S::Future>;

    // This returns only the inner service's readiness. An error here would end a buffered client for good (rule S15).
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let WriteGateLayer { settings, policy, has_request_deadline } = &self.layer;
        let asked = RequestInfo::of(&request);
        if asked.is_read() {
            return ResponseFuture::passed(self.inner.call(request));
        }
        if policy.permits(&asked) {
            if let Some(observer) = &settings.observer {
                observer.exempted(&asked);
            }
            return ResponseFuture::passed(self.inner.call(request));
        }
        let upgrade = asked.is_upgrade();
        if let Some((permit, left)) = settings.leadership.admit_for() {
            if let Some(observer) = &settings.observer {
                observer.admitted(&Attempt::Request(asked.clone()));
            }
            let (verb, receiver) = asked.effect();
            let (right, has_body) = body::follow(request.body_mut(), permit, receiver);
            if *has_request_deadline
                && receiver == Receiver::ApiServer
                && let Some(uri) = deadline::within(request.uri(), left)
            {
                *request.uri_mut() = uri;
            }
            // If the gate cannot look into the body, assume that there is one, except for an upgrade by `GET`.
            let has_body = has_body.unwrap_or(!upgrade || *request.method() != Method::GET);
            let sent = Sent { verb, receiver, has_body };
            return ResponseFuture::admitted(
                self.inner.call(request),
                right,
                sent,
                settings.observer.clone(),
            );
        }
        // Do not call the inner service. The next call uses the capacity that `poll_ready` has reserved of it.
        let (asked, _) = request.into_parts();
        let refused = Refused::Request { method: asked.method, uri: asked.uri, upgrade };
        ResponseFuture::rejected(settings.refuse(refused))
    }
}
