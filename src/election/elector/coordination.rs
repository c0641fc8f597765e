//! What a coordinator changes: this candidate offers itself, gives way to a preferred one, and withdraws before a stop.

use super::Elector;
use crate::{
    election::{candidacy::Decision, coordination::Standing},
    leadership::{ErrStillWriting, Loss, Moment},
    lease::{LeaseRecord, Lock},
};
use tokio::time::timeout;

impl<L: Lock> Elector<L> {
    /// Leaves the choice of the holder to a coordinator, if there is a `standing` among its candidates.
    pub(in crate::election) fn coordinated(mut self, standing: Option<Standing>) -> Self {
        if standing.is_some() {
            self.candidacy.coordinate();
        }
        Self { standing, ..self }
    }

    /// Offers or withdraws this candidate, and ends a term that gives way. Returns when to look again.
    pub(super) fn coordinate(&mut self, writing: bool) -> Option<Moment> {
        let contends = self.contends();
        let standing = self.standing.as_mut()?;
        let now = self.leadership.now();
        let decision = self.candidacy.decide(now, false);
        // A candidate that has seen the lease knows the holder that it would replace.
        standing.stand(contends && decision != Decision::Read);
        let changed = standing.is_vacant(contends && decision == Decision::Await, now);
        let gives_way = self.grant.is_some() && self.candidacy.gives_way();
        let cut_off_at = gives_way.then(|| standing.gives_way(now));
        if !gives_way {
            standing.gave_way();
        }
        if changed {
            self.note_trouble();
        }
        // The end of work cuts off its own writes.
        let cut_off_at = cut_off_at.filter(|_| writing && contends)?;
        if now < cut_off_at {
            return Some(cut_off_at);
        }
        let late = ErrStillWriting { writes: self.leadership.writes_under_way() };
        self.lose(Loss::Abandoned);
        tracing::warn!(writes = late.writes, "admitted writes are cut off: {late}");
        None
    }

    /// Closes the gate for a preferred candidate. Admitted writes finish, still renewing the lease, and the release
    /// comes next (rule S4).
    pub(super) fn give_way(&mut self) {
        if !self.leadership.can_write() {
            return;
        }
        self.grantor.close();
        self.candidacy.begin_to_give_way();
        let preferred = self.candidacy.record().and_then(LeaseRecord::preferred_holder);
        tracing::info!(preferred, "the coordinator prefers another candidate; giving the lease up");
    }

    /// Waits until the coordinator no longer chooses this candidate, before a stop releases the lease. Otherwise the
    /// coordinator might name this process once more. It takes at most so many `calls`: one may be under way.
    pub(super) async fn withdraw(&mut self, calls: u32) {
        if !self.contends()
            && let Some(standing) = &self.standing
        {
            standing.stand(false);
            let withdrawn = timeout(self.profile.timing.call_timeout() * calls, standing.withdrawn());
            // If it takes longer, the lease matters more.
            let _ = self.hearing(withdrawn).await;
        }
    }
}
