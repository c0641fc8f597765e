//! Acts on news of the lease.

use super::Elector;
use crate::{
    defect,
    election::{
        lease_watch::{WatchNews, watch_lease},
        preemption::holder_key,
    },
    leadership::Loss,
    lease::{LeaseEvent, LeaseRecord, Lock},
};

impl<L: Lock> Elector<L> {
    pub(super) fn on_watch_news(&mut self, news: WatchNews) {
        let now = self.leadership.now();
        let contact = &mut self.candidacy.contact;
        match news {
            WatchNews::Up => {
                contact.watch_begins(now);
                self.watch.settle(now);
            }
            WatchNews::Event(LeaseEvent::Seen(record)) => {
                contact.watch_tells(&record, now);
                self.candidacy.observe(record, now);
            }
            WatchNews::Event(LeaseEvent::Deleted(last)) => {
                contact.watch_tells(&last, now);
                self.candidacy.observe_absence(Some(&last), now);
            }
            WatchNews::Down(error) => {
                contact.watch_ends(now);
                if let Some(error) = error {
                    self.watch.raise(error.kind().as_str(), &error, now);
                }
            }
        }
        self.act_on_news();
    }

    /// Closes the gate at once if the lease is no longer this candidate's (rules S7 and S8), and records the holder's
    /// name for messages.
    pub(super) fn act_on_news(&mut self) {
        if !self.candidacy.is_mine() {
            self.profile.pulse.rest();
        }
        let goes_on = defect::is_back("goes-on-after-a-theft")
            || self.candidacy.record().is_none() && defect::is_back("goes-on-after-a-deletion");
        if let Some(grant) = self.grant.as_ref().filter(|_| !goes_on) {
            if self.candidacy.own.owes_an_acknowledgement() {
                // The successor waits. The gate admits no new writes, and admitted writes finish.
                self.grantor.close();
            } else if !self.candidacy.is_current() || !self.candidacy.own.is_open() {
                let uid = self.candidacy.record().map(LeaseRecord::uid);
                let deleted = uid != Some(grant.term().lease_uid());
                self.lose(if deleted { Loss::Deleted } else { Loss::Taken });
            } else if self.candidacy.gives_way() {
                self.give_way();
            }
        }
        self.holder_watch.follow(self.candidacy.of_another());
        let record = self.candidacy.record();
        if record.is_some() {
            self.profile.pulse.see();
        }
        let holder = record.and_then(LeaseRecord::holder);
        if self.leadership.holder().as_deref() != holder {
            let news =
                if holder.is_some() { "the lease has changed hands" } else { "no candidate holds the lease" };
            tracing::info!(holder, "{news}");
            self.grantor.note_holder(holder);
        }
        let now = self.leadership.now();
        match self.candidacy.oddity() {
            Some(oddity) => self.oddity.raise(oddity, &oddity, now),
            None => self.oddity.settle(now),
        }
        self.note_trouble();
        self.log_mutual_preemption();
    }

    /// Logs that candidates preempt each other, and that they have stopped.
    fn log_mutual_preemption(&mut self) {
        let now = self.leadership.now();
        if self.candidacy.backs_off(now) {
            let holder_key = self.candidacy.record().and_then(holder_key).unwrap_or_default();
            let details =
                format_args!("this candidate waits longer each time; the holder's key is {holder_key:?}");
            self.mutual_preemption.raise("preempted in turn", &details, now);
        } else if !self.candidacy.precedence.preempted_recently(now) {
            self.mutual_preemption.settle(now);
        }
    }

    /// Restarts a watch that hangs: it has not shown what is known from another source.
    pub(super) fn restart_a_silent_watch(&mut self) {
        let known = self.candidacy.record().and_then(LeaseRecord::version);
        if self.candidacy.contact.is_watch_silent(known, self.leadership.now()) {
            tracing::debug!("the watch of the lease is silent; restarting it");
            self.restart_watch();
        }
    }

    /// Restarts the watch at once.
    pub(super) fn restart_watch(&mut self) {
        self.candidacy.contact.watch_ends(self.leadership.now());
        self.lease_watch = watch_lease(self.lock.clone(), self.profile.timing);
    }
}
