//! What the judge finds.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::judge::log::LogTime;

/// What the judge found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Who held the Lease from when to when, in order.
    pub terms: Vec<LeaseTerm>,
    /// Writes by candidates, other than on the Lease, that took effect while their user did not hold it.
    pub strays: Vec<StrayWrite>,
    /// For each candidate, how many writes other than on the Lease took effect.
    pub admitted: BTreeMap<String, u64>,
}

/// One unbroken stretch of holding the Lease.
#[derive(Clone, Debug)]
pub struct LeaseTerm {
    /// The user whose write began it.
    pub user: String,
    /// `spec.holderIdentity`.
    pub holder: String,
    /// `spec.leaseTransitions`; 0 when absent.
    pub transitions: i64,
    /// When it began.
    pub acquired: LogTime,
    /// The last write that changed `spec.renewTime`.
    pub renewed: LogTime,
    /// When that write arrived: the others may have heard of it from then on, before it was answered.
    pub heard: LogTime,
    /// `spec.leaseDurationSeconds` as last written; zero when absent or negative.
    pub duration: Duration,
    /// How many writes have renewed it.
    pub renewals: u64,
    /// When and how it ended; none when it has not.
    pub ended: Option<(LogTime, TermEnding)>,
}

/// How a term ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermEnding {
    /// The holder was emptied.
    Released,
    /// Another holder or term was written.
    Replaced,
    /// The Lease was deleted.
    Deleted,
}

/// A write by a candidate that did not hold the Lease.
#[derive(Clone, Debug)]
pub struct StrayWrite {
    /// Who wrote.
    pub user: String,
    /// Where.
    pub path: String,
    /// When it arrived.
    pub received: LogTime,
    /// What was wrong.
    pub kind: StrayKind,
}

/// What was wrong with a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrayKind {
    /// Another candidate, the one named, had acquired the Lease: the overlap that must not be.
    Overlap(String),
    /// No other candidate had acquired the Lease since, but the writer did not hold it either: it had never
    /// acquired or had released it, it was deleted, or somebody who is no candidate had written another
    /// holder into it.
    NotHeld,
    /// The writer held the Lease, but it had run out.
    RunOut,
}

/// From one term to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Succession {
    /// The holder before.
    pub from: String,
    /// The holder after.
    pub to: String,
    /// How it came.
    pub kind: SuccessionKind,
    /// Graceful: from the release to the acquisition. Takeover: from the end of the Lease's time to the
    /// acquisition. After a deletion: from there to the acquisition. Theft: zero.
    pub gap: Duration,
}

/// How a term follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessionKind {
    /// The Lease had been released.
    Graceful,
    /// The Lease had run out.
    Takeover,
    /// The Lease had been deleted.
    AfterDeletion,
    /// The Lease was still valid.
    Theft,
}

// === impl Verdict ===

impl Verdict {
    /// The writes by a non-holder: those that another candidate's acquisition came before. There must be
    /// none.
    pub fn overlaps(&self) -> impl Iterator<Item = &StrayWrite> {
        self.strays.iter().filter(|it| matches!(it.kind, StrayKind::Overlap(_)))
    }

    /// How each term followed the one before.
    #[must_use]
    pub fn successions(&self) -> Vec<Succession> {
        self.terms.windows(2).filter_map(|pair| Succession::between(&pair[0], &pair[1])).collect()
    }

    /// The times of the graceful handovers: from the release to the next acquisition.
    #[must_use]
    pub fn handovers(&self) -> Vec<Duration> {
        self.gaps(SuccessionKind::Graceful)
    }

    /// The times of the takeovers of a Lease that had run out: from its end to the acquisition.
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
    /// When the Lease runs out if it is not renewed again.
    #[must_use]
    pub fn runs_out(&self) -> Instant {
        self.after(self.renewed)
    }

    /// The end of the Lease's time from `moment` on.
    fn after(&self, moment: LogTime) -> Instant {
        // What does not fit into the clock is far enough away.
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
            // Others count from when they heard of the last renewal.
            TermEnding::Replaced if acquired >= before.after(before.heard) => {
                (SuccessionKind::Takeover, before.runs_out())
            }
            TermEnding::Replaced => (SuccessionKind::Theft, acquired),
        };
        let gap = acquired.saturating_duration_since(since);
        Some(Self { from: before.holder.clone(), to: after.holder.clone(), kind, gap })
    }
}
