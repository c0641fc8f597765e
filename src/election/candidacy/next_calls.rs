//! What the calls of a candidate do in its world.

use super::{Decision, Task, next_world::World};
use crate::{
    election::hooks::LeaseCall,
    leadership::{Moment, Term},
    lease::{ErrLockKind, LeaseName, LeaseRecord},
};
use std::time::Duration;

impl World {
    /// Swaps the lease if it is still as the candidate saw it.
    pub(super) fn swap(&mut self, claim: &crate::lease::Claim) -> bool {
        self.candidacy.contact.begin(self.now);
        let seen = self.candidacy.record().cloned();
        if seen.as_ref().map(LeaseRecord::resource_version)
            != self.lease.as_ref().map(LeaseRecord::resource_version)
        {
            self.fail(ErrLockKind::Conflict);
            return false;
        }
        let object = if let Some(seen) = seen {
            seen.with(claim).into_json()
        } else {
            self.uid += 1;
            let mut object = claim.new_lease(&LeaseName::new("default", "operator").unwrap());
            object["metadata"]["uid"] = self.uid.to_string().into();
            object
        };
        self.put(object);
        true
    }

    pub(super) fn call(&mut self, call: LeaseCall, fate: u8) {
        let now = self.now;
        if fate == 0 {
            // The call never arrives.
            self.candidacy.contact.begin(now);
            return self.fail(ErrLockKind::Unreachable);
        }
        let lost = fate == 1;
        match call {
            LeaseCall::Read => self.read(),
            LeaseCall::Acquire => {
                assert_eq!(self.task, Task::Contend, "acquires only while it contends");
                self.read();
                if !matches!(self.candidacy.decide(now, false), Decision::Take | Decision::Preempt) {
                    return;
                }
                let time = self.tick();
                let claim = self.candidacy.acquisition(now, time);
                self.agreed = false;
                let held_back = self.candidacy.is_held_back(now);
                if !self.swap(&claim) {
                    return;
                }
                if lost {
                    return self.fail(ErrLockKind::Unreachable);
                }
                self.candidacy.claim_is_settled();
                self.answered(call, now, held_back);
            }
            LeaseCall::Renew => {
                let held_back = self.candidacy.is_held_back(now);
                let time = self.tick();
                let claim = self.candidacy.renewal(now, time);
                if !self.swap(&claim) {
                    return;
                }
                if lost {
                    return self.fail(ErrLockKind::Unreachable);
                }
                self.answered(call, now, held_back);
            }
            LeaseCall::Acknowledge => {
                assert!(now >= self.settles_at, "acknowledged before the writes ended");
                let Some(claim) = self.candidacy.acknowledgement() else { return };
                if self.swap(&claim) {
                    self.hear();
                }
            }
            LeaseCall::Join | LeaseCall::Leave => self.stand_by(call),
            LeaseCall::Release => {
                assert!(now >= self.settles_at, "released before the writes ended");
                assert!(self.candidacy.is_mine(), "released a lease that is not its own");
                let time = self.tick();
                let claim = self.candidacy.release(now, time);
                let own = self.lease.as_ref().is_some_and(|lease| lease.holder() == Some("me"));
                if self.swap(&claim) {
                    assert!(own, "released another candidate's lease");
                    self.deadline = None;
                    self.hear();
                }
            }
        }
    }

    pub(super) fn answered(&mut self, call: LeaseCall, sent: Moment, held_back: bool) {
        self.candidacy.observe(self.lease.clone().unwrap(), sent);
        self.candidacy.contact.recover(call, sent);
        self.act();
        if !self.candidacy.is_current() {
            return;
        }
        self.candidacy.stood(sent);
        if self.leads() || !held_back && self.task == Task::Contend {
            let was = self.leads();
            self.deadline = Some(sent.saturating_add(Duration::from_secs(10)));
            if !was {
                assert!(!self.asks || self.agreed, "opened without an agreement");
                let term: Term = self.lease.as_ref().unwrap().term();
                self.candidacy.opened(term);
            }
        }
    }

    fn stand_by(&mut self, call: LeaseCall) {
        let now = self.now;
        let claim = if call == LeaseCall::Join {
            assert_eq!(self.task, Task::Contend, "joins only while it contends");
            self.candidacy.tries_to_join(now);
            self.read();
            self.candidacy.joining(now)
        } else {
            assert_ne!(self.task, Task::Contend, "leaves only under an order");
            self.candidacy.has_left();
            self.candidacy.leaving()
        };
        let before = self.lease.clone();
        if let Some(claim) = claim
            && self.swap(&claim)
        {
            let same = |lease: &LeaseRecord| before.is_some_and(|before| before.says_the_same(lease));
            assert!(self.lease.as_ref().is_some_and(same), "a standby changes its own place only");
            self.hear();
        }
    }
}
