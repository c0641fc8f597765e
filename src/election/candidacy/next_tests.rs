//! What comes next, example by example and by chance.

use super::{
    Call, Candidacy, Inputs, Next, Task,
    tests::{at, candidacy, held, written},
};
use crate::{
    election::preemption::{OwnTerm, Priority},
    leadership::{Moment, Term},
    lease::{HANDOVER, Identity, LeaseRecord, LeaseTiming, LockErrorKind},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

const NEVER: Moment = Moment::from_nanos(0);

fn follower(task: Task, now: u64) -> Inputs {
    Inputs { now: at(now), task, leads: false, renewed: NEVER, settles_at: NEVER }
}

/// `record` as it is when another candidate has preempted it.
fn preempted(record: &LeaseRecord, version: u64) -> LeaseRecord {
    let mut object = Value::Object(record.as_object().clone());
    let from = record.transitions();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    object["metadata"]["annotations"] = json!({ HANDOVER: format!("from {from} to {}", from + 1) });
    object["spec"]["holderIdentity"] = "other".into();
    object["spec"]["leaseTransitions"] = (from + 1).into();
    LeaseRecord::from_json(object).unwrap()
}

/// One that led at 0 s until its term lapsed with a write without an answer, and whose claim of 100 s lands unanswered.
fn lands_late() -> (Candidacy, LeaseRecord, Inputs) {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    let first = candidacy.acquisition(at(0), "first".into());
    candidacy.claim_is_settled();
    let first = written(2, &first);
    candidacy.observe(first.clone(), at(0));
    candidacy.opened(first.term());
    candidacy.contact.begin(at(100));
    let second = candidacy.acquisition(at(100), "second".into());
    let second = written(3, &second);
    let inputs = Inputs { renewed: at(0), settles_at: at(16), ..follower(Task::StayAway, 101) };
    (candidacy, second, inputs)
}

#[test]
fn what_lands_late_after_a_lapse_is_given_back() {
    let (mut candidacy, second, inputs) = lands_late();
    candidacy.observe(second, at(101));
    assert_eq!(candidacy.next(&inputs), Next::Call(Call::Release));
}

#[test]
fn what_lands_late_after_a_lapse_is_acknowledged() {
    let (mut candidacy, second, inputs) = lands_late();
    candidacy.observe(second.clone(), at(101));
    candidacy.observe(preempted(&second, 4), at(101));
    assert!(candidacy.own.owes_an_acknowledgement());
    for task in [Task::Contend, Task::StayAway, Task::GiveUp { failed: 0 }] {
        let inputs = Inputs { task, ..inputs };
        assert_eq!(candidacy.next(&inputs), Next::Call(Call::Acknowledge), "{task:?}");
    }
}

/// Its writes were cut off this very moment, and are still to be dropped.
#[test]
fn s4_a_preempted_candidate_that_stops_waits_for_its_last_write() {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    candidacy.claim_is_settled();
    let own = written(2, &claim);
    candidacy.observe(own.clone(), at(0));
    candidacy.opened(own.term());
    candidacy.observe(preempted(&own, 3), at(1));
    assert!(candidacy.own.is_draining());
    let inputs = Inputs { renewed: at(0), settles_at: at(6), ..follower(Task::GiveUp { failed: 0 }, 1) };
    assert_eq!(candidacy.next(&inputs), Next::Wait(at(6)));
    candidacy.own.drained();
    assert_eq!(candidacy.next(&Inputs { now: at(6), ..inputs }), Next::Call(Call::Acknowledge));
}

/// What the process before it had sent may still land.
#[test]
fn s4_a_lease_from_before_a_restart_is_not_given_up_at_once() {
    let mut candidacy = candidacy();
    let before = held(1, "me", 0);
    candidacy.observe(before.clone(), at(0));
    let claim = candidacy.acquisition(at(1), "now".into());
    candidacy.claim_is_settled();
    let own = before.with(&claim);
    let mut own = Value::Object(own.into_object());
    own["metadata"]["resourceVersion"] = "2".into();
    let own = LeaseRecord::from_json(own).unwrap();
    candidacy.observe(own.clone(), at(1));
    candidacy.opened(own.term());
    let inputs = Inputs { renewed: at(1), ..follower(Task::GiveUp { failed: 0 }, 1) };
    assert_eq!(candidacy.next(&inputs), Next::Wait(at(5)));
    assert_eq!(candidacy.next(&Inputs { now: at(5), ..inputs }), Next::Call(Call::Release));
    candidacy.observe(preempted(&own, 3), at(2));
    candidacy.own.drained();
    assert_eq!(candidacy.next(&Inputs { now: at(2), ..inputs }), Next::Wait(at(5)));
}

/// It can land on the version that it swaps, and on no other.
#[test]
fn a_claim_that_can_land_no_more_holds_up_no_stop() {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    candidacy.acquisition(at(0), "now".into());
    let inputs = follower(Task::GiveUp { failed: 0 }, 1);
    assert!(matches!(candidacy.next(&inputs), Next::GivenUp(Err(_))));
    candidacy.observe(held(2, "other", 0), at(1));
    assert_eq!(candidacy.next(&inputs), Next::GivenUp(Ok(())));
}

/// Rule S5: the version that a renewal swaps is known to be old.
#[test]
fn s5_after_a_conflict_it_reads_before_it_renews() {
    let mut candidacy = candidacy();
    candidacy.observe(held(1, "", 0), at(0));
    let claim = candidacy.acquisition(at(0), "now".into());
    let own = written(2, &claim);
    candidacy.observe(own.clone(), at(0));
    candidacy.opened(own.term());
    let inputs = Inputs { leads: true, renewed: at(0), ..follower(Task::Contend, 3) };
    assert_eq!(candidacy.next(&inputs), Next::Call(Call::Renew));
    candidacy.contact.fail(LockErrorKind::Conflict, true, at(3));
    assert_eq!(candidacy.next(&inputs), Next::Call(Call::Read));
}

/// A step of chance: what, by how much, how long.
type Step = (u8, u8, u16);

/// A candidate and the API server that it talks to.
struct World {
    candidacy: Candidacy,
    lease: Option<LeaseRecord>,
    version: u64,
    uid: u64,
    now: Moment,
    task: Task,
    /// Until when it leads.
    deadline: Option<Moment>,
    renewed: Moment,
    settles_at: Moment,
    clock: u64,
    /// A claim that is still on its way.
    under_way: Option<LeaseRecord>,
}

impl World {
    fn new(priority: bool) -> Self {
        let priority =
            priority.then(|| Priority::ranked("high", ["high", ""]).unwrap_or_else(|_| unreachable!()));
        Self {
            candidacy: Candidacy::new(Identity::new("me").unwrap(), LeaseTiming::fast(), priority),
            lease: None,
            version: 10,
            uid: 0,
            now: at(0),
            task: Task::Contend,
            deadline: None,
            renewed: NEVER,
            settles_at: NEVER,
            clock: 0,
            under_way: None,
        }
    }

    fn leads(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.now < deadline)
    }

    fn inputs(&self) -> Inputs {
        Inputs {
            now: self.now,
            task: self.task,
            leads: self.leads(),
            renewed: self.renewed,
            settles_at: self.settles_at,
        }
    }

    fn tick(&mut self) -> String {
        self.clock += 1;
        self.clock.to_string()
    }

    /// The API server writes this.
    fn put(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(LeaseRecord::from_json(object).unwrap());
    }

    fn stranger(&mut self, holder: &str) {
        let transitions = self.lease.as_ref().map_or(0, |lease| lease.transitions() + 1);
        self.uid += u64::from(self.lease.is_none());
        let time = self.tick();
        self.put(json!({ "metadata": { "uid": self.uid.to_string() },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions,
                      "acquireTime": time, "renewTime": time } }));
    }

    /// What the elector does with news.
    fn act(&mut self) {
        if !self.candidacy.is_current() || !self.candidacy.own.is_open() {
            self.deadline = None;
        }
    }

    fn hear(&mut self) {
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

    fn read(&mut self) {
        let before = self.candidacy.version().map(str::to_owned);
        self.candidacy.contact.begin(self.now);
        self.candidacy.observe_read(self.lease.clone(), before.as_deref(), self.now);
        self.candidacy.contact.recover(self.now);
        self.act();
    }

    fn fail(&mut self, kind: LockErrorKind) {
        let leads = self.leads();
        self.candidacy.contact.fail(kind, leads, self.now);
        if let Task::GiveUp { failed } = &mut self.task {
            *failed += 1;
        }
    }

    /// Swaps the lease if it is what the candidate has seen.
    fn swap(&mut self, claim: &crate::lease::Claim) -> bool {
        self.candidacy.contact.begin(self.now);
        let seen = self.candidacy.record().cloned();
        if seen.as_ref().map(LeaseRecord::resource_version)
            != self.lease.as_ref().map(LeaseRecord::resource_version)
        {
            self.fail(LockErrorKind::Conflict);
            return false;
        }
        let object = match seen {
            Some(seen) => Value::Object(seen.with(claim).as_object().clone()),
            None => {
                self.uid += 1;
                let mut object = claim.new_lease("default", "operator");
                object["metadata"]["uid"] = self.uid.to_string().into();
                object
            }
        };
        self.put(object);
        true
    }

    fn call(&mut self, call: Call, fate: u8) {
        let now = self.now;
        if fate == 0 {
            // Nothing arrives.
            self.candidacy.contact.begin(now);
            return self.fail(LockErrorKind::Unreachable);
        }
        let lost = fate == 1;
        match call {
            Call::Read => self.read(),
            Call::Acquire => {
                assert_eq!(self.task, Task::Contend, "nothing is acquired but to contend");
                self.read();
                if self.candidacy.may_take(now).is_none() {
                    return;
                }
                let time = self.tick();
                let claim = self.candidacy.acquisition(now, time);
                if !self.swap(&claim) {
                    return;
                }
                if lost {
                    return self.fail(LockErrorKind::Unreachable);
                }
                self.candidacy.claim_is_settled();
                self.answered(now, self.candidacy.holds_back_until(now).is_some());
            }
            Call::Renew => {
                let held_back = !self.leads() && self.candidacy.holds_back_until(now).is_some();
                let time = self.tick();
                let claim = self.candidacy.renewal(now, time);
                if !self.swap(&claim) {
                    return;
                }
                if lost {
                    return self.fail(LockErrorKind::Unreachable);
                }
                self.answered(now, held_back);
            }
            Call::Acknowledge => {
                assert!(now >= self.settles_at, "acknowledged before the writes ended");
                let Some(claim) = self.candidacy.record().and_then(LeaseRecord::acknowledgement) else {
                    self.candidacy.own = OwnTerm::None;
                    return;
                };
                if self.swap(&claim) {
                    self.hear();
                }
            }
            Call::Release => {
                assert!(now >= self.settles_at, "released before the writes ended");
                assert!(self.candidacy.is_mine(), "released what is not its own");
                let time = self.tick();
                let claim = self.candidacy.release(time);
                let own = self.lease.as_ref().is_some_and(|lease| lease.holder() == Some("me"));
                if self.swap(&claim) {
                    assert!(own, "released somebody else's lease");
                    self.deadline = None;
                    self.hear();
                }
            }
        }
    }

    fn answered(&mut self, sent: Moment, held_back: bool) {
        self.candidacy.observe(self.lease.clone().unwrap(), sent);
        self.candidacy.contact.recover(sent);
        self.act();
        if !self.candidacy.is_current() {
            return;
        }
        let held_back = held_back || self.candidacy.holds_back_until(sent).is_some();
        self.renewed = sent;
        if self.leads() || !held_back && self.task == Task::Contend {
            let was = self.leads();
            self.deadline = Some(sent.saturating_add(Duration::from_secs(10)));
            if !was {
                let term: Term = self.lease.as_ref().unwrap().term();
                self.candidacy.opened(term);
            }
        }
    }

    fn next(&self) -> Next {
        let next = self.candidacy.next(&self.inputs());
        if let Next::Wait(until) = next {
            assert!(until > self.now, "a wait that is over: {:?} {:?}", self.inputs(), self.candidacy);
        }
        next
    }

    /// As the elector does: what is next, and the time that it waits.
    fn go_on(&mut self, fate: u8) {
        match self.next() {
            Next::Call(call) => self.call(call, fate),
            Next::Wait(until) => self.now = until,
            Next::GivenUp(_) => {
                self.task = Task::StayAway;
                self.deadline = None;
            }
        }
    }

    fn step(&mut self, (what, fate, time): Step) {
        let time = Duration::from_millis(u64::from(time));
        match what % 12 {
            0 => self.stranger("other"),
            1 => self.stranger(""),
            2 => self.lease = None,
            3 => self.hear(),
            4 => self.candidacy.contact.watch_begins(self.now),
            5 => self.candidacy.contact.watch_ends(),
            6 => self.now = self.now.saturating_add(time),
            7 => {
                let tasks = [Task::Contend, Task::Hold, Task::GiveUp { failed: 0 }, Task::StayAway];
                self.task = tasks[usize::from(fate) % tasks.len()];
            }
            8 if self.leads() => self.settles_at = self.now.saturating_add(Duration::from_secs(5)),
            9 => {
                if let Some(lease) = self.lease.clone().filter(|lease| lease.holder() == Some("me")) {
                    self.put(Value::Object(preempted(&lease, 0).into_object()));
                }
            }
            10 => {
                // The watch tells once more what it has told.
                if let Some(old) = self.under_way.clone() {
                    self.candidacy.observe(old, self.now);
                    self.act();
                }
            }
            11 => self.under_way.clone_from(&self.lease),
            _ => {}
        }
        self.candidacy.own.drained();
        if !self.leads() {
            self.deadline = None;
        }
        self.go_on(fate);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// No wait is over when it begins, nothing is given up too early or that is somebody else's, nothing is acquired
    /// unasked; and where the API server answers, the candidate leads in the end or waits for a holder whose time runs.
    #[test]
    fn it_keeps_the_rules_and_gets_on(
        priority in any::<bool>(),
        steps in prop::collection::vec((any::<u8>(), 0_u8..6, 0_u16..20_000), 1..80),
    ) {
        let mut world = World::new(priority);
        for step in steps {
            world.step(step);
        }
        world.task = Task::Contend;
        world.hear();
        let begun = world.now;
        let mut calls = 0;
        // A term that the chance before has left without a renewal may still run out.
        while !world.leads() || world.renewed < begun {
            if matches!(world.next(), Next::Call(_)) {
                calls += 1;
            }
            world.go_on(2);
            prop_assert!(calls < 60, "{:?}", world.candidacy);
            prop_assert!(world.now <= begun.saturating_add(Duration::from_secs(120)), "{:?}", world.candidacy);
        }
        // What is answered is never lost.
        let term = world.lease.as_ref().map(LeaseRecord::term);
        let begun = world.now;
        calls = 0;
        while world.now < begun.saturating_add(Duration::from_secs(60)) {
            if matches!(world.next(), Next::Call(_)) {
                calls += 1;
            }
            world.go_on(2);
            if world.step_old() {
                calls += 1;
            }
            prop_assert!(world.leads(), "{:?}", world.candidacy);
            prop_assert!(calls < 100, "a flood of calls: {calls}");
        }
        prop_assert_eq!(world.lease.as_ref().map(LeaseRecord::term), term);
    }
}

impl World {
    /// The watch tells what is long known; returns whether there was something to tell.
    fn step_old(&mut self) -> bool {
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
