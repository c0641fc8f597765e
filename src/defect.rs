//! Defects that this crate once had, or could have. The proofs put them back, one at a time, and must find each of them:
//! docs/VERIFICATION.md has the table. Only the builds of this crate's own unit tests contain them.

/// The defects that the model of the election finds with one fault.
#[cfg(test)]
pub(crate) const OF_THE_ELECTION: [&str; 6] = [
    "release-after-cut-drain",
    "opens-unacknowledged",
    "claim-without-uid",
    "standing-clock",
    "releases-another-term",
    "takes-too-early",
];

/// Whether this defect is back in this process: the variable `LEADER_GATE_DEFECT` names it.
#[cfg(test)]
pub(crate) fn is_back(defect: &str) -> bool {
    use std::{env, sync::OnceLock};
    static BACK: OnceLock<Option<String>> = OnceLock::new();
    BACK.get_or_init(|| env::var("LEADER_GATE_DEFECT").ok()).as_deref() == Some(defect)
}

/// No defect is back.
#[cfg(not(test))]
pub(crate) const fn is_back(_: &str) -> bool {
    false
}
