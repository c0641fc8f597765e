//! What the trial of a lock fails with.

use std::{error::Error, fmt};

/// The lock breaks a rule of [`lock_conformance`](super::lock_conformance).
#[derive(Clone, Debug)]
pub struct ErrLockConformance {
    rule: &'static str,
    found: String,
}

// === impl ErrLockConformance ===

impl ErrLockConformance {
    pub(super) fn new(rule: &'static str, found: impl Into<String>) -> Self {
        Self { rule, found: found.into() }
    }

    /// The rule, in words.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        self.rule
    }
}

impl fmt::Display for ErrLockConformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lock breaks a rule: {}; found: {}", self.rule, self.found)
    }
}

impl Error for ErrLockConformance {}
