//! How a candidate takes in news of the lease.

use super::{
    claims::Hand,
    deleted::Deleted,
    state::{Candidacy, Known},
};
use crate::{
    defect,
    election::preemption::{Overtaken, OwnTerm},
    leadership::{Moment, Term},
    lease::LeaseRecord,
};

impl Candidacy {
    /// Takes in news from the watch, or from the answer to a write, that arrived at `at`. If the news is older than
    /// what is known, it only tells about this candidate's own past.
    pub(in crate::election) fn observe(&mut self, news: LeaseRecord, at: Moment) {
        self.saw(&news);
        if matches!(&self.known, Known::Absent { gone: Some(gone), .. } if gone == news.uid()) {
            return;
        }
        let is_old =
            |known: &&LeaseRecord| news.is_older_than(known) && !defect::is_back("believes-old-news");
        let Some(known) = self.known.record().filter(is_old) else {
            return self.accept(news, at);
        };
        if let Some(tried) = self.claims.recognise(&news) {
            self.own.stood(news.term(), known);
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
        let until = match &self.known {
            // It may just have been deleted. Its holder sees this by its watch, closes its gate, and creates it
            // again.
            Known::Nothing => at.saturating_add(self.timing.pause()),
            Known::Present { .. } if self.is_mine() => {
                self.precedence.overtaken().map_or(at, |overtaken| overtaken.until)
            }
            Known::Present { until, .. } | Known::Absent { until, .. } => *until,
        };
        self.note_deleted(None, at);
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
        if let Some(tried) = self.claims.recognise(&news) {
            self.stood(tried);
        }
        self.note_former(&news, at);
        self.crowd.observe(&news, &self.identity, &self.precedence, at);
        // Until when the holder counts as such under whose hands the lease was deleted before this one was made.
        let absent_until = match &self.known {
            Known::Absent { until, .. } => Some(*until),
            _ => None,
        };
        self.note_deleted(Some(&news), at);
        let deleted_until = absent_until.max(self.deleted_until(at));
        let (until, inherited) = match &self.known {
            Known::Present { record, until, inherited } if record.says_the_same(&news) => {
                (*until, *inherited)
            }
            known => {
                let duration = if defect::is_back("takes-too-early") {
                    self.timing.renew_deadline()
                } else {
                    let recorded = news.duration().filter(|_| !defect::is_back("own-duration-counts"));
                    recorded.unwrap_or(self.timing.lease_duration())
                };
                let inherited = matches!(known, Known::Nothing) && self.is_named_in(&news);
                if inherited {
                    self.inherited_until = at.saturating_add(self.timing.tolerated_skew());
                }
                (news.holder().map_or(at, |_| at.saturating_add(duration)), inherited)
            }
        };
        self.known = Known::Present { record: news, until, inherited };
        let (hand, Some(record)) = (self.hand(), self.known.record()) else { return };
        if hand.is_mine() {
            // A claim that creates the lease was long under way, or a watch that lags tells of an earlier term.
            if let Some(until) = deleted_until.filter(|until| at < *until)
                && self.overtaken(at).is_none()
            {
                self.precedence.overtakes(Overtaken { term: record.transitions(), until });
            }
            self.own.stands(record.term());
            self.precedence.observe_own(record, at);
        } else {
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

    /// Notes at `at` that the lease object is gone that is known now. `news` is another one, if there is one.
    fn note_deleted(&mut self, news: Option<&LeaseRecord>, at: Moment) {
        self.deleted = self.deleted.take().filter(|it| at < it.until());
        if let Known::Present { record, until, .. } = &self.known
            && news.is_none_or(|news| news.uid() != record.uid())
            && !defect::is_back("forgets-a-deleted-holder")
        {
            if self.is_mine() {
                if let Some(overtaken) = self.overtaken(at) {
                    self.deleted = Some(Deleted::overtaken(self.deleted.take(), overtaken.until));
                }
            } else if at < *until {
                self.deleted = Deleted::after(self.deleted.take(), record, *until);
            }
        }
        // Old news prove nothing.
        if let Some(news) = news.filter(|news| news.version() == Some(self.newest))
            && self.deleted.as_ref().is_some_and(|it| it.is_disproved_by(news))
        {
            self.deleted = None;
        }
    }

    /// Until when this candidate leaves the lease to a holder whose lease was deleted. None if it does not.
    pub(super) fn deleted_until(&self, now: Moment) -> Option<Moment> {
        self.deleted.as_ref().map(Deleted::until).filter(|until| now < *until)
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
        self.precedence.settle();
        self.opening.opened();
        self.own = OwnTerm::Open(term);
    }
}
