//! Another elector, as client-go's: it polls, writes no annotation, keeps those that it finds, and leads by a flag.

use jiff::Timestamp;
use kube_leader_gate::{
    internal::{Call, Gate, LeaseCall, Next, claim},
    leadership::{Loss, Moment, Term},
    lease::{ErrLock, LeaseRecord, LeaseTiming, LeaseUpdate},
};
use std::time::Duration;

#[derive(Debug)]
pub struct Other {
    me: String,
    timing: LeaseTiming,
    seen: Option<LeaseRecord>,
    /// When it first saw this.
    since: Moment,
    leads: bool,
    /// When its last write that succeeded was sent.
    success: Moment,
    flight: Option<(Call, Moment)>,
    try_at: Moment,
    to_write: bool,
    /// When it was told to stop.
    pub stops: Option<Moment>,
    draws: fastrand::Rng,
}

impl Other {
    pub fn new(me: String, timing: LeaseTiming) -> Self {
        let (origin, draws) = (Moment::default(), fastrand::Rng::with_seed(7));
        Self {
            me,
            timing,
            seen: None,
            since: origin,
            leads: false,
            success: origin,
            flight: None,
            try_at: origin,
            to_write: false,
            stops: None,
            draws,
        }
    }

    fn is_valid(&self, now: Moment) -> bool {
        let lasts = self.seen.as_ref().map(|it| it.duration().unwrap_or_default());
        lasts.is_some_and(|lasts| now < self.since.saturating_add(lasts))
    }

    fn names_me(&self) -> bool {
        self.seen.as_ref().is_some_and(|it| it.holder() == Some(&self.me))
    }

    pub fn gate(&self, now: Moment) -> Gate {
        let deadline = self.success.saturating_add(self.timing.renew_deadline());
        if !self.leads || now >= deadline {
            Gate::Shut(Loss::Expired)
        } else if self.stops.is_some() {
            Gate::Closing { deadline }
        } else {
            Gate::Open { term: Term::new("", 0), deadline }
        }
    }

    pub fn poll(&mut self, now: Moment, wall: Timestamp) -> Next {
        self.leads = !matches!(self.gate(now), Gate::Shut(_));
        if self.flight.is_some() {
            return Next::Wait(now.saturating_add(self.timing.retry_period()));
        }
        let call = if let Some(at) = self.stops {
            if !self.leads {
                return Next::Done(Ok(()));
            }
            // Who releases has to have ended its work.
            let settled = at.saturating_add(self.timing.safety_margin());
            if now < settled {
                return Next::Wait(settled);
            }
            self.leads = false; // one try
            self.write(LeaseCall::Release, wall)
        } else if now < self.try_at {
            return Next::Wait(self.try_at);
        } else if self.to_write || self.names_me() && self.is_valid(now) {
            let goes_on = self.leads && self.names_me();
            self.write(if goes_on { LeaseCall::Renew } else { LeaseCall::Acquire }, wall)
        } else {
            Call { what: LeaseCall::Read, seen: None, update: None }
        };
        self.flight = Some((call.clone(), now));
        Next::Call(call)
    }

    fn write(&self, what: LeaseCall, wall: Timestamp) -> Call {
        let release = what == LeaseCall::Release;
        let before = self.seen.as_ref().map_or(0, LeaseRecord::transitions);
        let changes = self.seen.is_some() && !self.names_me();
        let time = wall.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let mut update: LeaseUpdate = claim();
        update.holder = if release { String::new() } else { self.me.clone() };
        update.duration_seconds = if release { 1 } else { self.timing.lease_duration().as_secs() };
        update.acquire_time = match &self.seen {
            Some(seen) if what == LeaseCall::Renew => seen.acquire_time().unwrap_or(&time).to_owned(),
            _ => time.clone(),
        };
        update.renew_time = time;
        update.transitions = before + u64::from(changes && !release);
        Call { what, seen: self.seen.clone(), update: Some(update) }
    }

    fn observe(&mut self, next: Option<LeaseRecord>, now: Moment) {
        let same = self.seen.as_ref().zip(next.as_ref()).is_some_and(|(one, two)| {
            let said = |it: &LeaseRecord| {
                (
                    it.holder().map(str::to_owned),
                    it.duration(),
                    it.renew_time().map(str::to_owned),
                    it.transitions(),
                )
            };
            said(one) == said(two)
        });
        if !same {
            self.since = now;
        }
        self.seen = next;
    }

    pub fn answered(&mut self, answer: Result<Option<LeaseRecord>, ErrLock>, now: Moment) {
        let Some((call, sent)) = self.flight.take() else { return };
        let was_fast = !std::mem::take(&mut self.to_write);
        let period = self.timing.retry_period();
        let jitter = if self.leads { Duration::ZERO } else { period.mul_f64(1.2 * self.draws.f64()) };
        self.try_at = now.saturating_add(period + jitter);
        match (call.what, answer) {
            (LeaseCall::Read, Ok(lease)) => {
                self.observe(lease, now);
                let is_held =
                    self.is_valid(now) && self.seen.as_ref().is_some_and(|it| it.holder().is_some());
                if self.names_me() || !is_held {
                    (self.to_write, self.try_at) = (true, now);
                }
            }
            (LeaseCall::Acquire | LeaseCall::Renew, Ok(stored)) => {
                self.observe(stored, now);
                (self.leads, self.success) = (true, sent);
            }
            // After an update of what it remembers it reads.
            (LeaseCall::Acquire | LeaseCall::Renew, Err(_)) if was_fast => {
                (self.since, self.try_at) = (Moment::default(), now);
            }
            _ => {}
        }
    }
}
