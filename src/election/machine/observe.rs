//! What becomes known of the lease: whose it is, and who may still write.

use super::{
    known::{Lease, Predecessor, Seen, Staleness, UNSEEN},
    note::writer,
    state::Machine,
    stored::Stored,
    terms::{ActiveTerm, Closing, Reason},
};
use crate::{
    election::lease_watch::WatchNews,
    leadership::{Loss, Moment, Term},
    lease::{LeaseEvent, LeaseRecord},
};
use std::time::Duration;

impl Machine {
    /// Takes in news of the watch.
    pub fn handle_watch(&mut self, news: WatchNews, now: Moment) {
        match news {
            WatchNews::Up => self.doubt(now),
            WatchNews::Down(_) => self.known.is_watched = false,
            WatchNews::Event(event) => {
                self.known.is_watched = true; // an open watch may never show anything
                match event {
                    LeaseEvent::Seen(record) => self.note_event(record, false, now),
                    LeaseEvent::Deleted(last) => self.note_event(last, true, now),
                }
            }
        }
    }

    /// A watch has begun. Nothing tells what has happened before it.
    fn doubt(&mut self, now: Moment) {
        if self.pace.failures > 1 {
            self.pace.pause_until = self.pace.pause_until.min(now); // calls may work again, too
        }
        self.known.staleness = self.known.staleness.max(Staleness::Unsure);
        if let Some(flight) = &mut self.calls.flight {
            flight.settles = false;
        }
    }

    /// The watch has shown this state of the lease, or the last one before a deletion.
    fn note_event(&mut self, record: LeaseRecord, is_gone: bool, now: Moment) {
        let Some(version) = record.version() else {
            // It cannot be compared with what is known, nor with the answer to a call under way.
            self.known.staleness = Staleness::Stale;
            if let Some(flight) = &mut self.calls.flight {
                flight.settles = false;
            }
            return;
        };
        if version < self.known.newest {
            return;
        }
        let settles = match self.known.staleness {
            // A watch begins with the present lease, and shows all that comes after.
            Staleness::Unsure => true,
            // The version that is known is not the one that the write has met.
            Staleness::Stale => self.known.newest < version,
            Staleness::Fresh => false,
        };
        if settles {
            self.known.staleness = Staleness::Fresh;
        }
        self.known.looked_at = now;
        let last = self.seen().map(|seen| seen.stored.clone());
        self.learn(record, now);
        if self.seen().is_some_and(|seen| self.is_news_of_others(last.as_ref(), &seen.stored)) {
            // Another candidate can write, so this one tries anew.
            (self.pace.rest_until, self.pace.pause_until) = (now, now);
            if self.terms.active().is_none() && !self.is_ending() {
                self.pace.failures = 0;
            }
        }
        if is_gone {
            self.observe(None, now);
        }
    }

    /// Whether another candidate has written the lease since the `last` look. If an edit leaves a free lease free, a person has
    /// made it, and it tells nothing of other candidates.
    fn is_news_of_others(&self, last: Option<&Stored>, stored: &Stored) -> bool {
        let stays_free =
            |last: &Stored| last.is_free() && stored.is_free() && last.record.term() == stored.record.term();
        let is_news = last.is_none_or(|last| !last.has_claim_of(stored) && !stays_free(last));
        is_news && !self.has_written(stored)
    }

    /// Takes in this state of the lease, unless a newer one is known.
    pub(super) fn learn(&mut self, record: LeaseRecord, now: Moment) {
        let version = record.version().unwrap_or(0);
        if version >= self.known.newest {
            self.known.newest = version;
            self.known.highest = self.known.highest.max(version);
            self.observe(Some(record), now);
        }
    }

    /// The lease is now this. States come here in the order of their versions.
    pub(super) fn observe(&mut self, next: Option<LeaseRecord>, now: Moment) {
        let next = next.map(Stored::new);
        let both = self.seen().zip(next.as_ref());
        if both.is_some_and(|(seen, next)| seen.stored.record.uid() != next.record.uid()) {
            self.note_a_gap(now);
        }
        let since = if let Lease::Absent(since) = self.known.lease { since } else { now };
        let last = std::mem::replace(&mut self.known.lease, Lease::Absent(since));
        let goes_on = |term| next.as_ref().is_some_and(|next| self.is_of(next, term));
        if let Some(term) = self.terms.active().filter(|term| !goes_on(term)) {
            let loss = self.how_lost(term, next.as_ref());
            self.terms.end(loss); // rules S7 and S8
        }
        let is_free = next.as_ref().is_none_or(Stored::is_free);
        if let Lease::Present(seen) = &last {
            self.note_possible_writer(seen, next.as_ref(), now);
            if is_free
                && next.as_ref().is_some_and(|next| self.has_written(next))
                && self.is_mine(&seen.stored)
            {
                self.rest(&seen.stored.record.term(), now);
            }
        }
        self.pace.spread.observe(is_free, now, self.chance(now));
        let Some(stored) = next else { return };
        self.known.latest_time = self.known.latest_time.max(stored.renewed);
        self.known.lease = Lease::Present(match last {
            Lease::Present(seen) if seen.stored.has_claim_of(&stored) => Seen { stored, ..seen },
            last => self.sight(&last, stored, now),
        });
        self.close_if_told();
    }

