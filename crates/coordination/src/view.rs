//! What the election is shown of the lease. It is pure, and the caller passes the time.
//!
//! The coordinator names a candidate by its `holderIdentity`, without an `acquireTime`: the candidate that takes the lease
//! writes that. A name is no claim, and says nothing of the holder before. So the election sees the lease as the last holder
//! has left it, at the version that names the next one: held until its time is over, or released. All that it knows of former
//! writers comes from what real holders have written.

use crate::status::LockStatus;
use kube_leader_gate::lease::{ErrLock, ErrLockKind, LeaseRecord};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Asks the holder to release the lease, for the candidate of this name.
const ASKED: &str = "kube-leader-gate/asked";

/// What a holder writes.
const OF_THE_HOLDER: [&str; 5] =
    ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"];

#[derive(Debug)]
pub(crate) struct View {
    me: String,
    real: Real,
    /// Since when it is so.
    since: Instant,
    left: Left,
}

/// The lease, as it is.
#[derive(Debug)]
enum Real {
    Unknown,
    Absent,
    Present(LeaseRecord),
}

/// The lease, before the coordinator has named a candidate in it.
#[derive(Debug)]
enum Left {
    /// This process has not seen that.
    Unknown,
    /// There was none.
    Absent,
    By(LeaseRecord),
}

// === impl View ===

impl View {
    pub(crate) fn new(me: &str, now: Instant) -> Self {
        Self { me: me.to_owned(), real: Real::Unknown, since: now, left: Left::Unknown }
    }

    // --- news ---

    /// The version of the lease, as last seen.
    pub(crate) fn version(&self) -> Option<String> {
        self.real().map(|real| real.resource_version().to_owned())
    }

    /// Takes in the answer to a read. `before` is the version that was known when the read was sent. If there was no news
    /// since, the answer is believed even if it is older: a backup was restored.
    pub(crate) fn read(&mut self, news: Option<&LeaseRecord>, before: Option<&str>, now: Instant) {
        match news {
            None => self.gone(now),
            Some(news) if self.version().as_deref() == before => self.accept(news, now),
            Some(news) => self.take_in(news, now),
        }
    }

    /// Takes in news, unless they are old.
    pub(crate) fn take_in(&mut self, news: &LeaseRecord, now: Instant) {
        if !self.real().is_some_and(|known| is_older(news, known)) {
            self.accept(news, now);
        }
    }

    /// Takes in that the lease was deleted in the state `last`.
    pub(crate) fn deleted(&mut self, last: &LeaseRecord, now: Instant) {
        if !self.real().is_some_and(|known| is_older(last, known)) {
            self.gone(now);
        }
    }

    fn gone(&mut self, now: Instant) {
        if !matches!(self.real, Real::Absent) {
            (self.real, self.since, self.left) = (Real::Absent, now, Left::Absent);
        }
    }

    fn accept(&mut self, news: &LeaseRecord, now: Instant) {
        if names(news) {
            // A holder that was not seen has held it, for as long as this candidate would.
            let by_an_unseen_one = || without(news, &["holderIdentity", "leaseDurationSeconds"]);
            let by_none = || without(news, &["holderIdentity", "renewTime"]);
            match &self.left {
                Left::Unknown => self.left = Left::By(by_an_unseen_one()),
                Left::Absent => self.left = Left::By(by_none()),
                // Another holder was there in between.
                Left::By(left) if (left.uid(), left.transitions()) != (news.uid(), news.transitions()) => {
                    self.left = Left::By(by_an_unseen_one());
                }
                // This candidate has lost it, and no other has left it.
                Left::By(left) if left.holder() == Some(&*self.me) => self.left = Left::By(by_none()),
                Left::By(_) => {}
            }
        } else {
            self.left = Left::By(news.clone());
        }
        if self.real().is_none_or(|known| spec(known) != spec(news)) {
            self.since = now;
        }
        self.real = Real::Present(news.clone());
    }

    // --- what follows ---

    /// The lease, as the election shall see it.
    pub(crate) fn shown(&self, record: &LeaseRecord) -> LeaseRecord {
        match &self.left {
            Left::By(left) if names(record) => changed(record, |object| {
                let left = spec(left);
                for field in OF_THE_HOLDER {
                    object["spec"][field] = left[field].clone();
                }
            }),
            _ => self.asking(record),
        }
    }

