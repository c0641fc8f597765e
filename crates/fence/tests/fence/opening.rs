//! When the gate opens.

use crate::{
    support::{
        FIRST, LEASE, PATIENCE, RENEW_DEADLINE, RETRY_PERIOD, SKEW, SOON, begin_write, candidate, free,
        holder, pass, releases, steal, until, within, write,
    },
    wall::{Mood, Wall},
};
use kube_leader_gate::{election::LeaseEnd, testing::Fault};
use std::time::Duration;
use tokio::time::Instant;

/// After a failed call, a candidate waits for so long at most.
const BACKOFF: Duration = Duration::from_millis(500);

/// A short lag is no trouble.
#[tokio::test(start_paused = true)]
async fn gate_opens_when_the_api_server_has_heard() {
    for lag in [3, 7] {
        let wall = Wall::new(Mood::LagsFor(lag));
        let (election, client) = wall.candidate("a");
        let a = election.start();
        until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
        assert!(!a.candidate().is_leader());
        within(FIRST, "it leads", a.candidate().elected()).await;
        assert_eq!((*wall.probes.lock().unwrap(), a.candidate().trouble()), (lag + 1, None));
        write(&client).await.unwrap();
    }
}

/// The deadline counts from before the claim was sent, not from the answer of the fence.
#[tokio::test(start_paused = true)]
async fn s1_deadline_counts_from_the_claim() {
    let wall = Wall::new(Mood::LagsFor(7));
    let (election, _) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
    let held = Instant::now();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let (waited, left) = (held.elapsed(), a.candidate().leadership().time_left().unwrap());
    assert!(waited > Duration::from_millis(400), "{waited:?}");
    assert!(left + waited <= RENEW_DEADLINE && left + waited + SOON > RENEW_DEADLINE, "{left:?}, {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn each_obstacle_is_named_and_nothing_opens() {
    for (mood, says) in [
        (Mood::Absent, "no fence \"operator.default.leader-gate\" judges this client; apply the policy"),
        (Mood::Forbidden, "the fence was not asked; grant create on leases"),
        (Mood::Broken, "resulted in error: no such key"),
        (Mood::LagsFor(u32::MAX), "\"former\" holds the lease"),
        (Mood::KnowsAnEarlierTerm, "pass in term earlier/0"),
        (Mood::Silent, "no answer within 812.5ms"),
    ] {
        let wall = Wall::new(mood);
        let (election, client) = wall.candidate("a");
        let a = election.start();
        until(RENEW_DEADLINE, "there is trouble", || a.candidate().trouble().is_some()).await;
        let trouble = a.candidate().trouble().unwrap();
        let begins = "the fence keeps the gate shut: ";
        assert!(trouble.starts_with(begins) && trouble.contains(says), "{mood:?}: {trouble}");
        assert!(!a.candidate().is_leader());
        assert!(write(&client).await.unwrap_err().to_string().contains(&*trouble));
        wall.turn(Mood::Follows);
        within(RENEW_DEADLINE, "it leads", a.candidate().elected()).await;
        assert_eq!(a.candidate().trouble(), None);
        assert_eq!(within(SOON, "it stops", a.stop()).await, LeaseEnd::Released);
    }
}

/// It gives the lease to the others, and tries again after a retry period.
#[tokio::test(start_paused = true)]
async fn shut_gate_hands_the_lease_on() {
    let wall = Wall::new(Mood::Forbidden);
    free(&wall.server);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    until(SOON, "it holds the lease", || holder(&wall.server) == "a").await;
    pass(PATIENCE.saturating_sub(SOON)).await;
    assert_eq!(holder(&wall.server), "a");
    until(BACKOFF + SOON * 2, "it gives the lease away", || holder(&wall.server).is_empty()).await;
    pass(RETRY_PERIOD.saturating_sub(SOON)).await;
    assert_eq!(holder(&wall.server), "", "it rests");
    assert!(a.candidate().trouble().is_some(), "for the same reason");
    until(SOON * 3, "it tries again", || holder(&wall.server) == "a").await;
    let b = candidate(&wall.server, "b").start();
    within(PATIENCE + BACKOFF + SOON, "the other leads", b.candidate().elected()).await;
    assert!(!a.candidate().is_leader());
}

/// The fence is mended while another candidate holds the lease.
#[tokio::test(start_paused = true)]
async fn trouble_of_a_shut_gate_ends_when_another_leads() {
    let wall = Wall::new(Mood::Forbidden);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    until(RENEW_DEADLINE, "there is trouble", || a.candidate().trouble().is_some()).await;
    let b = candidate(&wall.server, "b").start();
    within(RENEW_DEADLINE + SOON, "the other leads", b.candidate().elected()).await;
    until(SOON, "it sees that", || a.candidate().holder().as_deref() == Some("b")).await;
    assert_eq!(a.candidate().trouble(), None);
    a.candidate().check_ready().unwrap();
}

#[tokio::test(start_paused = true)]
async fn step_down_of_a_candidate_with_a_shut_gate_releases_the_lease() {
    let wall = Wall::new(Mood::Forbidden);
    let (election, _) = wall.candidate("a");
    let mut a = election.start();
    let candidate = a.candidate().clone();
    until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
    let down = tokio::spawn(async move { (a.step_down(RENEW_DEADLINE).await, a) });
    until(PATIENCE + BACKOFF, "it releases the lease", || holder(&wall.server).is_empty()).await;
    wall.turn(Mood::Follows);
    pass(RETRY_PERIOD * 2).await;
    assert_eq!(holder(&wall.server), "", "it stands down");
    let (left, _a) = down.await.unwrap();
    assert_eq!(left, LeaseEnd::Released);
    within(FIRST, "it tries again", candidate.elected()).await;
    assert_eq!(candidate.trouble(), None);
}

/// The claim is not answered, so the stop waits for the end of its wait, and then releases what it has written.
#[tokio::test(start_paused = true)]
async fn s4_stop_releases_the_lease_of_a_shut_gate() {
    let wall = Wall::new(Mood::Silent);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
    let candidate = a.candidate().clone();
    assert_eq!(within(PATIENCE + BACKOFF, "it stops", a.stop()).await, LeaseEnd::Released);
    assert_eq!(holder(&wall.server), "");
    assert!(candidate.trouble().unwrap().contains("has ended"));
    let probes = *wall.probes.lock().unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(*wall.probes.lock().unwrap(), probes, "it asks no more");
}

/// The new lease is this candidate's too, but not the term. A write of the last term was cut off, and may still land.
#[tokio::test(start_paused = true)]
async fn s4_shut_gate_gives_the_lease_away_after_earlier_writes() {
    let wall = Wall::new(Mood::Follows);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    let _hang = wall.server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    wall.turn(Mood::Absent);
    wall.server.delete("outsider", LEASE).unwrap();
    writing.await.unwrap().unwrap_err();
    let cut_off = Instant::now();
    until(RENEW_DEADLINE, "it gives the lease away", || releases(&wall.server, "a") > 0).await;
    assert!(cut_off.elapsed() >= SKEW.saturating_sub(SOON), "{:?}", cut_off.elapsed());
}

/// The answer for a former term opens nothing.
#[tokio::test(start_paused = true)]
async fn s7_theft_ends_the_wait() {
    let wall = Wall::new(Mood::Silent);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
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
async fn s8_new_term_after_a_deletion_asks_again() {
    let wall = Wall::new(Mood::Follows);
    let (election, _) = wall.candidate("a");
    let a = election.start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    wall.turn(Mood::Absent);
    wall.server.delete("outsider", LEASE).unwrap();
    until(SOON, "it loses", || !a.candidate().is_leader()).await;
    until(FIRST, "it holds a new lease", || holder(&wall.server) == "a").await;
    pass(RETRY_PERIOD).await;
    assert!(!a.candidate().is_leader());
    wall.turn(Mood::Follows);
    within(RETRY_PERIOD * 3, "it leads", a.candidate().elected()).await;
}

/// A claim that takes longer than half of the call timeout leaves the fence less time, and is not given up in the wait.
#[tokio::test(start_paused = true)]
async fn s9_slow_claim_leaves_time_for_the_fence() {
    for (mood, opens) in [(Mood::LagsFor(5), true), (Mood::Absent, false)] {
        let wall = Wall::new(mood);
        let slow = Duration::from_secs(1);
        let _slow = wall.server.inject(Fault::delay_after(slow).user("a").verb("create").times(1));
        let a = wall.candidate("a").0.start();
        until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
        if opens {
            within(slow + FIRST, "it leads", a.candidate().elected()).await;
            continue;
        }
        until(slow + FIRST, "it gives the lease away", || holder(&wall.server).is_empty()).await;
        assert!(a.candidate().trouble().unwrap().contains("no fence"));
    }
}

#[tokio::test(start_paused = true)]
async fn process_that_ends_in_the_wait_leaves_the_lease_to_expire() {
    let wall = Wall::new(Mood::Silent);
    let (election, client) = wall.candidate("a");
    let a = election.start();
    until(FIRST, "it holds the lease", || holder(&wall.server) == "a").await;
    drop(a);
    wall.turn(Mood::Follows);
    write(&client).await.unwrap_err();
    let b = candidate(&wall.server, "b").start();
    pass(RENEW_DEADLINE).await;
    assert_eq!((holder(&wall.server).as_str(), b.candidate().is_leader()), ("a", false));
    within(RENEW_DEADLINE, "the other leads", b.candidate().elected()).await;
}
