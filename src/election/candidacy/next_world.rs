//! A candidate and its API server, moved by random steps.

use super::{Candidacy, Inputs, Next, Task, examples::at};
use crate::{
    election::{
        hooks::LeaseCall,
        preemption::{HANDOVER, Priority},
    },
    leadership::Moment,
    lease::{ErrLockKind, Identity, LeaseRecord, LeaseTiming},
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const NEVER: Moment = Moment::from_nanos(0);

/// `record` after another candidate has preempted it.
pub(super) fn preempted(record: &LeaseRecord, version: u64) -> LeaseRecord {
    let mut object = record.clone().into_json();
    let from = record.transitions();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    object["metadata"]["annotations"] = json!({ HANDOVER: format!("from {from} to {}", from + 1) });
    object["spec"]["holderIdentity"] = "other".into();
    object["spec"]["leaseTransitions"] = (from + 1).into();
    LeaseRecord::from_json(object).unwrap()
}

/// A random step: what, how much, how long.
pub(super) type Step = (u8, u8, u16);

/// A candidate and its API server.
pub(super) struct World {
    pub(super) candidacy: Candidacy,
    pub(super) lease: Option<LeaseRecord>,
    pub(super) version: u64,
    pub(super) uid: u64,
    pub(super) now: Moment,
    pub(super) task: Task,
    /// The end of the candidate's leadership.
    pub(super) deadline: Option<Moment>,
    pub(super) settles_at: Moment,
    pub(super) clock: u64,
    /// Whether something must agree before the gate opens.
    pub(super) asks: bool,
    /// Whether it has agreed in this term.
    pub(super) agreed: bool,
    /// A claim that has not arrived yet.
    pub(super) under_way: Option<LeaseRecord>,
}

impl World {
    pub(super) fn new(priority: bool, asks: bool) -> Self {
        let priority =
            priority.then(|| Priority::ranked("high", ["high", ""]).unwrap_or_else(|_| unreachable!()));
        let candidacy = Candidacy::new(Identity::new("me").unwrap(), LeaseTiming::fast(), priority);
        Self {
            candidacy: if asks { candidacy.asks_before_opening() } else { candidacy },
            asks,
            agreed: false,
            lease: None,
            version: 10,
            uid: 0,
            now: at(0),
            task: Task::Contend,
            deadline: None,
            settles_at: NEVER,
            clock: 0,
            under_way: None,
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.now < deadline)
    }

    pub(super) fn inputs(&self) -> Inputs {
        Inputs { now: self.now, task: self.task, leads: self.leads(), settles_at: self.settles_at }
    }

    pub(super) fn tick(&mut self) -> String {
        self.clock += 1;
        self.clock.to_string()
    }

    /// Writes `object` as the API server.
    pub(super) fn put(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(LeaseRecord::from_json(object).unwrap());
    }

    pub(super) fn stranger(&mut self, holder: &str) {
        let transitions = self.lease.as_ref().map_or(0, |lease| lease.transitions() + 1);
        self.uid += u64::from(self.lease.is_none());
        let time = self.tick();
        self.put(json!({ "metadata": { "uid": self.uid.to_string() },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions,
                      "acquireTime": time, "renewTime": time } }));
    }

    /// Acts on news as the elector does.
    pub(super) fn act(&mut self) {
        if !self.candidacy.is_current() || !self.candidacy.own.is_open() {
            self.deadline = None;
        }
    }

    pub(super) fn hear(&mut self) {
        match self.lease.clone() {
            Some(lease) => {
                self.candidacy.contact.watch_tells(&lease, self.now);
                self.candidacy.observe(lease, self.now);
            }
            None => {
                self.candidacy.observe_absence(None, self.now);
            }
        }
        self.act();
    }

    pub(super) fn read(&mut self) {
        let before = self.candidacy.version().map(str::to_owned);
        self.candidacy.contact.begin(self.now);
        self.candidacy.observe_read(self.lease.clone(), before.as_deref(), self.now);
        self.candidacy.contact.recover(LeaseCall::Read, self.now);
        self.act();
    }

    pub(super) fn fail(&mut self, kind: ErrLockKind) {
        let leads = self.leads();
        self.candidacy.contact.fail(kind, leads, self.now);
        if let Task::GiveUp { failed } = &mut self.task {
            *failed += 1;
        }
    }

    pub(super) fn next(&self) -> Next {
        let next = self.candidacy.next(&self.inputs());
        if let Next::Wait(until) = next {
            assert!(until > self.now, "the wait has ended already: {:?} {:?}", self.inputs(), self.candidacy);
        }
        next
    }

    /// Decides, acts and waits as the elector does.
    pub(super) fn go_on(&mut self, fate: u8) {
        if fate > 1 && self.candidacy.awaits_opening() {
            self.candidacy.opening.agree();
            self.agreed = true;
        }
        match self.next() {
            Next::Call(call) => self.call(call, fate),
            Next::Wait(until) => self.now = until,
            Next::GivenUp(_) => {
                self.task = Task::StayAway;
                self.deadline = None;
            }
        }
    }

    pub(super) fn step(&mut self, (what, fate, time): Step) {
        let time = Duration::from_millis(u64::from(time));
        match what % 12 {
            0 => self.stranger("other"),
            1 => self.stranger(""),
            2 => self.lease = None,
            3 => self.hear(),
            4 => self.candidacy.contact.watch_begins(self.now),
            5 => self.candidacy.contact.watch_ends(self.now),
            6 => self.now = self.now.saturating_add(time),
            7 => {
                let tasks = [Task::Contend, Task::Hold, Task::GiveUp { failed: 0 }, Task::StayAway];
                self.task = tasks[usize::from(fate) % tasks.len()];
            }
            8 if self.leads() => self.settles_at = self.now.saturating_add(Duration::from_secs(5)),
            9 => {
                if let Some(lease) = self.lease.clone().filter(|lease| lease.holder() == Some("me")) {
                    self.put(preempted(&lease, 0).into_json());
                }
            }
            10 => {
                // The watch repeats an old event.
                if let Some(old) = self.under_way.clone() {
                    self.candidacy.observe(old, self.now);
                    self.act();
                }
            }
            11 => self.under_way.clone_from(&self.lease),
            _ => {}
        }
        if !self.leads() {
            self.deadline = None;
        }
        self.go_on(fate);
    }

    /// Shows the candidate an old event. Returns whether there was one.
    pub(super) fn step_old(&mut self) -> bool {
        let old = self.under_way.take();
        let told = old.is_some();
        if let Some(old) =
            old.filter(|old| old.version() < self.candidacy.record().and_then(LeaseRecord::version))
        {
            self.candidacy.observe(old, self.now);
        }
        told
    }
}
