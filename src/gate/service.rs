//! The tower service.

use super::{error::ErrNotLeader, future::ResponseFuture, observer::WriteObserver, settings::Settings};
use crate::{leadership::Leadership, policy::Policy, request::RequestInfo};
use http::Request;
use std::{
    error::Error,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

/// A service that lets writes pass only while this process leads. The [module](super) describes it.
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
pub struct WriteGate<S> {
    inner: S,
    settings: Settings,
}

impl<S> WriteGate<S> {
    /// Puts a gate with the strict policy in front of `inner`, as [`WriteGateLayer::new`](super::WriteGateLayer::new)
    /// does. Only the leader can write through it.
    #[must_use]
    pub fn new(inner: S, leadership: Leadership) -> Self {
        Self::with(inner, Settings::new(leadership))
    }

    pub(super) const fn with(inner: S, settings: Settings) -> Self {
        Self { inner, settings }
    }

    /// Exempts the requests that `policy` permits. It replaces any earlier policy. An invalid rule permits nothing,
    /// and the gate logs it.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { settings: self.settings.with_policy(policy), ..self }
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
{
    type Response = S::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = ResponseFuture<S::Future>;

    // This returns only the inner service's readiness. An error here would end a buffered client for good (rule S15).
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let asked = RequestInfo::of(&request);
        if asked.is_read() {
            return ResponseFuture::passed(self.inner.call(request));
        }
        let Settings { leadership, policy, observer } = &self.settings;
        if policy.permits(&asked) {
            if let Some(observer) = observer {
                observer.exempted(&asked);
            }
            return ResponseFuture::passed(self.inner.call(request));
        }
        if let Some(admission) = leadership.admit() {
            if let Some(observer) = observer {
                observer.admitted(&asked);
            }
            let verb = asked.verb();
            let inner = self.inner.call(request);
            return ResponseFuture::admitted(inner, admission, verb, observer.clone());
        }
        // The next call uses what `poll_ready` has reserved of the inner service.
        let upgrade = asked.is_upgrade();
        let (asked, _) = request.into_parts();
        let error = ErrNotLeader::new(asked.method, asked.uri, upgrade, leadership.bystander());
        tracing::debug!(verb = %error.verb(), resource = %error.resource(), holder = error.holder(), "{error}");
        if let Some(observer) = observer {
            observer.rejected(&error);
        }
        ResponseFuture::rejected(error)
    }
}
