//! The answer to the call under way.

use super::{
    state::{ActiveTerm, Flight, Lease, Machine, Staleness},
    stored::Stored,
};
use crate::{
    election::hooks::LeaseCall,
    growing_pause::backoff,
    leadership::{Moment, Term},
    lease::{ErrLock, ErrLockKind, LeaseRecord},
};
use std::time::Duration;

impl Machine {
    /// Takes in the answer to the call under way, or that there is none in time.
    ///
    /// # Errors
    /// Why the call has not done what it was for, for the log.
    pub fn answered(
        &mut self,
        answer: Result<Option<LeaseRecord>, ErrLock>,
        now: Moment,
    ) -> Result<(), ErrLock> {
        let Some(Flight { call, sent, knew, settles }) = self.flight.take() else { return Ok(()) };
        self.look_at_the_clock(now);
        match (call.update, answer) {
            (None, Ok(lease)) => self.read(lease, settles, knew, now),
            (Some(update), Ok(Some(stored))) => {
                if call.what == LeaseCall::Ask {
                    self.ask_from = now.saturating_add(self.timing.retry_period()); // even if a person removes the question
                }
                // A write makes a new version of the same object (rule S6).
                let is_new = stored.version().is_none_or(|version| knew < version)
                    && call.seen.is_none_or(|seen| {
                        seen.uid() == stored.uid() && seen.resource_version() != stored.resource_version()
                    });
                if !is_new {
                    self.staleness = Staleness::Stale;
                    let error =
                        ErrLock::new(ErrLockKind::BadAnswer, "the answer to a write has an old version");
                    self.pause(&error, now);
                    return Err(error);
                }
                let differs = stored.holds(&update).err();
                if call.what != LeaseCall::Ask {
                    self.altered = differs;
                }
                if let Some(differs) = differs {
                    return Err(self.stored_otherwise(differs, stored, now));
                }
                if settles && self.staleness == Staleness::Unsure {
                    self.staleness = Staleness::Fresh;
                }
                self.written(call.what, stored, sent, now);
            }
            // An update never returns `Ok(None)`. If it does, the lock is broken: read again.
            (Some(_), Ok(None)) => self.staleness = Staleness::Stale,
            // The lease is gone (rule S8).
            (Some(_), Err(error)) if error.kind() == ErrLockKind::NotFound && call.seen.is_some() => {
                if self.newest == knew {
                    self.note_a_gap(now);
                    self.observe(None, now);
                } else {
                    self.staleness = Staleness::Stale;
                }
                self.lose_a_race(&error, Duration::ZERO, now);
            }
            (update, Err(error)) => {
                if error.kind() == ErrLockKind::Withheld {
                    self.staleness = Staleness::Stale; // the claim may stand, but a layer does not let this candidate use it
                }
                let lost = call.what == LeaseCall::Acquire && error.kind() == ErrLockKind::Conflict;
                // That many start at once, without a lease, says nothing of the next race.
                if lost && call.seen.is_some() {
                    self.spread.lost_a_race(now.saturating_since(sent));
                }
                let seen = call.seen.as_ref().map_or("", LeaseRecord::resource_version);
                self.failed(call.what, update.is_some().then_some(seen), &error, now);
                return Err(error);
            }
        }
        Ok(())
    }

    fn read(&mut self, lease: Option<LeaseRecord>, settles: bool, knew: u64, now: Moment) {
        self.looked = now;
        if settles {
            self.staleness = Staleness::Fresh;
        }
        let version = lease.as_ref().and_then(LeaseRecord::version).unwrap_or(0);
        if self.newest > knew && self.newest > version {
            return; // what came meanwhile is newer
        }
        // A read is consistent: it is believed even if its version is lower (a restored backup).
        match &lease {
            Some(_) => self.newest = version,
            // If it was deleted a moment ago, its holder makes it anew.
            None if matches!(self.lease, Lease::Unknown) => {
                self.staleness = Staleness::Unsure;
                self.pause_until = now.saturating_add(self.timing.pause());
            }
            None => self.note_a_gap(now),
        }
        self.highest = self.highest.max(version);
        self.observe(lease, now);
        if !self.wants_to_write(now) {
            self.failures = 0; // a read is a success then
        }
    }

    /// A write counts only if the server stored what was sent. Others see what is stored: if the duration is shorter, the term
    /// ends.
    fn stored_otherwise(&mut self, differs: &'static str, stored: LeaseRecord, now: Moment) -> ErrLock {
        let message = format!("the API server has stored another value for {differs}");
        let error = ErrLock::new(ErrLockKind::Refused, message);
        self.staleness = Staleness::Stale;
        self.learn(stored, now);
        self.pause(&error, now);
        error
    }

