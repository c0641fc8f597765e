//! Defects that this crate once had, or could have. `make defects` puts them back, one at a time, and fails if its tools
//! do not find one of them: docs/VERIFICATION.md has the table. No build that ships contains them: only the crate's own
//! unit tests do, and builds with `--cfg leader_gate_defects`.

/// All defects, each with the rule that it breaks.
#[cfg(any(test, leader_gate_defects))]
const ALL: [&str; 28] = [
    // S1: the deadline of a term counts from the answer.
    "deadline-from-the-answer",
    // S1, S2: neither the gate nor an admitted write looks at the deadline.
    "ignores-the-deadline",
    // S3: the gate closes after the release.
    "release-before-the-gate-closes",
    // S4: a release does not wait for a write without an answer.
    "release-after-cut-drain",
    // S4: a write that its workload drops counts as finished.
    "dropped-write-counts-as-finished",
    // S4: an error counts as an answer, though the write may have been sent before it.
    "error-counts-as-answer",
    // S4: a candidate that preempted another one does not wait for its writes.
    "opens-unacknowledged",
    // S5: a candidate releases a term that is not its own.
    "releases-another-term",
    // S5: a candidate that stands down keeps a lease that comes late.
    "late-acquisition-kept",
    // S5: a candidate that stands down forgets its acquisition without an answer.
    "forgets-an-unanswered-acquisition",
    // S5: a conflict proves that a claim was not carried out.
    "conflict-is-certain",
    // S6: the renew deadline counts instead of the recorded duration.
    "takes-too-early",
    // S6: the own lease duration counts instead of the recorded one.
    "own-duration-counts",
    // S6: after an early takeover the gate opens at once.
    "early-takeover-opens-at-once",
    // S6: a holder whose lease was deleted counts for nothing once the lease is made anew.
    "forgets-a-deleted-holder",
    // S6: a candidate that waits for a holder forgets it once the lease is no longer its own.
    "forgets-a-pending-holder",
    // S6: an update does not name the version that it replaces.
    "writes-without-version",
    // S6: two renewals with one time are one.
    "standing-clock",
    // S7: a leader goes on although it sees another holder.
    "goes-on-after-a-theft",
    // S8: a leader goes on although it sees that its lease was deleted.
    "goes-on-after-a-deletion",
    // S7: a candidate goes back to old news of an API server that lags.
    "believes-old-news",
    // S7: versions of the lease are compared as texts.
    "compares-versions-as-text",
    // S8: a copy of the lease counts as the lease.
    "claim-without-uid",
    // S9: a leader in doubt reads when a renewal is due.
    "reads-instead-of-renewing",
    // S3, S10: the end of an old grant ends a newer one.
    "old-grant-ends-a-new-one",
    // S4: new work begins before the unanswered writes of the work before it can land no more.
    "new-work-before-old-writes-settle",
    // S11: a candidate contends while the work of its last term ends.
    "contends-while-work-ends",
    // S11: the task that polls the work forbids the next term, however late it is.
    "next-term-waits-for-a-poll",
];

/// Whether this defect is back in this process: the variable `LEADER_GATE_DEFECT` names it.
///
/// # Panics
/// If there is no such defect. A wrong name would look like a defect that no tool finds.
#[cfg(any(test, leader_gate_defects))]
pub(crate) fn is_back(defect: &str) -> bool {
    use std::{env, sync::OnceLock};
    static BACK: OnceLock<Option<String>> = OnceLock::new();
    let known = |name: &str| assert!(ALL.contains(&name), "there is no defect {name:?}");
    let back = BACK.get_or_init(|| {
        let back = env::var("LEADER_GATE_DEFECT").ok().filter(|name| !name.is_empty());
        back.as_deref().map(known);
        back
    });
    back.as_ref().is_some_and(|back| {
        known(defect);
        back == defect
    })
}

/// No defect is back.
#[cfg(not(any(test, leader_gate_defects)))]
pub(crate) const fn is_back(_: &str) -> bool {
    false
}
