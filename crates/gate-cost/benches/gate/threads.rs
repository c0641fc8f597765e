//! Admitted writes from several threads at once. All of them count on one leadership. If there are fewer cores, a thread does
//! not count the time of others.

use crate::{rounds::median, subjects::leader};
use gate_cost::{Bare, Body, send, write};
use http::Request;
use kube_leader_gate::WriteGateLayer;
use rustix::time::{ClockId, clock_gettime};
use std::{sync::Barrier, thread};
use tower::{Layer, Service};

/// How many writes each thread sends in a round.
const EACH: u32 = 2_000;

/// Prints what the gate adds to a write, by the number of threads.
pub(crate) fn summary(rounds: usize) {
    let (grantor, _grant) = leader();
    let gate = WriteGateLayer::new(grantor.leadership()).layer(Bare);
    println!("what the gate adds to a write, with several threads on one leadership ({rounds} rounds):");
    for threads in [1, 2, 4] {
        // The two take turns.
        let round = |_| nanos(&gate, threads) - nanos(&Bare, threads);
        println!("  {threads} threads {:>29.1} ns", median((0..rounds).map(round).collect()));
    }
}

/// The processor time of one request on one thread, in nanoseconds.
fn nanos<S: Service<Request<Body>> + Clone + Send>(service: &S, threads: u32) -> f64 {
    let ready = &Barrier::new(threads as usize);
    thread::scope(|scope| {
        let mut running = Vec::new();
        for _ in 0..threads {
            let mut service = service.clone();
            running.push(scope.spawn(move || {
                let requests: Vec<_> = (0..EACH).map(|_| write()).collect();
                ready.wait();
                let begin = processor_time();
                for request in requests {
                    send(&mut service, request);
                }
                (processor_time() - begin) / f64::from(EACH)
            }));
        }
        running.into_iter().map(|it| it.join().expect("it ends")).sum::<f64>() / f64::from(threads)
    })
}

/// Of this thread, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "a bench runs no years")]
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
