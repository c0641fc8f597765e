//! What the rest of the process wants, and which term is given back for it.

use super::state::{ActiveTerm, Closing, Machine, Reason};
use crate::leadership::{Intent, Loss, Moment, Term};

impl Machine {
    /// Takes in what the rest of the process wants.
    pub fn order(&mut self, intent: Intent) {
        if intent.is_to_leave() && !self.is_ending() {
            // Failures before the order do not count.
            (self.failures, self.pause_until, self.asked_until) = (0, Moment::default(), Moment::default());
        }
        self.intent = intent;
        self.close_if_told();
    }

    /// Ends `term` in good order, for another candidate, also if its gate has not opened. Nothing if a later term has begun.
    pub fn give_way(&mut self, term: &Term) {
        if self.term.as_ref().is_none_or(|own| own.name.is_same(term)) {
            self.close(term.clone(), Reason::Moved);
        }
    }

    /// Takes in that another part of the process has ended the term.
    pub fn end_term(&mut self, loss: Loss) {
        (self.term, self.lost) = (None, loss);
    }

    /// Gives the term back that the lease shows, if the process stops, or if another candidate has asked for the lease. It may
    /// have ended already, by its deadline or with the predecessor.
    pub(super) fn close_if_told(&mut self) {
        let Some(stored) = self.seen().map(|seen| &seen.stored).filter(|it| self.is_mine(it)) else { return };
        let stops = (self.is_ending() && self.term.is_some()).then_some(Reason::Stopped);
        if let Some(reason) = self.yields(stored).or(stops) {
            self.close(stored.record.term(), reason);
        }
    }

    /// Gives this term back in good order. The first reason counts, and a late order for another term ends none.
    fn close(&mut self, term: Term, reason: Reason) {
        let is_closing =
            self.closing.as_ref().is_some_and(|it| it.term.is_same(&term) || self.is_in(Some(&it.term)));
        if !is_closing {
            self.closing = Some(Closing { term, reason });
        }
    }

    /// Whether the process stops or stands down. Failures before that order do not count any more, and are no success.
    pub(crate) fn is_ending(&self) -> bool {
        self.intent.is_to_leave()
    }

    /// Whether the term ends in good order: its gate is closed for good, and it is not renewed.
    pub(super) fn is_closing(&self, term: &ActiveTerm) -> bool {
        self.closing.as_ref().is_some_and(|it| it.term.is_same(&term.name))
    }

    /// Whether the lease shows this term.
    pub(super) fn is_in(&self, term: Option<&Term>) -> bool {
        let shown = self.seen().map(|seen| seen.stored.record.term());
        shown.zip(term).is_some_and(|(shown, term)| shown.is_same(term))
    }
}
