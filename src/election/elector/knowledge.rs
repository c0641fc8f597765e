//! What follows from news of the lease.

use super::{Doubt, Elector};
use crate::{
    election::observer::{Observed, observe},
    leadership::Loss,
    lease::{LeaseEvent, LeaseRecord, Lock},
};

impl<L: Lock> Elector<L> {
    pub(super) fn on_observed(&mut self, observed: Observed) {
        match observed {
            Observed::Up => {
                self.watching = true;
                self.heard = None;
                self.last_heard = self.leadership.now();
                // What happened before the watch stood is not known.
                self.doubt = self.doubt.max(Doubt::MayBeOld);
                self.watch.settle();
            }
            Observed::Event(LeaseEvent::Seen(record)) => {
                self.heard(&record);
                self.know(record);
            }
            Observed::Event(LeaseEvent::Deleted(last)) => {
                self.heard(&last);
                if self.candidacy.observe_absence(Some(&last)) {
                    self.act_on_news();
                }
            }
            Observed::Down(error) => {
                self.watching = false;
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
        if self.candidacy.observe_absence(None) {
            self.act_on_news();
        }
    }

    /// At once: a gate that closes if the lease is no longer this candidate's (rules S7 and S8), and the holder's name
    /// for messages.
    fn act_on_news(&mut self) {
        if !self.candidacy.is_mine() {
            self.pulse.rest();
        }
        if self.grant.is_some() && !self.candidacy.is_current() {
            if self.is_yielding() {
                // Its successor waits: nothing more is admitted, and what was admitted finishes.
                self.leadership.close();
            } else {
                let deleted = self.candidacy.record().is_none();
                self.lose(if deleted { Loss::Deleted } else { Loss::Taken });
            }
        } else if self.has_closed_in_vain() {
            self.lose(Loss::Taken);
        }
        let record = self.candidacy.record();
        let holder = record.and_then(LeaseRecord::holder);
        if self.leadership.holder().as_deref() != holder {
            let news =
                if holder.is_some() { "the lease has changed hands" } else { "nobody holds the lease" };
            tracing::info!(holder, "{news}");
            self.leadership.note_holder(holder);
        }
        match self.candidacy.oddity() {
            Some(oddity) => self.oddity.raise(oddity, &oddity),
            None => self.oddity.settle(),
        }
        self.note_trouble();
        self.speak_of_peace();
    }

    fn heard(&mut self, record: &LeaseRecord) {
        self.heard = self.heard.max(record.version());
        self.last_heard = self.leadership.now();
    }

    /// A watch that does not stand is tried again at once.
    pub(super) fn restart_a_missing_watch(&mut self) {
        if !self.watching {
            self.observer = observe(self.lock.clone(), self.timing);
        }
    }

    /// A watch that has not told of what is known by other ways hangs: start it afresh. Not one that told of something a
    /// moment ago: an answer may be faster than the watch.
    pub(super) fn restart_a_silent_watch(&mut self) {
        let known = self.candidacy.record().and_then(LeaseRecord::version);
        let quiet = self.leadership.now().saturating_since(self.last_heard) >= self.timing.pause();
        if self.watching && quiet && known > self.heard {
            tracing::debug!("the watch of the lease is silent; starting it afresh");
            self.watching = false;
            self.observer = observe(self.lock.clone(), self.timing);
        }
    }
}
