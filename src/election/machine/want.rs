//! What to do next: what the gate has to be, and which call is due.

use super::{
    state::{ActiveTerm, Busy, Call, Flight, Gate, Lease, Machine, Next, Seen, Staleness},
    stored::Stored,
};
use crate::{
    election::hooks::LeaseCall,
    leadership::{Intent, Loss, Moment},
    lease::{JITTER, LeaseRecord},
};
use jiff::Timestamp;
use std::time::Duration;

const STORED_OTHERWISE: &str =
    "the lease has no holder, but it was stored in another form than a release, so the other candidates wait";

/// After so many failures a candidate that stops leaves the lease to expire.
const MOST_FAILURES: u32 = 3;

enum Want {
    Call(LeaseCall, Moment),
    Nothing,
    Done(Result<(), &'static str>),
}

impl Machine {
    /// What the gate has to be now. The task applies it after each input and each wait.
    pub fn gate(&self, now: Moment) -> Gate {
        let Some(term) = &self.term else { return Gate::Shut(self.lost) };
        let deadline = self.deadline();
        if now >= deadline {
            Gate::Shut(Loss::Expired)
        } else if self.is_closing(term) {
            Gate::Closing { deadline }
        } else if self.formers.may_write(now).is_some() {
            Gate::Shut(self.lost)
        } else {
            Gate::Open { term: term.name.clone(), deadline }
        }
    }

    /// What to do now. `busy` was looked at after the gate was made what [`gate`](Self::gate) says, so that no work and no write
    /// begins unseen. `wall` is shown in the lease to people and to other electors.
    pub fn poll(&mut self, busy: Busy, wall: Timestamp, now: Moment) -> Next {
        self.busy = busy;
        self.look_at_the_clock(now);
        if self.flight.is_some() {
            return Next::Wait(self.wakes_at(now));
        }
        match self.wants(now) {
            Want::Call(what, due) if self.paced(due) <= now && !busy.is_crowded => {
                self.begin(what, wall, now)
            }
            Want::Call(_, due) if now < self.paced(due) => {
                Next::Wait(self.paced(due).min(self.wakes_at(now)))
            }
            Want::Call(..) | Want::Nothing => Next::Wait(self.wakes_at(now)),
            Want::Done(how) => {
                // What could not be released is left alone from now on.
                if self.term.is_some() {
                    self.end_term(Loss::Abandoned);
                }
                Next::Done(how)
            }
        }
    }

    /// Whether a call is due now. It needs a place before it is made: so its times count from when it is sent, and nothing is sent
    /// that is not wanted any more.
    pub fn is_due(&self, now: Moment) -> bool {
        self.flight.is_none() && matches!(self.wants(now), Want::Call(_, due) if self.paced(due) <= now)
    }

    fn begin(&mut self, what: LeaseCall, wall: Timestamp, now: Moment) -> Next {
        let update = self.update(what, wall, now);
        let seen = self.seen().map(|seen| seen.stored.record.clone());
        if what == LeaseCall::Acquire {
            // What was meant for earlier terms ends here: after a restored backup, numbers of terms come again. What is said
            // from here on may be meant for the term of this claim.
            self.closing = None;
        }
        if update.is_some() {
            seen.as_ref().map_or("", LeaseRecord::resource_version).clone_into(&mut self.wrote_over);
        }
        let call = Call { what, seen, update };
        self.flight = Some(Flight { call: call.clone(), sent: now, knew: self.newest, settles: true });
        Next::Call(call)
    }

    pub(super) fn look_at_the_clock(&mut self, now: Moment) {
        if self.term.is_some() && now >= self.deadline() {
            (self.term, self.lost) = (None, Loss::Expired); // rule S1: the gate has seen the same
        }
    }

    fn wants(&self, now: Moment) -> Want {
        let gives_up = self.is_ending() && self.failures >= MOST_FAILURES && !self.busy.writes;
        match (&self.term, &self.lease) {
            _ if gives_up => Want::Done(Err("the calls to the API server failed")),
            (Some(term), Lease::Present(_)) => self.wants_as_holder(term, now),
            _ => self.wants_as_follower(now),
        }
    }

