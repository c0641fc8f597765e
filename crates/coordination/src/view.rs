//! What the election is shown of the lease. It is pure, and the caller passes the time.
//!
//! [`Seen`] is what the lease says. [`View::step`] says what to show next, until there is nothing
//! more to show. What is shown changes in small steps, since the election draws conclusions from each change:
//!
//! - A lease without a holder is shown as it is once, so the election hears the word of a holder that has released it.
//! - The coordinator releases a vacant lease before something else is shown, so it is no former writer.
//! - A free lease repeats the time of the state before it, so it is the word of no holder.

use crate::{
    seen::{Real, Seen},
    shown::{Show, Shown},
    spec::{self, Spec},
};
use kube_leader_gate::{
    LeaseTiming,
    lease::{ErrLock, ErrLockKind, LeaseName, LeaseRecord},
};
use std::collections::BTreeMap;
use tokio::time::Instant;

/// What an election writes about its holder, and removes with the holder.
const OF_THE_HOLDER: [&str; 2] = ["leader.istio.io/holder-key", "kube-leader-gate/holder-pod"];

/// The annotations of a claim.
type Annotations = BTreeMap<&'static str, Option<String>>;

#[derive(Debug)]
pub(crate) struct View {
    /// The lease, as it is.
    pub(crate) seen: Seen,
    lease: LeaseName,
    /// How long a vacant lease counts as held until it is shown again. The election reads it more often than that.
    vacant_seconds: u64,
    shown: Shown,
    stamp: u64,
}

/// What the election should see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// What it has seen last.
    Same,
    Real,
    Vacant,
    Free,
}

// === impl View ===

impl View {
    pub(crate) fn new(me: &str, lease: &LeaseName, timing: &LeaseTiming) -> Self {
        Self {
            seen: Seen::new(me, timing),
            lease: lease.clone(),
            vacant_seconds: timing.retry_period().as_secs().saturating_add(1).saturating_mul(3),
            shown: Shown::Nothing,
            stamp: 0,
        }
    }

    // --- news ---

    /// Takes in the answer to a write. The election sees it as it is.
    pub(crate) fn written(&mut self, record: &LeaseRecord, now: Instant) {
        if self.seen.take_in(record.clone(), now) {
            self.shown = Shown::Real(record.clone());
        }
    }

    // --- what follows ---

    /// What to show next at `now`. It counts as shown. None if there is nothing more to show.
    pub(crate) fn step(&mut self, now: Instant) -> Option<Show> {
        let target = self.target(now)?;
        let real = self.seen.record().cloned();
        match (target, &self.shown) {
            (Target::Same, _) => None,
            (Target::Vacant, Shown::Vacant(shown)) if self.is_of_this_lease(shown) => {
                let changed = real.is_some_and(|real| real.resource_version() != shown.resource_version());
                if changed { self.show_vacant() } else { None }
            }
            (_, Shown::Vacant(shown)) => {
                self.stamp += 1;
                let freed = spec::freed(shown, self.stamp);
                self.show(Shown::Freed(freed))
            }
            (Target::Real, Shown::Real(shown)) if real.as_ref() == Some(shown) => None,
            (Target::Real, _) => self.show(Shown::Real(real?)),
            (Target::Free, Shown::Free(shown)) if is_same(real.as_ref(), shown) => None,
            // It is no longer this holder's, and has not been released.
            (Target::Free, Shown::Real(shown)) if shown.holder().is_some_and(|it| it != self.seen.me) => {
                self.show_vacant()
            }
            (Target::Free, shown) => {
                let free = spec::free(&real?, shown.record());
                self.show(Shown::Free(free))
            }
            (Target::Vacant, shown) => match real {
                Some(real) if real.holder().is_none() && shown.record() != Some(&real) => {
                    self.show(Shown::Real(real))
                }
                None if matches!(shown, Shown::Real(_) | Shown::Free(_)) => self.show_the_end(),
                _ => self.show_vacant(),
            },
        }
    }