    fn written(&mut self, what: LeaseCall, stored: LeaseRecord, sent: Moment, now: Moment) {
        // Many elections may have waited for one API server, or for one another.
        let is_late = sent.saturating_since(self.claimed) > self.timing.retry_period().mul_f64(1.25);
        let recovered = std::mem::take(&mut self.failures) > 0 || is_late;
        (self.looked, self.may_land) = (now, None);
        if what == LeaseCall::Acquire {
            self.acquired = sent;
        }
        let stands = if stored.version().unwrap_or(0) < self.newest {
            // The watch has already shown a newer version. Count this write only if that version still carries our claim.
            let written = Stored::new(stored);
            self.seen().filter(|it| it.stored.has_claim_of(&written)).map(|it| it.stored.record.clone())
        } else {
            Some(stored)
        };
        let Some(stored) = stands else { return };
        self.stands(what, stored, sent, now);
        let by_chance = what == LeaseCall::Acquire || recovered;
        let part = if by_chance { self.chance(now) / 2.0 } else { 0.0 };
        if let Some(term) = &mut self.term {
            term.early = self.timing.retry_period().mul_f64(part);
        }
    }

    /// A claim, a release or a question of this process has been carried out.
    fn stands(&mut self, what: LeaseCall, stored: LeaseRecord, sent: Moment, now: Moment) {
        let name = self.name_of_term(&stored);
        self.learn(stored, now);
        match what {
            // In time and still wanted, or else it is claimed again or released (rules S1 and S11).
            LeaseCall::Acquire => {
                self.claimed = sent;
                let begins = self.acquires() && now < self.deadline();
                if begins {
                    self.led = Some(name.clone());
                    self.term = Some(ActiveTerm { name, early: Duration::ZERO });
                }
            }
            LeaseCall::Renew => self.claimed = sent,
            _ => {}
        }
    }

    /// The call has failed, or its outcome is unknown. `over`: the version that a write was to swap. A conflict ends no term: the
    /// lease is read.
    fn failed(&mut self, what: LeaseCall, over: Option<&str>, error: &ErrLock, now: Moment) {
        if over.is_none() || error.kind() != ErrLockKind::Conflict {
            if let Some(over) = over.filter(|_| what == LeaseCall::Acquire && !error.is_certain()) {
                let until = now.saturating_add(self.timing.safety_margin());
                self.may_land = Some((over.to_owned(), until));
            }
            return self.pause(error, now);
        }
        // Another write came first, or the lease exists already.
        self.staleness = Staleness::Stale;
        // A watch shows who has won the race, so that a crowd does not read.
        let waits = what == LeaseCall::Acquire && self.watches;
        self.lose_a_race(error, if waits { self.timing.pause() / 4 } else { Duration::ZERO }, now);
    }

    /// To lose a race is normal. Many in a row are not.
    fn lose_a_race(&mut self, error: &ErrLock, patience: Duration, now: Moment) {
        self.pause(error, now);
        if self.failures == 1 {
            self.pause_until = now.saturating_add(patience);
        }
    }

    /// Waits before the next call. A holder has a deadline: three more attempts fit before it (rule S9). Others wait
    /// longer each time.
    fn pause(&mut self, error: &ErrLock, now: Moment) {
        let first = self.timing.pause();
        let left = self.term.as_ref().map(|_| self.deadline().saturating_since(now));
        let longest = left.map_or(self.timing.retry_period(), |_| first);
        let pause = backoff(first, self.failures, longest, self.chance(now));
        self.failures = self.failures.saturating_add(1);
        self.pause_until = now.saturating_add(pause);
        if let Some(asked) = error.retry_after() {
            self.asked_until = now.saturating_add(asked.min(left.map_or(longest, |left| left / 8)));
        }
    }

    /// The term that begins with this claim. Its fencing token is the version of the claim: larger than each version that
    /// held an earlier term's claim, and smaller than each that will hold a later one's. If that is no number, or if a larger
    /// one was seen before, the term has no token.
    fn name_of_term(&self, claim: &LeaseRecord) -> Term {
        // Kubernetes writes a version without sign and leading zero. Another spelling is no promise that it can compare.
        let plain = claim.version().filter(|version| claim.resource_version() == version.to_string());
        let token = plain.filter(|version| *version >= self.highest);
        token.map_or(claim.term(), |token| claim.term().with_fencing_token(token))
    }
}
