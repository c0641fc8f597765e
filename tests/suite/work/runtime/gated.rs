//! Gated mode: a controller on every replica.

use crate::{
    support::{FIRST, LEASE, SOON, pass, steal, until},
    work::runtime::logs::Logs,
    work::runtime::things::{Replica, depose, is_done, looks, reconcile, start, until_seen, want},
};
use fastrand::Rng;
use kube_leader_gate::testing::{ApiServer, Fault, WatchBreak};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::Instant;

const NAMES: [&str; 5] = ["v", "w", "x", "y", "z"];

/// A leader and a follower that have no open reconciliation.
async fn settled(server: &ApiServer) -> (Replica, Replica) {
    let a = start(server, "a", reconcile);
    until(FIRST, "a leads", || a.leads()).await;
    let b = start(server, "b", reconcile);
    for name in NAMES {
        want(server, name, "1");
    }
    until(SOON, "all is done", || NAMES.iter().all(|name| is_done(server, name))).await;
    for name in NAMES {
        until_seen(&b, name, 1).await;
    }
    pass(Duration::from_secs(1)).await;
    (a, b)
}

/// Linkerd's bug (linkerd2 #12021): updates that a follower saw were dropped for minutes.
#[tokio::test(start_paused = true)]
async fn change_seen_by_follower_is_reconciled_after_gain() {
    let server = ApiServer::new();
    let (a, b) = settled(&server).await;
    drop(a);
    let looked = looks(&server, "b");
    let before = b.context.begun("x");
    want(&server, "x", "2");
    until_seen(&b, "x", before + 1).await;
    pass(Duration::from_secs(5)).await;
    assert!(!b.leads(), "the gap");
    assert!(!is_done(&server, "x"), "no replica leads, so none writes");
    let seen = b.context.begun("x") - before;
    assert_eq!(seen, 1, "one attempt for one change");
    until(Duration::from_secs(16), "b leads", || b.leads()).await;
    let gained = Instant::now();
    until(Duration::from_secs(1), "x is reconciled", || is_done(&server, "x")).await;
    println!("reconciled {:?} after the gain", gained.elapsed());
    assert_eq!(looks(&server, "b"), looked, "from the cache: no list, no watch");
    for name in NAMES {
        assert!(b.context.begun(name) > 1, "{name} was looked at again");
    }
    assert_eq!(b.errors(), [""; 0]);
}

/// Every gain reconciles all objects again, also those of the leader after a loss.
#[tokio::test(start_paused = true)]
async fn each_gain_queues_every_object_once() {
    let server = ApiServer::new();
    let (a, b) = settled(&server).await;
    for round in 1..=3 {
        let before = NAMES.map(|name| (a.context.begun(name), b.context.begun(name)));
        depose(&server);
        pass(SOON).await;
        until(Duration::from_secs(40), "a replica leads", || a.leads() || b.leads()).await;
        pass(Duration::from_secs(1)).await;
        for (name, (of_a, of_b)) in NAMES.iter().zip(before) {
            let again = (a.context.begun(name) - of_a, b.context.begun(name) - of_b);
            let expected = if a.leads() { (1, 0) } else { (0, 1) };
            assert_eq!(again, expected, "round {round}: {name}");
        }
    }
}

/// Ten minutes beside a working leader cost a follower one watch, and one attempt for each change.
#[tokio::test(start_paused = true)]
async fn idle_follower_sends_few_requests() {
    let server = ApiServer::new();
    let (logs, _guard) = Logs::capture();
    let (a, b) = settled(&server).await;
    let before = NAMES.map(|name| b.context.begun(name));
    // Time enough for the follower to see each change before the leader reconciles it.
    let _slow = server.inject(Fault::delay_before(Duration::from_millis(100)).user("a").verb("patch"));
    for minute in 0..10 {
        want(&server, "x", &format!("minute {minute}"));
        pass(Duration::from_secs(60)).await;
        assert!(is_done(&server, "x"));
    }
    for (name, before) in NAMES.iter().zip(before) {
        let begun = b.context.begun(name) - before;
        // The outsider's change and the leader's answer to it.
        assert!(begun <= if *name == "x" { 20 } else { 0 }, "{name}: {begun} reconciliations");
    }
    assert_eq!(
        server.write_log().iter().filter(|it| it.user == "b" && it.resource == "configmaps").count(),
        0
    );
    let (lists, watches) = looks(&server, "b");
    assert!(lists == 1 && watches <= 4, "{lists} lists and {watches} watches");
    for level in [" WARN ", " ERROR "] {
        assert_eq!(logs.containing(level), [""; 0]);
    }
    let left = logs.containing("write attempt rejected");
    assert!(left.len() >= 10, "{left:?}");
    assert!(
        left.iter().all(|line| line.contains("DEBUG") && line.contains("resource=configmaps")),
        "{left:?}"
    );
    // One line for each rejected write, and no other.
    assert_eq!(
        logs.containing(" DEBUG ").iter().filter(|line| line.contains("kube_leader_gate::runtime")).count(),
        0
    );
    assert_eq!((a.errors(), b.errors()), (vec![], vec![]));
}

/// Changes, gains, losses and failed writes by chance: in the end everything is right.
#[tokio::test(start_paused = true)]
async fn random_gains_lose_no_object() {
    let (mut terms, mut changes) = (BTreeSet::new(), 0);
    for seed in 0..6 {
        let server = ApiServer::new();
        let mut rng = Rng::with_seed(seed);
        let (a, b) = settled(&server).await;
        let replicas = [a, b];
        let mut failing = None;
        for step in 0..150 {
            match rng.u8(..12) {
                0..6 => {
                    want(&server, NAMES[rng.usize(..NAMES.len())], &format!("step {step}"));
                    changes += 1;
                }
                6 if server.object(LEASE).is_some() => depose(&server),
                7 if server.object(LEASE).is_some() => steal(&server),
                8 => failing = Some(server.inject(Fault::status(503).verb("patch").resource("configmaps"))),
                9 => failing = None,
                10 => pass(Duration::from_millis(rng.u64(..20_000))).await,
                _ => pass(Duration::from_millis(rng.u64(..100))).await,
            }
            let leader = replicas.iter().find_map(|it| it.running.candidate().term());
            terms.extend(leader.map(|term| (seed, term.to_string())));
        }
        drop(failing);
        let right = || NAMES.iter().all(|name| is_done(&server, name));
        until(Duration::from_secs(60), &format!("seed {seed}: all is right"), right).await;
    }
    let terms = terms.len();
    assert!(terms > 30 && changes > 300, "the seeds do too little: {terms} terms, {changes} changes");
}

/// A controller pauses all its triggers while it backs off from a failing watch. A gain waits, and is not lost.
#[tokio::test(start_paused = true)]
async fn gain_during_watch_outage_triggers_reconciliation() {
    let server = ApiServer::new();
    let (a, b) = settled(&server).await;
    want(&server, "x", "2");
    let _no_writes = server.inject(Fault::status(503).user("a").resource("configmaps"));
    let outage = server.inject(Fault::status(503).user("b").resource("configmaps").verb("watch"));
    server.break_watches(|user| user == "b", WatchBreak::End);
    until(Duration::from_secs(10), "the watch fails", || outage.hits() > 1).await;
    drop(a);
    until(Duration::from_secs(16), "b leads", || b.leads()).await;
    drop(outage);
    until(Duration::from_secs(60), "x is reconciled", || is_done(&server, "x")).await;
}