    /// The answer to a read at `now`. None if there is no lease.
    pub(crate) fn answer(&mut self, now: Instant) -> Option<LeaseRecord> {
        let next = match (self.step(now), &self.shown) {
            // It is held for some time more.
            (None, Shown::Vacant(_)) => self.show_vacant(),
            (next, _) => next,
        };
        match next {
            Some(Show::Seen(record)) => Some(record),
            Some(Show::Gone(_)) => None,
            None => self.shown.record().cloned(),
        }
    }

    /// The lease to write a claim of `holder` over, for an election that has `seen` this. Adds to its annotations.
    ///
    /// # Errors
    /// The election may not write this claim.
    pub(crate) fn over(
        &self,
        seen: &LeaseRecord,
        holder: &str,
        annotations: &mut Annotations,
    ) -> Result<LeaseRecord, ErrLock> {
        let refused = |kind, why: &str| Err(ErrLock::new(kind, why));
        let shown = self.shown.record();
        let is_shown = is_same(shown, seen);
        if holder == self.seen.me && seen.holder() != Some(&self.seen.me) {
            if !is_shown || seen.holder().is_none() && !matches!(self.shown, Shown::Free(_)) {
                return refused(ErrLockKind::Conflict, "the coordinator has not named this candidate");
            }
            if !matches!(self.shown, Shown::Free(_)) {
                let why = "the coordinator alone chooses the holder; set no priority, and add early takeover before the coordinator";
                return refused(ErrLockKind::Refused, why);
            }
            for annotation in OF_THE_HOLDER {
                annotations.entry(annotation).or_insert(None);
            }
        }
        Ok(self.seen.record().filter(|real| is_same(Some(real), seen)).unwrap_or(seen).clone())
    }

    fn target(&self, now: Instant) -> Option<Target> {
        let (record, spec, until) = match &self.seen.real {
            Real::Unknown => return None,
            Real::Absent { .. } => return Some(Target::Vacant),
            Real::Present { record, spec, until, .. } => (record, spec, *until),
        };
        Some(match record.holder() {
            None => Target::Vacant,
            Some(holder) if holder != self.seen.me => {
                if now < until {
                    Target::Real
                } else {
                    Target::Vacant
                }
            }
            Some(_) if spec.acquired.is_some() => Target::Real,
            Some(me) => {
                // The coordinator prefers another one already. If that one does not come, take it to release it.
                let waits = spec.preferred.as_deref().is_some_and(|it| it != me) && now < until;
                let writers = self.seen.writers.iter().any(|(_, until)| now < *until);
                let holder = match &self.shown {
                    Shown::Real(shown) => shown.holder().and_then(|holder| self.seen.writer_until(holder)),
                    _ => None,
                };
                match (waits || writers, holder) {
                    (false, _) => Target::Free,
                    (true, Some(until)) if now < until => Target::Same,
                    (true, _) => Target::Vacant,
                }
            }
        })
    }

    /// Whether `shown` is the object that is there now, or is none as there is none.
    fn is_of_this_lease(&self, shown: &LeaseRecord) -> bool {
        let missing = spec::missing(&self.lease);
        let there = self.seen.record().or(missing.as_ref());
        there.is_some_and(|there| there.uid() == shown.uid())
    }

    fn show_vacant(&mut self) -> Option<Show> {
        self.stamp += 1;
        let there = self.seen.record().cloned().or_else(|| spec::missing(&self.lease))?;
        self.show(Shown::Vacant(spec::vacant(&there, self.vacant_seconds, self.stamp)))
    }

    /// A lease that named this candidate was shown as another one.
    fn show_the_end(&mut self) -> Option<Show> {
        let shown = std::mem::replace(&mut self.shown, Shown::Absent);
        let Real::Absent { last, .. } = &self.seen.real else { return None };
        let named =
            |last: &&LeaseRecord| last.holder() == Some(&self.seen.me) && Spec::of(last).acquired.is_none();
        let last = last.as_ref().filter(|last| !named(last)).or(shown.record())?;
        Some(Show::Gone(last.clone()))
    }

    fn show(&mut self, shown: Shown) -> Option<Show> {
        self.shown = shown;
        self.shown.record().cloned().map(Show::Seen)
    }
}

fn is_same(one: Option<&LeaseRecord>, other: &LeaseRecord) -> bool {
    one.is_some_and(|one| one.uid() == other.uid() && one.resource_version() == other.resource_version())
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
