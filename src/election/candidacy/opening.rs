//! Whether the gate may open in the term that this candidate has claimed, if something must agree first: a fence in the
//! API server.

use crate::{leadership::Moment, lease::LeaseTiming};

/// What the candidate knows about its own opening.
#[derive(Clone, Debug, Default)]
pub(in crate::election) struct Opening {
    /// Whether something must agree before the gate opens.
    asks: bool,
    state: State,
    /// Until this moment the candidate leaves the lease to the others, since it waited in vain.
    rests_until: Option<Moment>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The gate may open, or has opened.
    #[default]
    Free,
    /// The candidate holds the lease, and the gate stays shut. At this moment it gives the lease back.
    Awaited(Moment),
    /// The gate may open with the next renewal.
    Agreed,
}

impl Opening {
    pub(super) fn asking() -> Self {
        Self { asks: true, ..Self::default() }
    }

    /// Takes in that a claim is tried at `now`.
    pub(super) fn claim(&mut self, now: Moment, timing: LeaseTiming) {
        // As long as a term lives without a renewal.
        let until = now.saturating_add(timing.renew_deadline());
        self.state = if self.asks { State::Awaited(until) } else { State::Free };
    }

    /// Takes in that the gate may open.
    pub(in crate::election) fn agree(&mut self) {
        if matches!(self.state, State::Awaited(_)) {
            self.state = State::Agreed;
        }
    }

    /// Takes in that the gate has opened.
    pub(super) fn opened(&mut self) {
        self.state = State::Free;
    }

    /// Until when the candidate waits for the agreement. Then it gives the lease back.
    pub(super) fn awaited(&self) -> Option<Moment> {
        match self.state {
            State::Awaited(until) => Some(until),
            State::Free | State::Agreed => None,
        }
    }

    pub(super) fn is_agreed(&self) -> bool {
        self.state == State::Agreed
    }

    /// Takes in that the candidate gives the lease back at `now`, because it waited in vain.
    pub(super) fn rest(&mut self, now: Moment, timing: LeaseTiming) {
        self.rests_until = Some(now.saturating_add(timing.retry_period()));
    }

    /// Until when the candidate leaves the lease to the others.
    pub(super) fn rests_until(&self, now: Moment) -> Option<Moment> {
        self.rests_until.filter(|end| now < *end)
    }
}
