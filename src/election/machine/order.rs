//! What the rest of the process and other candidates want, and which term is given back for it.

use super::{
    note::Question,
    state::Machine,
    stored::Stored,
    terms::{Closing, Reason},
};
use crate::{
    election::priority::holder_key,
    leadership::{Intent, Loss, Term},
};

impl Machine {
    /// Takes in what the rest of the process wants.
    pub fn handle_order(&mut self, intent: Intent) {
        if intent.is_to_leave() && !self.is_ending() {
            self.pace.begin_anew(); // failures before the order do not count
        }
        self.intent = intent;
        self.close_if_told();
    }

    /// Ends `term` in good order, for another candidate, even if its gate has not opened. Does nothing if a later term has begun.
    pub fn give_way(&mut self, term: &Term) {
        if self.terms.active().is_none_or(|own| own.name.is_same(term)) {
            self.close(term.clone(), Reason::Moved);
        }
    }

    /// Takes in that another part of the process has ended the term.
    pub fn end_term(&mut self, loss: Loss) {
        self.terms.end(loss);
    }

    /// Gives the term back that the lease shows, if the process stops, or if another candidate has asked for the lease. The term
    /// may have ended already, by its deadline or with the predecessor.
    pub(super) fn close_if_told(&mut self) {
        let stored = self.seen().map(|seen| &seen.stored);
        let Some(stored) = stored.filter(|stored| self.is_mine(stored)) else { return };
        let stops = (self.is_ending() && self.terms.active().is_some()).then_some(Reason::Stopped);
        if let Some(reason) = self.yields(stored).or(stops) {
            self.close(stored.record.term(), reason);
        }
    }

    /// Gives this term back in good order. The first reason counts. If this candidate gives the term back already that the lease
    /// shows, a late order for another term does not replace that.
    fn close(&mut self, term: Term, reason: Reason) {
        let closing = self.terms.closing.as_ref();
        let is_closing =
            closing.is_some_and(|closing| closing.term.is_same(&term) || self.shows(Some(&closing.term)));
        if !is_closing {
            self.terms.closing = Some(Closing { term, reason });
        }
    }

    // --- priority ---

    /// The question that this candidate writes into the lease, to ask its holder to release it. None without a priority.
    pub(super) fn own_question(&self) -> Option<Question> {
        let key = self.priority.as_ref()?.key().to_owned();
        Some(Question { who: self.me.clone(), key: Some(key) })
    }

    /// Whether this candidate precedes the holder, so that it asks for the lease. It writes no question into a lease that makes no
    /// sense.
    pub(super) fn precedes(&self, stored: &Stored) -> bool {
        let other = stored.record.holder().is_some_and(|holder| holder != self.me.as_str());
        let key = holder_key(&stored.record);
        let precedes = key.is_some_and(|key| self.priority.as_ref().is_some_and(|own| own.precedes(key)));
        other && precedes && self.own_question().is_some_and(|question| stored.asked(&question).is_some())
    }

    /// Whether this candidate may replace the `other` question with its own. It never replaces the question of a person.
    pub(super) fn outranks(&self, other: &Question) -> bool {
        let key = other.key.as_deref();
        key.is_some_and(|key| self.priority.as_ref().is_some_and(|own| own.precedes(key)))
    }

    /// Why this holder gives the lease to another candidate, if it does: a person has asked for it, or another candidate has. The
    /// holder refuses a candidate that has the same key, or that it precedes; without a priority it refuses none. A question that
    /// the holder refuses stays in the lease until the next acquisition.
    pub(super) fn yields(&self, stored: &Stored) -> Option<Reason> {
        let question = stored.question().filter(|question| question.who != self.me)?;
        let Some(key) = &question.key else { return Some(Reason::Moved) };
        let objects = self.priority.as_ref().is_some_and(|own| own.key() == key || own.precedes(key));
        (!objects).then_some(Reason::Preceded)
    }
}