    /// `term` was released. If this candidate gave it back, it leaves the lease to others for a while.
    fn rest(&mut self, term: &Term, now: Moment) {
        let Some(closing) = self.terms.closing.as_ref().filter(|closing| closing.term.is_same(term)) else {
            return;
        };
        let rest_until = now.saturating_add(closing.reason.rest(&self.timing));
        let ask_from = now.saturating_add(closing.reason.silence(&self.timing));
        self.pace.rest_until = self.pace.rest_until.max(rest_until);
        self.pace.ask_from = self.pace.ask_from.max(ask_from);
    }

    /// The lease says something new.
    fn sight(&mut self, last: &Lease, stored: Stored, now: Moment) -> Seen {
        let is_first = matches!(last, Lease::Unknown);
        self.look_for_the_predecessor(is_first, &stored, now);
        let mine = self.is_mine(&stored);
        if !mine || is_first {
            // If another holder waits for a process, this one waits for it, too, unless it is that process.
            let own = writer(self.me.as_str(), self.process);
            for (who, rest) in stored.waits_for().into_iter().flatten().filter(|(who, _)| **who != own) {
                self.known.possible_writers.add(who, *rest, now);
            }
            if stored.is_as_written() {
                self.known.altered = None; // nothing alters the claims any more
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
        own &= stored.renewed == self.known.latest_time; // or else it is a copy, and others may have led since
        Seen { stored, since: now, longest, own, is_news: !is_first }
    }

    /// Finds out whether an earlier container of this process's pod holds the lease at the `is_first` look: its claim names this
    /// candidate and the uid of this pod. The kubelet ends a container before it starts the next one. The name alone proves
    /// nothing: if a pod of a `StatefulSet` was deleted by force, it may live on beside its successor.
    ///
    /// **Earlier**: a container that restarts takes its own lease at once, and its gate opens at once, although what the container
    /// before it has sent may still land. If that container has held the lease for less than a lease duration, this process
    /// releases the lease instead: or else a process that crashes soon after each gain keeps the lease from the healthy ones for
    /// ever.
    fn look_for_the_predecessor(&mut self, is_first: bool, stored: &Stored, now: Moment) {
        let Some(claim) = stored.claim().filter(|_| stored.record.holder() == Some(self.me.as_str())) else {
            return;
        };
        if !is_first {
            // The process of the claim writes again, so it has not ended: another container of this pod has this identity, too.
            let process = claim.process;
            self.known.predecessor = self.known.predecessor.filter(|earlier| earlier.process != process);
        } else if self.pod.as_ref().is_some_and(|pod| *pod == claim.pod) && !(self.runs_here)(claim.process) {
            self.known.predecessor = Some(Predecessor { process: claim.process, seen: now });
            if stored.held() < claim.lasts {
                self.terms.closing = Some(Closing { term: stored.record.term(), reason: Reason::EndedSoon });
            }
        }
    }

    /// The lease does not say any more what `last` says. The holder that it named may write for its whole duration from now on,
    /// unless a word says that it has stopped. If a false word were believed, two processes could write: so all that is believed
    /// stands here. The claim of this process is a word, too: it does not list a holder whose lease has expired.
    fn note_possible_writer(&mut self, last: &Seen, next: Option<&Stored>, now: Moment) {
        let was = &last.stored;
        let is_nobody = last.own || was.is_vacant();
        let next = next.filter(|next| next.record.uid() == was.record.uid());
        let goes_on = next.is_some_and(|next| next.is_of_holder_of(was) || next.has_claim_of(was));
        if is_nobody || goes_on {
            return;
        }
        // A lease that a person has emptied may still show whose it was.
        let holder = was.writer();
        let word = next.filter(|next| self.is_word(was, next));
        let word = word.filter(|word| holder.is_some() || !word.is_free()); // a release does not say whose it is
        let holder = holder.as_deref().unwrap_or(UNSEEN);
        if word.is_some_and(|word| word.is_release_of(was)) {
            self.known.possible_writers.clear(holder);
        } else if !word.is_some_and(|word| word.vouches_for(holder, was)) {
            // Perhaps a renewal was not shown, so the time counts from now.
            self.known.possible_writers.add(holder, last.longest, now);
        }
    }

    /// Whether `next`, which has replaced `was`, may be believed: its process has written it itself, after all that is known.
    /// So its time is later than all times that were seen in the lease: a restored copy has an old one. A claim of this process
    /// counts only if it replaces the version that this process was to swap: if it replaces another one, a person has copied it.
    fn is_word(&self, was: &Stored, next: &Stored) -> bool {
        let is_in_place = was.record.resource_version() == self.calls.over;
        next.renewed > self.known.latest_time && (is_in_place || !self.is_mine(next))
    }

    /// The lease is gone, and no watch has shown who held it last.
    pub(super) fn note_a_gap(&mut self, now: Moment) {
        if let Some(seen) = self.seen()
            && self.terms.active().is_none()
        {
            self.note_unseen(seen.longest, now);
        }
    }

    /// A holder that was never shown may write as long as the lease of this candidate lasts, or `longest`.
    pub(super) fn note_unseen(&mut self, longest: Duration, now: Moment) {
        let longest = longest.max(self.timing.lease_duration());
        self.known.possible_writers.add(UNSEEN, longest, now);
    }

    /// How `term` has ended, since the lease is now this.
    fn how_lost(&self, term: &ActiveTerm, next: Option<&Stored>) -> Loss {
        let next = next.filter(|next| next.record.uid() == term.name.lease_uid());
        match next {
            None => Loss::Deleted,
            Some(next) if next.is_released() && self.has_written(next) => Loss::Released,
            Some(_) => Loss::Taken,
        }
    }
}
