//! Trouble is logged once per change, not once per attempt.

use std::fmt;

#[derive(Debug)]
pub(super) struct Complaint {
    what: &'static str,
    raised: Option<&'static str>,
}

impl Complaint {
    pub(super) const fn new(what: &'static str) -> Self {
        Self { what, raised: None }
    }

    /// Logs trouble of this `kind`: a warning when it is news, for debugging when it goes on.
    pub(super) fn raise(&mut self, kind: &'static str, details: &dyn fmt::Display) {
        if self.raised.replace(kind) == Some(kind) {
            tracing::debug!(error = kind, "{}: {details}", self.what);
        } else {
            tracing::warn!(error = kind, "{}: {details}", self.what);
        }
    }

    /// Logs that the trouble is over, if there was some.
    pub(super) fn settle(&mut self) {
        if let Some(kind) = self.raised.take() {
            tracing::info!(error = kind, "no longer: {}", self.what);
        }
    }
}
