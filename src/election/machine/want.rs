//! What to do next: what the gate has to be, and which call is due.

use super::{
    calls::Call,
    known::{Lease, Staleness},
    state::{Busy, Gate, Machine, Next, Restraint},
    stored::Stored,
    terms::ActiveTerm,
};
use crate::{
    election::hooks::LeaseCall,
    leadership::{Intent, Loss, Moment},
    lease::JITTER,
};
use jiff::Timestamp;
use std::time::Duration;

const STORED_OTHERWISE: &str =
    "the lease has no holder, but it was stored in another form than a release, so the other candidates wait";

/// After so many failures a candidate that stops leaves the lease to expire.
pub(crate) const MOST_FAILURES: u32 = 3;

enum Want {
    Call(LeaseCall, Moment),
    Nothing,
    Done(Result<(), &'static str>),
}

impl Machine {
    /// What the gate has to be now. The task applies it after each input and each wait.
    pub fn gate(&self, now: Moment) -> Gate {
        let Some(term) = self.terms.active() else { return Gate::Shut(self.terms.lost()) };
        let deadline = self.deadline();
        if now >= deadline {
            Gate::Shut(Loss::Expired)
        } else if self.terms.is_closing(&term.name) {
            Gate::Closing { deadline }
        } else if self.known.possible_writers.may_write(now).is_some() {
            Gate::Shut(self.terms.lost())
        } else {
            Gate::Open { term: term.name.clone(), deadline }
        }
    }

    /// What to do now. The task looks at what this process still does (`busy`) after it has made the gate what
    /// [`gate`](Self::gate) says, so that no work and no write begins unseen. `wall` is shown in the lease to people and to other
    /// electors.
    pub fn poll(&mut self, busy: Busy, wall: Timestamp, now: Moment) -> Next {
        self.busy = busy;
        self.note_deadline(now);
        if self.calls.flight.is_some() {
            return Next::Wait(self.wakes_at(now));
        }
        match self.wants(now) {
            Want::Call(what, due) if self.pace.allows(due) <= now && !busy.is_crowded => {
                Next::Call(self.begin(what, wall, now))
            }
            Want::Call(_, due) if now < self.pace.allows(due) => {
                Next::Wait(self.pace.allows(due).min(self.wakes_at(now)))
            }
            Want::Call(..) | Want::Nothing => Next::Wait(self.wakes_at(now)),
            Want::Done(how) => {
                self.end_term(Loss::Abandoned); // what could not be released is left alone from now on
                Next::Done(how)
            }
        }
    }

    /// Whether a call is due now. The task first waits for a place for it, and then asks again: so the times of a call count from
    /// when it is sent, and nothing is sent that is not wanted any more.
    pub fn is_due(&self, now: Moment) -> bool {
        let due = |want| matches!(want, Want::Call(_, due) if self.pace.allows(due) <= now);
        self.calls.flight.is_none() && due(self.wants(now))
    }

    fn begin(&mut self, what: LeaseCall, wall: Timestamp, now: Moment) -> Call {
        let update = self.update(what, wall, now);
        let seen = self.seen().map(|seen| seen.stored.record.clone());
        if what == LeaseCall::Acquire {
            // What was meant for earlier terms ends here: after a restored backup, numbers of terms come again. What is said
            // from here on may be meant for the term of this claim.
            self.terms.closing = None;
        }
        let call = Call { what, seen, update };
        let doubts = self.known.staleness != Staleness::Fresh;
        self.calls.begin(call.clone(), self.known.newest, doubts, now);
        call
    }

    /// Ends the term at its deadline (rule S1), as the gate does.
    pub(super) fn note_deadline(&mut self, now: Moment) {
        if now >= self.deadline() {
            self.terms.end(Loss::Expired);
        }
    }

    fn wants(&self, now: Moment) -> Want {
        let gives_up = self.is_ending() && self.pace.failures >= MOST_FAILURES && !self.busy.writes;
        match (self.terms.active(), &self.known.lease) {
            _ if gives_up => Want::Done(Err("the calls to the API server failed")),
            (Some(term), Lease::Present(_)) => self.wants_as_holder(term, now),
            _ => self.wants_as_follower(now),
        }
    }

