//! The lease, as last seen, and who holds it.

use super::{
    claims::HeldBy,
    state::{Machine, ObservedLease},
    succession,
};
use crate::{election::preemption::OwnTerm, leadership::Moment, lease::LeaseRecord};

impl Machine {
    // --- what is known ---

    /// The lease, as last seen.
    pub fn record(&self) -> Option<&LeaseRecord> {
        match &self.observed.known {
            ObservedLease::Present { record, .. } => Some(record),
            ObservedLease::Nothing | ObservedLease::Absent { .. } => None,
        }
    }

    /// The version of the lease, as last seen.
    pub(super) fn version(&self) -> Option<&str> {
        self.record().map(LeaseRecord::resource_version)
    }

    pub(super) fn held_by(&self) -> HeldBy {
        let ObservedLease::Present { record, inherited, .. } = &self.observed.known else {
            return HeldBy::None;
        };
        if !self.is_named_in(record) {
            return record.holder().map_or(HeldBy::None, |_| HeldBy::Other);
        }
        let by_name = if *inherited { HeldBy::Inherited } else { HeldBy::Double };
        self.claims.held_by(record, self.me.timing.lease_duration()).unwrap_or(by_name)
    }

    /// Whether the lease holds a claim of this process.
    pub fn is_mine(&self) -> bool {
        self.held_by().is_mine()
    }

    /// Whether the lease holds the last claim of this process, with the duration that it claimed.
    pub fn is_current(&self) -> bool {
        self.held_by() == HeldBy::Current
    }

    /// Whether an unanswered claim may still give the lease to this candidate. It may while the lease has the version
    /// that the claim swaps.
    pub(super) fn may_become_mine(&self) -> bool {
        self.claims.may_swap(self.version().unwrap_or_default())
    }

    pub(super) fn is_named_in(&self, record: &LeaseRecord) -> bool {
        record.holder() == Some(self.me.identity.as_str())
    }

