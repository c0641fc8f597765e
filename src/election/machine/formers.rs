//! Former writers: who may still write, although the lease is no longer theirs.
//!
//! What happens to the lease clears none of them, nor does taking it: the new holder keeps its gate shut for them. Two things
//! clear one: the end of the time that it has recorded, and a word that it has stopped (`Machine::note_former` says which).

use super::note::Rests;
use crate::{leadership::Moment, lease::LONGEST_SANE};
use std::{collections::BTreeMap, time::Duration};

/// A holder that this process has not seen. No word clears it.
pub(super) const UNSEEN: &str = "";
/// More of them become one that no word clears.
const MOST: usize = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Formers {
    /// Until when the writes of each may land.
    others: BTreeMap<String, Moment>,
}

impl Formers {
    /// Adds one that may write for `rest`. No lease speaks of it any more, so an absurd time is cut to a day.
    pub(super) fn add(&mut self, who: &str, rest: Duration, now: Moment) {
        self.others.retain(|_, until| now < *until);
        let who = if self.others.len() < MOST || self.others.contains_key(who) { who } else { UNSEEN };
        let until = now.saturating_add(rest.min(LONGEST_SANE));
        let known = self.others.entry(who.to_owned()).or_insert(until);
        *known = until.max(*known);
    }

    /// Takes in its word that it has stopped.
    pub(super) fn clear(&mut self, who: &str) {
        self.others.remove(who);
    }

    /// Until when one of them may write: before that, no gate opens, and no deleted lease is made anew. None if none may.
    pub(super) fn may_write(&self, now: Moment) -> Option<Moment> {
        self.last_to_end(now).map(|(_, until)| until)
    }

    /// When the last one has ended, or will have.
    pub(super) fn end(&self) -> Option<Moment> {
        self.others.values().max().copied()
    }

    /// The one that may write longest, and until when.
    pub(super) fn last_to_end(&self, now: Moment) -> Option<(&str, Moment)> {
        let others = self.others.iter().map(|(who, until)| (who.as_str(), *until));
        others.filter(|(_, until)| now < *until).max_by_key(|(_, until)| *until)
    }

    /// How long each may still write.
    pub(super) fn rests(&self, now: Moment) -> Rests {
        let rests = self.others.iter().filter(|(_, until)| now < **until);
        rests.map(|(who, until)| (who.clone(), until.saturating_since(now))).collect()
    }
}
