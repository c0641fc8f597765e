//! What must hold in each state.

use super::{
    fault::Fault,
    race::Race,
    rival::{Rival, life_of},
    seat::Seat,
};
use kube_leader_gate::{leadership::Term, lease::LeaseRecord};
use std::time::Duration;

/// A run takes no more steps than this, unless it turns in a circle.
const STEPS: usize = 3_000;
/// Once no more goes wrong, a candidate leads after this time: the lease of a lost holder has to end, and each candidate
/// may have to wait for a retry.
const RECOVERY: Duration = Duration::from_mins(1);
/// The same after nothing but a clean stop: no candidate waits for the end of a lease.
const HANDOVER: Duration = Duration::from_secs(13);

/// After this time, a candidate that stays away holds nothing that it has not used.
const GIVE_BACK: Duration = Duration::from_secs(8);
/// The same if it has preempted client-go, which never says that its writes have ended: the lease has to end.
const EXPIRY: Duration = Duration::from_secs(17);

/// Rule S9 is judged for so long after the calls of a leader hang: longer than its deadline.
const HANGS: Duration = Duration::from_secs(17);

impl Race {
    /// Rules S4 and S6: no gate is open while a write of another candidate may land.
    pub(super) fn one_writes(&self) -> bool {
        let open = (0..self.seats.len()).filter(|i| self.seats[*i].can_write(self.now));
        open.into_iter().all(|i| {
            (0..self.seats.len())
                .all(|j| i == j || !self.seats[j].may_land(self.now) && !self.seats[j].can_write(self.now))
        })
    }

    /// Judges a write of `actor`, and notes which process the lease belongs to now.
    pub(super) fn judge_write(
        &mut self,
        actor: Option<usize>,
        before: Option<&LeaseRecord>,
        after: &LeaseRecord,
    ) {
        let held = before.is_some_and(|lease| lease.holder().is_some());
        if held && after.holder().is_none() {
            // A copy of its own claim that a person has made names it, too.
            let holds =
                |i: usize| self.seats[i].ours().zip(before).is_some_and(|(it, lease)| it.holds(lease));
            let own = actor.is_none_or(|i| self.author == Some((i, self.seats[i].life)) || holds(i));
            if !own {
                self.broken = Some("S5: a candidate released a term that is not its own");
            }
            // client-go leaves this to its user.
            if let Some((i, _)) = self.author
                && self.seats[i].ours().is_some()
                && self.seats[i].may_land(self.now)
            {
                self.broken = Some("S4: a candidate released while its write might land");
            }
        }
        let term = |lease: &LeaseRecord| {
            let acquired = lease.acquire_time().map(str::to_owned);
            (lease.holder().map(str::to_owned), lease.transitions(), acquired)
        };
        if before.map(term) != Some(term(after)) {
            if before.is_some_and(|before| self.takes_from_a_leader(before, after)) {
                self.broken = Some("S6: a candidate took the lease of a live leader");
            }
            self.overtaken = self.author.map(|(i, _)| i).filter(|_| held);
            self.author = after.holder().and_then(|holder| {
                let i = self.seats.iter().position(|seat| seat.name() == holder)?;
                let seat = &self.seats[i];
                Some((i, seat.ours().and_then(|_| life_of(after)).unwrap_or(seat.life)))
            });
        }
    }

    /// Whether a candidate of ours takes the lease from a process that leads. Another elector cannot be asked, so one that
    /// precedes it may.
    fn takes_from_a_leader(&self, before: &LeaseRecord, after: &LeaseRecord) -> bool {
        let taker = self.seats.iter().find(|seat| Some(seat.name()) == after.holder()).and_then(Seat::ours);
        let holder = self.author.filter(|_| before.holder() != after.holder()).map(|(i, _)| &self.seats[i]);
        let (Some(taker), Some(holder)) = (taker, holder) else { return false };
        holder.can_write(self.now) && (holder.ours().is_some() || taker.priority.is_none())
    }

