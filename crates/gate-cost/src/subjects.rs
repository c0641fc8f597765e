//! What is counted: requests of one kind through a gate, and beside it the same requests without one.

use gate_cost::{Bare, Body, metric, read, reads, send, write};
use http::Request;
use kube_leader_gate::{
    WriteGateLayer,
    leadership::{Clock, Grantor, Moment, Term},
    policy::{Policy, Rule},
    request::Verb,
};
use std::{hint::black_box, sync::Arc, time::Duration};
use tower_layer::Layer;

/// Sends so many requests.
pub(crate) type Run = fn(u32);

pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The subject that does the same without the gate.
    pub(crate) beside: &'static str,
    /// The most instructions that the gate may add to one of its requests.
    pub(crate) at_most: i64,
    pub(crate) run: Run,
}

/// As measured with Rust 1.95 on x86-64, and up to a tenth more: compilers differ. What a policy parses is kept for the observer.
pub(crate) const SUBJECTS: &[Subject] = &[
    Subject { name: "read", beside: "read-bare", at_most: 1_020, run: |n| followed(read, n) },
    Subject { name: "reads", beside: "reads-bare", at_most: 920, run: |n| followed(reads, n) },
    Subject { name: "metric", beside: "metric-bare", at_most: 1_375, run: |n| followed(metric, n) },
    Subject { name: "write-admitted", beside: "write-bare", at_most: 1_350, run: led },
    Subject { name: "write-exempted", beside: "write-bare", at_most: 1_120, run: exempted },
    Subject { name: "write-rejected", beside: "write-bare", at_most: 590, run: |n| followed(write, n) },
];

/// The same requests without a gate.
const OTHERS: &[(&str, Run)] = &[
    ("read-bare", |n| bare(read, n)),
    ("reads-bare", |n| bare(reads, n)),
    ("metric-bare", |n| bare(metric, n)),
    ("write-bare", |n| bare(write, n)),
];

/// What sends the requests of a subject, with or without the gate.
pub(crate) fn named(name: &str) -> Option<Run> {
    let gated = SUBJECTS.iter().map(|subject| (subject.name, subject.run));
    gated.chain(OTHERS.iter().copied()).find_map(|(its, run)| (its == name).then_some(run))
}

fn bare(request: fn() -> Request<Body>, requests: u32) {
    let mut service = Bare;
    (0..requests).for_each(|_| send(&mut service, request()));
}

fn followed(request: fn() -> Request<Body>, requests: u32) {
    let grantor = Grantor::with_clock(Arc::new(Standing));
    grantor.note_holder(Some("operator-0"));
    let mut gate = WriteGateLayer::new(grantor.leadership()).layer(Bare);
    (0..requests).for_each(|_| send(&mut gate, request()));
}

fn exempted(requests: u32) {
    let grantor = Grantor::with_clock(Arc::new(Standing));
    let policy = Policy::strict().allow(Rule::new("", "configmaps").verbs([Verb::Create]));
    let mut gate = WriteGateLayer::new(grantor.leadership()).with_policy(policy).layer(Bare);
    (0..requests).for_each(|_| send(&mut gate, write()));
}

fn led(requests: u32) {
    let grantor = Grantor::with_clock(Arc::new(Standing));
    let deadline = grantor.now().saturating_add(Duration::from_secs(3_600));
    let grant = grantor.grant(Term::new("uid", 1), deadline).expect("a deadline to come");
    let mut gate = WriteGateLayer::new(grantor.leadership()).layer(Bare);
    (0..requests).for_each(|_| send(&mut gate, write()));
    black_box(&grant);
}

/// A clock that stands still.
#[derive(Debug)]
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Moment {
        Moment::from_nanos(1)
    }
}