    /// The fencing token of a term that begins now, or why there is none.
    ///
    /// It is the version of the lease, which holds this candidate's last claim. Each term has its own claim, which was
    /// swapped over the one before it. So this version is larger than each version that held an earlier term's claim,
    /// and smaller than each version that will hold a later one's.
    pub(in crate::election) fn fencing_token(&self) -> Result<u64, &'static str> {
        // Kubernetes writes a version without sign and leading zero. Another spelling is no promise that it can compare.
        let plain = |record: &LeaseRecord| {
            record.version().filter(|version| record.resource_version() == version.to_string())
        };
        let version = self.record().and_then(plain);
        let version = version.ok_or("the resource version of the lease is no number that can be compared")?;
        // For example, a backup of etcd was restored.
        if version < self.observed.newest {
            return Err("a larger resource version of the lease was seen before");
        }
        Ok(version)
    }

    // --- news ---

    /// Takes in news from the watch, or from the answer to a write, that arrived at `at`. If the news is older than
    /// what is known, it only tells about this candidate's own past.
    pub(super) fn observe(&mut self, news: LeaseRecord, at: Moment) {
        self.saw(&news);
        if self.is_gone(&news) {
            return;
        }
        let Some(known) = self.record().filter(|known| news.is_older_than(known)).cloned() else {
            return self.accept(news, at);
        };
        if let Some(tried) = self.claims.recognise(&news) {
            self.own.stood(news.term(), &known);
            self.formers.forget(&news.term());
            self.claims.stood(tried);
        }
    }

    /// Takes in that there is no lease (any more). `last` is its last version, if known. Ignored if `last` is older
    /// than what is known.
    pub(super) fn observe_absence(&mut self, last: Option<&LeaseRecord>, at: Moment) {
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
        if !self.is_mine() {
            succession::note_deleted(self, at);
        }
        let until = match &self.observed.known {
            // It may just have been deleted. Its holder sees this by its watch, closes its gate, and creates it
            // again.
            ObservedLease::Nothing => at.saturating_add(self.me.timing.pause()),
            ObservedLease::Absent { until, .. } => *until,
            ObservedLease::Present { .. } => self.formers.until(at).unwrap_or(at),
        };
        if self.is_mine() {
            self.claims.lost_at = at;
        }
        let was_mine =
            self.is_mine() || matches!(self.observed.known, ObservedLease::Absent { was_mine: true, .. });
        let gone = match &mut self.observed.known {
            ObservedLease::Absent { gone, .. } => gone.take(),
            _ => None,
        };
        let gone = last.map(|last| last.uid().to_owned()).or(gone);
        self.observed.known = ObservedLease::Absent { until, gone, was_mine };
        self.own = OwnTerm::default();
        self.entry.spread.observe(true, false, at, fastrand::f64());
    }

    /// Takes in the answer to a read. `before` is the version that was known when the read was sent. If no news
    /// arrived since, the answer is trusted even if its version is lower (a restored backup, an absurd event).
    pub(super) fn observe_read(&mut self, news: LeaseRecord, before: Option<&str>, at: Moment) {
        if self.version() == before { self.accept(news, at) } else { self.observe(news, at) }
    }

    fn accept(&mut self, news: LeaseRecord, at: Moment) {
        self.saw(&news);
        let tried = self.claims.recognise(&news);
        if let Some(tried) = tried {
            self.claims.stood(tried);
        }
        succession::note(self, &news, tried, at);
        let (until, inherited) = match &self.observed.known {
            ObservedLease::Present { record, until, inherited } if record.says_the_same(&news) => {
                (*until, *inherited)
            }
            known => {
                let inherited = matches!(known, ObservedLease::Nothing) && self.is_named_in(&news);
                if inherited {
                    self.formers.note_earlier_process(at, self.me.timing.safety_margin());
                }
                (self.held_until(&news, at), inherited)
            }
        };
        let was_mine = self.is_mine();
        let anew = self.record().is_none_or(|known| !known.says_the_same(&news));
        let (free, term) = (news.holder().is_none(), news.term());
        self.observed.known = ObservedLease::Present { record: news, until, inherited };
        let held_by = self.held_by();
        if anew {
            self.entry.spread.observe(free, held_by.is_mine(), at, fastrand::f64());
        }
        if held_by.is_mine() {
            self.own.stands(term);
        } else {
            if was_mine {
                self.claims.lost_at = at;
            }
            if let ObservedLease::Present { record, .. } = &self.observed.known {
                self.own.meets(record);
            }
        }
        // If the lease is not this candidate's, its last claim may still be under way.
        if held_by == HeldBy::Current {
            self.entry.precedence.observe_last(at);
        }
    }

    /// Until when the holder of `news`, which is seen first at `at`, counts as the holder.
    pub(super) fn held_until(&self, news: &LeaseRecord, at: Moment) -> Moment {
        if news.holder().is_none() {
            return at;
        }
        let duration = news.duration().unwrap_or(self.me.timing.lease_duration());
        let until = at.saturating_add(duration);
        // A time that is shorter than before may be an edit by hand. It counts from the second renewal on.
        match &self.observed.known {
            ObservedLease::Present { record, until: before, .. }
                if record.term() == news.term() && record.holder() == news.holder() =>
            {
                let Some(longer) = record.sane_duration() else { return until };
                let until = until.max(at.saturating_add(longer));
                if record.renew_time() == news.renew_time() { until.max(*before) } else { until }
            }
            _ => until,
        }
    }

    /// Whether this object is known to be deleted.
    fn is_gone(&self, record: &LeaseRecord) -> bool {
        matches!(&self.observed.known, ObservedLease::Absent { gone: Some(gone), .. } if gone == record.uid())
    }

    fn saw(&mut self, record: &LeaseRecord) {
        self.observed.newest = self.observed.newest.max(record.version().unwrap_or(0));
    }
}
