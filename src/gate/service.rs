//! The service.

use super::{ErrNotLeader, ResponseFuture, WriteObserver};
use crate::{leadership::Leadership, policy::Policy, request::RequestInfo};
use http::Request;
use std::{
    error::Error,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

/// A service whose writes pass only while this process leads; see the [module](super).
#[derive(Clone, Debug)]
pub struct WriteGate<S> {
    inner: S,
    leadership: Leadership,
    policy: Arc<Policy>,
    observer: Option<Arc<dyn WriteObserver>>,
}

impl<S> WriteGate<S> {
    pub(super) fn new(
        inner: S,
        leadership: Leadership,
        policy: Arc<Policy>,
        observer: Option<Arc<dyn WriteObserver>>,
    ) -> Self {
        Self { inner, leadership, policy, observer }
    }

    /// The service behind the gate.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service behind the gate, to change it.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Takes the gate away.
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

    // Only the inner service's readiness: an error from here would end a buffered client for good (rule S15).
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let asked = RequestInfo::of(&request);
        if asked.is_read() {
            return ResponseFuture::passed(self.inner.call(request));
        }
        if self.policy.permits(&asked) {
            if let Some(observer) = &self.observer {
                observer.exempted(&asked);
            }
            return ResponseFuture::passed(self.inner.call(request));
        }
        if let Some(admission) = self.leadership.admit() {
            if let Some(observer) = &self.observer {
                observer.admitted(&asked);
            }
            let verb = asked.verb();
            let inner = self.inner.call(request);
            return ResponseFuture::admitted(inner, admission, verb, self.observer.clone());
        }
        // What `poll_ready` has reserved of the inner service stays reserved for the next call.
        let upgrade = asked.is_upgrade();
        let (asked, _) = request.into_parts();
        let error = ErrNotLeader::new(asked.method, asked.uri, upgrade, self.leadership.bystander());
        tracing::debug!(verb = %error.verb(), resource = %error.resource(), holder = error.holder(), "{error}");
        if let Some(observer) = &self.observer {
            observer.rejected(&error);
        }
        ResponseFuture::rejected(error)
    }
}
