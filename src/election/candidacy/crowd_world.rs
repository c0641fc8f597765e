//! A crowd of candidates on one lease, moved on by events in time. It counts what they ask of the API server.

use super::{Candidacy, Decision, Inputs, Next, Task, examples::at, rivals_server::Server};
use crate::{
    election::hooks::LeaseCall,
    leadership::Moment,
    lease::{Claim, ErrLockKind, Identity, LeaseEvent, LeaseRecord, LeaseTiming},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

/// How long a request takes on its way, in each direction.
const WAY: Duration = Duration::from_micros(700);
/// For how long a request keeps the API server busy.
const SERVING: Duration = Duration::from_micros(200);
/// How long the API server needs to tell one candidate of a change. The order is random.
const TELLING: Duration = Duration::from_micros(50);

enum What {
    Turn,
    Hear(LeaseEvent),
    WatchBegins,
    Arrive,
    Answer(Result<Option<LeaseRecord>, ErrLockKind>),
}

struct Call {
    what: LeaseCall,
    sent: Moment,
    before: Option<String>,
    /// None for a read.
    swap: Option<(Option<LeaseRecord>, Claim)>,
}

struct Candidate {
    candidacy: Candidacy,
    task: Task,
    deadline: Option<Moment>,
    call: Option<Call>,
    alive: bool,
    told: Moment,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) reads: usize,
    pub(super) writes: usize,
    pub(super) refused: usize,
}

pub(super) struct Crowd {
    pub(super) now: Moment,
    pub(super) count: Count,
    pub(super) server: Server,
    candidates: Vec<Candidate>,
    events: BinaryHeap<Reverse<(Moment, u64, usize)>>,
    what: BTreeMap<u64, What>,
    number: u64,
    busy_until: Moment,
    random: fastrand::Rng,
}

