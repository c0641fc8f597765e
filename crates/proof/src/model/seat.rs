//! A candidate with its clock and its machine.

use super::{
    client_go::{ClientGo, Fate},
    rival::{NEVER, Rival, at},
    server::Server,
};
use kube_leader_gate::{LeaseTiming, internal::Intent, leadership::Moment};
use std::time::Duration;

/// A candidate, as ours decides or as client-go does.
#[derive(Clone, Debug)]
pub(super) enum Elector {
    Ours(Box<Rival>),
    Go(ClientGo),
}

#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) elector: Elector,
    /// How much faster this clock runs than that of the API server, in hundredths.
    pub(super) pace: u64,
    /// The process does not run before this moment.
    pub(super) frozen_until: Option<Moment>,
    /// The answer of its call comes at this moment.
    pub(super) answered_at: Option<Moment>,
    /// Its watch tells nothing.
    pub(super) silence: Option<Silence>,
    /// So many of its next calls hang.
    pub(super) hung: u8,
    /// It was stopped, and contends again at this moment.
    pub(super) back_at: Option<Moment>,
    /// How many processes have had this seat before. They had the same name.
    pub(super) life: u8,
}

/// A watch that tells nothing for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) until: Moment,
    /// Whether the news are lost by then.
    pub(super) loses_news: bool,
}

/// What a candidate would do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Something, at once. `calls`: it would call the API server.
    Now { calls: bool },
    /// Nothing before this moment of its own clock.
    Wait(Moment),
}

