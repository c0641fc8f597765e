//! What a gate refuses with.

use crate::{
    leadership::{Bystander, Loss},
    request::{RequestInfo, Verb},
};
use http::{Method, Uri};
use std::{error::Error, fmt, io, sync::Arc};

/// A write was refused because this process does not lead. Nothing was sent.
///
/// Not retryable by itself: wait for leadership first, or leave the work to the leader.
#[derive(Clone, Debug)]
pub struct ErrNotLeader {
    // The request's own parts, moved: what they mean is spelled out only for whoever reads it.
    method: Method,
    uri: Uri,
    upgrade: bool,
    holder: Option<Arc<str>>,
    trouble: Option<Arc<str>>,
    over: bool,
}

/// A write had been admitted, and was cut off when leadership ended. Its outcome is unknown: it may have been carried
/// out.
///
/// Not retryable by itself: whoever leads next must look at what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrLeadershipLost {
    verb: Verb,
    loss: Loss,
}

/// What a gate refuses with; [`find`](Self::find) gets it back out of the error of any client or layer above.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GateError {
    /// Refused before anything was sent.
    NotLeader(ErrNotLeader),
    /// Cut off after it had been admitted.
    LeadershipLost(ErrLeadershipLost),
}

// === impl ErrNotLeader ===

impl ErrNotLeader {
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

    /// Whoever held the lease when the write was refused, as far as was known.
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
            None => write!(f, "; nobody is known to hold the lease")?,
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
            "write cut off as client lost leadership: {}; its outcome is unknown: whoever leads next must look at \
             what is there before writing it again",
            self.loss
        )
    }
}

impl Error for ErrLeadershipLost {}

// === impl GateError ===

impl GateError {
    /// Finds a gate's refusal in `error` or anything that it was caused by: through `kube::Error::Service`, a buffer,
    /// an [`io::Error`], boxes and [`Arc`]s.
    ///
    /// ```
    /// use kube_leader_gate::gate::GateError;
    ///
    /// let other = std::io::Error::other("the disk is full");
    /// assert!(GateError::find(&other).is_none());
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        // A source chain that bites its tail must not hold up the caller.
        const DEEPEST: usize = 64;
        let mut next = Some(error);
        for _ in 0..DEEPEST {
            let error = next?;
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            if let Some(found) = error.downcast_ref::<Box<Self>>() {
                return Some(found);
            }
            if let Some(found) = error.downcast_ref::<Arc<Self>>() {
                return Some(found);
            }
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                // An io::Error names its inner error's source as its own, and skips the inner error itself.
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        None
    }

    /// Whether the outcome of the write is unknown (it may have been carried out); otherwise nothing was sent.
    #[must_use]
    pub const fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::LeadershipLost(_))
    }
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLeader(error) => error.fmt(f),
            Self::LeadershipLost(error) => error.fmt(f),
        }
    }
}

impl Error for GateError {}

impl From<ErrNotLeader> for GateError {
    fn from(error: ErrNotLeader) -> Self {
        Self::NotLeader(error)
    }
}

impl From<ErrLeadershipLost> for GateError {
    fn from(error: ErrLeadershipLost) -> Self {
        Self::LeadershipLost(error)
    }
}
