//! What the gate shall do: the fate of the running term, and the opening of the next one.

use super::state::{GateChange, Machine, View};
use crate::{
    leadership::{Loss, Moment},
    lease::LeaseRecord,
};

impl Machine {
    /// What the gate shall do now. None if it shall stay as it is.
    pub(super) fn gate(&mut self, view: &View) -> Option<GateChange> {
        if view.term.is_none() {
            return self.opening(view);
        }
        self.fate(view)
    }

    /// What becomes of the running term.
    fn fate(&mut self, view: &View) -> Option<GateChange> {
        let term = view.term.as_ref()?;
        if !view.is_valid {
            return Some(GateChange::End(Loss::Expired));
        }
        if self.own.owes_an_acknowledgement() {
            // The successor waits. Admitted writes finish, and the term ends with the last of them.
            return if view.writing {
                view.is_open.then_some(GateChange::Drain)
            } else {
                Some(GateChange::End(Loss::Taken))
            };
        }
        if !self.is_current() || !self.own.is_open() {
            // Rules S7 and S8.
            let deleted = self.record().map(LeaseRecord::uid) != Some(term.lease_uid());
            return Some(GateChange::End(if deleted { Loss::Deleted } else { Loss::Taken }));
        }
        if let Some(sent) = self.claims.answered.take() {
            return Some(GateChange::Extend(self.deadline(sent)));
        }
        let yields_until = self.own.yields_until()?;
        if view.is_open {
            return Some(GateChange::Drain);
        }
        (view.writing && view.now >= yields_until).then_some(GateChange::End(Loss::Abandoned))
    }

    /// Whether the gate opens: a write was answered that shows this candidate's claim, no former writer may begin a write,
    /// and the candidate contends. After a wait for former writers, the next renewal opens it.
    fn opening(&mut self, view: &View) -> Option<GateChange> {
        // The claim speaks of whom it waited for when it was sent.
        let sent = self.claims.answered.take()?;
        let record = self.record().filter(|_| self.is_current())?;
        let opens = self.formers.until(sent).is_none() && self.own.is_shut() && self.contends(view);
        let deadline = self.deadline(sent);
        let term = record.term();
        let term = self.fencing_token().map_or(term.clone(), |token| term.with_fencing_token(token));
        (opens && view.now < deadline).then_some(GateChange::Open(term, deadline))
    }

    /// The deadline counts from before the write was sent (rule S1).
    fn deadline(&self, sent: Moment) -> Moment {
        sent.saturating_add(self.me.timing.renew_deadline())
    }
}
