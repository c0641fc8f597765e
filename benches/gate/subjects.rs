//! What is measured: a request, and the service that it goes through.

use crate::services::{Bare, Body, NoOp, call_only, send};
use http::{Request, header};
use kube_leader_gate::{
    WriteGateLayer,
    leadership::{Grant, Grantor, Term},
    refusal::RefusalLayer,
    server_time::ServerTimeLayer,
};
use std::{
    hint::black_box,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tower::Layer;

/// How many requests are sent at a time.
pub(crate) const BATCH: usize = 64;

/// Reads as controllers send them.
const READS: [&str; 16] = [
    "/api/v1/namespaces/shop/configmaps/web-settings",
    "/api/v1/namespaces/shop/pods/web-7f6d9c5b8-x2k4q",
    "/api/v1/namespaces/shop/secrets?limit=500&resourceVersion=0",
    "/api/v1/nodes?watch=true&resourceVersion=81723&allowWatchBookmarks=true",
    "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-3",
    "/api/v1/namespaces/shop/pods/web-7f6d9c5b8-x2k4q/log?follow=true",
    "/apis/apps/v1/deployments?limit=500&labelSelector=app%3Dweb",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "/apis/apps/v1/namespaces/shop/replicasets/web-7f6d9c5b8",
    "/apis/batch/v1/namespaces/env-de13d0a01/cronjobs",
    "/apis/cluster.x-k8s.io/v1beta1/namespaces/prod-eu-1/machines",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/operator",
    "/apis/monitoring.coreos.com/v1/servicemonitors?watch=true&resourceVersion=12345",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
    "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/web.example.com",
    "/version",
];

/// With the headers that a client sets.
fn with_headers(request: http::request::Builder) -> Request<Body> {
    request
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, "Bearer token")
        .body(Vec::new())
        .expect("a request")
}

fn read() -> Request<Body> {
    with_headers(Request::get("/apis/apps/v1/namespaces/default/deployments/web"))
}

/// One after the other of those.
fn reads() -> Request<Body> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    with_headers(Request::get(READS[NEXT.fetch_add(1, Ordering::Relaxed) % READS.len()]))
}

/// As an autoscaler asks for it: not spelled like a resource.
fn metric() -> Request<Body> {
    with_headers(Request::get("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/s0-rabbitmq-queueName"))
}

pub(crate) fn write() -> Request<Body> {
    with_headers(Request::post("/api/v1/namespaces/default/configmaps"))
}

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
    let (gate_layer, limit) =
        (WriteGateLayer::new(leader.0.leadership()), ServerTimeLayer::new(leader.0.leadership()));
    let refusals = RefusalLayer::new("operator.default.leader-gate");
    let mut limited = limit.layer(Bare);
    let mut recognising = refusals.layer(Bare);
    let mut limiting = gate_layer.layer(limit.layer(Bare));
    let mut fencing = refusals.layer(gate_layer.layer(Bare));
    let mut both = refusals.layer(gate_layer.layer(limit.layer(Bare)));
    let mut reading_all = refusals.layer(gate_layer.layer(limit.layer(Bare)));
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
        Subject::new("read, all three layers", read, move |request| send(&mut reading_all, request)),
        Subject::new("write, server time alone", write, move |request| send(&mut limited, request)),
        Subject::new("write, refusals alone", write, move |request| send(&mut recognising, request)),
        Subject::new("write, gate, server time", write, move |request| send(&mut limiting, request)),
        Subject::new("write, gate, refusals", write, move |request| send(&mut fencing, request)),
        Subject::new("write, all three layers", write, move |request| send(&mut both, request)),
        Subject::new("write, gate, rejected", write, move |request| {
            black_box(&follower);
            send(&mut rejecting, request);
        }),
        Subject::new("write, gate, rejected, before boxing", write, move |request| {
            call_only(&mut calling, request);
        }),
    ]
}
