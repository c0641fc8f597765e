//! A candidate that decides as client-go does, read from its `leaderelection.go`.

use super::server::Server;
use kube_leader_gate::{
    LeaseTiming,
    internal::{self},
    leadership::Moment,
    lease::{LeaseRecord, LeaseUpdate},
};
use std::time::Duration;

/// What client-go knows. It polls, and knows nothing of questions and keys.
#[derive(Clone, Debug)]
pub(super) struct ClientGo {
    name: &'static str,
    /// The lease as last read or written, and since when it has been like this.
    observed: Option<(LeaseRecord, Moment)>,
    /// When it tries next.
    next: Moment,
    leads_until: Option<Moment>,
    /// A write of its is under way.
    writing: bool,
    /// Until when its last write may land.
    lands_until: Moment,
    /// How long after its end a write may land.
    late: Duration,
}

/// What becomes of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    /// The API server carries it out, and its answer is lost.
    AnswerLost,
    /// It may reach the API server later.
    Delayed,
}

impl ClientGo {
    pub(super) fn new(name: &'static str, late: Duration, now: Moment) -> Self {
        let lands_until = Moment::from_nanos(0);
        Self { name, observed: None, next: now, leads_until: None, writing: false, lands_until, late }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn leads(&self, now: Moment) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// Whether a write of its may take effect.
    pub(super) fn may_land(&self, now: Moment) -> bool {
        self.writing && self.leads(now) || now < self.lands_until
    }

    /// A leader writes all the time. Its last write may land for a while after the term.
    pub(super) fn keeps_writing(&mut self, now: Moment) {
        if self.leads(now) {
            self.writing = true;
        } else if std::mem::take(&mut self.writing) {
            let end = self.leads_until.unwrap_or(now);
            self.lands_until = self.lands_until.max(end.saturating_add(self.late));
        }
    }

    /// The process dies, and another begins in its place, with its name.
    pub(super) fn restart(&mut self, now: Moment) {
        // A write that it has sent before the end of its term lands no later for that.
        let writes_now = self.writing && self.leads(now);
        let lands_until =
            if writes_now { self.lands_until.max(now.saturating_add(self.late)) } else { self.lands_until };
        *self = Self { lands_until, ..Self::new(self.name, self.late, now) };
    }

    /// When it acts next.
    pub(super) fn due(&self) -> Moment {
        self.leads_until.map_or(self.next, |until| until.min(self.next))
    }

    /// Whether its term ends at `now`, because no renewal was answered in time.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.leads_until.is_some_and(|until| until <= now)
    }

    /// The process or its term ends without a release.
    pub(super) fn ends(&mut self) {
        self.leads_until = None;
    }

    /// One attempt to acquire or to renew.
    pub(super) fn tries(&mut self, server: &mut Server, fate: Fate, now: Moment) {
        let timing = LeaseTiming::fast();
        self.next = now.saturating_add(timing.retry_period());
        let Some(claim) = self.claim(server.lease.as_ref(), now) else {
            self.leads_until = None;
            return;
        };
        let seen = server.lease.clone();
        if fate == Fate::Delayed {
            server.late.push((seen, claim));
            return;
        }
        let written = server.write(seen.as_ref(), &claim);
        if fate == Fate::Answered
            && let Ok(record) = written
        {
            self.observed = Some((record, now));
            // After a renewal it waits for a retry period. Then the next one has as long as the renew deadline.
            self.leads_until =
                Some(now.saturating_add(timing.retry_period()).saturating_add(timing.renew_deadline()));
        }
    }

    /// What it writes over this lease; None if another candidate's lease is valid.
    fn claim(&mut self, lease: Option<&LeaseRecord>, now: Moment) -> Option<LeaseUpdate> {
        let Some(lease) = lease else { return Some(self.naming(0, now)) };
        let same = |(observed, _): &(LeaseRecord, Moment)| observed.has_spec_of(lease);
        if !self.observed.as_ref().is_some_and(same) {
            self.observed = Some((lease.clone(), now));
        }
        let since = self.observed.as_ref().map_or(now, |(_, since)| *since);
        let mine = lease.holder() == Some(self.name);
        let valid = now < since.saturating_add(lease.duration().unwrap_or(Duration::ZERO));
        match lease.holder() {
            Some(_) if valid && !mine => None,
            _ if mine => {
                let mut claim = self.naming(lease.transitions(), now);
                lease.acquire_time().unwrap_or_default().clone_into(&mut claim.acquire_time);
                Some(claim)
            }
            _ => Some(self.naming(lease.transitions() + 1, now)),
        }
    }

    fn naming(&self, transitions: u64, now: Moment) -> LeaseUpdate {
        let time = format!("{} of {}", now.as_nanos(), self.name);
        let mut claim = internal::claim();
        (claim.holder, claim.transitions) = (self.name.to_owned(), transitions);
        claim.duration_seconds = LeaseTiming::fast().lease_duration().as_secs();
        (claim.acquire_time, claim.renew_time) = (time.clone(), time);
        claim
    }

    /// Gives up the lease, as `ReleaseOnCancel` does after the writes have ended. It is its user who waits for them, so
    /// none counts as late.
    pub(super) fn releases(&mut self, server: &mut Server, now: Moment) {
        (self.writing, self.lands_until) = (false, Moment::from_nanos(0));
        self.leads_until = None;
        self.next = now.saturating_add(LeaseTiming::fast().retry_period());
        let seen = self.observed.as_ref().map(|(record, _)| record.clone());
        let Some(record) = seen.filter(|record| record.holder() == Some(self.name)) else { return };
        let mut free = self.naming(record.transitions(), now);
        (free.holder, free.duration_seconds) = (String::new(), 1);
        let _ = server.write(Some(&record), &free);
    }
}
