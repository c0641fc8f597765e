//! The answer to the call under way.

use super::{
    calls::Flight,
    known::{Lease, Staleness},
    state::Machine,
    stored::Stored,
};
use crate::{
    election::hooks::LeaseCall,
    leadership::{Moment, Term},
    lease::{ErrLock, ErrLockKind, LeaseRecord},
};
use std::time::Duration;

impl Machine {
    /// Takes in the answer to the call under way, or that there is none in time.
    ///
    /// # Errors
    /// Why the call has not done what it was for, for the log.
    pub fn handle_answer(
        &mut self,
        answer: Result<Option<LeaseRecord>, ErrLock>,
        now: Moment,
    ) -> Result<(), ErrLock> {
        let Some(flight) = self.calls.flight.take() else { return Ok(()) };
        self.note_deadline(now);
        match (&flight.call.update, answer) {
            (None, Ok(lease)) => {
                self.read(lease, &flight, now);
                Ok(())
            }
            (Some(_), Ok(Some(stored))) => self.stored(stored, &flight, now),
            (Some(_), Ok(None)) => {
                self.known.staleness = Staleness::Stale; // an update never returns `Ok(None)`: the lock is broken
                Ok(())
            }
            (Some(_), Err(error)) if error.kind() == ErrLockKind::NotFound && flight.call.seen.is_some() => {
                self.found_no_lease(&error, &flight, now);
                Ok(())
            }
            (_, Err(error)) => {
                self.failed(&error, &flight, now);
                Err(error)
            }
        }
    }

    /// A read is consistent.
    fn read(&mut self, lease: Option<LeaseRecord>, flight: &Flight, now: Moment) {
        self.known.looked_at = now;
        self.calls.note_read(flight.sent);
        // A create has met the lease of another candidate, which no look has shown.
        let has_met_another = self.known.staleness == Staleness::Stale && self.calls.over.is_empty();
        if flight.settles {
            self.known.staleness = Staleness::Fresh;
        }
        let version = lease.as_ref().and_then(LeaseRecord::version).unwrap_or(0);
        if self.known.newest > flight.knew && self.known.newest > version {
            return; // what came meanwhile is newer
        }
        match &lease {
            Some(_) => self.known.newest = version, // it is believed even if it is lower: a restored backup
            // If it was deleted a moment ago, its holder makes it anew.
            None if matches!(self.known.lease, Lease::Unknown) => {
                self.known.staleness = Staleness::Unsure;
                self.pace.pause_until = now.saturating_add(self.timing.pause());
            }
            None if has_met_another => self.note_unseen(Duration::ZERO, now),
            None => self.note_a_gap(now),
        }
        self.known.highest = self.known.highest.max(version);
        self.observe(lease, now);
        // A read between two writes that fail is no success.
        if !self.wants_to_write(now) {
            self.pace.failures = 0;
        }
    }

    /// The API server has stored this in answer to a write. The write counts only if this is what was sent.
    fn stored(&mut self, stored: LeaseRecord, flight: &Flight, now: Moment) -> Result<(), ErrLock> {
        let Flight { call, knew, .. } = flight;
        if call.what == LeaseCall::Ask {
            // Even if a person removes the question, it is not asked again at once.
            self.pace.ask_from = now.saturating_add(self.timing.retry_period());
        }
        // A write makes a new version of the same object (rule S6).
        let is_new = stored.version().is_none_or(|version| *knew < version)
            && call.seen.as_ref().is_none_or(|seen| {
                seen.uid() == stored.uid() && seen.resource_version() != stored.resource_version()
            });
        if !is_new {
            let error = ErrLock::new(ErrLockKind::BadAnswer, "the answer to a write has an old version");
            self.known.staleness = Staleness::Stale;
            self.pause(&error, now);
            return Err(error);
        }
        let differs = call.update.as_ref().and_then(|update| stored.holds(update).err());
        if call.what != LeaseCall::Ask {
            self.known.altered = differs;
        }
        if let Some(differs) = differs {
            // Others see what is stored: if the duration is shorter, the term ends.
            let message = format!("the API server has stored another value for {differs}");
            let error = ErrLock::new(ErrLockKind::Refused, message);
            self.known.staleness = Staleness::Stale;
            self.learn(stored, now);
            self.pause(&error, now);
            return Err(error);
        }
        self.written(stored, flight, now);
        Ok(())
    }

