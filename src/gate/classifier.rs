//! Which requests of a service are writes.

use crate::policy::Policy;
use std::{fmt, sync::Arc};

/// Classifies requests to the Kubernetes API: [`RequestInfo`](crate::request::RequestInfo) says which are reads, and a
/// [`Policy`] exempts some of the writes. It is the default of a gate.
#[derive(Clone, Debug, Default)]
pub struct Kubernetes {
    pub(super) policy: Arc<Policy>,
}

/// Classifies requests of any type by a function, which gives each write a label. If it returns None, the request
/// passes on every replica.
#[derive(Clone, Copy)]
pub struct ByLabel<F> {
    pub(super) label: F,
}

impl Kubernetes {
    pub(super) fn new(policy: Policy) -> Self {
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
