//! What the program has a say in: whether its candidate may lead, and when the gate of a new term may open.

mod lead_if;
mod opening;

#[cfg(feature = "runtime")]
pub(crate) use self::opening::note_missing;

use self::{lead_if::LeadIf, opening::Opening};
use super::{
    candidate::Profile,
    machine::{Machine, Restraint},
    retreat::Retreat,
};
use crate::{
    leadership::{Grantor, Leadership, Moment, Term},
    lease::LeaseRecord,
};
use std::{
    fmt::{self, Display},
    sync::atomic::Ordering,
    time::Duration,
};

// The sorts of trouble.
pub(super) const OPENING: &str = "the gate of a new term stays shut";
pub(super) const REFUSED: &str = "this replica leads only if its own check says yes";

/// If another candidate has held the lease for about so long, this one need not tell any more why its own gate stayed shut.
const LONGEST_TROUBLE: Duration = Duration::from_secs(60);

/// What the program has said, and what has come of it.
pub(super) struct Program {
    pub(super) lead_if: LeadIf,
    pub(super) opening: Opening,
    pub(super) retreat: Retreat,
    /// This candidate has given the lease up by itself, and takes none before.
    away_until: Moment,
    /// Why the gate of the last term has not opened. None once this candidate or another one leads.
    given_up: Option<String>,
    /// The term of another candidate that the lease shows, and since when.
    other: Option<(Term, Moment)>,
}

// === impl Program ===

impl Program {
    pub(super) fn new() -> Self {
        Self {
            lead_if: LeadIf::new(),
            opening: Opening::new(),
            retreat: Retreat::new(),
            away_until: Moment::from_nanos(0),
            given_up: None,
            other: None,
        }
    }

    /// Asks the checks, and gives the lease up if they have said no for too long.
    pub(super) fn apply_checks(&mut self, machine: &mut Machine, leadership: &Leadership) {
        let says_yes_again = self.lead_if.ask(leadership);
        let now = leadership.now();
        if says_yes_again {
            self.fall_silent(machine, now);
        }
        if let Some(reason) = self.lead_if.refusal().cloned()
            && self.lead_if.ends_term_from().is_some_and(|from| from <= now)
            && let Some(term) = machine.kept_term()
        {
            let pause = self.give_up(&term, machine, now);
            tracing::info!(reason, ?pause, "this replica gives the lease up, because its own check says no");
        }
    }

    /// What this candidate leaves alone now.
    pub(super) fn restraint(&self, now: Moment) -> Restraint {
        if self.lead_if.refusal().is_some() || now < self.away_until {
            Restraint::StaysAway
        } else if now < self.retreat.asks_from() {
            Restraint::AsksNoHolder
        } else {
            Restraint::None
        }
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
        match self.opening.of(term, leadership, margin) {
            None => false,
            Some(Ok(())) if self.lead_if.refusal().is_some() => false,
            Some(Ok(())) => {
                if let Some(waited) = self.opening.end(now) {
                    tracing::info!(?waited, "what the gate of this term has waited for has come");
                }
                true
            }
            Some(Err(why)) => {
                let pause = self.give_up(term, machine, now).as_secs_f64();
                self.fall_silent(machine, now);
                let text = format!(
                    "{why}; this replica has given the lease up, and stays away for {pause:.1} s at least"
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

    /// Leaves holders in peace that this candidate precedes, since it could not have led a moment ago.
    fn fall_silent(&self, machine: &Machine, now: Moment) {
        self.retreat.fall_silent(now);
        if machine.has_priority() {
            let pause = self.retreat.asks_from().saturating_since(now);
            tracing::info!(?pause, "this candidate asks no holder for the lease for a while");
        }
    }

    /// Takes in that the gate has opened.
    pub(super) fn leads(&mut self, now: Moment) {
        self.retreat.leads(now);
    }

    /// Takes in that a term has ended whose gate was open.
    pub(super) fn loses(&mut self, now: Moment) {
        self.retreat.loses(now);
    }

    /// When the task has to look again.
    pub(super) fn moments(&self, now: Moment) -> impl Iterator<Item = Moment> {
        let moments = [
            Some(self.away_until),
            Some(self.retreat.asks_from()),
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
        if leads || self.is_led_by_another(machine, profile.timing.retry_period(), now) {
            self.given_up = None;
        }
        let contends = !machine.is_ending() && self.restraint(now) != Restraint::StaysAway;
        profile.liveness.contends.store(contends, Ordering::Release);
        grantor.note_opening(self.opening.term());
        let waits = self.opening.warning(self.given_up.is_some(), now);
        let waits = waits.as_ref().map(|text| ("waits", text as &dyn Display));
        let given_up = || self.given_up.as_ref().map(|text| ("given up", text as &dyn Display));
        grantor.set_trouble(OPENING, waits.or_else(given_up));
        grantor.set_trouble(REFUSED, self.lead_if.refusal().map(|why| ("check", why as &dyn Display)));
    }

    /// Whether another candidate has held the lease for longer than its gate would have stayed shut: for the time limit, and
    /// `more` for its calls. A long time limit would keep this replica unready beside a healthy leader.
    fn is_led_by_another(&mut self, machine: &Machine, more: Duration, now: Moment) -> bool {
        let held = machine.record().filter(|_| machine.is_held_by_another()).map(LeaseRecord::term);
        let same =
            held.as_ref().zip(self.other.as_ref()).is_some_and(|(held, (known, _))| held.is_same(known));
        if !same {
            self.other = held.map(|term| (term, now));
        }
        let patience = self.opening.timeout.min(LONGEST_TROUBLE) + more;
        self.other.as_ref().is_some_and(|(_, since)| patience < now.saturating_since(*since))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}