    /// A claim, a release or a question of this process has been carried out.
    fn written(&mut self, stored: LeaseRecord, flight: &Flight, now: Moment) {
        let (what, sent, period) = (flight.call.what, flight.sent, self.timing.retry_period());
        // Many elections may have waited for one API server, or for one another. So they do not renew together.
        let is_late = sent.saturating_since(self.terms.claimed) > period.mul_f64(1.25);
        let recovers = std::mem::take(&mut self.pace.failures) > 0 || is_late || what == LeaseCall::Acquire;
        self.known.looked_at = now;
        if flight.settles && self.known.staleness == Staleness::Unsure {
            self.known.staleness = Staleness::Fresh;
        }
        if what == LeaseCall::Acquire {
            self.terms.claimed = sent; // even if another client has overwritten it meanwhile: see `wants_to_take`
        }
        let stands = if stored.version().unwrap_or(0) < self.known.newest {
            // The watch has already shown a newer version. Count this write only if that version still carries our claim, or a
            // renewal of this very time with a longer duration.
            let written = Stored::new(stored);
            let goes_on = |seen: &Stored| self.terms.active().is_some_and(|term| self.is_of(seen, term));
            let renews = |seen: &Stored| seen.renewed == written.renewed && goes_on(seen);
            let stands = |seen: &Stored| seen.has_claim_of(&written) || renews(seen);
            self.seen().filter(|seen| stands(&seen.stored)).map(|seen| seen.stored.record.clone())
        } else {
            Some(stored)
        };
        let Some(stored) = stands else {
            // If another client overwrites each renewal at once, this holder does not fight.
            self.pace.pause_until = now.saturating_add(self.timing.pause());
            return;
        };
        let name = self.name_of_term(&stored);
        self.learn(stored, now);
        match what {
            LeaseCall::Renew => self.terms.claimed = sent,
            // If the claim came too late, or is not wanted any more, it is claimed again or released (rules S1 and S11).
            LeaseCall::Acquire if self.acquires() && now < self.deadline() => self.terms.begin(name),
            _ => {}
        }
        let part = if recovers { self.chance(now) / 2.0 } else { 0.0 };
        self.terms.renew_early(period.mul_f64(part));
    }

    /// The lease that a write was to swap is gone (rule S8).
    fn found_no_lease(&mut self, error: &ErrLock, flight: &Flight, now: Moment) {
        if self.known.newest == flight.knew {
            self.note_a_gap(now);
            self.observe(None, now);
        } else {
            self.known.staleness = Staleness::Stale;
        }
        self.lose_a_race(error, Duration::ZERO, now);
    }

    /// The call has failed, or its outcome is unknown. A conflict ends no term: the lease is read.
    fn failed(&mut self, error: &ErrLock, flight: &Flight, now: Moment) {
        let (what, is_write) = (flight.call.what, flight.call.update.is_some());
        if error.kind() == ErrLockKind::Withheld {
            self.known.staleness = Staleness::Stale; // the claim may stand, but a layer does not let this candidate use it
        }
        if is_write && error.kind() == ErrLockKind::Conflict {
            self.known.staleness = Staleness::Stale; // another write came first, or the lease exists already
            // If many begin at once, and there is no lease, that tells nothing of the next race.
            if what == LeaseCall::Acquire && flight.call.seen.is_some() {
                self.pace.spread.lost_a_race(now.saturating_since(flight.sent), self.timing.pause());
            }
            // A watch shows who has won the race, so that a crowd does not read.
            let waits = what == LeaseCall::Acquire && self.known.is_watched;
            let patience = if waits { self.timing.pause() / 4 } else { Duration::ZERO };
            return self.lose_a_race(error, patience, now);
        }
        if what == LeaseCall::Acquire && !error.is_certain() {
            self.calls.note_pending_claim(now.saturating_add(self.timing.safety_margin()));
        }
        self.pause(error, now);
    }

    /// Waits after a lost race: `patience` after the first one, which is normal, and as after a failure if more follow.
    fn lose_a_race(&mut self, error: &ErrLock, patience: Duration, now: Moment) {
        self.pause(error, now);
        if self.pace.failures == 1 {
            self.pace.pause_until = now.saturating_add(patience);
        }
    }

    /// Waits before the next call, at first for the pause of the timing. For a holder the pauses do not grow, since three more
    /// attempts have to fit before its deadline (rule S9). For others they double up to a retry period.
    fn pause(&mut self, error: &ErrLock, now: Moment) {
        let first = self.timing.pause();
        let left = self.terms.active().map(|_| self.deadline().saturating_since(now));
        let longest = left.map_or(self.timing.retry_period(), |_| first);
        self.pace.pause(first, longest, self.chance(now), now);
        if let Some(asked) = error.retry_after() {
            let at_most = left.map_or(longest, |left| left / 8);
            self.pace.asked_until = now.saturating_add(asked.min(at_most));
        }
    }

    /// The term that begins with this claim. Its fencing token is the version of the claim: larger than each version that
    /// held an earlier term's claim, and smaller than each that will hold a later one's. If that is no number, or if a larger
    /// one was seen before, the term has no token.
    fn name_of_term(&self, claim: &LeaseRecord) -> Term {
        // Kubernetes writes a version without sign and leading zero. Another spelling is no promise that it can compare.
        let plain = claim.version().filter(|version| claim.resource_version() == version.to_string());
        let token = plain.filter(|version| *version >= self.known.highest);
        token.map_or(claim.term(), |token| claim.term().with_fencing_token(token))
    }
}
