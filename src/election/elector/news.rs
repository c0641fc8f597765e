//! What follows from news of the lease.

use super::Elector;
use crate::{
    election::lease_watch::{WatchNews, watch_lease},
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
                self.watch.settle();
            }
            WatchNews::Event(LeaseEvent::Seen(record)) => {
                contact.watch_tells(&record, now);
                self.know(record);
            }
            WatchNews::Event(LeaseEvent::Deleted(last)) => {
                contact.watch_tells(&last, now);
                if self.candidacy.observe_absence(Some(&last), now) {
                    self.act_on_news();
                }
            }
            WatchNews::Down(error) => {
                contact.watch_ends();
                if let Some(error) = error {
                    self.watch.raise(error.kind().as_str(), &error);
                }
            }
        }
    }

    /// Takes in the lease as it was watched, or answered to a write.
    pub(super) fn know(&mut self, record: LeaseRecord) {
        if self.candidacy.observe(record, self.leadership.now()) {
            self.act_on_news();
        }
    }

    /// Takes in the lease as it was read; `before` is the version that was known when the read was sent.
    pub(super) fn know_read(&mut self, record: Option<LeaseRecord>, before: Option<&str>) {
        if self.candidacy.observe_read(record, before, self.leadership.now()) {
            self.act_on_news();
        }
    }

    /// Takes in that there is nothing to update.
    pub(super) fn know_gone(&mut self) {
        if self.candidacy.observe_absence(None, self.leadership.now()) {
            self.act_on_news();
        }
    }

    /// At once: a gate that closes if the lease is no longer this candidate's (rules S7 and S8), and the holder's name
    /// for messages.
    fn act_on_news(&mut self) {
        if !self.candidacy.is_mine() {
            self.pulse.rest();
        }
        if let Some(grant) = &self.grant {
            if self.candidacy.own.is_draining() {
                // Its successor waits: nothing more is admitted, and what was admitted finishes.
                self.grantor.close();
            } else if !self.candidacy.is_current() || !self.candidacy.own.is_open() {
                let uid = self.candidacy.record().map(LeaseRecord::uid);
                let deleted = uid != Some(grant.term().lease_uid());
                self.lose(if deleted { Loss::Deleted } else { Loss::Taken });
            }
        }
        let record = self.candidacy.record();
        let holder = record.and_then(LeaseRecord::holder);
        if self.leadership.holder().as_deref() != holder {
            let news =
                if holder.is_some() { "the lease has changed hands" } else { "nobody holds the lease" };
            tracing::info!(holder, "{news}");
            self.grantor.note_holder(holder);
        }
        match self.candidacy.oddity() {
            Some(oddity) => self.oddity.raise(oddity, &oddity),
            None => self.oddity.settle(),
        }
        self.note_trouble();
        self.speak_of_peace();
    }

    /// Says once that candidates preempt each other, and once that they have stopped.
    fn speak_of_peace(&mut self) {
        let now = self.leadership.now();
        if self.candidacy.keeps_the_peace(now) {
            let holder_key = self.candidacy.record().and_then(LeaseRecord::holder_key).unwrap_or_default();
            let details = format_args!("this one waits longer each time; the holder's key is {holder_key:?}");
            self.peace.raise("preempted in turn", &details);
        } else if !self.candidacy.is_restless(now) {
            self.peace.settle();
        }
    }

    /// A watch that does not stand is tried again at once.
    pub(super) fn restart_a_missing_watch(&mut self) {
        if !self.candidacy.contact.is_watching() {
            self.lease_watch = watch_lease(self.lock.clone(), self.timing);
        }
    }

    /// A watch that has not told of what is known by other ways hangs: start it afresh.
    pub(super) fn restart_a_silent_watch(&mut self) {
        let known = self.candidacy.record().and_then(LeaseRecord::version);
        if self.candidacy.contact.is_watch_silent(known, self.leadership.now()) {
            tracing::debug!("the watch of the lease is silent; starting it afresh");
            self.candidacy.contact.watch_ends();
            self.lease_watch = watch_lease(self.lock.clone(), self.timing);
        }
    }
}
