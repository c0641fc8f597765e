//! How a candidate takes in news of the lease.

use super::{
    claims::Hand,
    former::{Formers, Who},
    state::{Candidacy, Known},
};
use crate::{
    defect,
    election::preemption::{Handover, OwnTerm},
    leadership::{Moment, Term},
    lease::LeaseRecord,
};

impl Candidacy {
    /// Takes in news from the watch, or from the answer to a write, that arrived at `at`. If the news is older than
    /// what is known, it only tells about this candidate's own past.
    pub(in crate::election) fn observe(&mut self, news: LeaseRecord, at: Moment) {
        self.saw(&news);
        if self.is_gone(&news) {
            return;
        }
        let is_old =
            |known: &&LeaseRecord| news.is_older_than(known) && !defect::is_back("believes-old-news");
        let Some(known) = self.known.record().filter(is_old) else {
            return self.accept(news, at);
        };
        if let Some(tried) = self.claims.recognise(&news) {
            self.own.stood(news.term(), known);
            self.formers.forget(&news.term());
            self.stood(tried);
        }
    }

    /// Takes in that there is no lease (any more). `last` is its last version, if known. Ignored if `last` is older
    /// than what is known.
    pub(in crate::election) fn observe_absence(&mut self, last: Option<&LeaseRecord>, at: Moment) {
        if let Some(last) = last {
            self.saw(last);
        }
        if self.record().zip(last).is_some_and(|(record, last)| last.is_older_than(record)) {
            return;
        }
        // The events before it may have been merged, so the last state is news too.
        if let Some(last) = last.filter(|last| !self.is_gone(last)) {
            self.accept(last.clone(), at);
        }
        if let Known::Present { record, until, .. } = &self.known
            && record.holder().is_some()
            && !self.is_mine()
            && !defect::is_back("forgets-a-deleted-holder")
        {
            self.formers.add(Who::holder_of(record), *until, at);
        }
        let until = match &self.known {
            // It may just have been deleted. Its holder sees this by its watch, closes its gate, and creates it
            // again.
            Known::Nothing => at.saturating_add(self.timing.pause()),
            Known::Absent { until, .. } => *until,
            Known::Present { .. } => self.formers.until(at).unwrap_or(at),
        };
        let was_mine = self.is_mine() || matches!(self.known, Known::Absent { was_mine: true, .. });
        let gone = match &mut self.known {
            Known::Absent { gone, .. } => gone.take(),
            _ => None,
        };
        let gone = last.map(|last| last.uid().to_owned()).or(gone);
        self.known = Known::Absent { until, gone, was_mine };
        self.own = OwnTerm::None;
        self.has_given_way();
    }

    /// Takes in the answer to a read. `before` is the version that was known when the read was sent. If no news
    /// arrived since, the answer is trusted even if its version is lower (a restored backup, an absurd event).
    pub(in crate::election) fn observe_read(
        &mut self,
        news: Option<LeaseRecord>,
        before: Option<&str>,
        at: Moment,
    ) {
        match news {
            None => self.observe_absence(None, at),
            Some(news) if self.version() == before => self.accept(news, at),
            Some(news) => self.observe(news, at),
        }
    }

    fn accept(&mut self, news: LeaseRecord, at: Moment) {
        self.saw(&news);
        let tried = self.claims.recognise(&news);
        if let Some(tried) = tried {
            self.stood(tried);
        }
        self.note_formers(&news, tried, at);
        self.crowd.observe(&news, &self.identity, &self.precedence, at);
        let (until, inherited) = match &self.known {
            Known::Present { record, until, inherited } if record.says_the_same(&news) => {
                (*until, *inherited)
            }
            known => {
                let inherited = matches!(known, Known::Nothing) && self.is_named_in(&news);
                if inherited {
                    self.inherited_until = at.saturating_add(self.timing.tolerated_skew());
                }
                (self.held_until(&news, at), inherited)
            }
        };
        self.known = Known::Present { record: news, until, inherited };
        let (hand, Some(record)) = (self.hand(), self.known.record()) else { return };
        if hand.is_mine() {
            // A claim may have been long under way.
            self.formers.hold_back |= self.formers.until(at).is_some();
            self.own.stands(record.term());
        } else {
            self.formers.hold_back = false;
            if defect::is_back("forgets-a-pending-holder") {
                self.formers = Formers::default();
            }
            self.own.meets(record);
        }
        // If the lease is not this candidate's, its last claim may still be under way.
        if hand == Hand::Current {
            self.precedence.observe_last(at);
        }
        if !hand.is_mine() {
            self.has_given_way();
        }
    }

    /// Until when the holder of `news`, which is seen first at `at`, counts as the holder.
    fn held_until(&self, news: &LeaseRecord, at: Moment) -> Moment {
        if news.holder().is_none() {
            return at;
        }
        let recorded = if defect::is_back("takes-too-early") {
            Some(self.timing.renew_deadline())
        } else {
            news.duration().filter(|_| !defect::is_back("own-duration-counts"))
        };
        let duration = recorded.unwrap_or(self.timing.lease_duration());
        let until = at.saturating_add(duration);
        // A time that is shorter than before may be an edit by hand. It counts from the second renewal on.
        match &self.known {
            Known::Present { record, until: before, .. }
                if record.term() == news.term() && record.holder() == news.holder() =>
            {
                let Some(longer) = record.sane_duration() else { return until };
                let until = until.max(at.saturating_add(longer));
                if record.renew_time() == news.renew_time() { until.max(*before) } else { until }
            }
            _ => until,
        }
    }

