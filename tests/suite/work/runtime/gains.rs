//! When `Candidate::gains` yields an item, and when it ends.

use crate::{
    locks::flawed::{Flaw, flawed},
    support::{FIRST, SOON, candidate, leading, pass, steal, until, within},
    work::runtime::things::depose,
};
use futures_util::{FutureExt, StreamExt};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[tokio::test(start_paused = true)]
async fn gains_yields_once_for_each_term() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let mut gains = a.candidate().gains();
    assert_eq!(gains.next().now_or_never(), Some(Some(())), "it leads already");
    for _ in 0..3 {
        assert_eq!(gains.next().now_or_never(), None, "no second item for one term");
        depose(&server);
        until(SOON, "the candidate loses the lease", || !a.candidate().can_write()).await;
        assert_eq!(gains.next().now_or_never(), None, "a loss is no gain");
        within(Duration::from_secs(3), "the candidate leads again", gains.next()).await.expect("goes on");
        assert!(a.candidate().can_write(), "the gate is open when it fires");
    }
}

#[tokio::test(start_paused = true)]
async fn renewal_or_other_holder_is_not_a_gain() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    let (mut of_a, mut of_b) = (a.candidate().gains(), b.candidate().gains());
    assert_eq!(of_a.next().now_or_never(), Some(Some(())));
    pass(Duration::from_secs(60)).await;
    assert_eq!(of_a.next().now_or_never(), None, "renewed many times");
    assert_eq!(of_b.next().now_or_never(), None);
    steal(&server);
    until(SOON, "both know", || b.candidate().holder().as_deref() == Some("outsider")).await;
    assert_eq!(of_a.next().now_or_never(), None);
    assert_eq!(of_b.next().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_gets_one_item_for_several_gains() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let mut gains = a.candidate().gains();
    assert_eq!(gains.next().now_or_never(), Some(Some(())));
    for _ in 0..4 {
        depose(&server);
        until(SOON, "the candidate loses the lease", || !a.candidate().can_write()).await;
        within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
    }
    assert_eq!(gains.next().now_or_never(), Some(Some(())));
    assert_eq!(gains.next().now_or_never(), None);
}

/// The deadline passes and no task notices: the elector's own call hangs.
#[tokio::test(start_paused = true)]
async fn s1_lost_term_is_not_reported_as_gain() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let mut gains = a.candidate().gains();
    let hang = server.inject(Fault::hang_before());
    until(Duration::from_secs(11), "the gate closes", || !a.candidate().can_write()).await;
    assert_eq!(gains.next().now_or_never(), None, "the candidate no longer leads");
    drop(hang);
    within(Duration::from_secs(10), "the candidate leads again", gains.next()).await.expect("goes on");
    assert!(a.candidate().can_write());
}

#[tokio::test(start_paused = true)]
async fn gains_end_with_the_election() {
    for (stop, lead) in [(true, true), (true, false), (false, true), (false, false)] {
        let server = ApiServer::new();
        let (a, _) = leading(&server, "a").await;
        let b = candidate(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        let election = if lead { a } else { b };
        let mut gains = election.candidate().gains();
        assert_eq!(gains.next().now_or_never(), lead.then_some(Some(())));
        let waiting = tokio::spawn(async move { (gains.next().await, gains.next().await) });
        tokio::task::yield_now().await;
        if stop {
            election.stop().await;
        } else {
            drop(election);
        }
        let ended = within(SOON, "the stream ends", waiting).await.expect("no panic");
        assert_eq!(ended, (None, None), "stopped: {stop}, led: {lead}");
    }
}

/// An election that never began, and one whose task has panicked before its owner looked.
#[tokio::test(start_paused = true)]
async fn gains_end_when_election_ends_without_a_stop() {
    let server = ApiServer::new();
    let a = candidate(&server, "a");
    let mut gains = a.candidate().gains();
    assert_eq!(gains.next().now_or_never(), None);
    drop(a);
    assert_eq!(gains.next().now_or_never(), Some(None), "the election never began");

    let panics = Arc::new(AtomicBool::new(false));
    let a = flawed(&server, "a", Flaw::Panics(panics.clone())).start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut gains = a.candidate().gains();
    assert_eq!(gains.next().now_or_never(), Some(Some(())));
    panics.store(true, Ordering::SeqCst);
    a.candidate().ended().await.unwrap_err();
    assert_eq!(within(SOON, "the stream ends", gains.next()).await, None);
}
