//! Writes that are no requests to the Kubernetes API, under the guard of an election.

use crate::support::{SKEW, SOON, candidate, leading, pass, steal, until, within, write};
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader,
    election::{LeaseEnd, Running},
    gate::ErrGuarded,
    leadership::Loss,
    testing::{ApiServer, Fault},
};
use std::{convert::Infallible, future::pending, io, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

const SECOND: Duration = Duration::from_secs(1);
const LABEL: &str = "charge the card";

type Outcome<T> = JoinHandle<Result<T, ErrGuarded>>;

/// A guarded write that takes two seconds, in a task of its own.
fn begin(a: &Running) -> Outcome<&'static str> {
    let answer = async {
        sleep(2 * SECOND).await;
        Ok::<_, Infallible>("charged")
    };
    tokio::spawn(a.candidate().guard(LABEL, answer))
}

#[tokio::test(start_paused = true)]
async fn s4_stop_waits_for_guarded_write() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let writing = begin(&a);
    let begun = Instant::now();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert_eq!(writing.await.unwrap().unwrap(), "charged");
    let took = begun.elapsed();
    assert!(took >= 2 * SECOND && took < 2 * SECOND + SOON, "{took:?}");
}

/// An error is no answer: the card may have been charged.
#[tokio::test(start_paused = true)]
async fn s4_failed_guarded_write_holds_the_lease() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let failed = async { Err::<(), _>(io::Error::other("the connection broke")) };
    a.candidate().guard(LABEL, failed).await.unwrap_err();
    let begun = Instant::now();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert!(begun.elapsed() >= SKEW, "{:?}", begun.elapsed());
}

/// A write through the gated client as a whole reconciliation under guard, which returns its error inside `Ok`.
async fn stop_after_failed_reconciliation(fault: Fault) -> Duration {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _fault = server.inject(fault.resource("tokenreviews"));
    let reconcile = async { Ok::<_, Infallible>(write(&client).await) };
    a.candidate().guard("reconcile", reconcile).await.unwrap().unwrap_err();
    let begun = Instant::now();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn s4_answered_error_inside_ok_releases_at_once() {
    for status in [404, 409, 422] {
        let took = stop_after_failed_reconciliation(Fault::status(status)).await;
        assert!(took < SOON, "{status}: {took:?}");
    }
}

/// The gate judges the request by itself, whatever the guard is told.
#[tokio::test(start_paused = true)]
async fn s4_unanswered_request_inside_ok_holds_the_lease() {
    for fault in [Fault::drop_after(), Fault::status(504)] {
        let took = stop_after_failed_reconciliation(fault).await;
        assert!(took >= SKEW, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s2_theft_cuts_off_guarded_write() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let writing = tokio::spawn(a.candidate().guard(LABEL, pending::<Result<(), Infallible>>()));
    until(SOON, "the write is under way", || a.candidate().leadership().writes_under_way() == 1).await;
    steal(&server);
    let error = within(SOON, "it is cut off", writing).await.unwrap().unwrap_err();
    let lost = ErrLeadershipLost::find(&error).expect("cut off");
    assert_eq!((lost.loss(), lost.label()), (Loss::Taken, Some(LABEL)));
    let error = a.candidate().guard(LABEL, pending::<Result<(), Infallible>>()).await.unwrap_err();
    assert_eq!(ErrNotLeader::find(&error).expect("refused").holder(), Some("outsider"));
}

/// The handle of one term, after an expiry: the same process leads again.
#[tokio::test(start_paused = true)]
async fn s11_handle_of_a_term_refuses_in_the_next() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let any = a.candidate();
    let term = any.term().unwrap();
    let first = any.only_in(&term);
    let charge = || async { Ok::<_, Infallible>("charged") };
    assert_eq!(first.guard(LABEL, charge()).await.unwrap(), "charged");
    assert!(first.can_write() && first.admit(LABEL).is_ok());
    let outage = server.inject(Fault::hang_before().resource("leases"));
    until(11 * SECOND, "the term is over", || !any.is_leader()).await;
    drop(outage);
    until(10 * SECOND, "it leads again", || any.can_write()).await;
    assert!(!first.can_write() && first.clone().admit(LABEL).is_err());
    let error = first.guard(LABEL, charge()).await.unwrap_err();
    assert_eq!(ErrNotLeader::find(&error).expect("refused").attempt().label(), Some(LABEL));
    assert_eq!(any.leadership().writes_under_way(), 0);
    assert!(any.only_in(&term).admit(LABEL).is_err(), "nor does a handle that comes late");
    let second = any.only_in(&any.term().unwrap());
    assert_eq!(second.guard(LABEL, charge()).await.unwrap(), "charged");
    assert_eq!(any.guard(LABEL, charge()).await.unwrap(), "charged");
}

/// The admission of a write that is no future.
#[tokio::test(start_paused = true)]
async fn s1_admission_ends_at_deadline_without_renewal() {
    let server = ApiServer::new();
    let follower = candidate(&server, "b").candidate();
    let refused = follower.admit(LABEL).unwrap_err();
    assert_eq!(refused.attempt().label(), Some(LABEL));
    let (a, _) = leading(&server, "a").await;
    let mut admission = a.candidate().admit(LABEL).expect("it leads");
    assert!(admission.is_valid());
    let _outage = server.inject(Fault::hang_before().resource("leases"));
    pass(11 * SECOND).await;
    assert!(!admission.is_valid());
    assert_eq!(admission.loss(), Loss::Expired);
    admission.answered();
    assert_eq!(a.candidate().leadership().writes_under_way(), 1);
    drop(admission);
    assert_eq!(a.candidate().leadership().writes_under_way(), 0);
}
