//! The findings of the judge.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::judge::log::LogTime;

/// The findings of a [`Judge`](crate::Judge).
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The terms of the Lease, in order.
    pub terms: Vec<LeaseTerm>,
    /// The writes on other objects that took effect although their candidate did not hold the Lease.
    pub strays: Vec<StrayWrite>,
    /// For each candidate, how many of its writes on other objects took effect.
    pub admitted: BTreeMap<String, u64>,
}

/// One unbroken period in which one holder held the Lease.
#[derive(Clone, Debug)]
pub struct LeaseTerm {
    /// The user whose write began the term.
    pub user: String,
    /// `spec.holderIdentity`.
    pub holder: String,
    /// `spec.leaseTransitions`. 0 if absent.
    pub transitions: i64,
    /// When the term began.
    pub acquired: LogTime,
    /// When the last write that changed `spec.renewTime` took effect.
    pub renewed: LogTime,
    /// When that write arrived. Other candidates can learn of it from then on.
    pub heard: LogTime,
    /// `spec.leaseDurationSeconds` as last written. Zero if absent or negative.
    pub duration: Duration,
    /// How many writes renewed the Lease.
    pub renewals: u64,
    /// When and how the term ended. None if it has not ended.
    pub ended: Option<(LogTime, TermEnding)>,
}

/// How a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermEnding {
    /// A write emptied the holder.
    Released,
    /// A write named another holder or term.
    Replaced,
    /// A user deleted the Lease.
    Deleted,
}

/// A write by a candidate that did not hold the Lease.
#[derive(Clone, Debug)]
pub struct StrayWrite {
    /// The user that wrote.
    pub user: String,
    /// The path of the write.
    pub path: String,
    /// When the write arrived.
    pub received: LogTime,
    /// Why the candidate should not have written.
    pub kind: StrayKind,
}

/// Why a candidate should not have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrayKind {
    /// The named other candidate had acquired the Lease. A correct election never allows this.
    Overlap(String),
    /// No candidate held the Lease: the writer had never acquired it or had released it, a user had deleted
    /// it, or a user that is no candidate had written another holder into it.
    NotHeld,
    /// The writer held the Lease, but the Lease had expired.
    RunOut,
}

/// The change from one term to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Succession {
    /// The holder of the earlier term.
    pub from: String,
    /// The holder of the later term.
    pub to: String,
    /// How the later term followed.
    pub kind: SuccessionKind,
    /// The time without a holder, up to the acquisition: from the release, from the expiry of the Lease, or
    /// from the deletion. Zero for a theft.
    pub gap: Duration,
}

/// How a term follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessionKind {
    /// The earlier holder had released the Lease.
    Graceful,
    /// The Lease had expired.
    Takeover,
    /// A user had deleted the Lease.
    AfterDeletion,
    /// The Lease was still valid.
    Theft,
}

// === impl Verdict ===

impl Verdict {
    /// The writes that another candidate's acquisition came before. A correct election has none.
    pub fn overlaps(&self) -> impl Iterator<Item = &StrayWrite> {
        self.strays.iter().filter(|it| matches!(it.kind, StrayKind::Overlap(_)))
    }

    /// How each term followed the earlier one.
    #[must_use]
    pub fn successions(&self) -> Vec<Succession> {
        self.terms.windows(2).filter_map(|pair| Succession::between(&pair[0], &pair[1])).collect()
    }

    /// The gaps of the graceful handovers: from the release to the next acquisition.
    #[must_use]
    pub fn handovers(&self) -> Vec<Duration> {
        self.gaps(SuccessionKind::Graceful)
    }

    /// The gaps of the takeovers: from the expiry of the Lease to the acquisition.
    #[must_use]
    pub fn takeovers(&self) -> Vec<Duration> {
        self.gaps(SuccessionKind::Takeover)
    }

    fn gaps(&self, kind: SuccessionKind) -> Vec<Duration> {
        self.successions().into_iter().filter(|it| it.kind == kind).map(|it| it.gap).collect()
    }
}

// === impl LeaseTerm ===

impl LeaseTerm {
    /// When the Lease expires without another renewal.
    #[must_use]
    pub fn runs_out(&self) -> Instant {
        self.after(self.renewed)
    }

    /// When a Lease expires that was renewed at this time.
    fn after(&self, moment: LogTime) -> Instant {
        // A duration that the clock cannot hold counts as 68 years.
        moment.at.checked_add(self.duration).unwrap_or(moment.at + Duration::from_secs(1 << 31))
    }
}

// === impl Succession ===

impl Succession {
    fn between(before: &LeaseTerm, after: &LeaseTerm) -> Option<Self> {
        let (ended, how) = before.ended?;
        let acquired = after.acquired.at;
        let (kind, since) = match how {
            TermEnding::Released => (SuccessionKind::Graceful, ended.at),
            TermEnding::Deleted => (SuccessionKind::AfterDeletion, ended.at),
            // Other candidates count from when they could learn of the last renewal.
            TermEnding::Replaced if acquired >= before.after(before.heard) => {
                (SuccessionKind::Takeover, before.runs_out())
            }
            TermEnding::Replaced => (SuccessionKind::Theft, acquired),
        };
        let gap = acquired.saturating_duration_since(since);
        Some(Self { from: before.holder.clone(), to: after.holder.clone(), kind, gap })
    }
}
