//! A gate that waits for caches begins to wait when no earlier write of this process can land any more (rules S4 and S16).

use super::opening::{BOUND, counted, trouble};
use crate::support::{
    self, FIRST, LEASE, SKEW, SOON, begin_write, builder, candidate, gated, is_cut_off, pass, until, within,
};
use kube_leader_gate::{
    election::Running,
    leadership::WritePermit,
    testing::{ApiServer, Fault},
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

/// A candidate that has lost its term, and whose guarded write has not ended. It counts how often its gate begins to wait.
async fn writing_beyond_its_term() -> (ApiServer, Running, Arc<AtomicU32>, WritePermit) {
    let server = ApiServer::new();
    let (election, begun) = counted(candidate(&server, "a"));
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let permit = a.candidate().admit("helm upgrade").unwrap();
    server.delete("outsider", LEASE).unwrap();
    until(SOON, "the term is lost", || !a.candidate().is_leader()).await;
    (server, a, begun, permit)
}

/// The list would lack such a write, and the next term may begin at once.
#[tokio::test(start_paused = true)]
async fn s16_wait_begins_when_an_own_write_without_an_answer_can_land_no_more() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let client = gated(&server, &election, "a");
    let (election, begun) = counted(election);
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let _stalls = server.inject(Fault::hang_before().user("a").verb("create").resource("tokenreviews"));
    let written = begin_write(a.candidate(), &client).await;
    server.delete("outsider", LEASE).unwrap();
    let lost = within(SOON, "it is cut off", written).await.unwrap();
    assert!(is_cut_off(&lost), "{lost:?}");
    pass(SKEW * 9 / 10).await;
    assert_eq!(begun.load(SeqCst), 1, "the write may still land, and the list would lack it");
    until(FIRST, "it waits again", || begun.load(SeqCst) == 2).await;
}

/// The program needs 3 s to end a process that it has begun in the first term. Rule S4 counts the margin from this end.
#[tokio::test(start_paused = true)]
async fn s16_wait_begins_after_an_own_write_that_ends_after_its_term() {
    let (_server, a, begun, permit) = writing_beyond_its_term().await;
    pass(3 * FIRST).await;
    assert!(
        trouble(a.candidate()).ends_with("or has not ended, may still take effect"),
        "{}",
        trouble(a.candidate())
    );
    drop(permit);
    pass(SKEW * 9 / 10).await;
    assert_eq!(
        begun.load(SeqCst),
        1,
        "the write has just ended and may still land, and the list would lack it"
    );
    until(FIRST, "it waits", || begun.load(SeqCst) == 2).await;
}

#[tokio::test(start_paused = true)]
async fn s16_gate_stays_shut_while_an_own_write_does_not_end() {
    let (server, a, begun, _permit) = writing_beyond_its_term().await;
    pass(BOUND / 2 + SKEW).await;
    assert!(begun.load(SeqCst) == 1 && !a.candidate().can_write());
    until(BOUND, "it gives the lease up", || trouble(a.candidate()).contains("has given the lease up")).await;
    let b = candidate(&server, "b").start();
    within(2 * BOUND, "the other one leads", b.candidate().elected()).await;
}

/// What an earlier container of this pod has sent may still land when the next container takes the lease back.
#[tokio::test(start_paused = true)]
async fn s16_wait_begins_when_the_writes_of_an_earlier_container_can_land_no_more() {
    let server = ApiServer::new();
    let of_pod = || builder("a").pod_uid("pod-1").apart();
    let before = support::build(&server, "a", of_pod()).unwrap().start();
    within(FIRST, "it leads", before.candidate().elected()).await;
    drop(before);
    // It has held the lease for long, so the next container takes it at once.
    let long_ago = "2026-01-01T00:00:00.000000Z";
    server.edit("outsider", LEASE, |lease| lease["spec"]["acquireTime"] = long_ago.into()).unwrap();
    let (election, begun) = counted(support::build(&server, "a", of_pod()).unwrap());
    let _a = election.start();
    pass(SKEW * 9 / 10).await;
    assert_eq!(begun.load(SeqCst), 0, "what the container before has sent may still land");
    until(FIRST, "it waits", || begun.load(SeqCst) == 1).await;
}
