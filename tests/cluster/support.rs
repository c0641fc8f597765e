//! Waiting, in real time, and what scenarios check in results and in the log.

use crate::world::World;
use kube_leader_gate::testing::{Judge, Verdict, WriteRecord};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use test_support::assert_safety;
use tokio::net::TcpSocket;

pub use test_support::{
    refusals::{is_cut_off, is_not_leader},
    wait::within,
};

/// For conditions that must come true: far longer than they take, so that a busy machine does not fail a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` holds.
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    test_support::wait::until_told(PATIENCE, Duration::from_millis(5), what, condition).await;
}

/// Checks for some time that `condition` holds.
pub async fn throughout(time: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let seen = async {
        loop {
            assert!(condition(), "not throughout {time:?}: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // The passing of time is the condition here.
    let _ = tokio::time::timeout(time, seen).await;
}

/// The successful writes of this user to leases.
pub async fn lease_writes(world: &impl World, user: &str) -> Vec<WriteRecord> {
    let mut log = world.writes().await;
    log.retain(|write| write.resource == "leases" && write.user == user && write.took_effect());
    log
}

/// The write by which this user released the lease.
pub async fn release(world: &impl World, user: &str) -> Option<WriteRecord> {
    let is_release =
        |write: &WriteRecord| write.lease.as_ref().is_some_and(|lease| lease.holder_identity.is_empty());
    lease_writes(world, user).await.into_iter().find(is_release)
}

/// Checks that no candidate lost a swap of the lease twice with the version that it had seen.
pub async fn no_swap_is_lost_twice(world: &impl World) {
    let log = world.writes().await;
    let mut lost: Vec<_> = (log.iter().filter(|write| write.resource == "leases" && write.status == 409))
        .map(|write| (write.user.as_str(), write.seen_version.as_deref().expect("the version of a swap")))
        .collect();
    lost.sort_unstable();
    assert!(lost.windows(2).all(|pair| pair[0] != pair[1]), "lost twice with one version: {lost:?}");
}

/// A port on which no server listens. No other process gets it while the socket lives.
pub fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let addr = socket.local_addr().expect("its address");
    (socket, addr)
}

/// Checks that the lease of this user, who stopped answering, was not taken before it had expired. Returns how long
/// after. That counts from when the last renewal arrived: the others may see it before it is answered.
pub async fn taken_over(world: &impl World, user: &str) -> Duration {
    let mut log = world.writes().await;
    log.retain(|write| write.resource == "leases" && write.took_effect());
    let first = log.iter().position(|write| write.user == user).expect("the candidate led");
    let next = log[first..].iter().position(|write| write.user != user).expect("a successor") + first;
    let lease = log[next - 1].lease.as_ref().expect("a lease");
    let seconds = lease.lease_duration_seconds.and_then(|it| u64::try_from(it).ok()).expect("a duration");
    let end = log[next - 1].received.at + Duration::from_secs(seconds);
    let taken = log[next].completed.expect("it took effect").at;
    taken.checked_duration_since(end).unwrap_or_else(|| {
        panic!("SAFETY: taken {:?} before its end: {:?}", end - taken, &log[next - 1..=next])
    })
}

/// The log's report on `operator`. No candidate wrote after another had taken over.
pub async fn judged(world: &impl World, candidates: &[&str]) -> Verdict {
    let judge = Judge::new(world.namespace(), "operator", candidates.iter().copied());
    let verdict = judge.verdict(&world.writes().await);
    let overlaps: Vec<_> = verdict.overlaps().collect();
    assert_safety!(overlaps.is_empty(), "writes by a non-holder: {overlaps:#?}");
    verdict
}
