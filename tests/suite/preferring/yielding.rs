//! What a holder does that is asked for its lease, by a preferred candidate or by a person.

use crate::support::{
    FIRST, LEASE, SOON, always_held_by, begin_write, candidate, gated, is_not_leader, pass,
    priority::{ASKED, KEY, annotations, hammer, leading_as, ranked, with, writers},
    spec, until, within, write,
};
use kube_leader_gate::{
    CancellationToken,
    election::Priority,
    leadership::Loss,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::json;
use std::time::Duration;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

fn ask(server: &ApiServer, question: &str) {
    server.edit("person", LEASE, |it| it["metadata"]["annotations"][ASKED] = json!(question)).unwrap();
}

/// The gate closes when the watch reports the question, and admitted writes finish. Only then is the lease released.
#[tokio::test(start_paused = true)]
async fn s4_asked_holder_closes_its_gate_and_lets_writes_finish() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let slow = server.inject(Fault::delay_after(Duration::from_secs(3)).resource("tokenreviews").user("a"));
    let admitted = begin_write(low.candidate(), &low_client).await;
    assert_eq!(slow.hits(), 1);
    let election = ranked(&server, "b", "high");
    let mut writing = JoinSet::new();
    hammer(&mut writing, gated(&server, &election, "b"));
    let high = election.start();
    until(SOON, "the gate is closed", || !low.candidate().can_write()).await;
    assert!(low.candidate().is_leader() && low.candidate().leadership().state().closing);
    assert!(is_not_leader(&write(&low_client).await));
    assert_eq!(annotations(&server)[ASKED], "b\nhigh");
    pass(Duration::from_millis(2800)).await;
    assert!(!high.candidate().is_leader() && spec(&server)["holderIdentity"] == "a");
    within(SOON * 2, "the higher one leads", high.candidate().elected()).await;
    admitted.await.unwrap().expect("the write was not cut off");
    assert_eq!(low.candidate().leadership().state().lost, Some(Loss::Released));
    pass(SOON).await;
    assert_eq!(writers(&server), ["a", "b"]);
}

/// A write that hangs is cut off at the deadline, and may land until the lease's end. So the lease is left to expire.
#[tokio::test(start_paused = true)]
async fn s4_unfinished_write_keeps_the_lease_until_its_end() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let stuck = begin_write(low.candidate(), &low_client).await;
    let began = Instant::now();
    let high = ranked(&server, "b", "high").start();
    until(Duration::from_secs(11), "the write is cut off", || stuck.is_finished()).await;
    assert_eq!(low.candidate().leadership().state().lost, Some(Loss::Expired));
    within(Duration::from_secs(7), "the higher one leads", high.candidate().elected()).await;
    assert!(began.elapsed() >= Duration::from_millis(14_700), "{:?}", began.elapsed());
}

/// Leading-only work has its grace before the lease is released.
#[tokio::test(start_paused = true)]
async fn s11_work_of_an_asked_holder_has_its_grace() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (a, shutdown) = (election.candidate(), CancellationToken::new());
    let run = tokio::spawn(election.run_while_leading(
        shutdown.clone().cancelled_owned(),
        |ends: CancellationToken, _| async move {
            ends.cancelled().await;
            sleep(Duration::from_secs(3)).await;
        },
    ));
    within(FIRST, "a leads", a.elected()).await;
    pass(SOON).await;
    let began = Instant::now();
    let high = ranked(&server, "b", "high").start();
    within(Duration::from_secs(4), "b leads", high.candidate().elected()).await;
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    shutdown.cancel();
    within(SOON, "a has ended", run).await.unwrap().unwrap().into_output();
}

/// The holder is cut off: it learns of no question, and the asker waits for its end.
#[tokio::test(start_paused = true)]
async fn s6_asker_waits_for_a_disconnected_holder() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let _deaf = server.inject(Fault::hang_before().user("a").resource("leases"));
    server.break_watches(|user| user == "a", WatchBreak::Cut);
    let election = ranked(&server, "b", "high");
    let mut writing = JoinSet::new();
    hammer(&mut writing, low_client);
    hammer(&mut writing, gated(&server, &election, "b"));
    let high = election.start();
    pass(Duration::from_secs(5)).await;
    assert!(low.candidate().can_write(), "it knows nothing");
    within(Duration::from_secs(12), "the higher one leads", high.candidate().elected()).await;
    assert!(!low.candidate().can_write());
    pass(SOON).await;
    assert_eq!(writers(&server), ["a", "b"]);
}

