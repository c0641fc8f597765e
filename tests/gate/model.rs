//! The leadership word beside the simplest model that could be right.

use crate::support::stage;
use kube_leader_gate::leadership::{Grant, Loss, Moment, Term, WritePermit};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
enum Step {
    Grant(u64),
    Extend(u64),
    Pass(u64),
    Revoke,
    Close,
    DropGrant,
    Admit,
    Finish,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..20_u64).prop_map(Step::Grant),
        3 => (0..20_u64).prop_map(Step::Extend),
        3 => (0..8_u64).prop_map(Step::Pass),
        1 => Just(Step::Revoke),
        1 => Just(Step::Close),
        1 => Just(Step::DropGrant),
        4 => Just(Step::Admit),
        2 => Just(Step::Finish),
    ]
}

/// The rules in the simplest form. Time is in seconds.
#[derive(Default)]
struct Model {
    now: u64,
    term: u64,
    deadline: Option<u64>,
    closing: bool,
    /// The terms of the admitted writes.
    writes: Vec<u64>,
}

impl Model {
    fn leads(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.now < deadline)
    }

    fn admits(&self) -> bool {
        self.leads() && !self.closing
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s1_s2_s4_s10_random_steps_agree_with_model(steps in prop::collection::vec(step(), 1..60)) {
        let (grantor, leadership, clock) = stage();
        let origin = leadership.now();
        let at = |seconds: u64| -> Moment { origin.saturating_add(Duration::from_secs(seconds)) };
        let mut model = Model::default();
        let mut grant: Option<Grant> = None;
        let mut writes: Vec<WritePermit> = Vec::new();
        for step in steps {
            match step {
                Step::Grant(length) => {
                    let until = model.now + length;
                    let given = grantor.grant(Term::new("uid", model.term + 1), at(until));
                    prop_assert_eq!(given.is_ok(), length > 0);
                    if let Ok(given) = given {
                        // The earlier grant is dropped only now, and must not end this one.
                        grant = Some(given);
                        model = Model { term: model.term + 1, deadline: Some(until), closing: false, ..model };
                    }
                }
                Step::Extend(length) => {
                    let until = model.now + length;
                    let extended = grant.as_ref().is_some_and(|grant| grant.extend(at(until)).is_ok());
                    prop_assert_eq!(extended, model.leads());
                    if extended {
                        model.deadline = model.deadline.max(Some(until));
                    }
                }
                Step::Pass(seconds) => {
                    clock.advance(Duration::from_secs(seconds));
                    model.now += seconds;
                }
                Step::Revoke => {
                    grantor.revoke(Loss::Taken);
                    model.deadline = None;
                }
                Step::Close => {
                    grantor.close();
                    model.closing = true;
                }
                Step::DropGrant => {
                    grant = None;
                    model.deadline = None;
                }
                Step::Admit => {
                    let write = leadership.admit();
                    prop_assert_eq!(write.is_some(), model.admits());
                    if let Some(write) = write {
                        writes.push(write);
                        model.writes.push(model.term);
                    }
                }
                Step::Finish => {
                    writes.pop();
                    model.writes.pop();
                }
            }
            prop_assert_eq!(leadership.is_leader(), model.leads());
            prop_assert_eq!(leadership.can_write(), model.admits());
            prop_assert_eq!(leadership.term().is_some(), model.leads());
            prop_assert_eq!(leadership.writes_under_way(), model.writes.len());
            for (write, term) in writes.iter().zip(&model.writes) {
                prop_assert_eq!(write.is_valid(), model.leads() && *term == model.term);
            }
        }
    }
}
