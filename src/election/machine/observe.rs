//! What becomes known of the lease: whose it is, and whom it leaves behind.

use super::{
    formers::UNSEEN,
    state::{ActiveTerm, Lease, Machine, Order, Seen, Staleness},
    stored::Stored,
    update::following,
};
use crate::{
    election::lease_watch::WatchNews,
    leadership::{Loss, Moment},
    lease::{LeaseEvent, LeaseRecord},
};

impl Machine {
    /// Takes in news of the watch.
    pub fn watched(&mut self, news: WatchNews, now: Moment) {
        match news {
            WatchNews::Up => {
                self.watches = true;
                // After an outage, calls may work again too.
                if self.failures > 1 {
                    self.not_before = self.not_before.min(now);
                }
                self.staleness = self.staleness.max(Staleness::Unsure);
                if let Some(flight) = &mut self.flight {
                    flight.settles = false;
                }
            }
            WatchNews::Down(_) => self.watches = false,
            WatchNews::Event(LeaseEvent::Seen(record)) => self.saw(record, false, now),
            WatchNews::Event(LeaseEvent::Deleted(last)) => self.saw(last, true, now),
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
        if self.newest < version && self.staleness == Staleness::Stale {
            // A write that met another version has met this one, or an older one: then the next swap fails too.
            self.staleness = Staleness::Fresh;
        }
        self.looked = now;
        self.learn(record, now);
        if !self.seen().is_some_and(|seen| self.has_written(&seen.stored)) {
            self.not_before = now; // others can write, so this candidate tries anew
        }
        if is_gone {
            self.observe(None, now);
        }
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
            let released = next.as_ref().is_some_and(|it| it.is_released() && self.has_written(it));
            if released && self.is_mine(&seen.stored) && self.order == Order::Contend {
                // It leaves the lease to others for a while, and asks for it later still: a person has moved it, or candidates
                // do not agree on who precedes.
                self.not_before = now.saturating_add(self.timing.retry_period());
                self.ask_from = now.saturating_add(self.timing.lease_duration());
            }
        }
        let is_free = next.as_ref().is_none_or(|it| it.record.holder().is_none());
        let mine = next.as_ref().is_some_and(|it| self.is_mine(it));
        self.spread.observe(is_free, mine, now, self.chance(now));
        let Some(stored) = next else { return };
        self.stamp = self.stamp.max(stored.renewed);
        self.lease = Lease::Present(match last {
            Lease::Present(seen) if seen.stored.says_the_same(&stored) => Seen { stored, ..seen },
            last => self.sight(&last, stored, now),
        });
        self.look_at_the_question();
    }

    /// The lease says something new.
    fn sight(&mut self, last: &Lease, stored: Stored, now: Moment) -> Seen {
        let mine = self.is_mine(&stored);
        if !mine {
            // Whom another holder waits for is waited for here, too.
            for (who, rest) in
                stored.waits_for().into_iter().flatten().filter(|it| *it.0 != *self.me.as_str())
            {
                self.formers.add(who, *rest, now);
            }
            if stored.is_as_written() {
                self.altered = None; // nothing alters the claims any more
            }
        }
        let (mut longest, mut own) = (stored.lasts(self.timing.lease_duration()), mine);
        let named = stored.record.holder() == Some(self.me.as_str());
        match last {
            // **Earlier**: a container that restarts takes its own lease at once. The process before it has ended, and only
            // what it has sent may still land. Its claim says whom it waited for.
            Lease::Unknown if named && stored.claim().is_some() => {
                own = true;
                self.formers.earlier_process_until = now.saturating_add(self.timing.safety_margin());
            }
            Lease::Present(seen) if seen.stored.record.term() == stored.record.term() => {
                // **Earlier**: a person frees the lease by hand, and its holder takes it back at once.
                own |= seen.own && !stored.is_released() && stored.is_by(&seen.stored);
                if seen.stored.record.holder() == stored.record.holder() {
                    longest = longest.max(seen.longest);
                }
            }
            _ => {}
        }
        own &= stored.renewed == self.stamp; // or else it is a copy, and others may have led since
        Seen { stored, since: now, longest, own }
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
        if next.is_some_and(|it| (it.record.holder(), it.record.term()) == (was.holder(), was.term())) {
            return; // it goes on
        }
        // A lease that was emptied by hand may still show whose it was. If not, no release tells of that holder.
        let shown = was.holder().or_else(|| last.stored.claim().map(|it| it.name.as_str()));
        let holder = shown.unwrap_or(UNSEEN);
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
