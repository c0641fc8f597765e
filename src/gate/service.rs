//! The tower layer and its service.

use super::{
    attempt::{Attempt, Refused},
    error::WriteObserver,
    future::ResponseFuture,
    settings::{Passed, Settings},
};
use crate::{leadership::Leadership, policy::Policy, request::RequestInfo};
use http::Request;
use std::{
    error::Error,
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

/// Puts a [`WriteGate`] in front of a service. `C` says which of its requests are writes.
#[derive(Clone, Debug)]
pub struct WriteGateLayer<C = Kubernetes> {
    settings: Settings,
    classifier: C,
}

impl WriteGateLayer {
    /// Makes a layer for Kubernetes clients, with the strict policy: its gates let only the leader write.
    #[must_use]
    pub fn new(leadership: Leadership) -> Self {
        Self { settings: Settings::new(leadership, None), classifier: Kubernetes::default() }
    }

    /// Exempts the requests that `policy` permits. It replaces any earlier policy. An invalid rule permits nothing,
    /// and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { classifier: Kubernetes::new(policy), ..self }
    }
}

impl<F> WriteGateLayer<ByLabel<F>> {
    /// Makes a layer for a service of any request type. `label` returns the label of a write, and None for a request
    /// that passes on every replica. The label names the write in errors, logs and metrics. The
    /// [module](super#a-service-that-is-not-kubernetes) has an example.
    #[must_use]
    pub fn by_label<R>(leadership: Leadership, label: F) -> Self
    where
        F: Fn(&R) -> Option<&'static str>,
    {
        Self { settings: Settings::new(leadership, None), classifier: ByLabel { label } }
    }
}

impl<C> WriteGateLayer<C> {
    /// Reports the outcome of each write to `observer`. It replaces any earlier observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { settings: self.settings.with_observer(observer), ..self }
    }
}

impl<S, C: Clone> Layer<S> for WriteGateLayer<C> {
    type Service = WriteGate<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        WriteGate { inner, settings: self.settings.clone(), classifier: self.classifier.clone() }
    }
}

/// A service that lets writes pass only while this process leads. A [`WriteGateLayer`] makes it. `C` says which of its
/// requests are writes.
#[derive(Clone, Debug)]
pub struct WriteGate<S, C = Kubernetes> {
    inner: S,
    settings: Settings,
    classifier: C,
}

/// Classifies requests to the Kubernetes API: [`RequestInfo`](crate::request::RequestInfo) says which are reads, and a
/// [`Policy`] exempts some of the writes. It is the default of a gate.
#[derive(Clone, Debug, Default)]
pub struct Kubernetes {
    policy: Arc<Policy>,
}

/// Classifies requests of any type by a function, which gives each write a label. If it returns None, the request
/// passes on every replica.
#[derive(Clone, Copy)]
pub struct ByLabel<F> {
    label: F,
}

impl Kubernetes {
    fn new(policy: Policy) -> Self {
        if let Err(invalid) = policy.validate() {
            tracing::error!("{invalid}");
        }
        Self { policy: Arc::new(policy) }
    }
}

impl<F> fmt::Debug for ByLabel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByLabel").finish_non_exhaustive()
    }
}

impl<S, B> Service<Request<B>> for WriteGate<S>
where
    S: Service<Request<B>>,
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
        let asked = RequestInfo::of(&request);
        if asked.is_read() {
            return ResponseFuture::passed(self.inner.call(request));
        }
        let settings = &self.settings;
        if self.classifier.policy.permits(&asked) {
            if let Some(observer) = &settings.observer {
                observer.exempted(&asked);
            }
            if settings.leadership.marks().load(Relaxed) && request.extensions().get::<Passed>().is_none() {
                request.extensions_mut().insert(Passed::Exempted);
            }
            return ResponseFuture::passed(self.inner.call(request));
        }
        let upgrade = asked.is_upgrade();
        if let Some(mut admission) = settings.admit(&Attempt::Request(asked)) {
            let (verb, is_change) = asked.effect();
            if settings.leadership.marks().load(Relaxed) {
                request.extensions_mut().insert(Passed::Admitted);
            }
            #[cfg(feature = "election")]
            let has_body = super::body::follow(request.body_mut(), &admission, is_change).unwrap_or(!upgrade);
            #[cfg(not(feature = "election"))]
            let has_body = !upgrade; // an upgrade has none
            // The API server reads a body before it decides. A backend may answer first.
            if !is_change && has_body {
                admission.may_be_late();
            }
            let inner = self.inner.call(request);
            return ResponseFuture::admitted(inner, admission, verb, settings.observer.clone());
        }
        // The next call uses what `poll_ready` has reserved of the inner service.
        let (asked, _) = request.into_parts();
        let refused = Refused::Request { method: asked.method, uri: asked.uri, upgrade };
        ResponseFuture::rejected(settings.refuse(refused))
    }
}

impl<S, R, F> Service<R> for WriteGate<S, ByLabel<F>>
where
    S: Service<R>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    F: Fn(&R) -> Option<&'static str>,
{
    type Response = S::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = ResponseFuture<S::Future, &'static str>;

    // As above.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match (self.classifier.label)(&request) {
            None => ResponseFuture::passed(self.inner.call(request)),
            Some(label) => self.settings.guard(label, || self.inner.call(request)),
        }
    }
}
