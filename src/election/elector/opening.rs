//! Opens the gate when the API server's fence lets this candidate pass.

use super::{Elector, asking::Asking};
use crate::{
    election::hooks::Obstacle,
    lease::{LeaseRecord, Lock},
};

/// From this refusal on, it is trouble if the API server has not heard of the term: after about half a second.
const PATIENCE: u32 = 8;

impl<L: Lock> Elector<L> {
    /// Ends the trouble of a shut gate when another candidate holds the lease, or when this one neither holds it nor
    /// contends. If this candidate has given the lease back and is to try again soon, the trouble lasts.
    pub(super) fn end_the_trouble_of_a_shut_gate(&mut self) {
        let stays_away = !self.contends() && !self.candidacy.is_mine();
        if self.shut.text().is_some() && (stays_away || self.candidacy.of_another().is_some()) {
            self.shut.settle(self.leadership.now());
            self.note_trouble();
        }
    }

    /// Begins to ask if this candidate waits for its gate to open, and stops asking if it does not.
    pub(super) fn ask_before_opening(&mut self) {
        let Some(fenced) = &self.profile.hooks.fenced else { return };
        let waits = self.contends() && self.candidacy.awaits_opening();
        let term = self.candidacy.record().filter(|_| waits).map(LeaseRecord::term);
        if self.asking.as_ref().map(|asking| &asking.term) != term.as_ref() {
            let begin = |term| Asking::begin(fenced.opening.clone(), term, self.profile.timing);
            self.asking = term.map(begin);
        }
    }

    /// Takes in the answer for the term that is asked about.
    pub(super) fn on_answer(&mut self, answer: Result<(), Obstacle>) {
        let now = self.leadership.now();
        match answer {
            Ok(()) => {
                self.candidacy.opening.agree();
                self.asking = None;
                self.shut.settle(now);
            }
            Err(Obstacle { kind, message, passes }) => {
                let refused = self.asking.as_mut().map_or(0, |asking| {
                    asking.refused += 1;
                    asking.refused
                });
                if passes && refused < PATIENCE {
                    tracing::debug!(error = kind, "the API server has not heard of this term yet: {message}");
                } else {
                    self.shut.raise(kind, &message, now);
                }
            }
        }
        self.note_trouble();
    }
}
