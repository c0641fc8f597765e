//! Former writers: holders that may still begin a write, whatever the lease says by now.
//!
//! A holder becomes a former one when this candidate sees that the lease is no longer that holder's, and the holder has not
//! said so itself: it was preempted, or the lease was freed by hand, deleted, made anew or edited. While it may begin a
//! write, this candidate's gate stays shut, the candidate releases nothing, and it acknowledges nothing. Two things clear an
//! entry: its time, and the holder's own word (an acknowledgement, a release). A word counts only in the newest state of the
//! lease. What else happens to the lease clears nothing.

use crate::{
    election::preemption::Handover,
    leadership::{Moment, Term},
    lease::{LONGEST_SANE, LeaseRecord},
};
use std::time::Duration;

/// More of them become one that only time clears.
const MOST: usize = 4;

/// All former writers that a candidate knows of.
#[derive(Clone, Debug, Default)]
pub(super) struct Formers {
    /// The newest is last.
    all: Vec<Former>,
    /// Until when a write of an earlier process with this identity may take effect. It begins no more.
    earlier_process_until: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Former {
    who: Who,
    /// Until when it may begin a write.
    until: Moment,
}

/// A former writer. By default, no word of any holder clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    /// Empty if this candidate has not seen it hold the lease.
    name: String,
    /// The term in which it held the lease.
    term: Option<Term>,
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
        let known = self.all.iter().position(|former| former.who == who && who.term.is_some());
        let before = known.map(|place| self.all.remove(place).until);
        self.all.push(Former { who, until: before.map_or(until, |before| before.max(until)) });
        if self.all.len() > MOST {
            let (first, second) = (self.all.remove(0), &mut self.all[0]);
            *second = Former { who: Who::default(), until: second.until.max(first.until) };
        }
    }

    /// Takes in the newest state of the lease, which may hold a word of one of them: an acknowledgement or a release.
    /// `known` is the state before it.
    pub(super) fn hear(&mut self, news: &LeaseRecord, known: Option<&LeaseRecord>) {
        let acknowledged = Handover::of(news).filter(|handover| handover.done).map(|handover| handover.from);
        // An edit keeps the times, and so does a copy.
        let edited = known.is_some_and(|known| known.acquire_time() == news.acquire_time());
        let was_held = known.is_none_or(|known| known.holder().is_some() || known.term() != news.term());
        let released = (news.is_released() && was_held && !edited).then(|| news.transitions());
        let speaks_now = known.filter(|known| released.is_some() && known.term() == news.term());
        let speaks_now = speaks_now.and_then(LeaseRecord::holder);
        // Whose count is not known may have any, so no count says who speaks.
        let sure = self.all.iter().all(|former| former.who.term.is_some());
        let here = |term: &Term| sure && term.lease_uid() == news.uid();
        let speaks = |Former { who, .. }: &Former| {
            who.term.as_ref().filter(|term| here(term)).map(Term::transitions).is_some_and(|count| {
                // Another program may have given one count to two holders.
                let released = released == Some(count) && speaks_now.is_none_or(|it| it == who.name);
                released || acknowledged == Some(count)
            })
        };
        // What a holder says in one term it says of all its terms.
        let speaker = self.all.iter().find(|former| speaks(former)).and_then(|former| former.who.name());
        let said_by = [speaks_now, speaker].map(|name| name.map(str::to_owned));
        self.all.retain(|former| {
            let name = former.who.name();
            !speaks(former) && (name.is_none() || !said_by.iter().any(|it| it.as_deref() == name))
        });
    }

    /// Takes in that the counts of the lease `uid` come again, so they do not say who speaks.
    pub(super) fn lose_count(&mut self, uid: &str) {
        self.all
            .iter_mut()
            .filter(|former| former.who.is_of(uid))
            .for_each(|former| former.who = Who::default());
    }

    /// Forgets whom the holder waits for: it is this candidate itself.
    pub(super) fn forget(&mut self, own: &Term) {
        self.all.retain(|former| former.who != Who { name: String::new(), term: Some(own.clone()) });
    }

    /// Takes in that an earlier process with this identity has left the lease. It has ended by `at`, and a write that it has
    /// sent arrives at most `late` later.
    pub(super) fn note_earlier_process(&mut self, at: Moment, late: Duration) {
        self.earlier_process_until = at.saturating_add(late);
    }

    /// Until when a write may take effect that keeps this candidate from a release, and from an acknowledgement (rule S4).
    /// `own`: the same of this process's own writes. `owes`: a successor waits for the word of this candidate, and learns
    /// from it alone that the holders before it have ended too.
    pub(super) fn settle_at(&self, own: Moment, owes: bool, now: Moment) -> Moment {
        let holders = self.until(now).filter(|_| owes);
        own.max(self.earlier_process_until).max(holders.unwrap_or(own))
    }

    /// Until when a former writer may begin a write. None if none may at `now`.
    pub(super) fn until(&self, now: Moment) -> Option<Moment> {
        self.all.iter().filter(|former| now < former.until).map(|former| former.until).max()
    }

    /// The same of those whose lease is another object than `uid`. They may make theirs anew.
    pub(super) fn elsewhere_until(&self, uid: &str, now: Moment) -> Option<Moment> {
        let others = self.all.iter().filter(|former| !former.who.is_of(uid) && now < former.until);
        others.map(|former| former.until).max()
    }

    /// The count of the term whose holder a claim in `lease` asks for an acknowledgement: the newest one's.
    pub(super) fn asked(&self, lease: &LeaseRecord, now: Moment) -> Option<u64> {
        let mut here = self.all.iter().filter(|former| now < former.until && former.who.is_of(lease.uid()));
        here.next_back()?.who.term.as_ref().map(Term::transitions)
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
        Self::new(record.holder(), record.term())
    }

    pub(super) fn new(name: Option<&str>, term: Term) -> Self {
        Self { name: name.unwrap_or_default().to_owned(), term: Some(term) }
    }

    /// The holder's name, if it is known.
    fn name(&self) -> Option<&str> {
        Some(self.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether it held the lease object `uid`.
    fn is_of(&self, uid: &str) -> bool {
        self.term.as_ref().is_some_and(|term| term.lease_uid() == uid)
    }
}
