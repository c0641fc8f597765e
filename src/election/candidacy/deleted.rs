//! A holder under whose hands the lease was deleted, or made anew. It may not know of that, so it counts as the holder
//! until its time is over, whatever the lease says by then.

use super::state::{Candidacy, Known};
use crate::{defect, leadership::Moment, lease::LeaseRecord};

/// Such a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deleted {
    /// Its name, and the uid of its lease. None if there was more than one.
    lease: Option<(String, String)>,
    /// Until when the last of them counts.
    until: Moment,
}

impl Candidacy {
    /// Until when this candidate leaves the lease to such a holder. None if it does not.
    pub(super) fn deleted_until(&self, now: Moment) -> Option<Moment> {
        self.deleted.as_ref().map(|deleted| deleted.until).filter(|until| now < *until)
    }

    /// Notes at `at` that the lease object is gone that is known now. `news` is another one, if there is one.
    pub(super) fn note_deleted(&mut self, news: Option<&LeaseRecord>, at: Moment) {
        self.deleted = self.deleted.take().filter(|it| at < it.until);
        if let Known::Present { record, until, .. } = &self.known
            && let Some(holder) = record.holder()
            && news.is_none_or(|news| news.uid() != record.uid())
            && at < *until
            && !self.is_mine()
            && !defect::is_back("forgets-a-deleted-holder")
        {
            let lease = (holder.to_owned(), record.uid().to_owned());
            let before = self.deleted.take();
            let alone = before.as_ref().is_none_or(|it| it.lease.as_ref() == Some(&lease));
            self.deleted = Some(Deleted {
                lease: alone.then_some(lease),
                until: before.map_or(*until, |it| it.until.max(*until)),
            });
        }
        // It has made the lease anew, so it knows of the deletion. Or its lease is still there, and the answer of a read
        // was old. Old news prove neither.
        let proves = |(holder, uid): &(String, String), news: &LeaseRecord| {
            news.holder() == Some(holder) || news.uid() == uid
        };
        if let Some(news) = news.filter(|news| news.version() == Some(self.newest))
            && self.deleted.as_ref().and_then(|it| it.lease.as_ref()).is_some_and(|lease| proves(lease, news))
        {
            self.deleted = None;
        }
    }
}
