//! Candidates that preempt each other do so a bounded number of times, and stop when their priorities agree.

use crate::{
    support::priority::{ranked, with, write_every, writers},
    support::{FIRST, LEASE, build, builder, candidate, gated, lease_writes, pass, spec, within},
};
use kube_leader_gate::{
    LeaseTiming,
    election::Priority,
    testing::{ApiServer, Fault},
};
use std::time::Duration;
use tokio::task::JoinSet;

/// Two comparisons contradict each other. The number of preemptions is bounded, and the two never write at once.
#[tokio::test(start_paused = true)]
async fn two_candidates_with_contradicting_priorities_stop_flapping() {
    const HOURS: u64 = 3;
    let server = ApiServer::new();
    let a = with(&server, "a", Priority::new("a", |_| true).unwrap());
    let b = with(&server, "b", Priority::new("b", |_| true).unwrap());
    let mut writing = JoinSet::new();
    write_every(&mut writing, gated(&server, &a, "a"), 4_999);
    write_every(&mut writing, gated(&server, &b, "b"), 5_003);
    let (a, b) = (a.start(), b.start());
    pass(Duration::from_secs(600)).await;
    let early = spec(&server)["leaseTransitions"].as_u64().unwrap();
    assert!((4..=14).contains(&early), "{early} transitions in the first 10 min");
    pass(Duration::from_secs(HOURS * 3600 - 600)).await;
    let all = spec(&server)["leaseTransitions"].as_u64().unwrap();
    assert!(all <= 24, "{all} transitions in {HOURS} h");
    assert!(writers(&server).len() as u64 <= all + 1, "at most one turn for each term");
    assert!(a.candidate().is_leader() != b.candidate().is_leader());
    // Once they agree, earlier preemptions do not hold the preferred one back for ever.
    drop(a);
    within(Duration::from_secs(16), "b leads", async { b.candidate().elected().await }).await;
}

/// Three candidates in a ring, with different timings, are bounded as well.
#[tokio::test(start_paused = true)]
async fn three_candidates_in_priority_ring_stop_flapping() {
    let server = ApiServer::new();
    let ring = [("a", "b", 15), ("b", "c", 60), ("c", "a", 137)];
    let running: Vec<_> = ring
        .into_iter()
        .map(|(key, prey, seconds)| {
            let lease = Duration::from_secs(seconds);
            let timing = LeaseTiming::new(lease, lease * 2 / 3, lease / 8).unwrap();
            let priority = Priority::new(key, move |holder| holder == prey).unwrap();
            build(&server, key, builder(key).timing(timing).priority(priority)).unwrap().start()
        })
        .collect();
    pass(Duration::from_secs(2 * 3600)).await;
    let early = spec(&server)["leaseTransitions"].as_u64().unwrap();
    pass(Duration::from_secs(4 * 3600)).await;
    let late = spec(&server)["leaseTransitions"].as_u64().unwrap();
    assert!(
        early <= 60 && late - early <= 16,
        "{early} transitions in 2 h, {} in the next 4 h",
        late - early
    );
    drop(running);
}

/// The candidates forget a fight after a while.
#[tokio::test(start_paused = true)]
async fn candidate_preempts_at_once_after_quiet_time() {
    let server = ApiServer::new();
    let high = ranked(&server, "b", "high").start();
    within(FIRST, "the candidate leads", high.candidate().elected()).await;
    for pause in [0, 45, 45] {
        pass(Duration::from_secs(pause)).await;
        let low = candidate(&server, "a");
        // An outage of one candidate, in which another one takes the lease.
        let cut = server.inject(Fault::drop_before().user("b"));
        server.break_watches(|_| true, kube_leader_gate::testing::WatchBreak::Cut);
        let low = low.start();
        within(Duration::from_secs(16), "a leads", low.candidate().elected()).await;
        drop(cut);
        within(Duration::from_secs(4), "b leads again", high.candidate().elected()).await;
    }
}

/// A script, a controller or the garbage collector undoes each acquisition as soon as it sees it.
#[tokio::test(start_paused = true)]
async fn repeatedly_undone_acquisition_causes_no_flood() {
    for deletes in [true, false] {
        let server = ApiServer::new();
        let a = candidate(&server, "a").start();
        within(FIRST, "the candidate leads", a.candidate().elected()).await;
        let before = lease_writes(&server, "a").len();
        for _ in 0..10_000 {
            if server.object(LEASE).is_some_and(|lease| lease["spec"]["holderIdentity"] == "a") {
                if deletes {
                    server.delete("outsider", LEASE).unwrap();
                } else {
                    server
                        .edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "".into())
                        .unwrap();
                }
            }
            pass(Duration::from_millis(1)).await;
        }
        let writes = lease_writes(&server, "a").len() - before;
        assert!((10..=170).contains(&writes), "deletes: {deletes}, {writes} writes in 10 s");
    }
}