    fn wants_as_holder(&self, term: &ActiveTerm, now: Moment) -> Want {
        let due = self.claimed.saturating_add(self.timing.retry_period().saturating_sub(term.early));
        let is_closing = self.is_closing(term);
        // The deadline depends on renewals alone (rule S9). A release is a swap, so only a known conflict needs a read first.
        let is_in_doubt = self.staleness == Staleness::Unsure && !is_closing && now < due;
        if self.staleness == Staleness::Stale || is_in_doubt {
            return Want::Call(LeaseCall::Read, now);
        }
        if !is_closing {
            return Want::Call(LeaseCall::Renew, due);
        }
        // It is not renewed any more, so a write that hangs keeps the lease from others until the deadline at most.
        match self.gives_back(now) {
            // The work of this term keeps its lease.
            _ if self.intent == Intent::Keep => Want::Nothing,
            Want::Done(_) if !self.is_ending() => Want::Nothing,
            want => want,
        }
    }

    /// Releases the lease once no write may begin, is under way or may land (rule S4), if that is before its end. Otherwise it
    /// is left to expire, and a stop is done as soon as that is certain.
    fn gives_back(&self, now: Moment) -> Want {
        match self.releases_from(now) {
            Some(at) if at < self.ends() => Want::Call(LeaseCall::Release, at),
            Some(_) => Want::Done(Err("a write that ended without an answer may still take effect")),
            None if self.busy.writes => Want::Nothing,
            None => Want::Done(Err("the former holder may still be writing")),
        }
    }

    /// When the own lease ends for others, at the earliest. If the answer to the claim was lost, it counts from the look at it.
    fn ends(&self) -> Moment {
        let late = self.seen().filter(|_| !self.is_in(self.led.as_ref()));
        late.map_or_else(|| self.claimed.saturating_add(self.timing.lease_duration()), Seen::until)
    }

    /// From when the lease may be released. None while a write may begin or is under way: then it is rather left
    /// to expire.
    fn releases_from(&self, now: Moment) -> Option<Moment> {
        let is_quiet = !self.busy.writes && self.formers.may_write(now).is_none();
        is_quiet.then_some(self.busy.settle_at)
    }

    fn wants_as_follower(&self, now: Moment) -> Want {
        let stops = self.is_ending();
        let Some(free_from) = self.is_free_from(now) else {
            return if stops { Want::Done(Ok(())) } else { Want::Call(LeaseCall::Read, now) };
        };
        let stored = self.seen().map(|seen| &seen.stored);
        let unwanted = stored.filter(|it| self.is_mine(it) && self.is_unwanted());
        match (self.staleness, unwanted) {
            (Staleness::Stale, _) | (Staleness::Unsure, None) => Want::Call(LeaseCall::Read, now),
            (_, Some(_)) if stops => self.gives_back(now),
            (_, Some(it)) => {
                let release = if now < self.ends() { self.gives_back(now) } else { Want::Nothing };
                let rest = self.closing.as_ref().map_or(Duration::ZERO, |it| it.reason.rest(&self.timing));
                let ends = self.ends().saturating_add(self.turn(it).max(rest));
                release.or(if self.acquires() { self.wants_to_take(stored, ends, now) } else { self.look() })
            }
            _ if stops && self.may_land(stored, now) => {
                let soon = self.timing.retry_period() / 8;
                Want::Call(LeaseCall::Read, self.looked.saturating_add(soon))
            }
            _ if stops => {
                let is_own = |it: &&Stored| it.record.holder().is_none() && self.has_written(it);
                let is_odd = stored.filter(is_own).is_some_and(|it| !it.is_vacant());
                Want::Done(if is_odd { Err(STORED_OTHERWISE) } else { Ok(()) })
            }
            _ if self.acquires() => self.wants_to_take(stored, free_from, now),
            _ => self.look(),
        }
    }

    /// Whether a claim of this process that is in no term shall go: one that came late, one whose term is given back, or one of a
    /// predecessor that has held the lease for too short a time. Work that still ends keeps it.
    fn is_unwanted(&self) -> bool {
        match self.intent {
            Intent::Leave | Intent::Left { .. } => true,
            Intent::Contend => self.is_in(self.closing.as_ref().map(|it| &it.term)),
            Intent::Keep | Intent::NotBegun | Intent::Gone => false,
        }
    }

