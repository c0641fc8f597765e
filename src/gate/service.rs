//! The tower service.

use super::{
    attempt::{Attempt, Refused},
    classifier::{ByLabel, Kubernetes},
    future::ResponseFuture,
    observer::WriteObserver,
    settings::{Exempted, Settings},
};
use crate::{leadership::Leadership, policy::Policy, request::RequestInfo};
use http::Request;
use std::{
    error::Error,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
};
use tower_service::Service;

/// A service that lets writes pass only while this process leads. The [module](super) describes it. `C` says which of
/// its requests are writes.
///
/// ```
/// use http::{Request, Response};
/// use kube_leader_gate::{Policy, WriteGate, leadership::Grantor, policy::Preset};
/// use std::convert::Infallible;
/// use tower::service_fn;
///
/// let grantor = Grantor::new();
/// let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
/// let gate = WriteGate::new(inner, grantor.leadership()).with_policy(Policy::strict().allow(Preset::Events));
/// ```
#[derive(Clone, Debug)]
pub struct WriteGate<S, C = Kubernetes> {
    inner: S,
    settings: Settings,
    classifier: C,
}

impl<S> WriteGate<S> {
    /// Puts a gate with the strict policy in front of `inner`, as [`WriteGateLayer::new`](super::WriteGateLayer::new)
    /// does. Only the leader can write through it.
    #[must_use]
    pub fn new(inner: S, leadership: Leadership) -> Self {
        Self::with(inner, Settings::new(leadership, None), Kubernetes::default())
    }

    /// Exempts the requests that `policy` permits. It replaces any earlier policy. An invalid rule permits nothing,
    /// and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { classifier: Kubernetes::new(policy), ..self }
    }
}

impl<S, F> WriteGate<S, ByLabel<F>> {
    /// Puts a gate in front of a service of any request type, as
    /// [`WriteGateLayer::by_label`](super::WriteGateLayer::by_label) does.
    #[must_use]
    pub fn by_label<R>(inner: S, leadership: Leadership, label: F) -> Self
    where
        F: Fn(&R) -> Option<&'static str>,
    {
        Self::with(inner, Settings::new(leadership, None), ByLabel { label })
    }
}

impl<S, C> WriteGate<S, C> {
    pub(super) const fn with(inner: S, settings: Settings, classifier: C) -> Self {
        Self { inner, settings, classifier }
    }

    /// Reports the outcome of each write to `observer`. It replaces any earlier observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { settings: self.settings.with_observer(observer), ..self }
    }

    /// The service behind the gate.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service behind the gate, mutable.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Removes the gate and returns the service behind it.
    pub fn into_inner(self) -> S {
        self.inner
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
            if settings.leadership.marks().load(Relaxed) {
                request.extensions_mut().insert(Exempted);
            }
            return ResponseFuture::passed(self.inner.call(request));
        }
        let upgrade = asked.is_upgrade();
        if let Some(admission) = settings.admit(&Attempt::Request(asked)) {
            let verb = asked.verb();
            request.extensions_mut().remove::<Exempted>(); // by another gate, outside of this one
            #[cfg(feature = "election")]
            super::body::follow(request.body_mut(), verb, upgrade, &admission);
            let inner = self.inner.call(request);
            return ResponseFuture::admitted(inner, admission, verb, settings.observer.clone());
        }
        // The next call uses what `poll_ready` has reserved of the inner service.
        let (asked, _) = request.into_parts();
        let refused = Refused::Request { method: asked.method, uri: asked.uri };
        ResponseFuture::rejected(settings.refuse(refused, upgrade))
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
