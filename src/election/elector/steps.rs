//! What a candidate does: acquire, renew, acknowledge, and give up.

use super::Elector;
use crate::{
    election::{
        candidacy::Decision,
        hooks::LeaseCall,
        preemption::{Handover, OwnTerm, holder_key},
        wall_clock,
    },
    leadership::Moment,
    lease::{LeaseRecord, Lock},
};
use std::time::Duration;

/// Candidates that see a lease released spread over this time, and look again, so that a crowd does not write at once.
const SPREAD: Duration = Duration::from_millis(4);

impl<L: Lock> Elector<L> {
    /// Makes the call that is due.
    pub(super) async fn make(&mut self, call: LeaseCall) {
        match call {
            LeaseCall::Read => {
                let in_doubt = self.candidacy.contact.is_in_doubt();
                // Without a reason for this read, the watch should have told of what it has shown.
                if self.read().await && !in_doubt {
                    self.restart_a_silent_watch();
                }
            }
            LeaseCall::Acquire => self.acquire().await,
            LeaseCall::Renew => self.renew().await,
            LeaseCall::Acknowledge => self.acknowledge().await,
            LeaseCall::Release => {
                let claim = self.candidacy.release(self.leadership.now(), wall_clock::now());
                self.write(call, claim).await;
            }
        }
    }

    /// Takes the lease if it is still there to be taken: reads it, and swaps on the version that was read (rule S6).
    async fn acquire(&mut self) {
        self.observe_for(SPREAD.mul_f64(fastrand::f64())).await;
        if !self.read().await || !self.contends() {
            return;
        }
        // The deadline counts from before the call is sent (rule S1).
        let sent = self.leadership.now();
        // The watch may not have told of what the read has shown.
        match self.candidacy.decide(sent, false) {
            Decision::Take => {}
            Decision::Preempt => {
                let record = self.candidacy.record();
                let (holder, holder_key) =
                    (record.and_then(LeaseRecord::holder), record.and_then(holder_key));
                tracing::info!(holder, holder_key, "preempting a live holder of lower precedence");
            }
            _ => return,
        }
        let claim = self.candidacy.acquisition(sent, wall_clock::now());
        if self.write(LeaseCall::Acquire, claim).await {
            self.stands(sent);
            if let Some(overtaken) = self.candidacy.overtaken(sent) {
                let at_most = overtaken.until.saturating_since(self.leadership.now());
                tracing::info!(
                    ?at_most,
                    "the lease is taken; writes wait for the end of the former holder's"
                );
            }
        }
    }

    /// Renews the lease.
    async fn renew(&mut self) {
        // After a failure the lease may have been read this very moment.
        if !self.candidacy.contact.is_failing() {
            self.restart_a_silent_watch();
        }
        let sent = self.leadership.now();
        let claim = self.candidacy.renewal(sent, wall_clock::now());
        if self.write(LeaseCall::Renew, claim).await {
            self.stands(sent);
        }
    }

    /// What follows from a claim or a renewal that was sent at `sent` and carried out: the deadline moves on, or the gate
    /// opens, unless this candidate waits for a former holder.
    fn stands(&mut self, sent: Moment) {
        let Some(record) = self.candidacy.record().filter(|_| self.candidacy.is_current()) else { return };
        let (term, waits) = (record.term(), self.candidacy.overtaken(sent).is_some());
        self.candidacy.stood(sent);
        let deadline = sent.saturating_add(self.profile.timing.renew_deadline());
        if let Some(grant) = &self.grant {
            if grant.extend(deadline).is_err() {
                // A theft that the watch has shown meanwhile, or a deadline that has passed, stands.
                return;
            }
        } else if !waits && self.contends() {
            // Too late means that the answer came after the deadline, or that this election stops or stands down.
            self.grant = self.grantor.grant(term.clone(), deadline).ok();
            if self.grant.is_some() {
                self.candidacy.opened(term);
            }
        }
        self.profile.pulse.beat(sent);
    }

    /// Tells the candidate that has preempted this one that the writes of its term have ended.
    async fn acknowledge(&mut self) {
        let Some(claim) = self.candidacy.record().and_then(Handover::acknowledgement) else {
            // Nothing that this crate has written.
            self.candidacy.own = OwnTerm::None;
            return;
        };
        if self.write(LeaseCall::Acknowledge, claim).await {
            tracing::info!("the preempting holder was told that the last write has ended");
        }
    }
}
