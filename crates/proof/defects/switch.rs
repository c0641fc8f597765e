//! Only the copies of the sources that `make -C crates/proof defects` makes have this, and the defects.

/// Whether this defect is back in this process: the variable `LEADER_GATE_DEFECT` names it.
pub(crate) fn is_back(defect: &str) -> bool {
    static BACK: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    BACK.get_or_init(|| std::env::var("LEADER_GATE_DEFECT").unwrap_or_default()) == defect
}
