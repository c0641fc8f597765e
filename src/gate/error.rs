//! What a gate refuses with.

use super::find::find;
use crate::{
    leadership::{Bystander, Loss},
    request::{RequestInfo, Verb},
};
use http::{Method, Uri};
use std::{error::Error, fmt, sync::Arc};

/// A write was refused because this process does not lead. Nothing was sent.
///
/// Do not retry it as it is: wait for leadership first, or leave the work to the leader.
///
/// The gate boxes this type itself, so a plain `downcast_ref` on the gate's error finds it, and so does a walk of
/// [`source`](Error::source) from any wrapper that keeps its source, `kube::Error::Service` for one.
/// [`find`](Self::find) does that walk.
#[derive(Clone, Debug)]
pub struct ErrNotLeader {
    // The request's own parts, moved here. They are taken apart only when a reader asks.
    method: Method,
    uri: Uri,
    upgrade: bool,
    holder: Option<Arc<str>>,
    trouble: Option<Arc<str>>,
    over: bool,
}

/// A write was admitted, and then cut off when leadership ended. Its outcome is unknown: the API server may have carried it
/// out.
///
/// Do not retry it as it is: the next leader must look at what is there. It is found as [`ErrNotLeader`] is.
#[derive(Clone, Debug)]
pub struct ErrLeadershipLost {
    verb: Verb,
    loss: Loss,
}

// === impl ErrNotLeader ===

impl ErrNotLeader {
    /// Finds this error in `error` or in its sources.
    ///
    /// It finds what a walk of [`source`](Error::source) with `downcast_ref` finds, and looks into three wrappers that such a
    /// walk skips: an [`io::Error`](std::io::Error), a [`Box`] and an [`Arc`]. It looks at 64 errors at most.
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
        let Bystander { holder, trouble, over } = bystander;
        Self { method, uri, upgrade, holder, trouble, over }
    }

    /// The verb of the refused request, as the API server's audit log would have it (`connect` for exec and the like).
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.request().verb()
    }

    /// The resource of the refused request (`deployments.apps/scale`), or its path where it names none.
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

    /// What kept the election from making progress when the write was refused, if something did.
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
            Some(holder) => write!(f, "; the lease was last seen held by {holder:?}")?,
            None => write!(f, "; no holder of the lease is known")?,
        }
        if let Some(trouble) = self.trouble().filter(|_| !self.over) {
            write!(f, "; the election is in trouble: {trouble}")?;
        }
        f.write_str("; nothing was sent: ")?;
        if self.over {
            return f.write_str("the election of this process has stopped, and it will not lead again");
        }
        f.write_str("write again once this process leads, or exempt the request in the policy")
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
            "write cut off as client lost leadership: {}; its outcome is unknown: the next leader must look at what \
             is there before writing it again",
            self.loss
        )
    }
}

impl Error for ErrLeadershipLost {}