    /// Whether this candidate may take the lease.
    pub(super) fn acquires(&self) -> bool {
        self.intent == Intent::Contend
    }

    fn wants_to_take(&self, stored: Option<&Stored>, free_from: Moment, now: Moment) -> Want {
        // If another client overwrites the claim at once, this candidate does not fight.
        let paced = self.acquired.saturating_add(self.timing.pause() / 4).max(self.rest_until);
        let take = |at: Moment| Want::Call(LeaseCall::Acquire, at.max(paced));
        match (self.own_question(), stored.filter(|it| self.precedes(it))) {
            // **Earlier**: Istio's elector cannot be asked, and a preferred revision does not wait for it to crash. The
            // question stands, so an annotation does, too. Its whole time is waited behind a shut gate.
            (Some(own), Some(it)) if it.claim().is_none() && it.question.as_ref() == Some(&own) => take(now),
            // A person may undo the question, so it is asked again, but not in a storm.
            (Some(_), Some(it)) if it.question().is_none_or(|other| self.outranks(other)) => {
                Want::Call(LeaseCall::Ask, self.ask_from).sooner(take(free_from)).sooner(self.look())
            }
            _ => take(free_from).sooner(self.look()),
        }
    }

    /// From when this candidate may take the lease. None if it knows nothing.
    pub(super) fn is_free_from(&self, now: Moment) -> Option<Moment> {
        match &self.lease {
            Lease::Unknown => None,
            // A holder that is alive has closed its gate, and creates it anew at once. Others wait for its time.
            Lease::Absent(since) => {
                let from = self.formers.end().map_or(*since, |end| end.max(*since));
                Some(from.saturating_add(self.by_chance()))
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

    /// How long this candidate leaves a free lease to the one that has asked for it: a period and a quarter, since that one may
    /// poll. The asker does not wait.
    fn turn(&self, stored: &Stored) -> Duration {
        match stored.question() {
            Some(asked) if asked.who == self.me => Duration::ZERO,
            Some(_) => self.timing.retry_period().mul_f64(1.25) + self.by_chance(),
            None => self.by_chance(),
        }
    }

    /// How long it waits so that a crowd does not write at once: not at all before it has lost a race. One whose claims are
    /// altered leaves the lease to others.
    fn by_chance(&self) -> Duration {
        let others = self.altered.map_or(Duration::ZERO, |_| self.timing.retry_period());
        self.spread.wait() + others
    }

    /// Whether a write without an answer may still give the lease to this candidate.
    fn may_land(&self, stored: Option<&Stored>, now: Moment) -> bool {
        let version = stored.map_or("", |it| it.record.resource_version());
        self.may_land.as_ref().is_some_and(|(over, until)| over == version && now < *until)
    }

    /// The lease is read if no news come. A watch shows each renewal.
    fn look(&self) -> Want {
        // The polls of many candidates drift apart.
        let polls = 1.0 + (JITTER - 1.0) * self.spread.draw();
        let period = self.timing.retry_period().mul_f64(if self.watches { 2.0 } else { polls });
        Want::Call(LeaseCall::Read, self.looked.saturating_add(period))
    }

    /// When a call that is due may begin.
    fn paced(&self, due: Moment) -> Moment {
        due.max(self.pause_until).max(self.asked_until)
    }

    /// When to look again if nothing happens.
    fn wakes_at(&self, now: Moment) -> Moment {
        let deadline = self.term.as_ref().map(|_| self.deadline());
        let period = now.saturating_add(self.timing.retry_period());
        let times = [deadline, self.formers.may_write(now), self.question_is_late_from(), Some(period)];
        times.into_iter().flatten().filter(|at| now < *at).min().unwrap_or(period)
    }
}

impl Want {
    /// The call, or else what comes after it.
    fn or(self, other: Self) -> Self {
        if matches!(self, Self::Call(..)) { self } else { other }
    }

    /// The earlier of two calls.
    fn sooner(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Call(_, one), Self::Call(_, two)) if two < one => other,
            _ => self,
        }
    }
}