    /// Notes who may still write if `news` takes the place of what is known, and heeds the word of former writers in it.
    /// If it holds a claim of this process, that was `tried` then.
    fn note_formers(&mut self, news: &LeaseRecord, tried: Option<Moment>, at: Moment) {
        let mine = tried.is_some();
        if let Some((who, until)) = self.replaced_by(news, mine, at) {
            // A claim speaks of whom it waited for when it was tried, so its gate opens with the next renewal.
            self.formers.add(who, until, tried.unwrap_or(at));
        }
        // A holder waits for one before it. This candidate knows of its own term, and whom its claims wait for.
        let written = |record: &LeaseRecord| Handover::written_in(record).filter(|handover| !handover.done);
        let known = self.known.record().filter(|known| known.uid() == news.uid()).and_then(written);
        if let Some(handover) = written(news).filter(|handover| !mine && known != Some(*handover)) {
            let of = Term::new(news.uid(), handover.from);
            if !self.own.is_of(&of) {
                let until = self.held_until(news, at).max(at.saturating_add(self.timing.lease_duration()));
                self.formers.add(Who::Before { of, by: handover.to }, until, at);
            }
        }
        // Old news prove nothing.
        if news.version() == Some(self.newest) {
            self.formers.hear(news, self.known.record(), mine);
        }
    }

    /// The writer that `news` replaces, and until when it may write. None if there is none, or if it has ended by its own
    /// word.
    fn replaced_by(&self, news: &LeaseRecord, mine: bool, at: Moment) -> Option<(Who, Moment)> {
        let (record, until) = match &self.known {
            Known::Present { record, until, .. } => (record, *until),
            // The coordinator has named this candidate, and the former holder is unknown. It compares wall clocks.
            Known::Nothing if self.is_named_by_coordinator(news) => {
                return Some((Who::Unknown, at.saturating_add(self.timing.lease_duration())));
            }
            Known::Absent { until, .. } if self.is_named_by_coordinator(news) => {
                return Some((Who::Unknown, *until));
            }
            Known::Nothing | Known::Absent { .. } => return self.freed_by_hand(news, at),
        };
        let named =
            self.coordinated.is_some() && record.acquire_time().is_some() && news.acquire_time().is_none();
        let hand = self.hand();
        if record.term() == news.term() && (hand.is_mine() || !named && record.holder() == news.holder()) {
            return None;
        }
        // The holder waits for the word of this candidate, or for its time. It has not begun to write.
        if self.own.is_waited_for() && at < self.end() {
            return None;
        }
        // Of its own writes this candidate knows, and an earlier process with this identity has ended.
        if !matches!(hand, Hand::Other | Hand::Double) {
            return self.freed_by_hand(news, at);
        }
        let another = news.uid() != record.uid() && !defect::is_back("forgets-a-deleted-holder");
        // A holder that acquires or releases the lease writes the time.
        let edited = record.acquire_time() == news.acquire_time()
            && (record.renew_time() == news.renew_time() || news.holder().is_none());
        // A restored backup. The count begins again after its maximum.
        let before = record.transitions();
        let back = news.is_older_than(record) || news.transitions() < before && before < i32::MAX as u64;
        // Of a process that has ended, only what it has sent counts.
        let until = self.early.settles(record, until, at);
        // A renewal that was not shown came before the edit.
        let renewed = edited && record.renew_time() != news.renew_time();
        let duration = record.sane_duration().unwrap_or(self.timing.lease_duration());
        let until = if renewed { until.max(at.saturating_add(duration)) } else { until };
        let replaced = if mine || another || edited || back {
            Some(until)
        } else if news.is_released() {
            // The release of a later holder is no word of this one, if a claim of this process may have stood between.
            let between = news.transitions() != record.transitions() && self.may_become_mine();
            between.then_some(until)
        } else if news.holder().is_none() {
            return self.freed_by_hand(news, at);
        } else {
            // Another candidate takes the lease when it is free to take, but a coordinator compares wall clocks.
            (self.coordinated.is_some() || self.may_become_mine()).then_some(until)
        };
        replaced.map(|until| (Who::holder_of(record), until))
    }

    /// The last holder of a lease that was not released: it has no holder, and still the times of one.
    fn freed_by_hand(&self, news: &LeaseRecord, at: Moment) -> Option<(Who, Moment)> {
        let freed = news.holder().is_none() && news.renew_time().is_some() && !news.is_released();
        let duration = news.duration().filter(|_| freed)?;
        let known = match &self.known {
            Known::Present { record, until, .. } if record.term() == news.term() => {
                record.holder().map(|it| (it, *until))
            }
            _ => None,
        };
        let name = known.map_or("", |(name, _)| name).to_owned();
        let until = at.saturating_add(duration);
        Some((Who::Holder { name, term: news.term() }, known.map_or(until, |(_, known)| known.max(until))))
    }

    /// Whether this object is known to be deleted.
    fn is_gone(&self, record: &LeaseRecord) -> bool {
        matches!(&self.known, Known::Absent { gone: Some(gone), .. } if gone == record.uid())
    }

    fn saw(&mut self, record: &LeaseRecord) {
        self.newest = self.newest.max(record.version().unwrap_or(0));
    }

    /// Takes in that the lease held a claim or a renewal that was sent at `sent`.
    pub(in crate::election) fn stood(&mut self, sent: Moment) {
        self.renewed = self.renewed.max(sent);
    }

    /// Takes in that this candidate leads in `term`, so it no longer waits for a former holder.
    pub(in crate::election) fn opened(&mut self, term: Term) {
        self.formers.hold_back = false;
        self.opening.opened();
        self.own = OwnTerm::Open(term);
    }
}
