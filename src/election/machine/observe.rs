//! What becomes known of the lease: whose it is, and whom it leaves behind.

use super::{
    formers::UNSEEN,
    note::writer,
    state::{ActiveTerm, Closing, Lease, Machine, Predecessor, Reason, Seen, Staleness},
    stored::Stored,
    update::following,
};
use crate::{
    election::lease_watch::WatchNews,
    leadership::{Loss, Moment, Term},
    lease::{LeaseEvent, LeaseRecord},
};

impl Machine {
    /// Takes in news of the watch.
    pub fn watched(&mut self, news: WatchNews, now: Moment) {
        match news {
            WatchNews::Up => {
                // After an outage, calls may work again too.
                if self.failures > 1 {
                    self.pause_until = self.pause_until.min(now);
                }
                self.staleness = self.staleness.max(Staleness::Unsure);
                if let Some(flight) = &mut self.flight {
                    flight.settles = false;
                }
            }
            WatchNews::Down(_) => self.watches = false,
            WatchNews::Event(event) => {
                self.watches = true; // an open watch may stay mute
                match event {
                    LeaseEvent::Seen(record) => self.saw(record, false, now),
                    LeaseEvent::Deleted(last) => self.saw(last, true, now),
                }
            }
        }
    }

    /// The watch has shown this state of the lease, or the last one before a deletion.
    fn saw(&mut self, record: LeaseRecord, is_gone: bool, now: Moment) {
        let Some(version) = record.version() else {
            // It cannot be compared with what is known. A read is believed as it is.
            self.staleness = Staleness::Stale;
            return;
        };
        if version < self.newest {
            return;
        }
        let settles = match self.staleness {
            // A watch begins with the present lease, and shows all that comes after.
            Staleness::Unsure => true,
            // A write that met another version has met this one, or an older one: then the next swap fails too.
            Staleness::Stale => self.newest < version,
            Staleness::Fresh => false,
        };
        if settles {
            self.staleness = Staleness::Fresh;
        }
        self.looked = now;
        let last = self.seen().map(|seen| seen.stored.clone());
        self.learn(record, now);
        if self.seen().is_some_and(|seen| self.is_news_of_others(last.as_ref(), &seen.stored)) {
            // Another candidate can write, so this one tries anew.
            (self.rest_until, self.pause_until) = (now, now);
            if self.term.is_none() && !self.is_ending() {
                self.failures = 0;
            }
        }
        if is_gone {
            self.observe(None, now);
        }
    }

    /// Whether another candidate has written the lease since the `last` look. An edit of a lease that stays free is of a
    /// person, and tells nothing.
    fn is_news_of_others(&self, last: Option<&Stored>, stored: &Stored) -> bool {
        let stays_free = |last: &Stored| {
            let is_free = |it: &Stored| it.record.holder().is_none();
            is_free(last) && is_free(stored) && last.record.term() == stored.record.term()
        };
        let is_news = last.is_none_or(|last| !last.has_claim_of(stored) && !stays_free(last));
        is_news && !self.has_written(stored)
    }

    /// Takes in this state of the lease, unless a newer one is known.
    pub(super) fn learn(&mut self, record: LeaseRecord, now: Moment) {
        let version = record.version().unwrap_or(0);
        if version >= self.newest {
            (self.newest, self.highest) = (version, self.highest.max(version));
            self.observe(Some(record), now);
        }
    }

    /// The lease is now this, in the order of its versions.
    pub(super) fn observe(&mut self, next: Option<LeaseRecord>, now: Moment) {
        let next = next.map(Stored::new);
        if self
            .seen()
            .zip(next.as_ref())
            .is_some_and(|(seen, it)| seen.stored.record.uid() != it.record.uid())
        {
            self.note_a_gap(now);
        }
        let since = if let Lease::Absent(since) = self.lease { since } else { now };
        let last = std::mem::replace(&mut self.lease, Lease::Absent(since));
        let goes_on = |term| next.as_ref().is_some_and(|it| self.is_of(it, term));
        if let Some(term) = self.term.as_ref().filter(|term| !goes_on(term)) {
            self.lost = self.how_lost(term, next.as_ref()); // rules S7 and S8
            self.term = None;
        }
        if let Lease::Present(seen) = &last {
            self.note_former(seen, next.as_ref(), now);
            let is_free =
                next.as_ref().is_some_and(|it| it.record.holder().is_none() && self.has_written(it));
            if is_free && self.is_mine(&seen.stored) {
                self.rest(&seen.stored.record.term(), now);
            }
        }
        let is_free = next.as_ref().is_none_or(|it| it.record.holder().is_none());
        self.spread.observe(is_free, now, self.chance(now));
        let Some(stored) = next else { return };
        self.stamp = self.stamp.max(stored.renewed);
        self.lease = Lease::Present(match last {
            Lease::Present(seen) if seen.stored.has_claim_of(&stored) => Seen { stored, ..seen },
            last => self.sight(&last, stored, now),
        });
        self.close_if_told();
    }

    /// `term` was released. This candidate leaves the lease to others for a while, and asks for it later still if it was moved:
    /// or else a preferred candidate would undo at once what a person has done.
    fn rest(&mut self, term: &Term, now: Moment) {
        let Some(closing) = self.closing.as_ref().filter(|it| it.term.is_same(term)) else { return };
        let (period, lease) = (self.timing.retry_period(), self.timing.lease_duration());
        let silence = if closing.reason == Reason::Preceded { period } else { lease };
        self.rest_until = self.rest_until.max(now.saturating_add(closing.reason.rest(&self.timing)));
        self.ask_from = self.ask_from.max(now.saturating_add(silence));
    }

