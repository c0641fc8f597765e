//! A watch that is open but sends nothing, for example over a half-open connection.

use crate::locks::flawed::{Flaw, flawed};
use crate::support::{FIRST, SOON, always_held_by, build, builder, candidate, leading, pass, until, within};
use kube_leader_gate::{
    Election, LeaseTiming,
    testing::{ApiServer, Fault},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

fn mute(server: &ApiServer, identity: &str) -> (Election, Arc<AtomicU32>) {
    let watches = Arc::new(AtomicU32::new(0));
    (flawed(server, identity, Flaw::Mute(watches.clone())), watches)
}

#[tokio::test(start_paused = true)]
async fn follower_sees_release_despite_silent_watch() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let (b, watches) = mute(&server, "b");
    let b = b.start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    pass(Duration::from_secs(60)).await;
    assert!(!b.candidate().is_leader(), "a renews");
    assert!(watches.load(Ordering::SeqCst) > 5, "the watch is started afresh");
    a.stop().await;
    within(Duration::from_millis(4100), "b leads", b.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn leader_restarts_a_silent_watch() {
    let server = ApiServer::new();
    let (a, watches) = mute(&server, "a");
    let a = a.start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    pass(Duration::from_secs(60)).await;
    assert!(a.candidate().is_leader());
    assert!(watches.load(Ordering::SeqCst) > 5);
}

/// A renewal that works says nothing about a watch that RBAC refuses.
#[tokio::test(start_paused = true)]
async fn refused_watch_is_tried_ever_more_rarely() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    pass(Duration::from_secs(600)).await;
    assert!(a.candidate().is_leader());
    assert!((10..=30).contains(&refused.hits()), "{} attempts in ten minutes", refused.hits());
}

/// A watch that has just begun shows only what changes from now on. The first read after it may show more.
#[tokio::test(start_paused = true)]
async fn slow_reads_do_not_restart_a_fresh_watch() {
    let server = ApiServer::new();
    let (_a, _) = leading(&server, "a").await;
    let _slow = server.inject(Fault::delay_before(Duration::from_millis(600)).user("b").verb("get"));
    let (b, watches) = mute(&server, "b");
    let _b = b.start();
    pass(Duration::from_secs(20)).await;
    let watches = watches.load(Ordering::SeqCst);
    assert!((2..=7).contains(&watches), "{watches} watches in 20 s");
}

/// During an outage, the pauses between two attempts to watch grow to a minute. The watch does not wait until such a
/// pause ends.
#[tokio::test(start_paused = true)]
async fn watch_restarts_when_calls_work_again() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let outage = server.inject(Fault::status(503).user("b"));
    let b = candidate(&server, "b").start();
    pass(Duration::from_secs(300)).await;
    drop(outage);
    until(LeaseTiming::fast().retry_period() * 2, "b knows a", || b.candidate().holder().is_some()).await;
    pass(SOON).await;
    a.stop().await;
    within(SOON, "b leads", b.candidate().elected()).await;
}

/// To a follower with a silent watch, a holder with a short lease seems to have expired each time.
#[tokio::test(start_paused = true)]
async fn s6_follower_with_silent_watch_takes_no_renewed_lease() {
    let server = ApiServer::new();
    let (lease, renew) = (Duration::from_secs(3), Duration::from_secs(2));
    let timing = LeaseTiming::new(lease, renew, Duration::from_millis(500)).unwrap();
    let a = build(&server, "a", builder("a").timing(timing)).unwrap().start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = mute(&server, "b").0.start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    pass(Duration::from_secs(60)).await;
    let tried = server.write_log().iter().filter(|write| write.user == "b").count();
    assert_eq!(tried, 0, "it polls as long as the watch has shown nothing");
    assert!(always_held_by(&server, "a") && a.candidate().is_leader() && !b.candidate().is_leader());
}
