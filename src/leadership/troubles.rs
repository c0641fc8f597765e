//! What is wrong with an election: one table, with a log for each sort of trouble.

use super::clock::Moment;
use crate::rate_limited_log::{Line, RateLimitedLog};
use std::{fmt::Display, sync::Arc};

#[derive(Debug, Default)]
pub(super) struct Troubles {
    table: Vec<RateLimitedLog>,
}

impl Troubles {
    /// Records a trouble of the sort `what`, by its kind and its details, or, with None, that this trouble is over. Returns
    /// the line for the log.
    pub(super) fn set(
        &mut self,
        what: &'static str,
        trouble: Option<(&'static str, &dyn Display)>,
        now: Moment,
    ) -> Option<Line> {
        let known = self.table.iter().position(|row| row.what() == what);
        let at = known.unwrap_or_else(|| {
            self.table.push(RateLimitedLog::new(what));
            self.table.len() - 1
        });
        self.table.get_mut(at)?.note(trouble, now)
    }

    /// The text of the first trouble that lasts.
    pub(super) fn text(&self) -> Option<&Arc<str>> {
        self.table.iter().find_map(RateLimitedLog::text)
    }
}
