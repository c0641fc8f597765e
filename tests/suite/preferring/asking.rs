//! A preferred candidate asks a live holder for the lease, and two candidates never write at once.

use crate::support::{
    FIRST, LEASE, SOON, always_held_by, candidate, gated, is_not_leader, lease, pass,
    priority::{ASKED, KEY, annotations, hammer, leading_as, ranked, with, write_every, writers},
    spec, until, within, write,
};
use kube_leader_gate::{
    Candidate,
    election::{LeaseEnd, Priority, Running},
    leadership::Loss,
    testing::{ApiServer, Fault},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinSet, time::Instant};

/// A holder that another program wrote.
fn held_by(server: &ApiServer, holder: &str, seconds: u64, annotations: &Value) {
    let mut held =
        lease(&json!({ "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
                                  "acquireTime": "2026-01-02T03:04:05.000000Z",
                                  "renewTime": "2026-01-02T03:04:05.000000Z" }));
    held["metadata"]["annotations"] = annotations.clone();
    server.put(holder, LEASE, held).unwrap();
}

#[tokio::test(start_paused = true)]
async fn higher_candidate_gets_the_lease_of_a_live_holder_without_overlapping_writes() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    assert_eq!(annotations(&server), json!({ KEY: "low" }));
    let before = low.candidate().term().unwrap();
    let election = ranked(&server, "b", "high");
    let mut writing = JoinSet::new();
    hammer(&mut writing, low_client);
    hammer(&mut writing, gated(&server, &election, "b"));
    pass(SOON).await;
    let high = election.start();
    let began = Instant::now();
    let after = within(SOON, "the higher one leads", high.candidate().elected()).await;
    assert!(began.elapsed() < Duration::from_millis(20), "{:?}", began.elapsed());
    assert!(!low.candidate().is_leader());
    assert_eq!(low.candidate().leadership().state().lost, Some(Loss::Released));
    assert_eq!(after.transitions(), before.transitions() + 1);
    assert_eq!(annotations(&server), json!({ KEY: "high" }), "nothing is left of the question");
    pass(Duration::from_secs(20)).await;
    assert_eq!(high.candidate().term(), Some(after));
    assert_eq!(writers(&server), ["a", "b"]);
    drop(writing);
    // The release removes the key, as in Istio. Then any candidate may lead.
    assert_eq!(high.stop().await, LeaseEnd::Released);
    within(SOON, "the lower one leads", low.candidate().elected()).await;
    assert_eq!(annotations(&server), json!({ KEY: "low" }));
    low.stop().await;
    assert!(annotations(&server).get(KEY).is_none());
}

