//! When the gate opens.

use super::wall::{Mood, Wall};
use crate::support::{FIRST, SOON, free, lease_writes, pass, spec, steal, until, within, write};
use kube_leader_gate::{election::LeaseEnd, testing::ApiServer};
use std::time::Duration;

/// The renew deadline at 15/10/2 s.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

fn holder(server: &ApiServer) -> String {
    spec(server)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// A few milliseconds of lag are no trouble.
#[tokio::test(start_paused = true)]
async fn the_gate_opens_when_the_api_server_has_heard() {
    let wall = Wall::new(Mood::LagsFor(3));
    let (election, client) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || wall.server.object(crate::support::LEASE).is_some()).await;
    assert!(!a.candidate().is_leader());
    within(SOON, "it leads", a.candidate().elected()).await;
    assert_eq!((*wall.probes.lock().unwrap(), a.candidate().trouble()), (4, None));
    write(&client).await.unwrap();
}

/// The deadline counts from the renewal that opens the gate, not from the claim or from the probe.
#[tokio::test(start_paused = true)]
async fn s1_the_deadline_counts_from_the_opening_renewal() {
    let wall = Wall::new(Mood::Absent);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    pass(Duration::from_secs(8)).await;
    assert_eq!(holder(&wall.server), "a");
    wall.turn(Mood::Follows);
    within(Duration::from_secs(1), "it leads", a.candidate().elected()).await;
    let left = a.candidate().time_left().unwrap();
    assert!(left <= RENEW_DEADLINE && left + SOON > RENEW_DEADLINE, "{left:?}");
    let log = lease_writes(&wall.server, "a");
    assert!(log.len() >= 5, "it renewed meanwhile: {}", log.len());
}

#[tokio::test(start_paused = true)]
async fn each_obstacle_is_named_and_nothing_opens() {
    for (mood, says) in [
        (Mood::Absent, "no fence \"operator.default.leader-gate\" judges this client; apply the policy"),
        (Mood::Forbidden, "the fence was not asked; grant create on leases"),
        (Mood::Broken, "resulted in error: no such key"),
        (Mood::LagsFor(u32::MAX), "\"former\" holds the lease"),
        (Mood::KnowsAnEarlierTerm, "pass in term earlier/0"),
        (Mood::Silent, "no answer within 1.625s"),
    ] {
        let wall = Wall::new(mood);
        let (election, client) = wall.candidate("a");
        let a = election.start();
        until(RENEW_DEADLINE, "there is trouble", || a.candidate().trouble().is_some()).await;
        let trouble = a.candidate().trouble().unwrap();
        let begins = "this candidate holds the lease, and the gate stays shut: ";
        assert!(trouble.starts_with(begins) && trouble.contains(says), "{mood:?}: {trouble}");
        assert!(!a.candidate().is_leader());
        assert!(write(&client).await.unwrap_err().to_string().contains(&*trouble));
        wall.turn(Mood::Follows);
        within(RENEW_DEADLINE, "it leads", a.candidate().elected()).await;
        assert_eq!(a.candidate().trouble(), None);
    }
}

/// It holds the lease for as long as a term lives without a renewal, and then leaves it to the others.
#[tokio::test(start_paused = true)]
async fn a_shut_gate_hands_the_lease_on() {
    let wall = Wall::new(Mood::Forbidden);
    free(&wall.server);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    pass(RENEW_DEADLINE.saturating_sub(SOON)).await;
    assert_eq!(holder(&wall.server), "a");
    pass(SOON * 2).await;
    assert_eq!(holder(&wall.server), "");
    pass(RETRY_PERIOD.saturating_sub(SOON * 3)).await;
    assert_eq!(holder(&wall.server), "", "it rests");
    assert!(a.candidate().trouble().is_some(), "for the same reason");
    pass(SOON * 3).await;
    assert_eq!(holder(&wall.server), "a", "and tries again");
    let b = crate::support::candidate(&wall.server, "b").start();
    within(RENEW_DEADLINE + SOON, "the other leads", b.candidate().elected()).await;
    assert!(!a.candidate().is_leader());
}

/// The fence is mended while another candidate holds the lease.
#[tokio::test(start_paused = true)]
async fn trouble_of_a_shut_gate_ends_with_the_hold() {
    let wall = Wall::new(Mood::Forbidden);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    until(RENEW_DEADLINE, "there is trouble", || a.candidate().trouble().is_some()).await;
    let b = crate::support::candidate(&wall.server, "b").start();
    within(RENEW_DEADLINE + SOON, "the other leads", b.candidate().elected()).await;
    until(SOON, "it sees that", || a.candidate().holder().as_deref() == Some("b")).await;
    assert_eq!(a.candidate().trouble(), None);
    a.candidate().check_ready().unwrap();
}

/// No other candidate takes the lease meanwhile.
#[tokio::test(start_paused = true)]
async fn trouble_of_a_shut_gate_ends_with_a_step_down() {
    let wall = Wall::new(Mood::Forbidden);
    let (election, _) = wall.candidate("a");
    let mut a = election.start();
    let candidate = a.candidate().clone();
    until(RENEW_DEADLINE, "there is trouble", || candidate.trouble().is_some()).await;
    let down = tokio::spawn(async move {
        a.step_down(RENEW_DEADLINE).await;
        a
    });
    until(SOON, "it releases the lease", || holder(&wall.server).is_empty()).await;
    until(SOON, "the trouble is over", || candidate.trouble().is_none()).await;
    let _a = down.await.unwrap();
    until(RENEW_DEADLINE, "it tries again and says so", || candidate.trouble().is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn s4_a_stop_ends_the_wait_at_once() {
    let wall = Wall::new(Mood::Silent);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || wall.server.object(crate::support::LEASE).is_some()).await;
    assert_eq!(within(SOON, "it stops", a.stop()).await, LeaseEnd::Released);
    let probes = *wall.probes.lock().unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(*wall.probes.lock().unwrap(), probes, "it asks no more");
}

/// The answer for a former term opens nothing.
#[tokio::test(start_paused = true)]
async fn s7_a_theft_ends_the_wait() {
    let wall = Wall::new(Mood::Silent);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || wall.server.object(crate::support::LEASE).is_some()).await;
    steal(&wall.server);
    until(SOON, "it sees the thief", || a.candidate().holder().as_deref() == Some("outsider")).await;
    wall.turn(Mood::Follows);
    pass(Duration::from_secs(5)).await;
    assert!(!a.candidate().is_leader());
    write(&client).await.unwrap_err();
    within(Duration::from_secs(15), "it leads after the thief", a.candidate().elected()).await;
}

/// Each term asks anew.
#[tokio::test(start_paused = true)]
async fn s8_a_new_term_after_a_deletion_asks_again() {
    let wall = Wall::new(Mood::Follows);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    wall.turn(Mood::Absent);
    wall.server.delete("outsider", crate::support::LEASE).unwrap();
    until(SOON, "it loses", || !a.candidate().is_leader()).await;
    until(FIRST, "it holds a new lease", || wall.server.object(crate::support::LEASE).is_some()).await;
    pass(RETRY_PERIOD).await;
    assert!(!a.candidate().is_leader());
    wall.turn(Mood::Follows);
    within(FIRST, "it leads", a.candidate().elected()).await;
}