    fn wants_as_holder(&self, term: &ActiveTerm, now: Moment) -> Want {
        let is_closing = self.terms.is_closing(&term.name);
        let due = self.terms.claimed.saturating_add(self.timing.retry_period().saturating_sub(term.early));
        let reads = match self.known.staleness {
            Staleness::Stale => true,
            Staleness::Unsure => !is_closing && now < due,
            Staleness::Fresh => false,
        };
        if reads {
            return Want::Call(LeaseCall::Read, now);
        }
        if !is_closing {
            return Want::Call(LeaseCall::Renew, due); // the deadline depends on renewals alone (rule S9)
        }
        // It is not renewed any more, so a write that hangs keeps the lease from others until the deadline at most.
        match self.release_or_wait(now) {
            // The work of this term keeps its lease.
            _ if self.intent == Intent::Keep => Want::Nothing,
            Want::Done(_) if !self.is_ending() => Want::Nothing,
            want => want,
        }
    }

    /// Releases the lease once no write may begin, is under way or may land (rule S4). If the lease ends before that moment, it is
    /// left to expire, and a stop need not wait until it has expired.
    fn release_or_wait(&self, now: Moment) -> Want {
        let waits = self.known.possible_writers.may_write(now).is_some();
        if self.busy.writes {
            Want::Nothing
        } else if waits {
            Want::Done(Err("the former holder may still be writing"))
        } else if self.busy.settle_at < self.ends() {
            Want::Call(LeaseCall::Release, self.busy.settle_at)
        } else {
            Want::Done(Err("a write that ended without an answer may still take effect"))
        }
    }

    /// The earliest moment at which another candidate may take the lease that shows a claim of this process. If the claim has begun
    /// no term here, because its answer was lost or because it is the predecessor's, the time counts from the look at it.
    fn ends(&self) -> Moment {
        match self.seen() {
            Some(seen) if !self.shows(self.terms.last()) => seen.until(),
            _ => self.terms.claimed.saturating_add(self.timing.lease_duration()),
        }
    }

    fn wants_as_follower(&self, now: Moment) -> Want {
        let stops = self.is_ending();
        let Some(free_from) = self.is_free_from(now) else {
            return if stops { Want::Done(Ok(())) } else { Want::Call(LeaseCall::Read, now) };
        };
        let stored = self.seen().map(|seen| &seen.stored);
        let unwanted = stored.filter(|stored| self.is_mine(stored) && self.is_unwanted());
        match (self.known.staleness, unwanted) {
            (Staleness::Stale, _) | (Staleness::Unsure, None) => Want::Call(LeaseCall::Read, now),
            (_, Some(_)) if stops => self.release_or_wait(now),
            (_, Some(stored)) => self.wants_rid_of(stored, now),
            _ if stops => self.wants_to_stop(stored),
            _ => self.wants_to_take(stored, free_from, now),
        }
    }

    /// Whether a claim of this process that has begun no term shall go: because this process stops or stays away, because its term is
    /// given back, or because it is of a predecessor that has held the lease for too short a time. Work that still ends keeps it.
    fn is_unwanted(&self) -> bool {
        match self.intent {
            Intent::Leave | Intent::Left { .. } => true,
            Intent::Contend => {
                self.stays_away() || self.shows(self.terms.closing.as_ref().map(|closing| &closing.term))
            }
            Intent::Keep | Intent::NotBegun | Intent::Gone => false,
        }
    }

    /// The lease shows a claim that shall go, and this candidate contends. It releases the lease. If a write may land until the
    /// lease has ended for others, it does not: the others have their turn, and then this candidate may take the lease again.
    fn wants_rid_of(&self, stored: &Stored, now: Moment) -> Want {
        if now < self.ends()
            && let release @ Want::Call(..) = self.release_or_wait(now)
        {
            return release;
        }
        let closing = self.terms.closing.as_ref();
        let rest = closing.map_or(Duration::ZERO, |closing| closing.reason.rest(&self.timing));
        let free_from = self.ends().saturating_add(self.turn(stored).max(rest));
        self.wants_to_take(Some(stored), free_from, now)
    }

    /// This candidate stops, and the lease shows no claim of it.
    fn wants_to_stop(&self, stored: Option<&Stored>) -> Want {
        let version = stored.map_or("", |stored| stored.record.resource_version());
        if self.calls.pending_claim_may_land(version) {
            let soon = self.timing.retry_period() / 8;
            return Want::Call(LeaseCall::Read, self.known.looked_at.saturating_add(soon));
        }
        let own_release = stored.filter(|stored| stored.is_free() && self.has_written(stored));
        let is_odd = own_release.is_some_and(|stored| !stored.is_vacant());
        Want::Done(if is_odd { Err(STORED_OTHERWISE) } else { Ok(()) })
    }

