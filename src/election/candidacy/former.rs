//! Former writers: holders that may still begin a write, whatever the lease says by now.
//!
//! A holder becomes a former one when this candidate sees that the lease is no longer that holder's, and the holder has not
//! said so itself: it was preempted, or the lease was freed by hand, deleted, made anew or edited. While it may begin a
//! write, this candidate's gate stays shut, the candidate releases nothing, and it acknowledges nothing. Three things clear
//! an entry: its time, the holder's own word (an acknowledgement, a release), and a new claim of that holder. A word counts
//! only in the newest state of the lease. What else happens to the lease clears nothing.

use crate::{
    defect,
    election::preemption::Handover,
    leadership::{Moment, Term},
    lease::{LONGEST_SANE, LeaseRecord},
};

/// More of them become one that only time clears.
const MOST: usize = 4;

/// All former writers that a candidate knows of.
#[derive(Clone, Debug, Default)]
pub(in crate::election) struct Formers {
    /// The newest is last.
    all: Vec<Former>,
    /// This candidate's claim has waited for one of them, and its gate has not opened since.
    pub(super) hold_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Former {
    who: Who,
    /// Until when it may begin a write.
    until: Moment,
}

/// A former writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The holder in this term. The name is empty if this candidate has not seen it.
    Holder { name: String, term: Term },
    /// The holder in the term `of`. The holder in the term with the count `by` waits for its end.
    Before { of: Term, by: u64 },
    /// No word of any holder clears it.
    Unknown,
}

// === impl Formers ===

impl Formers {
    /// Adds one that may write until `until`, unless that is over at `now`. No lease speaks of it any more, so a time that
    /// makes no sense is cut.
    pub(super) fn add(&mut self, who: Who, until: Moment, now: Moment) {
        self.all.retain(|former| now < former.until);
        if until <= now {
            return;
        }
        let until = until.min(now.saturating_add(LONGEST_SANE));
        let known = self.all.iter().position(|former| former.who == who && who != Who::Unknown);
        let before = known.map(|place| self.all.remove(place).until);
        self.all.push(Former { who, until: before.map_or(until, |before| before.max(until)) });
        if self.all.len() > MOST {
            let (first, second) = (self.all.remove(0), &mut self.all[0]);
            *second = Former { who: Who::Unknown, until: second.until.max(first.until) };
        }
    }

    /// Takes in the newest state of the lease, which may hold a word of one of them. `known` is the state before it. `mine`:
    /// it holds a claim of this process.
    pub(super) fn hear(&mut self, news: &LeaseRecord, known: Option<&LeaseRecord>, mine: bool) {
        let acknowledged = Handover::of(news).filter(|handover| handover.done).map(|handover| handover.from);
        // An edit keeps the times, and so does a copy.
        let same = |of: fn(&LeaseRecord) -> Option<&str>| known.is_some_and(|known| of(known) == of(news));
        let was_held = known.is_none_or(|known| known.holder().is_some() || known.term() != news.term());
        let released = news.is_released() && was_held && !same(LeaseRecord::acquire_time);
        let released = released.then(|| news.transitions());
        // A coordinator writes a name without the time of an acquisition. A holder that still waits has said nothing yet.
        let claims = !mine
            && news.acquire_time().is_some()
            && !same(LeaseRecord::acquire_time)
            && Handover::under_way(news).is_none();
        // What a holder says in one term it says of all its terms.
        let speaks = |former: &&Former| {
            let term = former.who.term().filter(|term| term.lease_uid() == news.uid());
            let count = term.map(Term::transitions);
            count.is_some() && (count == acknowledged || count == released)
        };
        let speaker = self.all.iter().find(speaks).and_then(|former| former.who.name()).map(str::to_owned);
        let holder = known.filter(|known| released.is_some() && known.term() == news.term());
        let said_by = [holder.and_then(LeaseRecord::holder), speaker.as_deref()];
        let claimed_by = news.holder().filter(|_| claims);
        // A holder that has waited renews without the handover once its wait is over.
        let renewed = known.is_some_and(|known| {
            known.term() == news.term()
                && known.holder() == news.holder()
                && known.renew_time() != news.renew_time()
        });
        let opened = (renewed && Handover::under_way(news).is_none()).then(|| news.transitions());
        self.all.retain(|former| {
            let (term, by) = match &former.who {
                Who::Holder { name, .. } if said_by.contains(&Some(name)) => return false,
                Who::Holder { name, term } if claimed_by == Some(name) && *term != news.term() => {
                    return false;
                }
                Who::Holder { term, .. } => (term, None),
                Who::Before { of, by } => (of, Some(*by)),
                Who::Unknown => return true,
            };
            let said = |count: Option<u64>| count == Some(term.transitions()) || by.is_some() && count == by;
            let ended = said(acknowledged) || said(released) || by.is_some() && opened == by;
            term.lease_uid() != news.uid() || !ended
        });
    }

    /// Forgets whom the holder waits for: it is this candidate itself.
    pub(super) fn forget(&mut self, own: &Term) {
        self.all.retain(|former| !matches!(&former.who, Who::Before { of, .. } if of == own));
    }

    /// Until when a former writer may begin a write. None if none may at `now`.
    pub(in crate::election) fn until(&self, now: Moment) -> Option<Moment> {
        let may_write = |former: &&Former| now < former.until && !defect::is_back("opens-unacknowledged");
        self.all.iter().filter(may_write).map(|former| former.until).max()
    }

    /// The same of those whose lease is another object than `uid`. They may make theirs anew.
    pub(super) fn elsewhere_until(&self, uid: &str, now: Moment) -> Option<Moment> {
        let here = |former: &&Former| former.who.term().is_some_and(|term| term.lease_uid() == uid);
        let others = self.all.iter().filter(|former| !here(former) && now < former.until);
        others.map(|former| former.until).max()
    }

    /// The count of the term whose holder a claim in `lease` asks for an acknowledgement: the newest one's.
    pub(super) fn asked(&self, lease: &LeaseRecord, now: Moment) -> Option<u64> {
        let terms =
            self.all.iter().rev().filter(|former| now < former.until).filter_map(|former| former.who.term());
        terms.filter(|term| term.lease_uid() == lease.uid()).map(Term::transitions).next()
    }

    /// The one that may write longest, in words.
    pub(super) fn last_to_end(&self) -> Option<String> {
        let last = self.all.iter().max_by_key(|former| former.until)?;
        Some(last.who.name().map_or_else(|| "a former holder".to_owned(), |name| format!("{name:?}")))
    }
}

// === impl Who ===

impl Who {
    /// The holder of `record`.
    pub(super) fn holder_of(record: &LeaseRecord) -> Self {
        Self::Holder { name: record.holder().unwrap_or_default().to_owned(), term: record.term() }
    }

    /// The holder's name, if it is known.
    fn name(&self) -> Option<&str> {
        let Self::Holder { name, .. } = self else { return None };
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    fn term(&self) -> Option<&Term> {
        match self {
            Self::Holder { term, .. } | Self::Before { of: term, .. } => Some(term),
            Self::Unknown => None,
        }
    }
}
