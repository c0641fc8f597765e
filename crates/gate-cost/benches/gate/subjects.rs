//! What is measured: a request, and the service that it goes through.

use gate_cost::{Bare, Body, NoOp, call_only, metric, read, reads, send, write};
use http::Request;
use kube_leader_gate::{
    Policy, WriteGateLayer,
    leadership::{Grant, Grantor, Term},
};
use kube_leader_gate_fence::{Fence, Writers};
use std::{hint::black_box, time::Duration};
use tower::Layer;

/// How many requests are sent at a time.
pub(crate) const BATCH: usize = 64;

type Run = dyn FnMut(&mut Vec<Request<Body>>);

pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) request: fn() -> Request<Body>,
    pub(crate) run: Box<Run>,
}

impl Subject {
    fn new(
        name: &'static str,
        request: fn() -> Request<Body>,
        mut one: impl FnMut(Request<Body>) + 'static,
    ) -> Self {
        let run = Box::new(move |requests: &mut Vec<Request<Body>>| requests.drain(..).for_each(&mut one));
        Self { name, request, run }
    }

    pub(crate) fn batch(&self) -> Vec<Request<Body>> {
        (0..BATCH).map(|_| (self.request)()).collect()
    }
}

pub(crate) fn leader() -> (Grantor, Grant) {
    let grantor = Grantor::new();
    let deadline = grantor.now().saturating_add(Duration::from_secs(100_000));
    let grant = grantor.grant(Term::new("uid", 1), deadline).expect("a deadline to come");
    (grantor, grant)
}

fn follower() -> Grantor {
    let grantor = Grantor::new();
    grantor.note_holder(Some("operator-0"));
    grantor
}

pub(crate) fn subjects() -> Vec<Subject> {
    let gate = |grantor: &Grantor| WriteGateLayer::new(grantor.leadership()).layer(Bare);
    let (mut bare, mut no_op, mut mixed_bare) = (Bare, NoOp(Bare), Bare);
    let (follower, leader) = (follower(), leader());
    let (mut reading, mut mixed, mut measuring) = (gate(&follower), gate(&follower), gate(&follower));
    let mut writing = gate(&leader.0);
    let gate_layer = WriteGateLayer::new(leader.0.leadership());
    let limiting_layer = gate_layer.clone().with_request_deadline(true);
    let lease = "default/operator".parse().expect("a name");
    let writers = Writers::users(["a"]).expect("a name");
    let refusals = Fence::new(&lease, &writers, &Policy::strict()).expect("a fence").refusals();
    let mut recognising = refusals.layer(Bare);
    let mut limiting = limiting_layer.layer(Bare);
    let mut fencing = refusals.layer(gate_layer.layer(Bare));
    let mut both = refusals.layer(limiting_layer.layer(Bare));
    let mut reading_all = refusals.layer(limiting_layer.layer(Bare));
    let (mut rejecting, mut calling) = (gate(&follower), gate(&follower));
    vec![
        Subject::new("read, bare", read, move |request| send(&mut bare, request)),
        Subject::new("read, no-op layer", read, move |request| send(&mut no_op, request)),
        Subject::new("read, gate", read, move |request| send(&mut reading, request)),
        Subject::new("reads, mixed, bare", reads, move |request| send(&mut mixed_bare, request)),
        Subject::new("reads, mixed, gate", reads, move |request| send(&mut mixed, request)),
        Subject::new("read, gate, metric", metric, move |request| send(&mut measuring, request)),
        Subject::new("write, bare", write, move |request| send(&mut Bare, request)),
        Subject::new("write, dropped at once", write, |request| drop(black_box(request))),
        Subject::new("write, no-op layer", write, move |request| send(&mut NoOp(Bare), request)),
        Subject::new("write, gate, admitted", write, move |request| {
            black_box(&leader);
            send(&mut writing, request);
        }),
        Subject::new("read, whole stack", read, move |request| send(&mut reading_all, request)),
        Subject::new("write, refusals alone", write, move |request| send(&mut recognising, request)),
        Subject::new("write, gate, deadline", write, move |request| send(&mut limiting, request)),
        Subject::new("write, gate, refusals", write, move |request| send(&mut fencing, request)),
        Subject::new("write, whole stack", write, move |request| send(&mut both, request)),
        Subject::new("write, gate, rejected", write, move |request| {
            black_box(&follower);
            send(&mut rejecting, request);
        }),
        Subject::new("write, gate, rejected, before boxing", write, move |request| {
            call_only(&mut calling, request);
        }),
    ]
}