/// Each thinks that it precedes the other. The holder stays.
#[tokio::test(start_paused = true)]
async fn contradicting_priorities_move_nothing() {
    let server = ApiServer::new();
    let always = |key: &str| Priority::new(key, |_| true).unwrap();
    let a = with(&server, "a", always("a")).start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = with(&server, "b", always("b")).start();
    pass(Duration::from_secs(600)).await;
    assert!(a.candidate().is_leader() && always_held_by(&server, "a"));
    a.stop().await;
    within(SOON * 30, "b leads", b.candidate().elected()).await;
}

/// Three candidates in a ring: each is preferred to the next. The holder precedes one of the others, and yields to the other.
#[tokio::test(start_paused = true)]
async fn ring_of_priorities_makes_no_storm() {
    let server = ApiServer::new();
    let ring = [("a", "b"), ("b", "c"), ("c", "a")];
    let running: Vec<_> = ring
        .into_iter()
        .map(|(key, prey)| with(&server, key, Priority::new(key, move |it| it == prey).unwrap()).start())
        .collect();
    pass(Duration::from_secs(600)).await;
    let all = spec(&server)["leaseTransitions"].as_u64().unwrap();
    assert!(
        all <= 3 * 600 / 2,
        "each of them yields at most once in a retry period: {all} transitions in 10 min"
    );
    drop(running);
}

/// `kubectl annotate` moves leadership, and to no other candidate meanwhile.
#[tokio::test(start_paused = true)]
async fn person_moves_leadership_by_a_question_without_a_key() {
    let server = ApiServer::new();
    let (a, a_client) = leading_as(&server, "a", "high").await;
    let others = ["b", "c"].map(|name| candidate(&server, name).start());
    pass(SOON).await;
    let mut writing = JoinSet::new();
    hammer(&mut writing, a_client);
    pass(SOON).await;
    ask(&server, "c");
    within(SOON, "c leads", others[1].candidate().elected()).await;
    assert!(!a.candidate().is_leader() && annotations(&server).get(ASKED).is_none());
    pass(SOON).await;
    assert_eq!(writers(&server), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn question_for_nobody_costs_a_retry_period_and_a_quarter() {
    let server = ApiServer::new();
    let (a, _) = leading_as(&server, "a", "low").await;
    let b = candidate(&server, "b").start();
    pass(SOON).await;
    ask(&server, "nobody");
    let began = Instant::now();
    until(SOON, "a has released", || !a.candidate().is_leader()).await;
    pass(SOON).await;
    assert_eq!(b.candidate().trouble(), None, "a candidate that watches takes it within milliseconds");
    pass(5 * SOON).await;
    let trouble = b.candidate().trouble().unwrap();
    assert!(trouble.contains(r#"kept for a candidate that has asked for it: "nobody""#), "{trouble}");
    let leads = || a.candidate().is_leader() || b.candidate().is_leader();
    until(Duration::from_secs(3), "another one leads", leads).await;
    assert!(began.elapsed() >= Duration::from_millis(2_500), "{:?}", began.elapsed());
    assert!(b.candidate().trouble().is_none() && annotations(&server).get(ASKED).is_none());
}

/// Nonsense, and a question for the holder itself, change nothing.
#[tokio::test(start_paused = true)]
async fn holder_ignores_questions_that_are_none() {
    let server = ApiServer::new();
    let (low, low_client) = leading_as(&server, "a", "low").await;
    let term = low.candidate().term();
    for question in ["a", "", " ", "\n", "a\nhigh", &"x".repeat(1_000), "b\nlow"] {
        ask(&server, question);
        pass(SOON).await;
        write(&low_client).await.expect("the candidate leads");
        assert_eq!(low.candidate().term(), term, "{question:?}");
    }
    assert_eq!(annotations(&server)[KEY], "low");
}
