//! A holder under whose hands the lease was deleted, or made anew. It may not know of that, so it counts as the holder
//! until its time is over, whatever the lease says by then.

use crate::{leadership::Moment, lease::LeaseRecord};

/// Such a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deleted {
    /// The lease in its hands, as last seen. None if there was more than one.
    lease: Option<LeaseIn>,
    /// Until when the last of them counts.
    until: Moment,
}

/// A lease object in the hands of a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LeaseIn {
    holder: String,
    uid: String,
}

impl Deleted {
    /// `record` is gone, whose holder counts until `until`. `before` was gone before.
    pub(super) fn after(before: Option<Self>, record: &LeaseRecord, until: Moment) -> Option<Self> {
        let Some(holder) = record.holder() else { return before };
        let lease = LeaseIn { holder: holder.to_owned(), uid: record.uid().to_owned() };
        let alone = before.as_ref().is_none_or(|it| it.lease.as_ref() == Some(&lease));
        Some(Self { lease: alone.then_some(lease), ..Self::overtaken(before, until) })
    }

    /// A lease is gone whose holder had overtaken one that counts until `until`.
    pub(super) fn overtaken(before: Option<Self>, until: Moment) -> Self {
        Self { lease: None, until: before.map_or(until, |it| it.until.max(until)) }
    }

    /// Until when it counts.
    pub(super) fn until(&self) -> Moment {
        self.until
    }

    /// Whether the newest state of the lease shows that it need not count: it has made the lease anew, so it knows of the
    /// deletion, or its lease is still there, and the answer of a read was old. A coordinator writes a name without the
    /// time of an acquisition, which proves nothing.
    pub(super) fn is_disproved_by(&self, newest: &LeaseRecord) -> bool {
        let made = |it: &LeaseIn| newest.holder() == Some(&it.holder) && newest.acquire_time().is_some();
        self.lease.as_ref().is_some_and(|it| made(it) || newest.uid() == it.uid)
    }
}
