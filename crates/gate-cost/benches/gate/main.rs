//! What the gate adds to a request: a read, an admitted write and a rejected write, beside the bare service and a
//! layer that does nothing. The same with what goes with it: the deadline of a request, and the recognition of a fence's
//! refusals outside of the gate. Then the same with several threads.
//!
//! Criterion measures each by itself. The summary at the end comes from rounds in which all take turns, so that a
//! noisy machine disturbs all alike: its figures are medians over the rounds, and a difference is the median of the
//! differences within a round.

mod rounds;
mod subjects;
mod threads;

use criterion::{BatchSize, Criterion, criterion_group};
use subjects::{BATCH, subjects};

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

criterion_group!(benches, each_by_itself);

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    benches();
    Criterion::default().configure_from_args().final_summary();
    // `cargo test` only checks that everything runs. Its build has no optimisation, so its figures would say nothing.
    if measured {
        rounds::summary(20_000);
        threads::summary(200);
    }
}
