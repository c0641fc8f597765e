//! What the gate adds to a request: a read, an admitted write and a rejected write, beside the bare service and a
//! layer that does nothing. The same for the two layers that go with it: bounded server time below the gate, and the
//! recognition of a fence's refusals outside of it.
//!
//! Criterion measures each by itself. The summary at the end comes from rounds in which all take turns, so that a
//! noisy machine disturbs all alike: its figures are medians over the rounds, and a difference is the median of the
//! differences within a round.

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group};
use http::{Request, Response, header};
use http_body_util::Full;
use kube_leader_gate::{
    WriteGateLayer,
    leadership::{Grant, Grantor, Term},
    refusal::RefusalLayer,
    server_time::ServerTimeLayer,
};
use pin_project_lite::pin_project;
use std::{
    error::Error,
    future::{Future, Ready, ready},
    hint::black_box,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};
use tower::{Layer, Service};

type BoxError = Box<dyn Error + Send + Sync>;
type Body = Vec<u8>;
type Answer = Response<Full<Bytes>>;

const BATCH: usize = 64;

/// The service behind the gate: it answers at once.
#[derive(Clone)]
struct Bare;

impl Service<Request<Body>> for Bare {
    type Response = Answer;
    type Error = BoxError;
    type Future = Ready<Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::default())))
    }
}

/// A layer that does nothing.
struct NoOp<S>(S);

pin_project! {
    struct NoOpFuture<F> {
        #[pin]
        inner: F,
    }
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for NoOp<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = NoOpFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        NoOpFuture { inner: self.0.call(request) }
    }
}

impl<F: Future> Future for NoOpFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inner.poll(cx)
    }
}

// --- what is measured ---

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

/// As an autoscaler asks for it: not spelled like a resource.
fn metric() -> Request<Body> {
    with_headers(Request::get("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/s0-rabbitmq-queueName"))
}

fn write() -> Request<Body> {
    with_headers(Request::post("/api/v1/namespaces/default/configmaps"))
}

/// The whole call: readiness, call, poll, and the drop of the response or the error.
fn send<S: Service<Request<Body>>>(service: &mut S, request: Request<Body>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let _ = black_box(pin!(service.call(request)).poll(&mut cx));
}

/// Without the poll, in which a rejection is boxed.
fn call_only<S: Service<Request<Body>>>(service: &mut S, request: Request<Body>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    black_box(&service.call(request));
}

type Run = dyn FnMut(&mut Vec<Request<Body>>);

struct Subject {
    name: &'static str,
    request: fn() -> Request<Body>,
    run: Box<Run>,
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

    fn batch(&self) -> Vec<Request<Body>> {
        (0..BATCH).map(|_| (self.request)()).collect()
    }
}

fn leader() -> (Grantor, Grant) {
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

fn subjects() -> Vec<Subject> {
    let gate = |grantor: &Grantor| WriteGateLayer::new(grantor.leadership()).layer(Bare);
    let (mut bare, mut no_op) = (Bare, NoOp(Bare));
    let (follower, leader) = (follower(), leader());
    let (mut reading, mut measuring) = (gate(&follower), gate(&follower));
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

fn each_by_itself(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gate");
    for mut subject in subjects() {
        group.bench_function(subject.name, |bencher| {
            let request = subject.request;
            let run = &mut subject.run;
            bencher.iter_batched_ref(
                || vec![request()],
                |one| run(one),
                BatchSize::NumIterations(BATCH as u64),
            );
        });
    }
    group.finish();
}

// --- the summary ---

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds per request: for each subject, one figure per round.
fn taking_turns(subjects: &mut [Subject], rounds: usize) -> Vec<Vec<f64>> {
    let mut figures = vec![Vec::with_capacity(rounds); subjects.len()];
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            let index = (round + turn) % subjects.len();
            let mut requests = subjects[index].batch();
            let begin = Instant::now();
            (subjects[index].run)(&mut requests);
            let nanos = u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX);
            figures[index].push(f64::from(nanos) / f64::from(u32::try_from(BATCH).expect("small")));
        }
    }
    figures
}

fn summary(rounds: usize) {
    let mut subjects = subjects();
    taking_turns(&mut subjects, rounds.div_ceil(10));
    let figures = taking_turns(&mut subjects, rounds);
    let figure = |name: &str| {
        let index = subjects.iter().position(|subject| subject.name == name).expect("a subject");
        &figures[index]
    };
    println!("\nmedian of {rounds} rounds in which all take turns, {BATCH} requests each:");
    for (subject, figures) in subjects.iter().zip(&figures) {
        println!("  {:<38} {:>7.1} ns", subject.name, median(figures.clone()));
    }
    println!("what is added to the bare service:");
    for (name, bare, aim) in [
        ("read, no-op layer", "read, bare", None),
        ("read, gate", "read, bare", Some(20)),
        ("read, gate, metric", "read, bare", None),
        ("write, no-op layer", "write, bare", None),
        ("write, gate, admitted", "write, bare", Some(100)),
        ("read, all three layers", "read, bare", None),
        ("write, server time alone", "write, bare", None),
        ("write, refusals alone", "write, bare", None),
        ("write, gate, server time", "write, bare", None),
        ("write, gate, refusals", "write, bare", None),
        ("write, all three layers", "write, bare", None),
    ] {
        let added = figure(name).iter().zip(figure(bare)).map(|(with, without)| with - without).collect();
        let ratio = figure(name).iter().zip(figure(bare)).map(|(with, without)| with / without).collect();
        let aim = aim.map(|aim| format!(", aim: {aim} ns")).unwrap_or_default();
        println!("  {name:<38} {:>7.1} ns ({:.2} times{aim})", median(added), median(ratio));
    }
    let refused = figure("write, gate, rejected, before boxing");
    let dropped = figure("write, dropped at once");
    let rejection = refused.iter().zip(dropped).map(|(refused, dropped)| refused - dropped).collect();
    println!("what a rejection costs, boxing and the end of the request apart:");
    println!("  {:<38} {:>7.1} ns (aim: 60 ns)", "write, gate, rejected", median(rejection));
}

criterion_group!(benches, each_by_itself);

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    benches();
    Criterion::default().configure_from_args().final_summary();
    // `cargo test` only checks that everything runs. Its build has no optimisation, so its figures would say nothing.
    if measured {
        summary(20_000);
    }
}
