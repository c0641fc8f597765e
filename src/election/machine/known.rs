//! What a candidate knows of the lease, and who may still write.

use super::{note::WaitsFor, stored::Stored};
use crate::{leadership::Moment, lease::LONGEST_SANE};
use jiff::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// What a candidate knows of the lease, by its watch and by the answers to its calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) lease: Lease,
    /// The earlier container of this process's pod that held the lease when this process began.
    pub(super) predecessor: Option<Predecessor>,
    /// Who may still write, although the lease is not theirs any more.
    pub(super) possible_writers: PossibleWriters,
    /// The latest time that this candidate has seen in the lease. It writes a later one each time.
    pub(super) latest_time: Timestamp,
    /// The version of the lease as it is known. News of the watch with a smaller one are of an API server that lags, and are
    /// dropped. A read is believed, so this goes back after a restored backup.
    pub(super) newest: u64,
    /// The largest version that this candidate has ever seen.
    pub(super) highest: u64,
    pub(super) staleness: Staleness,
    /// When the lease was last read, written or shown.
    pub(super) looked_at: Moment,
    /// A watch has shown the lease, so the lease is read only if no news come for long.
    pub(super) is_watched: bool,
    /// What the API server has stored otherwise than this candidate wrote it.
    pub(super) altered: Option<&'static str>,
}

/// How far to trust what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Staleness {
    #[default]
    Fresh,
    /// A watch has begun, and nothing shows what has happened before it. The lease is read, unless a renewal or a release is due
    /// anyway: it is a swap, so it tells as much.
    Unsure,
    /// A write has met another version than the one that it was to swap. The lease is read before the next write, which would
    /// fail, too.
    Stale,
}

#[allow(clippy::large_enum_variant, reason = "a candidate has one lease")]
#[derive(Clone, Debug, Default)]
pub(super) enum Lease {
    #[default]
    Unknown,
    /// There is none, since then. It is not made anew while a possible writer is waited for.
    Absent(Moment),
    Present(Seen),
}

/// The lease as it was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) stored: Stored,
    /// When this process first saw this holder with these times and this duration. The lease expires on this process's clock,
    /// from here on (rule S6). A question or a label changes nothing of it.
    pub(super) since: Moment,
    /// The longest duration that this holder has recorded in this term. So no edit of the duration lets the lease end earlier.
    pub(super) longest: Duration,
    /// This candidate may take the lease at once, since no other process has to be waited for: this process or its predecessor has
    /// written it, or a person has emptied what one of these two wrote.
    pub(super) own: bool,
    /// It was written while this process was looking on, so the process that wrote it has lived meanwhile.
    pub(super) is_news: bool,
}

/// An earlier container of this process's pod. The kubelet has ended it before this one began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor {
    /// Its number.
    pub(super) process: u64,
    /// When this process first saw its claim. By then its writes have ended, perhaps without an answer.
    pub(super) seen: Moment,
}

/// Stands for a holder whose name this process has not seen. No release and no claim clears it.
pub(super) const UNSEEN: &str = "";
/// If there are more, the others become [`UNSEEN`].
const MOST: usize = 16;

/// The processes that may still write, although the lease is not theirs any more.
///
/// A possible writer stays one whatever happens to the lease, and also if this candidate takes it: then the gate stays shut. Two
/// things end this: the duration that the possible writer has recorded in the lease, from the moment at which this process saw
/// that it has lost the lease; and a word that it has stopped. Which words are believed is said in `Machine::note_possible_writer`.
#[derive(Clone, Debug, Default)]
pub(super) struct PossibleWriters {
    /// Until when the writes of each may land.
    until: BTreeMap<String, Moment>,
}

// === impl Seen ===

impl Seen {
    /// Until when its holder may count on it.
    pub(super) fn until(&self) -> Moment {
        self.since.saturating_add(self.longest)
    }
}

// === impl PossibleWriters ===

impl PossibleWriters {
    /// Adds a process that may write for `rest`. An absurd time is cut to a day: an edit of the lease cannot correct it any more.
    pub(super) fn add(&mut self, who: &str, rest: Duration, now: Moment) {
        self.until.retain(|_, until| now < *until);
        let who = if self.until.len() < MOST || self.until.contains_key(who) { who } else { UNSEEN };
        let until = now.saturating_add(rest.min(LONGEST_SANE));
        let known = self.until.entry(who.to_owned()).or_insert(until);
        *known = until.max(*known);
    }

    /// Takes in the word that this process has stopped.
    pub(super) fn clear(&mut self, who: &str) {
        self.until.remove(who);
    }

    /// Until when one of them may write. Before that, no gate opens, and no deleted lease is made anew. None if none may write.
    pub(super) fn may_write(&self, now: Moment) -> Option<Moment> {
        self.last_to_end(now).map(|(_, until)| until)
    }

    /// When the time of the last one ends, or has ended.
    pub(super) fn end(&self) -> Option<Moment> {
        self.until.values().max().copied()
    }

    /// The one that may write longest, and until when.
    pub(super) fn last_to_end(&self, now: Moment) -> Option<(&str, Moment)> {
        let writers = self.until.iter().map(|(who, until)| (who.as_str(), *until));
        writers.filter(|(_, until)| now < *until).max_by_key(|(_, until)| *until)
    }

    /// How long each may still write.
    pub(super) fn rests(&self, now: Moment) -> WaitsFor {
        let writers = self.until.iter().filter(|(_, until)| now < **until);
        writers.map(|(who, until)| (who.clone(), until.saturating_since(now))).collect()
    }
}
