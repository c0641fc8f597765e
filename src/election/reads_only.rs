//! A retry policy that leaves writes alone.

use crate::request::RequestInfo;
use http::Request;
use tower::retry::Policy;

/// A retry policy for reads. It passes a read to the `P` that it wraps, and never repeats any other request.
///
/// [`Election::client`](super::Election::client) uses it around kube's own policy. Use it in [a stack of your
/// own](crate::guide::stacking) around any policy:
///
/// ```
/// use kube_client::client::retry::RetryPolicy;
/// use kube_leader_gate::election::ReadsOnly;
/// use tower::retry::RetryLayer;
///
/// let layer = RetryLayer::new(ReadsOnly::new(RetryPolicy::default()));
/// ```
///
/// What a read is, the gate and this policy decide alike: a `POST` is none, even of an access review, and neither is
/// `exec`.
#[derive(Clone, Debug)]
pub struct ReadsOnly<P> {
    policy: P,
}

// === impl ReadsOnly ===

impl<P> ReadsOnly<P> {
    /// Applies `policy` to reads.
    pub const fn new(policy: P) -> Self {
        Self { policy }
    }
}

impl<B, Res, E, P> Policy<Request<B>, Res, E> for ReadsOnly<P>
where
    P: Policy<Request<B>, Res, E>,
{
    type Future = P::Future;

    fn retry(&mut self, request: &mut Request<B>, result: &mut Result<Res, E>) -> Option<Self::Future> {
        self.policy.retry(request, result)
    }

    // `Retry` repeats a request only if it has a copy.
    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        if RequestInfo::of(request).is_read() { self.policy.clone_request(request) } else { None }
    }
}