impl Crowd {
    pub(super) fn new(seed: u64) -> Self {
        // The candidates draw from the generator of the thread.
        fastrand::seed(seed);
        Self {
            now: at(0),
            count: Count::default(),
            server: Server { version: 10, ..Server::default() },
            candidates: Vec::new(),
            events: BinaryHeap::new(),
            what: BTreeMap::new(),
            number: 0,
            busy_until: at(0),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Starts so many candidates within this time.
    pub(super) fn start(&mut self, candidates: usize, within: Duration) {
        for _ in 0..candidates {
            let who = self.candidates.len();
            let identity = Identity::new(format!("candidate-{who}")).unwrap();
            let candidacy = Candidacy::new(identity, LeaseTiming::fast(), None);
            let (task, told) = (Task::Contend, self.now);
            self.candidates.push(Candidate {
                candidacy,
                task,
                deadline: None,
                call: None,
                alive: true,
                told,
            });
            let begins = self.now.saturating_add(within.mul_f64(self.random.f64()));
            self.put(begins, who, What::Turn);
            self.put(begins.saturating_add(WAY * 2), who, What::WatchBegins);
        }
    }

    /// The candidate that leads, if there is one.
    pub(super) fn leader(&self) -> Option<usize> {
        let leads = |it: &Candidate| it.alive && it.deadline.is_some_and(|end| self.now < end);
        self.candidates.iter().position(leads)
    }

    /// The candidates that stand in the lease, in order.
    pub(super) fn standbys(&self) -> Vec<usize> {
        let text = self.server.lease.as_ref().and_then(|it| it.annotation(crate::election::crowd::STANDBYS));
        let names: Vec<String> =
            text.and_then(|text| serde_json::from_str(text.as_str()?).ok()).unwrap_or_default();
        names.iter().filter_map(|name| name.strip_prefix("candidate-")?.parse().ok()).collect()
    }

    /// Stops a candidate in order.
    pub(super) fn stop(&mut self, who: usize) {
        self.candidates[who].task = Task::GiveUp { failed: 0 };
        self.put(self.now, who, What::Turn);
    }

    pub(super) fn crash(&mut self, who: usize) {
        self.candidates[who].alive = false;
    }

    /// Another program changes the lease.
    pub(super) fn outsider(&mut self, change: impl FnOnce(&mut serde_json::Value)) {
        let mut object = self.server.lease.clone().unwrap().into_json();
        change(&mut object);
        self.server.put(object);
        self.tell();
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        self.run(until, |_| false);
        self.now = until;
    }

    /// Goes on until there is a leader other than `former`. Returns how long that took.
    pub(super) fn until_led(&mut self, former: Option<usize>, at_most: Duration) -> Duration {
        let begun = self.now;
        self.run(begun.saturating_add(at_most), |it| it.leader().is_some_and(|it| Some(it) != former));
        assert!(self.leader().is_some_and(|it| Some(it) != former), "no leader within {at_most:?}");
        self.now.saturating_since(begun)
    }

    pub(super) fn run(&mut self, until: Moment, done: impl Fn(&Self) -> bool) {
        while let Some(Reverse((when, number, who))) =
            self.events.peek().copied().filter(|it| it.0.0 <= until)
        {
            self.events.pop();
            self.now = when.max(self.now);
            let what = self.what.remove(&number).unwrap();
            if self.candidates[who].alive {
                self.happen(who, what);
            }
            if done(self) {
                return;
            }
        }
    }

    fn put(&mut self, when: Moment, who: usize, what: What) {
        self.number += 1;
        self.what.insert(self.number, what);
        self.events.push(Reverse((when, self.number, who)));
    }

    fn happen(&mut self, who: usize, what: What) {
        let now = self.now;
        match what {
            What::Turn => {}
            What::WatchBegins => {
                self.candidates[who].candidacy.contact.watch_begins(now);
                if let Some(lease) = self.server.lease.clone() {
                    self.put(now, who, What::Hear(LeaseEvent::Seen(lease)));
                }
            }
            What::Hear(event) => {
                let candidacy = &mut self.candidates[who].candidacy;
                match event {
                    LeaseEvent::Seen(record) => {
                        candidacy.contact.watch_tells(&record, now);
                        candidacy.observe(record, now);
                    }
                    LeaseEvent::Deleted(last) => {
                        candidacy.contact.watch_tells(&last, now);
                        candidacy.observe_absence(Some(&last), now);
                    }
                }
                self.candidates[who].act();
            }
            What::Arrive => return self.arrive(who),
            What::Answer(outcome) => self.answer(who, outcome),
        }
        self.turn(who);
    }

    fn turn(&mut self, who: usize) {
        let now = self.now;
        let candidate = &mut self.candidates[who];
        if candidate.call.is_some() {
            return;
        }
        candidate.deadline = candidate.deadline.filter(|deadline| now < *deadline);
        let (task, leads) = (candidate.task, candidate.deadline.is_some());
        match candidate.candidacy.next(&Inputs { now, task, leads, settles_at: Moment::from_nanos(0) }) {
            Next::Wait(until) => self.put(until, who, What::Turn),
            Next::Call(what) => self.begin(who, what),
            Next::GivenUp(_) => candidate.alive = false,
        }
    }

    fn begin(&mut self, who: usize, what: LeaseCall) {
        let time = self.now.as_nanos().to_string();
        let Candidate { candidacy, deadline, .. } = &mut self.candidates[who];
        let claim = match what {
            LeaseCall::Read | LeaseCall::Acquire => None,
            LeaseCall::Join => {
                candidacy.tries_to_join(self.now);
                None
            }
            LeaseCall::Leave => {
                candidacy.has_left();
                candidacy.leaving()
            }
            LeaseCall::Renew => Some(candidacy.renewal(self.now, time)),
            LeaseCall::Release => {
                *deadline = None;
                Some(candidacy.release(self.now, time))
            }
            LeaseCall::Acknowledge => unreachable!("nobody preempts"),
        };
        self.send(who, what, claim);
    }

    fn send(&mut self, who: usize, what: LeaseCall, claim: Option<Claim>) {
        let sent = self.now;
        let Candidate { candidacy, call, .. } = &mut self.candidates[who];
        let before = candidacy.version().map(str::to_owned);
        let swap = claim.map(|claim| (candidacy.record().cloned(), claim));
        candidacy.contact.begin(sent);
        *call = Some(Call { what, sent, before, swap });
        let way = WAY.mul_f64(0.5 + self.random.f64());
        self.busy_until = self.busy_until.max(sent.saturating_add(way)).saturating_add(SERVING);
        self.put(self.busy_until, who, What::Arrive);
    }

    fn arrive(&mut self, who: usize) {
        let outcome = match &self.candidates[who].call.as_ref().unwrap().swap {
            None => {
                self.count.reads += 1;
                Ok(self.server.lease.clone())
            }
            Some((seen, claim)) => {
                self.count.writes += 1;
                let outcome = self.server.write(seen.as_ref(), claim).map(Some);
                self.count.refused += usize::from(outcome.is_err());
                outcome
            }
        };
        let way = WAY.mul_f64(0.5 + self.random.f64());
        self.put(self.now.saturating_add(way), who, What::Answer(outcome.clone()));
        if self.candidates[who].call.as_ref().unwrap().swap.is_some() && outcome.is_ok() {
            self.tell();
        }
    }

    /// The watches show the lease, to each candidate in order.
    fn tell(&mut self) {
        let event = self.server.lease.clone().map(LeaseEvent::Seen).unwrap();
        let longest = TELLING.mul_f64(f64::from(u32::try_from(self.candidates.len()).unwrap()));
        for who in 0..self.candidates.len() {
            if self.candidates[who].alive && self.candidates[who].candidacy.contact.is_watching() {
                let lag = WAY + longest.mul_f64(self.random.f64());
                let when = self.now.saturating_add(lag).max(self.candidates[who].told);
                self.candidates[who].told = when;
                self.put(when, who, What::Hear(event.clone()));
            }
        }
    }

    fn answer(&mut self, who: usize, outcome: Result<Option<LeaseRecord>, ErrLockKind>) {
        let now = self.now;
        let candidate = &mut self.candidates[who];
        let call = candidate.call.take().unwrap();
        let candidacy = &mut candidate.candidacy;
        if outcome.is_ok() {
            candidacy.crowd.answered(now.saturating_since(call.sent));
        }
        match outcome {
            Ok(record) if call.swap.is_none() => {
                candidacy.observe_read(record, call.before.as_deref(), now);
                candidacy.contact.recover(LeaseCall::Read, now);
                candidate.act();
                let takes = candidate.candidacy.decide(now, false) == Decision::Take;
                let takes = takes && candidate.candidacy.turn() <= now;
                let contends = candidate.task == Task::Contend;
                let claim = match call.what {
                    LeaseCall::Acquire if takes && contends => {
                        Some(candidate.candidacy.acquisition(now, now.as_nanos().to_string()))
                    }
                    LeaseCall::Join if contends => candidate.candidacy.joining(now),
                    _ => None,
                };
                if let Some(claim) = claim {
                    self.send(who, call.what, Some(claim));
                }
            }
            Ok(record) => {
                if call.what == LeaseCall::Acquire {
                    candidacy.claim_is_settled();
                }
                candidacy.observe(record.unwrap(), now);
                candidacy.contact.recover(call.what, now);
                candidate.act();
                if matches!(call.what, LeaseCall::Acquire | LeaseCall::Renew) {
                    candidate.stands(call.sent);
                }
            }
            Err(_) if matches!(call.what, LeaseCall::Join | LeaseCall::Leave) => {}
            Err(ErrLockKind::Conflict) if call.what == LeaseCall::Acquire => {
                if candidacy.version() == call.before.as_deref() {
                    candidacy.contact.lose_a_race(now);
                }
            }
            Err(kind) => candidacy.contact.fail(kind, candidate.deadline.is_some(), now),
        }
    }
}

impl Candidate {
    fn act(&mut self) {
        if !self.candidacy.is_current() || !self.candidacy.own.is_open() {
            self.deadline = None;
        }
    }

    fn stands(&mut self, sent: Moment) {
        if !self.candidacy.is_current() {
            return;
        }
        self.candidacy.stood(sent);
        let term = self.candidacy.record().unwrap().term();
        if self.deadline.is_none() {
            self.candidacy.opened(term);
        }
        self.deadline = Some(sent.saturating_add(LeaseTiming::fast().renew_deadline()));
    }
}
