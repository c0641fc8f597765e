//! The errors of a write that the gate refuses or cuts off.

use super::attempt::{Attempt, Refused};
use crate::{
    leadership::{FollowerView, Loss, NOT_BEGUN, Stage},
    request::Verb,
};
use std::{error::Error, fmt, io, sync::Arc};

/// The gate refused a write because this process does not lead. Nothing was sent, so nothing was changed.
///
/// [Wait for leadership](crate::leadership::Leadership::elected), or leave the work to the leader. Do not send the same
/// write again, not even when this process leads: a follower decided on this write, and another leader may have written
/// since then. Read the present state, and decide again. A retry layer
/// [outside the gate](crate::guide::stacking#a-retry-of-your-own) must not repeat this error either.
///
/// The gate boxes this type itself, so `downcast_ref` on the gate's error finds it. [`find`](Self::find) also finds it inside
/// another error that keeps it as its source, as `kube::Error::Service` does.
#[derive(Clone, Debug)]
pub struct ErrNotLeader {
    refused: Refused,
    stage: Stage,
    holder: Option<Arc<str>>,
    /// The trouble of the election.
    trouble: Option<Arc<str>>,
}

/// The gate admitted a write and then cut it off, because leadership ended: [`loss`](Self::loss) says why. The outcome
/// is unknown: the server may have carried the write out, or may still do so.
///
/// A retry is not safe: it may do the same twice, or undo what another leader has done. The next leader, perhaps this
/// process, must first [read the present state](crate::guide::guarantees#what-to-do-with-a-refused-write).
///
/// Find this error as you find [`ErrNotLeader`].
#[derive(Clone, Debug)]
pub struct ErrLeadershipLost {
    verb: Option<Verb>,
    label: Option<&'static str>,
    loss: Loss,
}

// === impl ErrNotLeader ===

impl ErrNotLeader {
    /// Finds this error in `error` or in its sources, 64 at most. It also looks into three wrappers that a walk of
    /// [`source`](Error::source) skips: an [`io::Error`](std::io::Error), a [`Box`] and an [`Arc`].
    ///
    /// Take care with an error of your own that is `#[error(transparent)]` (thiserror): its source is the source of the error
    /// inside, and not the error inside itself. So `find` cannot see an `ErrNotLeader` directly inside, as
    /// [`admit`](crate::Leadership::admit) returns it. If a `kube::Error` or an [`ErrGuarded`](super::ErrGuarded) is inside,
    /// `find` sees the `ErrNotLeader` in that error.
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

    pub(super) fn new(refused: Refused, view: FollowerView) -> Self {
        let FollowerView { holder, trouble, stage } = view;
        Self { refused, stage, holder, trouble }
    }

    /// What the gate refused.
    #[must_use]
    pub fn attempt(&self) -> Attempt<'_> {
        self.refused.attempt()
    }

    /// The last known holder of the lease when the gate refused the write.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }
}

impl fmt::Display for ErrNotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = self.attempt();
        write!(f, "write attempt rejected as client is not leader: {attempt}; nothing was sent")?;
        match &self.holder {
            Some(holder) => write!(f, "; the last known holder of the lease is {holder:?}")?,
            None => write!(f, "; no holder of the lease is known")?,
        }
        if let Some(trouble) = self.trouble.as_ref().filter(|_| self.stage == Stage::UnderWay) {
            write!(f, "; the election is in trouble: {trouble}")?;
        }
        f.write_str("; ")?;
        match self.stage {
            Stage::NotBegun => f.write_str(NOT_BEGUN),
            Stage::Over => {
                f.write_str("the election of this process has stopped, and it will not lead again")
            }
            Stage::UnderWay if attempt.verb() == Some(Verb::Unknown) => f.write_str(
                "the gate does not recognise this path, so the request counts as a write; spell the path as kubectl does",
            ),
            Stage::UnderWay if attempt.request().is_some() => {
                f.write_str("once this process leads, read what is there and decide again, or exempt the request in the election's policy")
            }
            Stage::UnderWay => f.write_str("once this process leads, read what is there and decide again"),
        }
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

    /// Makes the error, and logs it.
    pub(super) fn new(verb: Option<Verb>, label: Option<&'static str>, loss: Loss) -> Self {
        let error = Self { verb, label, loss };
        let verb = error.verb.map(Verb::as_str);
        tracing::warn!(verb, label = error.label, loss = loss.as_str(), "{error}");
        error
    }

    /// The verb of the request that was cut off. None for another write.
    #[must_use]
    pub const fn verb(&self) -> Option<Verb> {
        self.verb
    }

    /// The label of the write that was cut off. None for a request to the Kubernetes API.
    #[must_use]
    pub const fn label(&self) -> Option<&'static str> {
        self.label
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

/// The search stops after this many errors, in case a chain of sources loops.
const DEEPEST: usize = 64;

/// Finds an error of type `T` in `error` or in its sources.
///
/// An [`io::Error`], a [`Box`] and an [`Arc`] return the *source* of the error inside, so this looks into them.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    for _ in 0..DEEPEST {
        let error = next?;
        if let Some(found) = held(error) {
            return Some(found);
        }
        let inside = held::<io::Error>(error).and_then(io::Error::get_ref);
        next = match (inside, error.downcast_ref::<Arc<dyn Error + Send + Sync>>()) {
            (Some(inside), _) => Some(inside),
            (None, Some(inside)) => Some(&**inside),
            (None, None) => error.source(),
        };
    }
    None
}

/// Casts `error` to `T`, also if it is a [`Box`] or an [`Arc`] of `T`.
fn held<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    error
        .downcast_ref::<T>()
        .or_else(|| error.downcast_ref::<Box<T>>().map(|inside| &**inside))
        .or_else(|| error.downcast_ref::<Arc<T>>().map(|inside| &**inside))
}

#[cfg(test)]
mod tests {
    use super::ErrNotLeader;
    use crate::{gate::attempt::Refused, leadership::Stage};
    use http::{Method, Uri};

    /// The text of the error of a refused creation.
    fn text(stage: Stage, trouble: Option<&str>) -> String {
        let uri = Uri::from_static("/api/v1/namespaces/a/pods");
        let refused = Refused::Request { method: Method::POST, uri, upgrade: false };
        ErrNotLeader { refused, stage, holder: None, trouble: trouble.map(Into::into) }.to_string()
    }

    #[test]
    fn trouble_is_told_while_the_election_is_under_way() {
        let troubled = text(Stage::UnderWay, Some("no route to host"));
        let told = "; the election is in trouble: no route to host; once this process leads";
        assert!(troubled.contains(told), "{troubled}");
        let over = text(Stage::Over, Some("no route to host"));
        assert!(!over.contains("trouble") && over.contains("has stopped"), "{over}");
        let well = text(Stage::UnderWay, None);
        assert!(!well.contains("trouble"), "{well}");
    }
}
