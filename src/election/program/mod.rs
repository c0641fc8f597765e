//! What the program has a say in: whether its candidate may lead, and when the gate of a new term may open.

mod lead_if;
mod opening;

#[cfg(feature = "runtime")]
pub(crate) use self::opening::note_missing;

use self::{lead_if::LeadIf, opening::Opening};
use super::{candidate::Profile, machine::Machine, retreat::Retreat};
use crate::leadership::{Grantor, Leadership, Moment, Term};
use std::{
    fmt::{self, Display},
    sync::atomic::Ordering,
    time::Duration,
};

// The sorts of trouble.
pub(super) const OPENING: &str = "the gate of a new term stays shut";
pub(super) const REFUSED: &str = "this replica leads only if its own check says yes";

/// What the program has said, and what has come of it.
pub(super) struct Program {
    pub(super) lead_if: LeadIf,
    pub(super) opening: Opening,
    retreat: Retreat,
    /// This candidate has given the lease up by itself, and takes none before.
    away_until: Moment,
    /// Why the gate of the last term has not opened. None once this candidate or another one leads.
    given_up: Option<String>,
}

// === impl Program ===

impl Program {
    pub(super) const fn new() -> Self {
        Self {
            lead_if: LeadIf::new(),
            opening: Opening::new(),
            retreat: Retreat::new(),
            away_until: Moment::from_nanos(0),
            given_up: None,
        }
    }

    /// Gives the lease up if the checks have said no for too long.
    pub(super) fn apply_checks(&mut self, machine: &mut Machine, now: Moment) {
        if self.lead_if.ends_term_from().is_some_and(|from| from <= now)
            && let Some(term) = machine.kept_term()
        {
            self.give_up(&term, machine, now);
        }
    }

    /// Whether this candidate takes no lease now.
    pub(super) fn stays_away(&self, now: Moment) -> bool {
        self.lead_if.refusal().is_some() || now < self.away_until
    }

    /// Whether what the gate of this term waits for has come (rule S16), and the checks say yes. If it will not come, gives the
    /// lease up.
    pub(super) fn lets_open(
        &mut self,
        term: &Term,
        machine: &mut Machine,
        leadership: &Leadership,
        margin: Duration,
        now: Moment,
    ) -> bool {
        match self.opening.of(term, leadership, leadership.settles_at(margin)) {
            None => false,
            Some(Ok(())) => self.lead_if.refusal().is_none(),
            Some(Err(why)) => {
                let pause = self.give_up(term, machine, now).as_secs_f64();
                let text = format!(
                    "{why}; this replica gives the lease up, and stays away for {pause:.1} s at least"
                );
                self.given_up = Some(text);
                false
            }
        }
    }

    /// Gives the lease up for another candidate, and returns how long this one stays away.
    fn give_up(&mut self, term: &Term, machine: &mut Machine, now: Moment) -> Duration {
        let pause = self.retreat.pause(now);
        self.away_until = now.saturating_add(pause);
        machine.give_way(term);
        pause
    }

    /// Takes in that the gate has opened.
    pub(super) fn leads(&mut self, now: Moment) {
        self.retreat.leads(now);
        if let Some(waited) = self.opening.end(now) {
            tracing::info!(?waited, "what the gate of this term has waited for has come");
        }
    }

    /// Takes in that a term has ended whose gate was open.
    pub(super) fn loses(&mut self, now: Moment) {
        self.retreat.loses(now);
    }

    /// When the task has to look again.
    pub(super) fn moments(&self, now: Moment) -> impl Iterator<Item = Moment> {
        let moments = [
            Some(self.away_until),
            self.opening.looks_at(now),
            self.lead_if.asks_at(),
            self.lead_if.ends_term_from(),
        ];
        moments.into_iter().flatten().filter(move |at| now < *at)
    }

    /// Tells what keeps this candidate from leading. `leads` says whether this process has a term.
    pub(super) fn tell(
        &mut self,
        machine: &Machine,
        leads: bool,
        profile: &Profile,
        grantor: &Grantor,
        now: Moment,
    ) {
        if leads || machine.is_held_by_another() {
            self.given_up = None;
        }
        let contends = !machine.is_ending() && !self.stays_away(now);
        profile.liveness.contends.store(contends, Ordering::Release);
        grantor.note_opening(self.opening.term());
        let waits = self.opening.warning(now);
        let waits = waits.as_ref().map(|text| ("waits", text as &dyn Display));
        let given_up = || self.given_up.as_ref().map(|text| ("given up", text as &dyn Display));
        grantor.set_trouble(OPENING, waits.or_else(given_up));
        grantor.set_trouble(REFUSED, self.lead_if.refusal().map(|why| ("check", why as &dyn Display)));
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}