    /// The lease says something new.
    fn sight(&mut self, last: &Lease, stored: Stored, now: Moment) -> Seen {
        let is_first = matches!(last, Lease::Unknown);
        self.look_for_the_predecessor(is_first, &stored, now);
        let mine = self.is_mine(&stored);
        if !mine || is_first {
            // Whom another holder waits for is waited for here, too, but for this process itself.
            let own = writer(self.me.as_str(), self.process);
            for (who, rest) in stored.waits_for().into_iter().flatten().filter(|it| *it.0 != own) {
                self.formers.add(who, *rest, now);
            }
            if stored.is_as_written() {
                self.altered = None; // nothing alters the claims any more
            }
        }
        let (mut longest, mut own) = (stored.lasts(self.timing.lease_duration()), mine);
        if let Lease::Present(seen) = last
            && seen.stored.record.term() == stored.record.term()
        {
            // **Earlier**: a person frees the lease by hand, and its holder takes it back at once.
            own |= seen.own && !stored.is_released() && self.has_written(&stored);
            if seen.stored.record.holder() == stored.record.holder() {
                longest = longest.max(seen.longest);
            }
        }
        own &= stored.renewed == self.stamp; // or else it is a copy, and others may have led since
        Seen { stored, since: now, longest, own, is_news: !is_first }
    }

    /// Finds out whether an earlier container of this process's pod holds the lease at the `is_first` look: its claim names this
    /// candidate and the uid of this pod. The kubelet ends a container before it starts the next one. The name alone proves
    /// nothing: a pod of a `StatefulSet` that was deleted by force may live on beside its successor.
    ///
    /// **Earlier**: a container that restarts takes its own lease at once, and only what the process before it has sent may still
    /// land. If that process has held the lease for less than a lease duration, this one releases it instead: or else a process
    /// that crashes soon after each gain keeps the lease from the healthy ones for ever.
    fn look_for_the_predecessor(&mut self, is_first: bool, stored: &Stored, now: Moment) {
        let Some(claim) = stored.claim().filter(|_| stored.record.holder() == Some(self.me.as_str())) else {
            return;
        };
        if !is_first {
            // It writes again, so it has not ended: another container of this pod has this identity, too.
            self.predecessor = self.predecessor.filter(|it| it.process != claim.process);
        } else if self.pod.as_ref().is_some_and(|pod| *pod == claim.pod) && !(self.runs_here)(claim.process) {
            self.predecessor = Some(Predecessor { process: claim.process, seen: now });
            if stored.held() < claim.lasts {
                self.closing = Some(Closing { term: stored.record.term(), reason: Reason::EndedSoon });
            }
        }
    }

    /// The holder that `next` replaces may write on, unless a word says that it has stopped: its own release (as client-go does
    /// it, if it is no holder of this crate), or a claim of this crate with the next number of transitions, which does not
    /// list it. A claim of this process lists whom it has to wait for, like any other.
    fn note_former(&mut self, last: &Seen, next: Option<&Stored>, now: Moment) {
        let (was, transitions) = (&last.stored.record, last.stored.record.transitions());
        if last.own || last.stored.is_vacant() {
            return;
        }
        let next = next.filter(|it| it.record.uid() == was.uid());
        let goes_on = |it: &Stored| {
            was.holder().is_some() && it.record.holder() == was.holder() && it.record.term() == was.term()
        };
        if next.is_some_and(|it| goes_on(it) || it.has_claim_of(&last.stored)) {
            return;
        }
        // A lease that was emptied by hand may still show whose it was. If not, no release tells of that holder.
        let shown = last.stored.writer();
        let holder = shown.as_deref().unwrap_or(UNSEEN);
        // A word is later than all times that its writer has seen in the lease, so a restored copy is none. Nor is one of
        // this process's own claims that comes after another claim.
        let is_own_word = was.resource_version() == self.wrote_over;
        let word = next.filter(|it| it.renewed > self.stamp && (is_own_word || !self.is_mine(it)));
        let word = word.filter(|it| shown.is_some() || it.record.holder().is_some());
        // A holder of this crate says in its release which process it is.
        let is_its = |it: &Stored| last.stored.claim().is_none() || it.is_by(&last.stored);
        let is_released =
            word.is_some_and(|it| it.is_released() && it.record.transitions() == transitions && is_its(it));
        let follows = word.filter(|it| it.record.transitions() == following(transitions));
        let vouches = follows.and_then(Stored::waits_for).is_some_and(|rests| !rests.contains_key(holder));
        if is_released {
            self.formers.clear(holder);
        } else if !vouches {
            // A renewal may not have been shown, so its time counts from now.
            self.formers.add(holder, last.longest, now);
        }
    }

    /// The lease is gone, and no watch has shown who held it last.
    pub(super) fn note_a_gap(&mut self, now: Moment) {
        if let Some(seen) = self.seen()
            && self.term.is_none()
        {
            let longest = seen.longest.max(self.timing.lease_duration());
            self.formers.add(UNSEEN, longest, now);
        }
    }

    /// How `term` has ended, since the lease is now this.
    fn how_lost(&self, term: &ActiveTerm, next: Option<&Stored>) -> Loss {
        let next = next.filter(|it| it.record.uid() == term.name.lease_uid());
        match next {
            None => Loss::Deleted,
            Some(it) if it.is_released() && self.has_written(it) => Loss::Released,
            Some(_) => Loss::Taken,
        }
    }
}
