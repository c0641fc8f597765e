//! Preemption, from both sides: what a preempted holder does, and what is said of it in the log.

use super::{Doubt, Elector};
use crate::{
    election::hooks::LeaseCall,
    leadership::{Leadership, Loss, Moment},
    lease::{LeaseRecord, Lock, LockErrorKind},
};
use std::time::Duration;

/// Longer than any deadline, at which the writes that are waited for are cut off.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// Waits until no admitted write is under way. Cancel-safe.
pub(super) async fn drained(leadership: &Leadership) {
    let _ = leadership.drain(FOR_EVER).await;
}

impl<L: Lock> Elector<L> {
    // --- the preempted ---

    /// Whether this candidate's term was taken from it by one that waits for the end of its writes. They may go on until
    /// the deadline, as in a clean stop (rule S4): until then the other waits in any case.
    pub(super) fn is_yielding(&self) -> bool {
        self.grant.as_ref().is_some_and(|grant| self.candidacy.awaits(grant.term()))
    }

    /// The writes of a preempted term have ended.
    pub(super) fn finish_yielding(&mut self) {
        let Some(grant) = self.grant.take() else { return };
        // Writes that the deadline has cut off are not finished: whoever waits must wait on (rule S4).
        let in_order = grant.is_valid();
        if in_order {
            self.yielded = Some(grant.term().clone());
        }
        grant.end(if in_order { Loss::Taken } else { Loss::Expired });
    }

    /// Whether the gate was closed for a preemption that has been undone since, from a backup, say: a new term opens it.
    pub(super) fn has_closed_in_vain(&self) -> bool {
        // A stop gives its orders before it closes the gate.
        self.grant.is_some() && self.leadership.state().closing && self.contends()
    }

    pub(super) fn owes_an_acknowledgement(&self) -> bool {
        self.yielded.as_ref().is_some_and(|term| self.candidacy.awaits(term))
    }

    /// Tells the new holder that the writes of the old one have ended.
    pub(super) async fn acknowledge(&mut self) {
        let Some(seen) = self.candidacy.record().cloned() else { return };
        let Some(claim) = seen.acknowledgement() else {
            // Nothing that this crate has written.
            self.yielded = None;
            return;
        };
        let lock = self.lock.clone();
        match self.call(LeaseCall::Acknowledge, async move { lock.update(&seen, &claim).await }).await {
            Ok(record) => {
                self.know(record);
                self.worked();
                tracing::info!("the preempting holder was told that the last write has ended");
            }
            Err(error) if error.kind() == LockErrorKind::NotFound => self.know_gone(),
            Err(error) => self.failed(LeaseCall::Acknowledge, &error),
        }
    }

    /// The same in the course of a stop: once, for all that it spares is the other's wait.
    pub(super) async fn acknowledge_before_the_end(&mut self) {
        if self.is_yielding() && self.leadership.writes_under_way() == 0 {
            self.finish_yielding();
        }
        if self.doubt != Doubt::IsOld && self.owes_an_acknowledgement() {
            self.acknowledge().await;
        }
    }

    // --- the preempting ---

    pub(super) fn announce_preemption(&self) {
        let record = self.candidacy.record();
        let holder = record.and_then(LeaseRecord::holder);
        let holder_key = record.and_then(LeaseRecord::holder_key);
        tracing::info!(holder, holder_key, "preempting a live holder of lower precedence");
    }

    pub(super) fn wait_for_the_overtaken(&self, until: Moment) {
        let at_most = until.saturating_since(self.leadership.now());
        tracing::info!(?at_most, "the lease is taken; writes wait for the end of the former holder's");
    }

    /// Says once that candidates preempt each other, and once that they have stopped.
    pub(super) fn speak_of_peace(&mut self) {
        let now = self.leadership.now();
        if self.candidacy.keeps_the_peace(now) {
            let holder_key = self.candidacy.record().and_then(LeaseRecord::holder_key).unwrap_or_default();
            let details = format_args!("this one waits longer each time; the holder's key is {holder_key:?}");
            self.peace.raise("preempted in turn", &details);
        } else if !self.candidacy.is_restless(now) {
            self.peace.settle();
        }
    }
}