#[tokio::test(start_paused = true)]
async fn candidate_asks_when_holder_or_own_key_changes() {
    let server = ApiServer::new();
    let (high, _) = leading_as(&server, "a", "high").await;
    let middle = ranked(&server, "b", "middle").start();
    until(SOON, "b knows a", || middle.candidate().holder().is_some()).await;
    // A faster candidate of lower priority.
    let _slow = server.inject(Fault::delay_before(SOON / 10).user("b").resource("leases").times(1));
    high.stop().await;
    held_by(&server, "c", 15, &json!({ KEY: "low" }));
    until(Duration::from_secs(1), "b has taken the lease", || spec(&server)["holderIdentity"] == "b").await;
    middle.stop().await;
    server.delete("outsider", LEASE).unwrap();
    let server = ApiServer::new();
    let (_low, _) = leading_as(&server, "a", "low").await;
    let now = Arc::new(AtomicBool::new(false));
    let asked = now.clone();
    let priority = Priority::new("x", move |_| asked.load(Ordering::SeqCst)).unwrap();
    let b = with(&server, "b", priority).start();
    pass(Duration::from_secs(60)).await;
    assert!(!b.candidate().is_leader());
    now.store(true, Ordering::SeqCst);
    within(Duration::from_millis(2100), "it leads with the next renewal", b.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn equal_or_higher_holder_is_not_asked() {
    for (holder, candidate) in [("high", "low"), ("high", "high"), ("low", "low"), ("unheard of", "high")] {
        let server = ApiServer::new();
        let order = [holder.to_owned()];
        let a = with(&server, "a", Priority::ranked(holder, order).unwrap()).start();
        within(FIRST, "the candidate leads", a.candidate().elected()).await;
        let b = ranked(&server, "b", candidate).start();
        pass(Duration::from_secs(60)).await;
        assert!(a.candidate().is_leader(), "{holder}, {candidate}");
        assert!(always_held_by(&server, "a"), "{holder}, {candidate}");
        assert!(annotations(&server).get(ASKED).is_none(), "{holder}, {candidate}");
        // A lease without a holder is free for every candidate.
        a.stop().await;
        within(SOON, "b leads", b.candidate().elected()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s6_lower_candidate_takes_expired_lease() {
    let server = ApiServer::new();
    held_by(&server, "dead", 15, &json!({ KEY: "high" }));
    let low = ranked(&server, "a", "low").start();
    pass(Duration::from_millis(14_900)).await;
    assert!(!low.candidate().is_leader());
    within(Duration::from_millis(200), "the candidate leads", low.candidate().elected()).await;
    assert_eq!(annotations(&server), json!({ KEY: "low" }));
}

/// Revisions of a program from before and after it had priorities.
#[tokio::test(start_paused = true)]
async fn holder_without_key_gives_way() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let mut writing = JoinSet::new();
    hammer(&mut writing, gated(&server, &election, "a"));
    let old = election.start();
    within(FIRST, "the candidate leads", old.candidate().elected()).await;
    assert_eq!(annotations(&server), json!({}));
    pass(SOON).await;
    let election = ranked(&server, "b", "low");
    hammer(&mut writing, gated(&server, &election, "b"));
    let new = election.start();
    within(SOON, "b leads", new.candidate().elected()).await;
    pass(SOON).await;
    assert_eq!(writers(&server), ["a", "b"]);
}

/// Three replicas of one revision are replaced one by one by three of the next, and those by three more.
#[tokio::test(start_paused = true)]
async fn each_rollout_makes_one_handover() {
    let server = ApiServer::new();
    let generation = |generation: u64| {
        Priority::new(generation.to_string(), move |holder| {
            holder.parse().is_ok_and(|its: u64| its < generation)
        })
    };
    let mut writing = JoinSet::new();
    let mut start = |name: String, number: u64| {
        let election = with(&server, &name, generation(number).unwrap());
        write_every(&mut writing, gated(&server, &election, &name), 5);
        election.start()
    };
    let mut running: Vec<_> = (0..3).map(|replica| start(format!("one-{replica}"), 1)).collect();
    let leaders = |running: &[Running], number: &str| {
        running
            .iter()
            .any(|it| it.candidate().can_write() && it.candidate().identity().as_str().starts_with(number))
    };
    until(FIRST, "one candidate leads", || leaders(&running, "one")).await;
    pass(SOON).await;
    for (number, name) in [(2, "two"), (3, "three")] {
        let before = spec(&server)["leaseTransitions"].as_u64().unwrap();
        for replica in 0..3 {
            running.push(start(format!("{name}-{replica}"), number));
            until(SOON, "the new revision leads", || leaders(&running, name)).await;
            running.remove(0).stop().await;
            pass(Duration::from_secs(3)).await;
        }
        assert_eq!(spec(&server)["leaseTransitions"], before + 1);
    }
    assert_eq!(writers(&server).len(), 3, "{:?}", writers(&server));
}

/// Without the permission to watch, a candidate polls, and a holder learns of the question by its next renewal.
#[tokio::test(start_paused = true)]
async fn candidate_without_watch_gets_the_lease_within_retry_periods() {
    for deaf in ["a", "b", "both"] {
        let server = ApiServer::new();
        let fault = Fault::forbidden().verb("watch");
        let _deaf = server.inject(if deaf == "both" { fault } else { fault.user(deaf) });
        let (low, low_client) = leading_as(&server, "a", "low").await;
        let election = ranked(&server, "b", "high");
        let mut writing = JoinSet::new();
        hammer(&mut writing, low_client);
        hammer(&mut writing, gated(&server, &election, "b"));
        let high = election.start();
        within(Duration::from_millis(4600), deaf, high.candidate().elected()).await;
        pass(SOON).await;
        assert!(!low.candidate().is_leader());
        assert_eq!(writers(&server), ["a", "b"]);
    }
}

/// Invalid keys: their holders are left alone, whatever the comparison says.
#[tokio::test(start_paused = true)]
async fn holder_with_invalid_key_is_not_asked() {
    for key in ["x".repeat(254), "x".repeat(200_000), "a\u{0}b".into(), " ".into(), "a\n".into()] {
        let server = ApiServer::new();
        held_by(&server, "foreign", 15, &json!({ KEY: key, "other": "stays" }));
        let a = with(&server, "a", Priority::new("a", |_| true).unwrap()).start();
        pass(Duration::from_millis(14_900)).await;
        assert_eq!(spec(&server)["holderIdentity"], "foreign");
        within(Duration::from_millis(200), "the candidate leads", a.candidate().elected()).await;
        assert_eq!(annotations(&server), json!({ KEY: "a", "other": "stays" }));
    }
}

/// The program's own comparison panics. It calls the election, too.
#[tokio::test(start_paused = true)]
async fn s14_odd_comparison_does_not_end_the_election() {
    for panics in [true, false] {
        let server = ApiServer::new();
        held_by(&server, "foreign", 15, &json!({}));
        let own = Arc::new(OnceLock::<Candidate>::new());
        let handle = own.clone();
        let compare = move |_: &str| {
            handle.get().expect("a candidate").give_way();
            if panics { panic!("it breaks") } else { false }
        };
        let election = with(&server, "a", Priority::new("a", compare).unwrap());
        own.set(election.candidate()).unwrap();
        let client = gated(&server, &election, "a");
        let a = election.start();
        within(Duration::from_secs(16), "it takes the expired lease", a.candidate().elected()).await;
        write(&client).await.unwrap();
        a.candidate().check(Duration::ZERO).unwrap();
    }
}

/// client-go's and Istio's electors cannot be asked: the successor waits for the duration that the holder had written.
#[tokio::test(start_paused = true)]
async fn s6_successor_waits_the_whole_time_of_another_elector() {
    for seconds in [5, 15, 137] {
        let server = ApiServer::new();
        held_by(&server, "go", seconds, &json!({ KEY: "low" }));
        let election = ranked(&server, "b", "high");
        let client = gated(&server, &election, "b");
        let high = election.start();
        let began = Instant::now();
        until(SOON, "the lease is taken", || spec(&server)["holderIdentity"] == "b").await;
        // A candidate of another kind waits for both.
        assert!(spec(&server)["leaseDurationSeconds"].as_u64().unwrap() >= seconds.max(15));
        let leads =
            within(Duration::from_secs(seconds + 1), "the candidate leads", high.candidate().elected());
        let refused = async {
            pass(Duration::from_millis(seconds * 1000 - 100)).await;
            assert!(is_not_leader(&write(&client).await));
        };
        let (term, ()) = tokio::join!(leads, refused);
        let after = began.elapsed();
        assert!(after >= Duration::from_secs(seconds), "{after:?}");
        assert!(after < Duration::from_millis(seconds * 1000 + 50), "{after:?}");
        pass(Duration::from_secs(30)).await;
        assert_eq!(annotations(&server), json!({ KEY: "high" }));
        assert_eq!(spec(&server)["leaseDurationSeconds"], 15);
        assert_eq!(high.candidate().term(), Some(term));
    }
}
