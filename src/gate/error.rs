//! The errors of the gate.

use super::find::find;
use crate::{
    leadership::{Bystander, Loss, NOT_BEGUN, Stage},
    request::{RequestInfo, Verb},
};
use http::{Method, Uri};
use std::{error::Error, fmt, sync::Arc};

/// The gate refused a write because this process does not lead. Nothing was sent.
///
/// Do not retry the write at once. Wait for leadership first, or leave the work to the leader.
///
/// The gate boxes this type itself, so `downcast_ref` on the gate's error finds it. If a wrapper keeps its source, as
/// `kube::Error::Service` does, a walk of [`source`](Error::source) finds it too. [`find`](Self::find) does that
/// walk.
#[derive(Clone, Debug)]
pub struct ErrNotLeader {
    // The parts of the request, moved here. They are parsed only when a caller asks.
    method: Method,
    uri: Uri,
    upgrade: bool,
    holder: Option<Arc<str>>,
    trouble: Option<Arc<str>>,
    stage: Stage,
}

/// The gate admitted a write and then cut it off, because leadership ended. The outcome is unknown: the API server
/// may have carried it out.
///
/// Do not retry the write as it is: the next leader must first read the present state. Find this error as you find
/// [`ErrNotLeader`].
#[derive(Clone, Debug)]
pub struct ErrLeadershipLost {
    verb: Verb,
    loss: Loss,
}

// === impl ErrNotLeader ===

impl ErrNotLeader {
    /// Finds this error in `error` or in its sources.
    ///
    /// It walks [`source`](Error::source) and tries `downcast_ref` on each error. It also looks into three wrappers
    /// that such a walk skips: an [`io::Error`](std::io::Error), a [`Box`] and an [`Arc`]. It looks at 64 errors at
    /// most.
    ///
    /// ```
    /// use kube_leader_gate::ErrNotLeader;
    ///
    /// let other = std::io::Error::other("the disk is full");
    /// assert!(ErrNotLeader::find(&other).is_none());
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find(error)
    }

    pub(super) fn new(method: Method, uri: Uri, upgrade: bool, bystander: Bystander) -> Self {
        let Bystander { holder, trouble, stage } = bystander;
        Self { method, uri, upgrade, holder, trouble, stage }
    }

    /// The verb of the refused request, as the API server's audit log names it (`connect` for exec and similar
    /// requests).
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.request().verb()
    }

    /// The resource of the refused request (`deployments.apps/scale`), or its path if it names no resource.
    #[must_use]
    pub fn resource(&self) -> String {
        self.request().target().to_string()
    }

    /// What the refused request asked for.
    #[must_use]
    pub fn request(&self) -> RequestInfo<'_> {
        RequestInfo::from_parts(&self.method, &self.uri, self.upgrade)
    }

    /// The last known holder of the lease when the gate refused the write.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// Why the election made no progress when the gate refused the write. None if all was well.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

impl fmt::Display for ErrNotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = self.request();
        write!(f, "write attempt rejected as client is not leader: {} {}", request.verb(), request.target())?;
        if let Some(name) = request.name() {
            write!(f, " {name:?}")?;
        }
        if let Some(namespace) = request.namespace() {
            write!(f, " in namespace {namespace:?}")?;
        }
        match &self.holder {
            Some(holder) => write!(f, "; the last known holder of the lease is {holder:?}")?,
            None => write!(f, "; no holder of the lease is known")?,
        }
        if let Some(trouble) = self.trouble().filter(|_| self.stage == Stage::UnderWay) {
            write!(f, "; the election is in trouble: {trouble}")?;
        }
        f.write_str("; nothing was sent: ")?;
        f.write_str(match self.stage {
            Stage::NotBegun => NOT_BEGUN,
            Stage::UnderWay => "write again once this process leads, or exempt the request in the policy",
            Stage::Over => "the election of this process has stopped, and it will not lead again",
        })
    }
}

impl Error for ErrNotLeader {}

// === impl ErrLeadershipLost ===

impl ErrLeadershipLost {
    /// Finds this error in `error` or in its sources, as [`ErrNotLeader::find`] does.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find(error)
    }

    pub(super) const fn new(verb: Verb, loss: Loss) -> Self {
        Self { verb, loss }
    }

    /// The verb of the write that was cut off.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// What ended leadership.
    #[must_use]
    pub const fn loss(&self) -> Loss {
        self.loss
    }
}

impl fmt::Display for ErrLeadershipLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "write cut off as client lost leadership: {}; its outcome is unknown: the next leader must read \
             the present state before it writes again",
            self.loss
        )
    }
}

impl Error for ErrLeadershipLost {}