    /// A holder is asked for the lease as by a person, if the coordinator prefers another candidate.
    fn asking(&self, record: &LeaseRecord) -> LeaseRecord {
        match self.preferred_in(record) {
            Some(preferred) => changed(record, |object| annotate(object, &preferred)),
            None => record.clone(),
        }
    }

    /// The candidate to which this one should give the lease.
    pub(crate) fn preferred(&self) -> Option<String> {
        self.real().and_then(|real| self.preferred_in(real))
    }

    fn preferred_in(&self, record: &LeaseRecord) -> Option<String> {
        let preferred = text(record, "preferredHolder").filter(|it| !it.is_empty() && *it != self.me)?;
        (record.holder() == Some(&*self.me)).then_some(preferred)
    }

    /// Whether the lease names this candidate.
    pub(crate) fn is_named(&self) -> bool {
        self.real().is_some_and(|real| real.holder() == Some(&*self.me))
    }

    /// The lease to write a claim of `holder` over, for an election that has `seen` this.
    ///
    /// # Errors
    /// The election may not write this claim.
    pub(crate) fn over(&self, seen: &LeaseRecord, holder: &str) -> Result<LeaseRecord, ErrLock> {
        if !holder.is_empty() && holder != self.me {
            return Err(ErrLock::new(ErrLockKind::Refused, "the coordinator alone chooses the holder"));
        }
        let is_seen = |real: &&LeaseRecord| {
            (real.uid(), real.resource_version()) == (seen.uid(), seen.resource_version())
        };
        let named = self.real().filter(is_seen).filter(|_| self.is_named());
        let why = "the coordinator has not named this candidate";
        named.cloned().ok_or_else(|| ErrLock::new(ErrLockKind::Conflict, why))
    }

    /// What the task that keeps the `LeaseCandidate` has to know.
    pub(crate) fn status(&self) -> LockStatus {
        let vacant_from = match &self.real {
            Real::Unknown => None,
            Real::Absent => Some(self.since),
            Real::Present(_) if self.is_named() => None,
            Real::Present(real) if real.holder().is_none() => Some(self.since),
            // None if that is too far away to be counted.
            Real::Present(real) => {
                let seconds = spec(real)["leaseDurationSeconds"].as_u64().unwrap_or(0);
                self.since.checked_add(Duration::from_secs(seconds))
            }
        };
        LockStatus { seen: !matches!(self.real, Real::Unknown), vacant_from }
    }

    fn real(&self) -> Option<&LeaseRecord> {
        if let Real::Present(real) = &self.real { Some(real) } else { None }
    }
}

/// Whether the coordinator has named the holder, who has not taken the lease yet.
fn names(record: &LeaseRecord) -> bool {
    record.holder().is_some() && text(record, "acquireTime").is_none()
}

fn spec(record: &LeaseRecord) -> Value {
    record.clone().into_json()["spec"].take()
}

fn text(record: &LeaseRecord, field: &str) -> Option<String> {
    spec(record)[field].as_str().map(str::to_owned)
}

/// Whether this is the lower of two versions that can be compared.
fn is_older(one: &LeaseRecord, other: &LeaseRecord) -> bool {
    let version = |record: &LeaseRecord| record.resource_version().parse::<u64>().ok();
    version(one).zip(version(other)).is_some_and(|(one, other)| one < other)
}

fn changed(record: &LeaseRecord, change: impl FnOnce(&mut Value)) -> LeaseRecord {
    let mut object = record.clone().into_json();
    change(&mut object);
    // Cannot fail: it has the same name and version.
    LeaseRecord::from_json(object).unwrap_or_else(|_| record.clone())
}

/// A lease that has a spec, without these fields of it.
fn without(record: &LeaseRecord, fields: &[&str]) -> LeaseRecord {
    changed(record, |object| fields.iter().for_each(|field| object["spec"][*field] = Value::Null))
}

fn annotate(object: &mut Value, preferred: &str) {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[ASKED] = preferred.into();
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
