//! Calls of many elections of one pool wait for each other.

use super::replica::{MANY, Replica, path, pool, shard};
use crate::support::{pass, until};
use futures_util::future::join_all;
use kube_leader_gate::{
    Election, Identity,
    election::{LeaseEnd, Running},
    lease::LeasePool,
    testing::{ApiServer, Fault, TokioClock},
};
use std::{ops::Range, sync::Arc, time::Duration};
use tokio::time::Instant;

fn at_default_timing(pool: &LeasePool, identity: &str, number: usize) -> Running {
    let election = Election::builder("default", shard(number)).identity(Identity::new(identity).unwrap());
    election.clock(Arc::new(TokioClock::new())).build_in(pool).unwrap().start()
}

/// Elections that lead, at 137/107/26 s.
async fn leading(pool: &LeasePool, identity: &str, numbers: Range<usize>) -> Vec<Running> {
    let all: Vec<_> = numbers.map(|number| at_default_timing(pool, identity, number)).collect();
    let lead = || all.iter().all(|it| it.candidate().can_write());
    until(Duration::from_secs(200), "all lead", lead).await;
    all
}

/// Renewals in time keep their terms, if all wait for their places too: a term counts from when its renewal is sent.
#[tokio::test(start_paused = true)]
async fn s9_slow_server_costs_no_term_while_each_is_renewed_in_time() {
    let server = ApiServer::new();
    let mut a = Replica::start(&pool(&server, "a", true), "a", 120);
    a.leads(Duration::from_secs(5)).await;
    pass(Duration::from_secs(5)).await;
    a.losses();
    let slow = Fault::delay_before(Duration::from_millis(1500)).resource("leases").verb("update");
    let _slow = server.inject(slow);
    pass(Duration::from_secs(60)).await;
    assert_eq!(a.losses(), [0; 0], "each lease is renewed every 5.6 s, and the deadline is 10 s");
}

/// The API server takes two seconds for each call, less than the call timeout, while a process of 200 shards stops.
#[tokio::test(start_paused = true)]
async fn s4_stop_releases_all_leases_of_a_slow_server() {
    let server = ApiServer::new();
    let a = leading(&pool(&server, "a", true), "a", 0..200).await;
    pass(Duration::from_secs(60)).await;
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(2)).resource("leases").verb("update"));
    pass(Duration::from_secs(60)).await;
    let ends = join_all(a.into_iter().map(Running::stop)).await;
    assert_eq!(ends, [LeaseEnd::Released; 200]);
}

/// `b` wants the lease that its holder has released, and its claim waits for a place behind others when `b` is told to stop.
async fn stopped_before_its_claim_is_sent(fault: Fault, wait: Duration) -> (ApiServer, Instant) {
    let server = ApiServer::new();
    let holder = leading(&pool(&server, "h", true), "holder", 200..201).await;
    let pool = pool(&server, "a", true);
    let b = at_default_timing(&pool, "b", 200);
    until(Duration::from_secs(5), "it knows the holder", || b.candidate().holder().is_some()).await;
    pass(Duration::from_secs(5)).await;
    let _slow = server.inject(fault.name(shard(100)).user("a"));
    let of_others = |number| at_default_timing(&pool, &format!("other-{number}"), 100);
    let _others: Vec<_> = (0..64).map(of_others).collect();
    pass(Duration::from_millis(50)).await;
    join_all(holder.into_iter().map(Running::stop)).await;
    pass(wait).await;
    assert_eq!(server.object(&path(200)).unwrap()["spec"]["holderIdentity"], "", "its claim waits");
    let told = Instant::now();
    b.stop().await;
    (server, told)
}

#[tokio::test(start_paused = true)]
async fn s4_candidate_that_stops_sends_no_claim_that_waited() {
    let slow = Fault::delay_before(Duration::from_secs(2));
    let (server, told) = stopped_before_its_claim_is_sent(slow, Duration::from_secs(3)).await;
    let log = server.write_log();
    let late = log.iter().filter(|it| it.user == "a" && it.path == path(200) && it.received.at > told);
    assert_eq!(late.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn s4_claim_that_was_never_sent_delays_no_stop() {
    let (_, told) = stopped_before_its_claim_is_sent(Fault::hang_before(), Duration::from_millis(200)).await;
    assert!(
        told.elapsed() < Duration::from_secs(10),
        "nothing was sent, and the stop took {:?}",
        told.elapsed()
    );
}

/// One call may be lost with its connection. A leader of whose calls one was lost has its place among those that work.
#[tokio::test(start_paused = true)]
async fn s9_leader_with_one_timeout_beside_hanging_ones_keeps_its_term() {
    let server = ApiServer::new();
    let mut a = Replica::start(&pool(&server, "a", true), "a", MANY);
    a.leads(Duration::from_secs(5)).await;
    pass(Duration::from_secs(1)).await;
    let (healthy, hangs) = (MANY - 1, Fault::hang_before);
    let _hang: Vec<_> = (0..healthy).map(|it| server.inject(hangs().name(shard(it)))).collect();
    pass(Duration::from_secs(8)).await;
    let _once = server.inject(hangs().name(shard(healthy)).times(1));
    pass(Duration::from_secs(20)).await;
    assert!(!a.losses().contains(&healthy));
}

/// A watch that has begun knows the present leases.
#[tokio::test(start_paused = true)]
async fn elections_that_join_a_shared_watch_late_read_nothing() {
    let server = ApiServer::new();
    let _a = Replica::leading(&server, "a", true).await;
    let pool = pool(&server, "b", true);
    let early = Replica::start(&pool, "b", 10);
    early.knows("a").await;
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(1)).user("b").verb("get"));
    let before = server.reads("b", "get", "leases");
    let late = Replica::start(&pool, "b2", MANY);
    late.knows("a").await;
    pass(Duration::from_secs(60)).await;
    assert!(
        server.reads("b", "get", "leases") - before <= 32,
        "those that were sent before their watch began"
    );
}
