//! A preferred candidate that cannot lead leaves a healthy holder in peace. Its pauses grow.

use crate::support::{
    FIRST, SOON, build, builder, pass,
    priority::{leading_as, ranked},
    releases, within,
};
use kube_leader_gate::{
    election::{ElectionBuilder, Priority, Running},
    testing::{ApiServer, Fault, WatchBreak},
};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

const MINUTE: Duration = Duration::from_secs(60);

/// A candidate that precedes all others, and leads only if its check says yes.
fn preferred_if(may: &Arc<AtomicBool>) -> ElectionBuilder {
    let may = may.clone();
    let check = move || if may.load(Relaxed) { Ok(()) } else { Err("no disk") };
    builder("high").priority(Priority::ranked("high", ["high", "low"]).unwrap()).lead_if(check)
}

/// A holder that is not preferred, and leads already.
async fn holder(server: &ApiServer) -> Running {
    leading_as(server, "low", "low").await.0
}

/// How often the healthy holder has given the lease up.
fn stops(server: &ApiServer) -> usize {
    releases(server, "low").len()
}

#[tokio::test(start_paused = true)]
async fn candidate_whose_check_flaps_stops_the_holder_a_few_times_at_most() {
    for (yes, no) in [(1, 9), (10, 10), (60, 60)] {
        let server = ApiServer::new();
        let _low = holder(&server).await;
        let may = Arc::new(AtomicBool::new(false));
        let _high = build(&server, "high", preferred_if(&may)).unwrap().start();
        for _ in 0..(1800 / (yes + no)) {
            pass(Duration::from_secs(no)).await;
            may.store(true, Relaxed);
            pass(Duration::from_secs(yes)).await;
            may.store(false, Relaxed);
        }
        let stops = stops(&server);
        assert!((1..=4).contains(&stops), "{stops} in half an hour, at {yes} s of yes and {no} s of no");
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_whose_check_has_flapped_asks_once_it_says_yes_for_long() {
    let server = ApiServer::new();
    let _low = holder(&server).await;
    let may = Arc::new(AtomicBool::new(false));
    let high = build(&server, "high", preferred_if(&may)).unwrap().start();
    for _ in 0..3 {
        may.store(true, Relaxed);
        pass(FIRST).await;
        may.store(false, Relaxed);
        pass(3 * FIRST).await;
    }
    may.store(true, Relaxed);
    pass(10 * FIRST).await;
    assert!(!high.candidate().is_leader(), "it may say no again");
    within(MINUTE, "it leads", high.candidate().elected()).await;
    pass(2 * MINUTE).await;
    may.store(false, Relaxed);
    pass(3 * FIRST).await;
    assert!(!high.candidate().is_leader());
    may.store(true, Relaxed);
    within(MINUTE / 3, "the two minutes count, so it leads soon", high.candidate().elected()).await;
}

/// As a holder it would lead on.
#[tokio::test(start_paused = true)]
async fn no_that_is_tolerated_does_not_silence_a_candidate() {
    let server = ApiServer::new();
    let may = Arc::new(AtomicBool::new(true));
    let high = build(&server, "high", preferred_if(&may)).unwrap().start();
    within(FIRST, "it leads", high.candidate().elected()).await;
    let low = ranked(&server, "low", "low").start();
    let flaps = tokio::spawn(async move {
        loop {
            may.store(false, Relaxed);
            pass(FIRST / 2).await;
            may.store(true, Relaxed);
            pass(6 * FIRST).await;
        }
    });
    pass(5 * MINUTE).await;
    assert!(high.candidate().is_leader());
    let cut = server.inject(Fault::drop_before().user("high"));
    server.break_watches(|user| user == "high", WatchBreak::Cut);
    within(MINUTE, "the other one leads", low.candidate().elected()).await;
    drop(cut);
    within(MINUTE / 2, "it leads again", high.candidate().elected()).await;
    flaps.abort();
}

#[tokio::test(start_paused = true)]
async fn candidate_that_asks_no_holder_takes_a_free_lease() {
    let server = ApiServer::new();
    let low = holder(&server).await;
    let may = Arc::new(AtomicBool::new(true));
    let high = build(&server, "high", preferred_if(&may)).unwrap().start();
    within(FIRST, "it leads", high.candidate().elected()).await;
    may.store(false, Relaxed);
    within(MINUTE, "the holder leads again", low.candidate().elected()).await;
    may.store(true, Relaxed);
    pass(Duration::from_secs(2)).await;
    low.stop().await;
    within(SOON, "it leads", high.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn candidate_whose_gate_never_opens_stops_the_holder_seldom() {
    let server = ApiServer::new();
    let _low = holder(&server).await;
    let _high = ranked(&server, "high", "high").open_when(|_| pending::<Result<(), String>>()).start();
    pass(30 * MINUTE).await;
    let stops = stops(&server);
    assert!((2..=12).contains(&stops), "{stops} in half an hour");
}

#[tokio::test(start_paused = true)]
async fn candidate_whose_work_ends_at_once_stops_the_holder_seldom() {
    let server = ApiServer::new();
    let _low = holder(&server).await;
    let high = tokio::spawn(ranked(&server, "high", "high").run_while_leading(pending(), |_, _| async {}));
    pass(30 * MINUTE).await;
    let stops = stops(&server);
    assert!((2..=12).contains(&stops), "{stops} in half an hour");
    high.abort();
}