    /// A candidate leads some time later, if nothing goes wrong any more. Returns the rule that is broken on the way.
    pub(super) fn recovers(&self) -> Result<(), &'static str> {
        let mut race = self.clone();
        race.faults = 0;
        let ours = self.seats.iter().all(|seat| seat.ours().is_some());
        let stopped = ours && self.suffered == 1 && self.fault == Some(Fault::Stop);
        let end = self.now.saturating_add(if stopped { HANDOVER } else { RECOVERY });
        for _ in 0..STEPS {
            if race.now >= end {
                return Err("no candidate leads in time");
            }
            if !race.one_writes() {
                return Err("two candidates write");
            }
            if race.leads_undisturbed() {
                return Ok(());
            }
            let Some(step) = race.usual() else { return Err("nothing more happens") };
            race.take(step);
            race.broken.map_or(Ok(()), Err)?;
        }
        Err("the candidates turn in a circle")
    }

    /// Rule S9: hung calls alone do not cost the term.
    pub(super) fn hung_calls_cost_nothing(&self) -> bool {
        self.hangs.is_none_or(|i| self.goes_on_leading(i))
    }

    /// Whether this candidate leads for a while without a gap, if nothing goes wrong any more.
    pub(super) fn goes_on_leading(&self, i: usize) -> bool {
        let mut race = Self { faults: 0, ..self.clone() };
        let end = self.now.saturating_add(HANGS);
        for _ in 0..STEPS {
            if race.now >= end {
                return true;
            }
            let Some(step) = race.usual().filter(|_| race.seats[i].can_write(race.now)) else { return false };
            race.take(step);
        }
        false
    }

    /// A candidate leads, and nothing is under way that could end this.
    fn leads_undisturbed(&self) -> bool {
        self.seats.iter().enumerate().any(|(i, seat)| {
            seat.can_write(self.now) && !seat.is_frozen() && self.author == Some((i, seat.life))
        })
    }

    /// Rule S8: a gate is open only in the lease object that its candidate knows.
    pub(super) fn terms_are_of_their_lease(&self) -> bool {
        self.seats.iter().filter(|seat| seat.can_write(self.now)).filter_map(Seat::ours).all(|rival| {
            let known = rival.machine.record().map(LeaseRecord::uid);
            let gone = rival.deleted.as_deref();
            let own = rival.term().map(Term::lease_uid);
            own == known && own != gone
        })
    }

    /// Rule S7: no gate is open of a candidate that has heard of another holder.
    pub(super) fn gates_follow_the_lease(&self) -> bool {
        let Some(lease) = &self.server.lease else { return true };
        self.seats.iter().filter(|seat| seat.can_write(self.now)).filter_map(Seat::ours).all(|rival| {
            let is_told = rival.inbox.is_empty();
            !is_told || lease.holder() == Some(&rival.name)
        })
    }

    /// Rule S5: a candidate that stays away gives back a lease that an earlier claim of its brings. The claim of an earlier
    /// process in its seat is not its own: that process has crashed, and the lease ends with its time.
    pub(super) fn gives_back(&self) -> bool {
        let says_nothing = self.overtaken.is_some_and(|i| self.seats[i].ours().is_none());
        let race = self.clone().settled_after(if says_nothing { EXPIRY } else { GIVE_BACK });
        let keeps = |(i, seat): (usize, &Seat)| {
            let term = race.server.lease.as_ref().map(LeaseRecord::term);
            let unused = |rival: &Rival| {
                race.server.lease.as_ref().is_some_and(|it| rival.holds(it)) && rival.used != term
            };
            let unused = seat.ours().is_some_and(unused);
            unused && seat.has_given_up() && race.author == Some((i, seat.life)) && !seat.is_frozen()
        };
        !race.seats.iter().enumerate().any(keeps)
    }

    /// Runs without faults for so long. A leader and its followers then know each other.
    pub(super) fn settled_after(mut self, time: Duration) -> Self {
        let end = self.now.saturating_add(time);
        for _ in 0..STEPS {
            match self.usual() {
                Some(step) if self.now < end => self.take(step),
                _ => break,
            }
        }
        self
    }
}
