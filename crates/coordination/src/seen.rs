//! The lease as it is, and who may still write. It is pure, and the caller passes the time.

use crate::{spec::Spec, status::LockStatus};
use kube_leader_gate::{LeaseTiming, lease::LeaseRecord};
use std::time::Duration;
use tokio::time::Instant;

/// For a lease whose end is too far away to be counted.
const LONG: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// What is known of the lease.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) me: String,
    /// How long this candidate waits for a holder that it has not seen.
    whole: Duration,
    pub(crate) real: Real,
    /// Who may still write, if it has not released the lease, and until when. The name is empty if it is not known.
    pub(crate) writers: Vec<(String, Instant)>,
}

/// The lease, as last seen.
#[derive(Clone, Debug)]
pub(crate) enum Real {
    Unknown,
    Absent {
        since: Instant,
        last: Option<LeaseRecord>,
    },
    Present {
        record: LeaseRecord,
        spec: Spec,
        since: Instant,
        /// When the holder's time is over.
        until: Instant,
    },
}

// === impl Seen ===

impl Seen {
    pub(crate) fn new(me: &str, timing: &LeaseTiming) -> Self {
        Self { me: me.to_owned(), whole: timing.lease_duration(), real: Real::Unknown, writers: Vec::new() }
    }

    /// The version of the lease, as last seen.
    pub(crate) fn version(&self) -> Option<String> {
        self.record().map(|record| record.resource_version().to_owned())
    }

    /// Takes in the answer to a read. `before` is the version that was known when the read was sent. If there was no news
    /// since, the answer is believed even if it is older: a backup was restored.
    pub(crate) fn read(&mut self, news: Option<LeaseRecord>, before: Option<&str>, now: Instant) {
        match news {
            None => self.gone(None, now),
            Some(news) if self.version().as_deref() == before => self.accept(news, now),
            Some(news) => {
                self.take_in(news, now);
            }
        }
    }

    /// Takes in news. Returns false if it is old.
    pub(crate) fn take_in(&mut self, news: LeaseRecord, now: Instant) -> bool {
        let is_old = self.record().is_some_and(|known| is_older(&news, known));
        if !is_old {
            self.accept(news, now);
        }
        !is_old
    }

    /// Takes in that the lease was deleted, in the state `last` if that is known.
    pub(crate) fn deleted(&mut self, last: LeaseRecord, now: Instant) {
        if self.take_in(last.clone(), now) {
            self.gone(Some(last), now);
        }
    }

    fn gone(&mut self, last: Option<LeaseRecord>, now: Instant) {
        if !matches!(self.real, Real::Absent { .. }) {
            self.real = Real::Absent { since: now, last };
        }
    }

    fn accept(&mut self, news: LeaseRecord, now: Instant) {
        let spec = Spec::of(&news);
        if let Real::Present { record, spec: known, .. } = &mut self.real
            && record.uid() == news.uid()
            && *known == spec
        {
            *record = news;
            return;
        }
        let longest = self.note_writers(&news, &spec, now);
        let until = now.checked_add(longest).unwrap_or(now + LONG);
        if let Some(other) = news.holder().filter(|holder| *holder != self.me) {
            self.may_write(other.to_owned(), until, now);
        }
        self.real = Real::Present { record: news, spec, since: now, until };
    }

    /// Notes who may still write when `news` comes, and hears the word of one that has released the lease. Returns how long
    /// the holder of `news` has the lease.
    fn note_writers(&mut self, news: &LeaseRecord, spec: &Spec, now: Instant) -> Duration {
        let duration = spec.duration.unwrap_or(self.whole);
        let named = news.holder().is_some() && spec.acquired.is_none();
        match &self.real {
            Real::Present { record, spec: known, .. } => {
                let same = record.uid() == news.uid() && record.transitions() == news.transitions();
                if same && spec.released && spec.acquired != known.acquired {
                    let name = record.holder().unwrap_or_default();
                    self.writers.retain(|(writer, _)| writer != name);
                }
                // A time that is shorter than before may be an edit by hand. It counts from the second renewal on.
                let stays = same && record.holder() == news.holder();
                return duration.max(known.duration.filter(|_| stays).unwrap_or_default());
            }
            // It has not seen whose place the named one takes.
            Real::Unknown if named => self.may_write(String::new(), now + self.whole, now),
            // A user has freed it.
            Real::Unknown if news.holder().is_none() && !spec.released && spec.renewed => {
                self.may_write(String::new(), now.checked_add(duration).unwrap_or(now + LONG), now);
            }
            Real::Unknown | Real::Absent { .. } => {}
        }
        duration
    }

    fn may_write(&mut self, name: String, until: Instant, now: Instant) {
        let until = self.writer_until(&name).map_or(until, |before| before.max(until));
        self.writers.retain(|(writer, until)| *writer != name && now < *until);
        self.writers.push((name, until));
    }

    pub(crate) fn writer_until(&self, name: &str) -> Option<Instant> {
        self.writers.iter().find(|(writer, _)| writer == name).map(|(_, until)| *until)
    }

    /// When something else is to be shown, if there is no news before.
    pub(crate) fn changes_at(&self, now: Instant) -> Option<Instant> {
        let holder_ends = match &self.real {
            Real::Present { until, .. } => Some(*until),
            Real::Unknown | Real::Absent { .. } => None,
        };
        let writers_end = self.writers.iter().map(|(_, until)| *until);
        writers_end.chain(holder_ends).filter(|at| now < *at).min()
    }

    /// What the task that keeps the `LeaseCandidate` has to know.
    pub(crate) fn sight(&self) -> LockStatus {
        let vacant_from = match &self.real {
            Real::Unknown => None,
            Real::Absent { since, .. } => Some(*since),
            Real::Present { record, since, until, .. } => match record.holder() {
                None => Some(*since),
                Some(holder) => (holder != self.me).then_some(*until),
            },
        };
        LockStatus { seen: !matches!(self.real, Real::Unknown), vacant_from }
    }

    /// The candidate to which this one should give the lease.
    pub(crate) fn preferred(&self) -> Option<&str> {
        let Real::Present { record, spec, .. } = &self.real else { return None };
        let mine = record.holder() == Some(&self.me) && spec.acquired.is_some();
        spec.preferred.as_deref().filter(|preferred| mine && *preferred != self.me)
    }

    pub(crate) fn record(&self) -> Option<&LeaseRecord> {
        match &self.real {
            Real::Present { record, .. } => Some(record),
            Real::Unknown | Real::Absent { .. } => None,
        }
    }
}

/// Whether this is the lower of two versions that can be compared.
fn is_older(one: &LeaseRecord, other: &LeaseRecord) -> bool {
    let version = |record: &LeaseRecord| record.resource_version().parse::<u64>().ok();
    version(one).zip(version(other)).is_some_and(|(one, other)| one < other)
}
