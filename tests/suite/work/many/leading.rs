//! Many elections in one process lead and hand over at a low cost.

use super::replica::{Fate, MANY, Network, Replica, over, pool};
use crate::support::{pass, until};
use kube_leader_gate::{
    LeaseTiming,
    testing::{ApiServer, Fault},
};
use std::{sync::atomic::Ordering, time::Duration};

/// One client, one watch, and one renewal for each lease and retry period.
#[tokio::test(start_paused = true)]
async fn hundred_elections_share_one_client_and_watch() {
    let server = ApiServer::new();
    let network = Network::new(&server, "a", |_, _| Fate::Passes);
    let a = Replica::start(&over(network.clone(), true), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    pass(Duration::from_secs(4)).await;
    let (writes, reads) = (server.write_log().len(), server.reads("a", "get", "leases"));
    pass(Duration::from_secs(20)).await;
    a.leads(Duration::from_millis(1)).await;
    assert_eq!(network.made.load(Ordering::SeqCst), 1);
    assert_eq!(server.open_watches(), 1);
    assert_eq!(network.shared.load(Ordering::SeqCst), 1);
    assert_eq!(network.single.load(Ordering::SeqCst), 0);
    assert_eq!(server.reads("a", "get", "leases"), reads, "no election has to read");
    let writes = server.write_log().len() - writes;
    assert!((MANY * 9..=MANY * 11).contains(&writes), "{writes} renewals in 20 s at a retry period of 2 s");
}

/// As many calls as there are connections for, not two hundred.
#[tokio::test(start_paused = true)]
async fn at_most_32_calls_run_at_once() {
    let server = ApiServer::new();
    let _slow = server.inject(Fault::delay_before(Duration::from_millis(10)).resource("leases"));
    let network = Network::new(&server, "a", |_, _| Fate::Passes);
    let a = Replica::start(&over(network.clone(), true), "a", MANY);
    // The calls wait for each other, so the first ones are slow, and each candidate spreads its first attempt.
    a.leads(Duration::from_secs(2)).await;
    assert_eq!(network.most.load(Ordering::SeqCst), 32);
}

/// The time of a call begins when it is sent: the server takes half a second for each, and is not late.
#[tokio::test(start_paused = true)]
async fn s9_call_that_waits_for_its_place_is_not_late() {
    let server = ApiServer::new();
    let _slow = server.inject(Fault::delay_before(Duration::from_millis(500)).resource("leases"));
    let a = Replica::start(&pool(&server, "a", true), "a", MANY);
    let all_well = || a.elections.iter().all(|it| it.candidate().trouble().is_none());
    for _ in 0..100 {
        pass(Duration::from_millis(100)).await;
        assert!(all_well());
    }
    a.leads(Duration::from_millis(1)).await;
}

/// What the shared watch has shown need not be read.
#[tokio::test(start_paused = true)]
async fn first_look_of_elections_that_begin_together_is_the_watchs() {
    let server = ApiServer::new();
    let _a = Replica::leading(&server, "a", true).await;
    let _slow = server.inject(Fault::delay_before(Duration::from_millis(50)).user("b").verb("get"));
    let b = Replica::start(&pool(&server, "b", true), "b", MANY);
    b.knows("a").await;
    assert_eq!(server.reads("b", "get", "leases"), 32, "those that were sent before the watch began");
}

#[tokio::test(start_paused = true)]
async fn each_election_watches_alone_without_shared_watch() {
    let server = ApiServer::new();
    let network = Network::new(&server, "a", |_, _| Fate::Passes);
    let a = Replica::start(&over(network.clone(), false), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    assert_eq!(network.made.load(Ordering::SeqCst), 1);
    assert_eq!((server.open_watches(), network.shared.load(Ordering::SeqCst)), (MANY, 0));
}

#[tokio::test(start_paused = true)]
async fn stopped_replica_hands_over_all_leases_at_once() {
    for shared in [true, false] {
        let server = ApiServer::new();
        let a = Replica::leading(&server, "a", shared).await;
        let b = Replica::start(&pool(&server, "b", shared), "b", MANY);
        b.knows("a").await;
        pass(Duration::from_secs(10)).await;
        let reads = server.reads("b", "get", "leases");
        pass(Duration::from_secs(10)).await;
        assert_eq!(server.reads("b", "get", "leases"), reads, "a follower reads nothing");
        a.stop().await;
        b.leads(Duration::from_millis(100)).await;
    }
}

/// The leases of a crashed replica expire one by one, as they were renewed.
#[tokio::test(start_paused = true)]
async fn leases_of_crashed_replica_change_hands_at_expiry() {
    let server = ApiServer::new();
    let a = Replica::leading(&server, "a", true).await;
    let b = Replica::start(&pool(&server, "b", true), "b", MANY);
    b.knows("a").await;
    drop(a);
    pass(Duration::from_secs(12)).await;
    assert_eq!(b.least_time_left(&[]), Duration::ZERO);
    b.leads(Duration::from_millis(3100)).await;
}

/// All renewals at one instant would be a hundred calls at once in each retry period, for ever.
#[tokio::test(start_paused = true)]
async fn renewals_are_spread_over_retry_period() {
    let server = ApiServer::new();
    let a = Replica::leading(&server, "a", true).await;
    pass(Duration::from_secs(10)).await;
    let most = || {
        let mut tenths = [0; 20];
        let now = tokio::time::Instant::now();
        for write in server.write_log() {
            let ago = now.duration_since(write.received.at);
            if ago < Duration::from_secs(2) {
                tenths[usize::try_from(ago.as_millis()).unwrap() / 100] += 1;
            }
        }
        *tenths.iter().max().unwrap()
    };
    assert!(most() < MANY / 3, "{} in a tenth of a second", most());

    // An outage brings the renewals together again.
    let outage = server.inject(Fault::hang_before());
    pass(Duration::from_secs(4)).await;
    drop(outage);
    pass(Duration::from_secs(10)).await;
    a.leads(Duration::from_millis(1)).await;
    assert!(most() < MANY / 3, "{} in a tenth of a second after an outage", most());
}

/// Two candidates of one process contend for one lease with two identities.
#[tokio::test(start_paused = true)]
async fn two_candidates_of_one_lease_can_share_pool() {
    let server = ApiServer::new();
    let pool = pool(&server, "a", true);
    let a = Replica::start(&pool, "a", 1);
    a.leads(Duration::from_secs(1)).await;
    let b = Replica::start(&pool, "b", 1);
    b.knows("a").await;
    a.stop().await;
    b.leads(Duration::from_millis(100)).await;
    assert_eq!(server.open_watches(), 1);
}

/// An election that begins late knows its lease at once, although the watch has reported it before.
#[tokio::test(start_paused = true)]
async fn late_election_joins_the_shared_watch() {
    let server = ApiServer::new();
    let a = Replica::leading(&server, "a", true).await;
    let b_pool = pool(&server, "b", true);
    let early = Replica::start(&b_pool, "b", 10);
    early.knows("a").await;
    let late = Replica::start(&b_pool, "b2", MANY);
    late.knows("a").await;
    assert_eq!(server.reads("b", "watch", "leases"), 1);
    // The election does not take its watch for silent.
    let reads = server.reads("b", "get", "leases");
    pass(LeaseTiming::fast().retry_period() * 5).await;
    assert_eq!(server.reads("b", "get", "leases"), reads);
    drop(early);
    a.stop().await;
    until(Duration::from_millis(100), "the candidate leads", || late.least_time_left(&[]) > Duration::ZERO)
        .await;
}
