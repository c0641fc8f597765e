//! Which candidate leads, since when, and how it lost the lease.

use crate::{
    locks::flawed::{Flaw, flawed_from},
    observers::metrics::scrape::{Exporter, PUBLISHED, measured},
    support::{FIRST, LEASE, SOON, build, builder, candidate, leading, pass, steal, until, within},
};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

fn losses(exporter: &Exporter) -> [f64; 5] {
    ["released", "expired", "taken", "deleted", "abandoned"]
        .map(|loss| exporter.value("leader_election_losses_total", &[("loss", loss)]))
}

#[tokio::test(start_paused = true)]
async fn leader_gauge_is_up_until_release() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, _) = measured(&server).await;
    let lease = [("name", "operator"), ("lease_namespace", "default")];
    until(SOON, "the gauge is up", || exporter.value("leader_election_master_status", &lease) == 1.0).await;
    for _ in 0..30 {
        pass(Duration::from_secs(1)).await;
        let left = exporter.value("leader_election_time_to_deadline_seconds", &lease);
        assert!((6.9..=10.0).contains(&left), "renewed every 2 s, published every second: {left}");
    }
    assert_eq!(exporter.value("leader_election_master_status", &lease), 1.0);
    assert_eq!(losses(&exporter), [0.0; 5]);
    a.stop().await;
    assert_eq!(exporter.value("leader_election_master_status", &lease), 0.0);
    assert_eq!(exporter.value("leader_election_time_to_deadline_seconds", &lease), 0.0);
    assert_eq!(losses(&exporter), [1.0, 0.0, 0.0, 0.0, 0.0]);
}

