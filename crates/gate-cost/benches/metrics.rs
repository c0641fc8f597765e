//! What counting adds to an admitted write under the recorder of Prometheus, beside a gate that counts nothing. On one
//! thread, and on two at once. `cargo bench --package gate-cost --bench metrics`.
//!
//! The summary at the end comes from rounds in which all take turns. On two cores of a shared virtual machine:
//!
//! | | one thread | two threads at once |
//! | --- | --- | --- |
//! | a write that is not counted | 411 ns | 412 ns |
//! | counting adds | 614 ns | 625 ns |

use criterion::{BenchmarkId, Criterion};
use http::{Request, Response};
use kube_leader_gate::{Election, Identity, WriteGateLayer, testing::ApiServer};
use metrics_exporter_prometheus::PrometheusBuilder;
use std::{
    error::Error,
    future::{Ready, ready},
    hint::black_box,
    pin::pin,
    sync::Barrier,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;
use tower::{Layer, Service};

type BoxError = Box<dyn Error + Send + Sync>;

/// Resources that a controller writes in turn.
const RESOURCES: [&str; 3] = [
    "/api/v1/namespaces/default/configmaps",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/example.com/v1/namespaces/default/greetings",
];

/// The service behind the gate: it answers at once.
struct Bare;

impl Service<Request<()>> for Bare {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Ready<Result<Response<()>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(())))
    }
}

/// The time of so many writes through a gate of this layer, one after the other.
fn write(layer: &WriteGateLayer, writes: u64, start: &Barrier) -> Duration {
    let mut gate = layer.layer(Bare);
    let requests = RESOURCES.map(|path| Request::post(path).body(()).expect("a request"));
    let mut cx = Context::from_waker(Waker::noop());
    start.wait();
    let began = Instant::now();
    for request in requests.iter().cycle().take(usize::try_from(writes).expect("a count")) {
        assert!(gate.poll_ready(&mut cx).is_ready());
        assert!(matches!(pin!(gate.call(request.clone())).poll(&mut cx), Poll::Ready(Ok(_))));
    }
    began.elapsed()
}

/// The time in which each of so many threads writes so often, the mean over the threads.
fn at_once(layer: &WriteGateLayer, threads: u32, writes: u64) -> Duration {
    let start = Barrier::new(usize::try_from(threads).expect("a count"));
    thread::scope(|scope| {
        let writing: Vec<_> = (0..threads).map(|_| scope.spawn(|| write(layer, writes, &start))).collect();
        let took: Duration = writing.into_iter().map(|thread| thread.join().expect("it writes")).sum();
        took / threads
    })
}

/// Medians over rounds in which all take turns, so that a noisy machine disturbs all alike.
fn summary(layers: &[(&str, &WriteGateLayer)]) {
    const ROUNDS: usize = 1001;
    const WRITES: u32 = 256;
    for threads in [1, 2] {
        let mut took = vec![Vec::with_capacity(ROUNDS); layers.len()];
        for _ in 0..ROUNDS {
            for ((_, layer), took) in layers.iter().zip(&mut took) {
                took.push(at_once(layer, threads, WRITES.into()) / WRITES);
            }
        }
        for ((name, _), took) in layers.iter().zip(&mut took) {
            took.sort_unstable();
            println!(
                "{threads} threads, {name:<10} {:?} (lowest tenth: {:?})",
                took[ROUNDS / 2],
                took[ROUNDS / 10]
            );
        }
    }
}

fn main() -> Result<(), BoxError> {
    PrometheusBuilder::new().install_recorder()?;
    let runtime = Runtime::new()?;
    let entered = runtime.enter();
    let server = ApiServer::new();
    let endpoint = runtime.block_on(server.serve())?;
    let config = endpoint.config("replica-a");
    let builder = |name| {
        Ok::<_, BoxError>(Election::builder("my-namespace", name).identity(Identity::new("replica-a")?))
    };
    let elections = [builder("uncounted")?.build(&config)?, builder("counted")?.metrics().build(&config)?];
    let [uncounted, counted] = elections.each_ref().map(Election::layer);
    let running = elections.map(Election::start);
    for running in &running {
        runtime.block_on(running.candidate().elected());
    }
    drop(entered);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("metrics");
    let layers = [("none", &uncounted), ("counted", &counted)];
    for threads in [1, 2] {
        for (name, layer) in layers {
            let id = BenchmarkId::new(name, format!("{threads} threads"));
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|writes| at_once(layer, threads, writes));
            });
        }
    }
    group.finish();
    criterion.final_summary();
    // A test run is not optimised: its figures would say nothing.
    if std::env::args().any(|argument| argument == "--bench") {
        summary(&layers);
    }
    for running in running {
        runtime.block_on(running.stop());
    }
    Ok(())
}
