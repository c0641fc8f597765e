//! The answer to a lease call.

use super::{
    api_health,
    decide::Decision,
    state::{Flight, Machine, Order},
};
use crate::{
    election::hooks::LeaseCall,
    leadership::Moment,
    lease::{ErrLock, ErrLockKind, LeaseRecord},
};

/// What has become of a call, for the log.
#[derive(Debug)]
pub enum Outcome {
    /// `lasting`: it is no read between two writes that fail.
    Worked {
        lasting: bool,
    },
    /// There was nothing to update.
    Gone,
    /// Another candidate was faster, and the watch shows who.
    LostRace(ErrLock),
    Failed(ErrLock),
}

impl Machine {
    /// Takes in the answer to the call under way, or that there is none in time. `leads`: this process has a term.
    pub fn answered(
        &mut self,
        answer: Result<Option<LeaseRecord>, ErrLock>,
        leads: bool,
        now: Moment,
    ) -> Outcome {
        let Some(flight) = self.flight.take() else { return Outcome::Gone };
        // Who has lost a race knows from that how long a write takes. A read may be much faster.
        let carried_out =
            answer.as_ref().map_or_else(|error| error.kind() == ErrLockKind::Conflict, |_| true);
        if carried_out && flight.what != LeaseCall::Read {
            self.entry.spread.answered(now.saturating_since(flight.sent));
        }
        let outcome = match (flight.what, answer) {
            (LeaseCall::Read, Ok(record)) => self.read(&flight, record, now),
            (_, Ok(Some(record))) => self.written(&flight, record, now),
            (what, Err(error)) => self.refused(&flight, what, error, now),
            (_, Ok(None)) => Outcome::Gone,
        };
        if let Outcome::Failed(error) = &outcome {
            let kind = error.kind();
            if let Order::GiveUp { failed } = &mut self.order {
                *failed +=
                    if kind == ErrLockKind::Conflict { api_health::CONFLICT } else { api_health::FAILURE };
            }
            self.health.fail(kind, leads, now);
        }
        outcome
    }

    fn read(&mut self, flight: &Flight, record: Option<LeaseRecord>, now: Moment) -> Outcome {
        let before = flight.seen.as_ref().map(LeaseRecord::resource_version);
        match record {
            None => self.was_absent(flight, now),
            Some(record) => self.observe_read(record, before, now),
        }
        // A read between two failing writes is not a success. A holder has something to write.
        let owes = self.is_mine() || self.own.owes_an_acknowledgement();
        let waits = !owes && matches!(self.decide(now, false), Decision::WaitUntil(_));
        let lasting = waits || !self.health.is_failing();
        if lasting {
            self.health.recover(LeaseCall::Read, now);
        }
        // There was no doubt before this read, so the watch should have shown the same.
        if !flight.doubted {
            self.health.look_at_the_watch(self.record().and_then(LeaseRecord::version), now);
        }
        Outcome::Worked { lasting }
    }

    /// Takes in that there was no lease when the call was carried out. The watch may have shown another one since.
    fn was_absent(&mut self, flight: &Flight, now: Moment) {
        let before = flight.seen.as_ref().map(LeaseRecord::uid);
        if self.record().is_none_or(|known| Some(known.uid()) == before) {
            self.observe_absence(None, now);
        } else {
            self.health.doubt();
        }
    }

    /// An answer that shows no new version counts as a failed call: it extends nothing, and the write is sent again.
    fn written(&mut self, flight: &Flight, record: LeaseRecord, now: Moment) -> Outcome {
        let acquires = flight.what == LeaseCall::Acquire;
        let refused = |what| Outcome::Failed(ErrLock::new(ErrLockKind::Refused, what));
        let is_old = |seen: &LeaseRecord| {
            record.resource_version() == seen.resource_version() || record.is_older_than(seen)
        };
        if flight.seen.as_ref().is_some_and(is_old) {
            // The API server wrote nothing, so the other candidates have seen nothing (rule S6).
            return refused("the write changed nothing in the lease");
        }
        if acquires {
            self.claims.settle_last();
        }
        let version = record.version();
        let same = flight.seen.as_ref().is_some_and(|seen| seen.says_the_same(&record));
        self.observe(record, now);
        // The watch may already have shown a successor or a deletion. Otherwise, for example, a webhook has changed the
        // claim.
        let newest = self.record().is_some_and(|known| known.version() <= version);
        let in_vain = match flight.what {
            LeaseCall::Acquire => !self.is_current(),
            LeaseCall::Renew => self.must_name_others(now),
            LeaseCall::Release => self.is_mine(),
            LeaseCall::Acknowledge => self.own.owes_an_acknowledgement(),
            LeaseCall::Read | LeaseCall::Ask => false,
        };
        // If the spec is the same, the other candidates see no renewal (rule S6).
        if newest && in_vain || same && flight.what == LeaseCall::Renew {
            return refused("the lease does not hold what this candidate wrote");
        }
        self.health.recover(flight.what, now);
        if matches!(flight.what, LeaseCall::Acquire | LeaseCall::Renew) && self.is_current() {
            self.claims.stood(flight.sent);
            self.claims.answered = Some(flight.sent);
        }
        Outcome::Worked { lasting: true }
    }

    fn refused(&mut self, flight: &Flight, what: LeaseCall, error: ErrLock, now: Moment) -> Outcome {
        let kind = error.kind();
        let acquires = what == LeaseCall::Acquire;
        if acquires && is_certain(kind) {
            self.claims.settle_last();
        }
        if kind == ErrLockKind::NotFound && flight.seen.is_some() && what != LeaseCall::Read {
            // The lease was deleted (rule S8).
            self.was_absent(flight, now);
            return Outcome::Gone;
        }
        if acquires && kind == ErrLockKind::Conflict {
            self.entry.spread.lost_a_race();
            if self.health.is_watching() {
                let before = flight.seen.as_ref().map(LeaseRecord::resource_version);
                if self.version() == before {
                    self.health.lose_a_race(now);
                }
                return Outcome::LostRace(error);
            }
        }
        Outcome::Failed(error)
    }
}

/// Whether a write with this error was certainly not carried out.
fn is_certain(kind: ErrLockKind) -> bool {
    matches!(kind, ErrLockKind::Unauthorized | ErrLockKind::Forbidden | ErrLockKind::NotFound)
}