#[tokio::test(start_paused = true)]
async fn theft_counts_as_loss_and_transition() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (_a, _) = measured(&server).await;
    until(SOON, "the gauge is up", || exporter.value("leader_election_master_status", &[]) == 1.0).await;
    assert_eq!(
        exporter.value("leader_election_transitions_total", &[]),
        0.0,
        "no candidate has had it before"
    );
    steal(&server);
    until(SOON, "the gauge is down", || exporter.value("leader_election_master_status", &[]) == 0.0).await;
    assert_eq!(exporter.value("leader_election_time_to_deadline_seconds", &[]), 0.0);
    assert_eq!(losses(&exporter), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(exporter.value("leader_election_transitions_total", &[]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn deletion_counts_as_loss_without_transition() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, _) = measured(&server).await;
    server.delete("outsider", LEASE).expect("deleted");
    until(SOON, "the lease is lost", || losses(&exporter)[3] == 1.0).await;
    within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
    until(SOON, "the gauge is up", || exporter.value("leader_election_master_status", &[]) == 1.0).await;
    assert_eq!(losses(&exporter), [0.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(exporter.value("leader_election_transitions_total", &[]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn gauge_falls_at_deadline_while_call_hangs() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (a, _) = measured(&server).await;
    until(SOON, "the gauge is up", || exporter.value("leader_election_master_status", &[]) == 1.0).await;
    let hang = server.inject(Fault::hang_before());
    until(Duration::from_secs(11), "the deadline passes", || !a.candidate().is_leader()).await;
    until(SOON, "the gauge is down", || exporter.value("leader_election_master_status", &[]) == 0.0).await;
    assert_eq!(losses(&exporter), [0.0, 1.0, 0.0, 0.0, 0.0]);

    // No replica leads: the gap grows until one does.
    pass(Duration::from_secs(20)).await;
    let leaderless = exporter.value("leader_election_leaderless_seconds", &[]);
    assert!(
        (15.0..=20.5).contains(&leaderless),
        "less than the call that hung at the deadline: {leaderless}"
    );
    drop(hang);
    within(Duration::from_secs(10), "the candidate leads again", a.candidate().elected()).await;
    pass(PUBLISHED).await;
    assert_eq!(exporter.value("leader_election_leaderless_seconds", &[]), 0.0);
    let scrape = exporter.scrape();
    let gaps = scrape.value("leader_election_leaderless_gap_seconds_sum", &[]);
    assert!((leaderless..=30.0).contains(&gaps), "{gaps}");
    assert_eq!(
        scrape.value("leader_election_leaderless_gap_seconds_count", &[]),
        2.0,
        "the first one before it led"
    );
}

#[tokio::test(start_paused = true)]
async fn follower_counts_the_handover() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let (b, _) = leading(&server, "b").await;
    let a = build(&server, "a", builder("a").metrics()).unwrap().start();
    until(SOON, "the candidate knows b", || a.candidate().holder().is_some()).await;
    assert_eq!(exporter.value("leader_election_master_status", &[]), 0.0);
    pass(Duration::from_secs(60)).await;
    assert_eq!(exporter.value("leader_election_time_to_deadline_seconds", &[]), 0.0);
    assert_eq!(exporter.value("leader_election_leaderless_seconds", &[]), 0.0);
    assert!(!exporter.scrape().has("leader_election_leaderless_gap_seconds_count", &[]));
    b.stop().await;
    within(FIRST, "a leads", a.candidate().elected()).await;
    until(SOON, "the gauge is up", || exporter.value("leader_election_master_status", &[]) == 1.0).await;
    assert_eq!(exporter.value("leader_election_transitions_total", &[]), 1.0);
    let scrape = exporter.scrape();
    assert_eq!(scrape.value("leader_election_leaderless_gap_seconds_count", &[]), 1.0);
    assert!(scrape.value("leader_election_leaderless_gap_seconds_sum", &[]) < 0.1);
    assert_eq!(losses(&exporter), [0.0; 5]);
}

#[tokio::test(start_paused = true)]
async fn dropped_or_dead_election_lowers_the_gauge() {
    for dies in [false, true] {
        let exporter = Exporter::install();
        let server = ApiServer::new();
        let breaks = Arc::new(AtomicBool::new(false));
        let a = flawed_from(&server, "a", builder("a").metrics(), Flaw::Panics(breaks.clone())).start();
        within(FIRST, "the candidate leads", a.candidate().elected()).await;
        let gauge = || exporter.value("leader_election_master_status", &[]);
        until(SOON, "the gauge is up", || gauge() == 1.0).await;
        if dies {
            breaks.store(true, Ordering::SeqCst);
            within(Duration::from_secs(3), "it ends", a.candidate().ended()).await.unwrap_err();
        } else {
            drop(a);
        }
        until(SOON, "the gauge is down", || gauge() == 0.0).await;
        assert_eq!(exporter.value("leader_election_time_to_deadline_seconds", &[]), 0.0);
        assert_eq!(losses(&exporter), [0.0, 0.0, 0.0, 0.0, 1.0]);
    }
}

/// The runtime ends and drops every task, in no fixed order.
#[test]
fn ended_runtime_lowers_the_gauge() {
    for _ in 0..16 {
        let exporter = Exporter::install();
        let server = ApiServer::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.unwrap();
        let a = runtime.block_on(async {
            let (a, _) = measured(&server).await;
            until(SOON, "the gauge is up", || exporter.value("leader_election_master_status", &[]) == 1.0)
                .await;
            a
        });
        drop(runtime);
        assert_eq!(exporter.value("leader_election_master_status", &[]), 0.0);
        assert_eq!(exporter.value("leader_election_time_to_deadline_seconds", &[]), 0.0);
        drop(a);
    }
}

#[tokio::test(start_paused = true)]
async fn late_recorder_gets_later_metrics() {
    let server = ApiServer::new();
    let (_a, _) = measured(&server).await;
    pass(PUBLISHED).await;
    let exporter = Exporter::install();
    pass(PUBLISHED).await;
    assert_eq!(exporter.value("leader_election_master_status", &[]), 1.0);
    steal(&server);
    until(SOON, "it is counted", || {
        exporter.scrape().has("leader_election_losses_total", &[("loss", "taken")])
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn metrics_are_opt_in_and_never_doubled() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let silent = candidate(&server, "b").start();
    within(FIRST, "the candidate leads", silent.candidate().elected()).await;
    pass(PUBLISHED).await;
    assert!(exporter.scrape().samples.is_empty());
    let a = build(&server, "a", builder("a").metrics().metrics()).unwrap().start();
    until(SOON, "the candidate knows b", || a.candidate().holder().is_some()).await;
    silent.stop().await;
    within(FIRST, "a leads", a.candidate().elected()).await;
    pass(PUBLISHED).await;
    assert_eq!(exporter.value("leader_election_transitions_total", &[]), 1.0);
}

/// METRICS: `leader_election_opening` is 1 while this process holds the lease, and its gate waits; else 0. The election is dropped.
#[tokio::test(start_paused = true)]
async fn gauge_of_a_wait_falls_with_the_election() {
    for stops in [true, false] {
        let exporter = Exporter::install();
        let server = ApiServer::new();
        let a = build(&server, "a", builder("a").metrics()).unwrap();
        let a = a.open_when(|_| pending::<Result<(), String>>()).start();
        until(FIRST, "it waits", || a.candidate().opening().is_some()).await;
        pass(Duration::from_secs(2)).await;
        let gauges = || {
            ["leader_election_opening", "leader_election_contending"].map(|name| exporter.value(name, &[]))
        };
        assert_eq!(gauges(), [1.0, 1.0]);
        let of_a = a.candidate().clone();
        if stops {
            a.stop().await;
        } else {
            drop(a);
        }
        pass(Duration::from_secs(60)).await;
        assert_eq!(of_a.opening(), None);
        assert_eq!(gauges(), [0.0, 0.0], "stops: {stops}");
    }
}

/// METRICS: `leader_election_contending` is 1 if this candidate takes the lease when it is free; 0 while it stays away after it has
/// given the lease up by itself. Its work ends early each time, so it stays away.
#[tokio::test(start_paused = true)]
async fn gauge_says_that_a_candidate_stays_away_whose_work_ended_by_itself() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a").metrics()).unwrap();
    let of_a = election.candidate();
    let run = tokio::spawn(election.run_while_leading(pending(), |_, _| async {}));
    let (mut away, mut said) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..3000 {
        pass(SOON).await;
        let is_free = of_a.holder().is_none();
        away += if is_free { SOON } else { Duration::ZERO };
        let contends = exporter.value("leader_election_contending", &[]) == 1.0;
        said += if is_free && contends { SOON } else { Duration::ZERO };
    }
    run.abort();
    assert!(
        said < Duration::from_secs(20),
        "for {away:?} it left the free lease alone, and for {said:?} of that it said that it takes a free lease"
    );
}