impl Seat {
    /// A seat whose clock runs at this pace.
    pub(super) fn of(elector: Elector, pace: u64) -> Self {
        Self {
            elector,
            pace,
            frozen_until: None,
            answered_at: None,
            silence: None,
            hung: 0,
            back_at: None,
            life: 0,
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen_until.is_some()
    }

    pub(super) fn ours(&self) -> Option<&Rival> {
        if let Elector::Ours(rival) = &self.elector { Some(rival) } else { None }
    }

    pub(super) fn ours_mut(&mut self) -> Option<&mut Rival> {
        if let Elector::Ours(rival) = &mut self.elector { Some(rival) } else { None }
    }

    /// Something happens to a candidate of ours.
    pub(super) fn with_ours(&mut self, now: Moment, happens: impl FnOnce(&mut Rival, Moment)) {
        let local = self.local(now);
        if let Some(rival) = self.ours_mut() {
            happens(rival, local);
        }
    }

    /// When the call under way was sent, if it waits for its answer.
    pub(super) fn call_sent(&self) -> Option<Moment> {
        let flight = self.ours()?.flight.as_ref()?;
        self.answered_at.map(|_| flight.sent)
    }

    pub(super) fn timing(&self) -> LeaseTiming {
        self.ours().map_or_else(LeaseTiming::fast, |rival| rival.timing)
    }

    pub(super) fn name(&self) -> &str {
        match &self.elector {
            Elector::Ours(rival) => &rival.name,
            Elector::Go(go) => go.name(),
        }
    }

    /// The time on this candidate's clock.
    pub(super) fn local(&self, now: Moment) -> Moment {
        let since = now.saturating_since(at(0)).as_nanos() * u128::from(self.pace) / 100;
        at(0).saturating_add(Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX)))
    }

    /// The first moment at which this candidate's clock shows `local`.
    pub(super) fn global(&self, local: Moment) -> Moment {
        let since = (local.saturating_since(at(0)).as_nanos() * 100).div_ceil(u128::from(self.pace));
        at(0).saturating_add(Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX)))
    }

    /// Whether its gate is open for new writes.
    pub(super) fn can_write(&self, now: Moment) -> bool {
        let local = self.local(now);
        match &self.elector {
            Elector::Ours(rival) => rival.can_write(local),
            Elector::Go(go) => go.leads(local),
        }
    }

    /// Whether a write of its may take effect.
    pub(super) fn may_land(&self, now: Moment) -> bool {
        let local = self.local(now);
        match &self.elector {
            Elector::Ours(rival) => rival.writing && rival.leads(local) || local < rival.lands_until,
            Elector::Go(go) => go.may_land(local),
        }
    }

    /// A leader writes all the time. A write that its leader has not seen end may land for a while after the term.
    pub(super) fn keep_writing(&mut self, now: Moment) {
        let local = self.local(now);
        match &mut self.elector {
            Elector::Ours(rival) => {
                rival.writing |= rival.can_write(local);
                rival.runs_out(local);
            }
            Elector::Go(go) => go.keeps_writing(local),
        }
    }

    /// It takes in the next news of its watch.
    pub(super) fn hear(&mut self, now: Moment) {
        self.with_ours(now, Rival::hear);
    }

    /// The answer to its call comes, if it is not `lost`. A late call reaches the API server now.
    pub(super) fn answer(&mut self, server: &mut Server, lost: bool, now: Moment) {
        self.with_ours(now, |rival, local| {
            if !lost {
                rival.land(server);
            }
            rival.answer(server, lost, local);
        });
    }

    /// What it would do now.
    pub(super) fn wish(&self, now: Moment) -> Wish {
        let local = self.local(now);
        match &self.elector {
            Elector::Go(go) if go.due() <= local => Wish::Now { calls: true },
            Elector::Go(go) => Wish::Wait(go.due()),
            // The answer of a call under way comes by another step.
            Elector::Ours(rival) if self.call_sent().is_some() => {
                Wish::Wait(rival.deadline().filter(|end| local < *end).unwrap_or(NEVER))
            }
            Elector::Ours(rival) => {
                if rival.flight.is_some() {
                    return Wish::Now { calls: true };
                }
                if rival.finishes_a_write(local) {
                    return Wish::Now { calls: false };
                }
                if rival.until <= local {
                    let mut would = rival.clone();
                    would.turn(local);
                    return Wish::Now { calls: would.flight.is_some() };
                }
                // At its deadline the gate closes by itself.
                let end = rival.deadline().filter(|end| local < *end);
                Wish::Wait(rival.until.min(end.unwrap_or(NEVER)))
            }
        }
    }

    /// It does what it wishes. `fate` is what becomes of its call.
    pub(super) fn act(&mut self, server: &mut Server, fate: Fate, now: Moment) {
        let local = self.local(now);
        match &mut self.elector {
            Elector::Go(go) if go.is_over(local) => go.ends(),
            Elector::Go(go) => go.tries(server, fate, local),
            Elector::Ours(rival) => {
                if rival.flight.is_none() && rival.finishes_a_write(local) {
                    rival.write_ends(true, local);
                    return;
                }
                rival.turn(local);
                if fate != Fate::Delayed {
                    rival.land(server);
                }
                rival.answer(server, fate != Fate::Answered, local);
            }
        }
    }

    /// It begins a call whose answer comes later.
    pub(super) fn begin(&mut self, server: &mut Server, now: Moment) {
        self.with_ours(now, |rival, local| {
            rival.turn(local);
            rival.land(server);
        });
    }

    /// The API server gets its call once more, and only this answer comes back.
    pub(super) fn lands_again(&mut self, server: &mut Server) {
        if let Some(flight) = self.ours_mut().and_then(|rival| rival.flight.as_mut())
            && let Some(claim) = &flight.call.update
        {
            flight.outcome = Some(server.write(flight.call.seen.as_ref(), claim).map(Some));
        }
    }

    /// When it gives up a call that it sends now.
    pub(super) fn gives_up_at(&self, now: Moment) -> Moment {
        self.global(self.local(now).saturating_add(self.timing().call_timeout()))
    }

    /// It begins a call that reaches the API server at `at`, unless it gives it up before.
    pub(super) fn sends(&mut self, at: Moment, now: Moment) {
        self.answered_at = Some(at.min(self.gives_up_at(now)));
        self.with_ours(now, Rival::turn);
    }

    /// It is told to end its term cleanly. `cut`: its write under way is not answered in time.
    pub(super) fn stop(&mut self, server: &mut Server, cut: bool, now: Moment) {
        let local = self.local(now);
        match &mut self.elector {
            Elector::Ours(rival) => {
                // A write that was not answered in the term is not answered at all.
                rival.write_ends(!cut && rival.leads(local), local);
                rival.order(Intent::Leave, local);
            }
            Elector::Go(go) => go.releases(server, local),
        }
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.ours().is_some_and(|rival| rival.has_stopped)
    }

    pub(super) fn contends_again(&mut self, now: Moment) {
        self.with_ours(now, |rival, local| rival.order(Intent::Contend, local));
        self.back_at = None;
    }

    /// Another process begins in its place, with its name.
    pub(super) fn restart(&mut self, server: &mut Server, now: Moment) {
        let local = self.local(now);
        self.life += 1;
        (self.frozen_until, self.answered_at, self.silence) = (None, None, None);
        (self.hung, self.back_at) = (0, None);
        match &mut self.elector {
            Elector::Ours(rival) => rival.restart(server, local),
            Elector::Go(go) => go.restart(local),
        }
    }
}

impl Rival {
    /// Its last write is answered, while it still may be.
    fn finishes_a_write(&self, local: Moment) -> bool {
        self.is_closing() && self.writing && self.leads(local)
    }
}
