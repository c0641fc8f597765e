//! Layers that wrap the lock of an election, as tower's layers wrap a service. Optional features use them.

use super::candidate::Candidate;
use crate::{
    leadership::Leadership,
    lease::{BoxLock, Lock},
};
use std::{error::Error, fmt};

/// Wraps the lock of an election; see [`ElectionBuilder::layer_lock`](super::ElectionBuilder::layer_lock).
///
/// The election believes what the wrapped lock shows. So a layer may show a lease as free or as held, delay an answer,
/// keep an answer from the election ([`Withheld`](crate::lease::ErrLockKind::Withheld)), fail a call, or write
/// annotations into a [`LeaseUpdate`](crate::lease::LeaseUpdate) and read them from a
/// [`LeaseRecord`](crate::lease::LeaseRecord::annotation). It must keep the contract of [`Lock`].
///
/// ```
/// use kube_leader_gate::{
///     Candidate, Election, Identity,
///     extension::{LockContext, LockLayer, Trouble},
///     lease::{BoxLock, LeaseUpdate, ErrLock, LeaseRecord, Lock},
/// };
/// use std::convert::Infallible;
///
/// /// Writes the zone of this replica into the lease while it holds it. A leader in another zone is trouble.
/// struct Zone(&'static str);
///
/// struct WithZone {
///     inner: BoxLock,
///     zone: &'static str,
///     elsewhere: Trouble,
/// }
///
/// impl LockLayer for Zone {
///     type Lock = WithZone;
///     type Error = Infallible;
///
///     fn layer(self, inner: BoxLock, context: &LockContext) -> Result<WithZone, Infallible> {
///         Ok(WithZone { inner, zone: self.0, elsewhere: context.trouble("the leader is far away") })
///     }
/// }
///
/// impl WithZone {
///     fn marked(&self, claim: &LeaseUpdate) -> LeaseUpdate {
///         let mut claim = claim.clone();
///         let zone = (!claim.holder.is_empty()).then(|| self.zone.to_owned());
///         claim.annotations.insert("example.com/zone", zone);
///         claim
///     }
/// }
///
/// impl Lock for WithZone {
///     type Events = <BoxLock as Lock>::Events;
///
///     async fn get(&self) -> Result<Option<LeaseRecord>, ErrLock> {
///         let seen = self.inner.get().await?;
///         let zone = seen.as_ref().and_then(|it| it.annotation("example.com/zone")?.as_str());
///         match zone.filter(|zone| *zone != self.zone) {
///             Some(zone) => self.elsewhere.raise("zone", &format_args!("it runs in {zone}; start a replica here")),
///             None => self.elsewhere.settle(),
///         }
///         Ok(seen)
///     }
///
///     async fn create(&self, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
///         self.inner.create(&self.marked(claim)).await
///     }
///
///     async fn update(&self, seen: &LeaseRecord, claim: &LeaseUpdate) -> Result<LeaseRecord, ErrLock> {
///         self.inner.update(seen, &self.marked(claim)).await
///     }
///
///     async fn watch(&self) -> Result<Self::Events, ErrLock> {
///         self.inner.watch().await
///     }
///
///     fn reconnect(&self) -> Option<&'static str> {
///         self.inner.reconnect()
///     }
/// }
///
/// let builder = Election::builder("default", "my-controller").layer_lock(Zone("a"));
/// ```
pub trait LockLayer: Send + Sync + 'static {
    /// The wrapped lock.
    type Lock: Lock;
    /// Why the lock cannot be wrapped, for example a setting that does not fit this election.
    type Error: Into<Box<dyn Error + Send + Sync>>;

    /// Wraps `inner`, the lock of the election that `context` describes.
    ///
    /// # Errors
    /// If the layer cannot wrap the lock. The builder returns this error as [`ErrBuild::Lock`](super::ErrBuild::Lock).
    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<Self::Lock, Self::Error>;
}

/// What a [`LockLayer`] may know of its election.
#[derive(Clone, Debug)]
pub struct LockContext {
    candidate: Candidate,
}

/// The trouble of a [`LockLayer`]. While it is raised, the log, [`Candidate::trouble`] and the error of each rejected
/// write show it, and the replica is not ready. Dropping this value settles the trouble.
#[derive(Debug)]
pub struct Trouble {
    what: &'static str,
    leadership: Leadership,
}

pub(super) type WrapLock =
    Box<dyn FnOnce(BoxLock, &LockContext) -> Result<BoxLock, Box<dyn Error + Send + Sync>> + Send + Sync>;

pub(super) fn boxed(layer: impl LockLayer) -> WrapLock {
    Box::new(|inner, context| layer.layer(inner, context).map(BoxLock::new).map_err(Into::into))
}

// === impl LockContext ===

impl LockContext {
    pub(super) const fn new(candidate: Candidate) -> Self {
        Self { candidate }
    }

    /// The handle of the election: its lease, its identity, its timing, who leads, and
    /// [`give_way`](Candidate::give_way).
    #[must_use]
    pub const fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The uid of the pod in which this process runs, if it is known
    /// ([`pod_uid`](super::ElectionBuilder::pod_uid)).
    #[must_use]
    pub fn pod_uid(&self) -> Option<&str> {
        self.candidate.profile.pod.as_deref()
    }

    /// Makes a [`Trouble`]. Each of its messages begins with `what`, for example with `the leader is far away`. Two
    /// troubles of one election need different texts.
    #[must_use]
    pub fn trouble(&self, what: &'static str) -> Trouble {
        Trouble { what, leadership: self.candidate.leadership().clone() }
    }
}

// === impl Trouble ===

impl Trouble {
    /// Says that there is trouble. `kind` is a word for log fields, and `details` say what is wrong and what to do.
    /// Call this at each failure. The first call for a kind logs a warning. While the trouble lasts, later calls log at
    /// debug level, and a warning once in five minutes.
    pub fn raise(&self, kind: &'static str, details: &dyn fmt::Display) {
        self.leadership.set_trouble(self.what, Some((kind, details)));
    }

    /// Says that the trouble is over, if there was any.
    pub fn settle(&self) {
        self.leadership.set_trouble(self.what, None);
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.settle();
    }
}