    fn wants_to_take(&self, stored: Option<&Stored>, free_from: Moment, now: Moment) -> Want {
        if !self.acquires() {
            return self.look();
        }
        // If another client overwrites the claim at once, this candidate does not fight.
        let paced = self.terms.claimed.saturating_add(self.timing.pause() / 4).max(self.pace.rest_until);
        let take = |at: Moment| Want::Call(LeaseCall::Acquire, at.max(paced));
        let question = self.own_question().filter(|_| self.busy.restraint == Restraint::None);
        match (question, stored.filter(|stored| self.precedes(stored))) {
            // **Earlier**: Istio's elector cannot be asked, and a preferred revision does not wait for it to crash. If the API
            // server keeps the question, it also keeps the annotations of a claim. The whole time of that elector is waited behind
            // a shut gate.
            (Some(own), Some(stored))
                if stored.claim().is_none() && stored.question.as_ref() == Some(&own) =>
            {
                take(now)
            }
            // A person may undo the question, so it is asked again, but not in a storm.
            (Some(_), Some(stored)) if stored.question().is_none_or(|other| self.outranks(other)) => {
                let ask = Want::Call(LeaseCall::Ask, self.pace.ask_from);
                ask.sooner(take(free_from)).sooner(self.look())
            }
            _ => take(free_from).sooner(self.look()),
        }
    }

    /// From when this candidate may take the lease. None if it knows nothing.
    pub(super) fn is_free_from(&self, now: Moment) -> Option<Moment> {
        match &self.known.lease {
            Lease::Unknown => None,
            // A holder that is alive has closed its gate, and creates it anew at once. Others wait for its time.
            Lease::Absent(since) => {
                let from = self.known.possible_writers.end().map_or(*since, |end| end.max(*since));
                Some(from.saturating_add(self.jitter()))
            }
            Lease::Present(seen) if seen.own => Some(now),
            Lease::Present(seen) => {
                let held_for = if seen.stored.is_vacant() { Duration::ZERO } else { seen.longest };
                Some(seen.since.saturating_add(held_for).saturating_add(self.turn(&seen.stored)))
            }
        }
    }

    /// Whether the next call is a write.
    pub(super) fn wants_to_write(&self, now: Moment) -> bool {
        matches!(self.wants(now), Want::Call(what, _) if what != LeaseCall::Read)
    }

    /// How long this candidate leaves a free lease to another candidate that has asked for it: one and a quarter retry periods,
    /// since that candidate may poll. If this candidate has asked for the lease itself, it does not wait.
    fn turn(&self, stored: &Stored) -> Duration {
        match stored.question() {
            Some(question) if question.who == self.me => Duration::ZERO,
            Some(_) => self.timing.retry_period().mul_f64(1.25) + self.jitter(),
            None => self.jitter(),
        }
    }

    /// How long it waits so that a crowd does not write at once: not at all before it has lost a race. If its claims are altered,
    /// it leaves the lease to others.
    fn jitter(&self) -> Duration {
        let others = self.known.altered.map_or(Duration::ZERO, |_| self.timing.retry_period());
        self.pace.spread.wait() + others
    }

    /// The lease is read if no news come. A watch shows each renewal.
    fn look(&self) -> Want {
        // The polls of many candidates drift apart.
        let polls = 1.0 + (JITTER - 1.0) * self.pace.spread.draw();
        let period = self.timing.retry_period().mul_f64(if self.known.is_watched { 2.0 } else { polls });
        Want::Call(LeaseCall::Read, self.known.looked_at.saturating_add(period))
    }

    /// When to look again if nothing happens.
    fn wakes_at(&self, now: Moment) -> Moment {
        let deadline = self.terms.active().map(|_| self.deadline());
        let period = now.saturating_add(self.timing.retry_period());
        let times = [
            deadline,
            self.known.possible_writers.may_write(now),
            self.question_is_late_from(),
            Some(period),
        ];
        times.into_iter().flatten().filter(|at| now < *at).min().unwrap_or(period)
    }
}

impl Want {
    /// The earlier of two calls.
    fn sooner(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Call(_, one), Self::Call(_, two)) if two < one => other,
            _ => self,
        }
    }
}
