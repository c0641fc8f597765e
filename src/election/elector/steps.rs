//! The steps of a candidate: acquire, renew, acknowledge and release.

use super::Elector;
use crate::{
    defect,
    election::{candidacy::Decision, hooks::LeaseCall, preemption::holder_key, wall_clock},
    leadership::Moment,
    lease::{LeaseRecord, Lock},
};
use std::time::Duration;

/// When candidates see that the lease can be taken, each waits a random time up to this and reads again, so that they do
/// not all write at once.
const SPREAD: Duration = Duration::from_millis(4);

impl<L: Lock> Elector<L> {
    /// Makes the call that is due.
    pub(super) async fn make(&mut self, call: LeaseCall) {
        match call {
            LeaseCall::Read => {
                let in_doubt = self.candidacy.contact.is_in_doubt();
                // There was no doubt before this read, so the watch should have shown the same.
                if self.read().await && !in_doubt {
                    self.restart_a_silent_watch();
                }
            }
            LeaseCall::Acquire => self.acquire().await,
            LeaseCall::Renew => self.renew().await,
            LeaseCall::Acknowledge => self.acknowledge().await,
            LeaseCall::Join => self.join().await,
            LeaseCall::Leave => self.leave().await,
            LeaseCall::Release => {
                self.withdraw(1).await;
                // There may have been news meanwhile (rule S5).
                if !self.candidacy.is_mine() {
                    return;
                }
                if self.contends()
                    && self.candidacy.decide(self.leadership.now(), false) == Decision::GiveBack
                {
                    tracing::warn!(
                        "the gate may not open; the lease is left to another candidate for a while"
                    );
                }
                let claim = self.candidacy.release(self.leadership.now(), wall_clock::now());
                if self.write(call, claim).await {
                    tracing::info!("the lease was released");
                }
            }
        }
    }

    /// Takes the lease if it can still be taken. It reads the lease, and swaps on the version that it read (rule S6).
    async fn acquire(&mut self) {
        let takes = self.candidacy.decide(self.leadership.now(), false) == Decision::Take;
        if !(takes && self.candidacy.stands_by()) {
            self.observe_for(SPREAD.mul_f64(fastrand::f64())).await;
        }
        if !self.read().await || !self.contends() {
            return;
        }
        // The deadline counts from before the call is sent (rule S1).
        let sent = self.leadership.now();
        // The read may have shown something that the watch has not shown yet.
        match self.candidacy.decide(sent, false) {
            // The read took long, so perhaps many candidates try.
            Decision::Take if sent < self.candidacy.turn() => return,
            Decision::Take => {}
            Decision::Succeed => {
                let holder = self.candidacy.record().and_then(LeaseRecord::holder);
                tracing::info!(holder, "the holder's container has ended; taking the lease early");
            }
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
            if let Some(until) = self.candidacy.formers.until(sent) {
                let at_most = until.saturating_since(self.leadership.now());
                tracing::info!(
                    ?at_most,
                    "the lease is taken; writes wait until the former holder's writes have ended"
                );
            }
        }
    }

    /// Renews the lease.
    async fn renew(&mut self) {
        // After a failure, the lease may have just been read.
        if !self.candidacy.contact.is_failing() {
            self.restart_a_silent_watch();
        }
        let sent = self.leadership.now();
        let claim = self.candidacy.renewal(sent, wall_clock::now());
        if self.write(LeaseCall::Renew, claim).await {
            self.stands(sent);
        }
    }

    /// Acts on a claim or a renewal that was sent at `sent` and carried out. The deadline moves forward, or the gate
    /// opens, unless this candidate waits for a former holder.
    fn stands(&mut self, sent: Moment) {
        let Some(record) = self.candidacy.record().filter(|_| self.candidacy.is_current()) else { return };
        let (term, waits) = (record.term(), self.candidacy.is_held_back(sent));
        self.candidacy.stood(sent);
        let from = if defect::is_back("deadline-from-the-answer") { self.leadership.now() } else { sent };
        let deadline = from.saturating_add(self.profile.timing.renew_deadline());
        if let Some(grant) = &self.grant {
            if grant.extend(deadline).is_err() {
                // The watch has shown a theft meanwhile, or the deadline has passed. Either ends the term.
                return;
            }
        } else if !waits && self.contends() && !self.candidacy.gives_way() {
            // An error means that the answer came after the deadline, or that this election stops or stands down.
            let token = self.candidacy.fencing_token();
            let granted = token.map_or(term.clone(), |token| term.clone().with_fencing_token(token));
            self.grant = self.grantor.grant(granted, deadline).ok();
            if self.grant.is_some() {
                self.candidacy.opened(term);
                if let Err(reason) = token {
                    tracing::info!("this term has no fencing token: {reason}");
                }
            }
        }
        self.profile.pulse.beat(sent);
    }

    /// Tells the candidate that preempted this one that the writes of its term have ended.
    async fn acknowledge(&mut self) {
        let Some(claim) = self.candidacy.acknowledgement() else { return };
        if self.write(LeaseCall::Acknowledge, claim).await {
            tracing::info!("told the preempting holder that the last write has ended");
        }
    }
}
