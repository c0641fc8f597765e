//! S1: a deadline, not a flag.

use crate::support::{ALMOST, STEP, TERM, WRITE, assert_not_leader, gate, lead, lead_in, stage, write};
use kube_leader_gate::leadership::{Loss, Term};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower_test::assert_request_eq;

#[tokio::test]
async fn s1_write_reaches_service_only_before_deadline() {
    let (grantor, leadership, clock) = stage();
    let (mut service, mut requests) = gate(&leadership);
    requests.allow(10);
    assert_ready_ok!(service.poll_ready());
    assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));

    let _grant = lead(&grantor);
    clock.advance(ALMOST);
    let mut last = task::spawn(service.call(write()));
    assert_pending!(last.poll());
    assert_request_eq!(requests, WRITE).send_response("made");
    assert_eq!(assert_ready_ok!(last.poll()).into_body(), "made");

    // No task acts. Only time passes.
    clock.advance(STEP);
    assert_ready_ok!(service.poll_ready());
    assert_not_leader(&assert_ready_err!(task::spawn(service.call(write())).poll()));
    assert_pending!(task::spawn(requests.next_request()).poll());
}

#[test]
fn s1_all_views_agree_on_deadline() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    let views = || {
        let admitted = leadership.admit().is_some();
        [
            admitted,
            leadership.is_leader(),
            leadership.can_write(),
            leadership.term().is_some(),
            grant.is_valid(),
        ]
    };
    clock.advance(ALMOST);
    assert_eq!(views(), [true; 5]);
    clock.advance(STEP);
    assert_eq!(views(), [false; 5]);
    clock.advance(TERM * 1000);
    assert_eq!(views(), [false; 5]);
}

/// No task has noticed the end here. Only the deadline shows it.
#[test]
fn s1_elected_never_returns_an_ended_term() {
    let (grantor, leadership, clock) = stage();
    let first = lead(&grantor);
    assert_eq!(assert_ready!(task::spawn(leadership.elected()).poll()), Term::new("uid", 1));
    clock.advance(TERM);
    assert_eq!(leadership.state().term, Some(Term::new("uid", 1)), "the end is not noticed yet");
    let mut waiting = task::spawn(leadership.elected());
    assert_pending!(waiting.poll());
    first.end(Loss::Expired);
    assert_pending!(waiting.poll());
    let taken = lead_in(&grantor, 2);
    taken.end(Loss::Taken);
    assert_pending!(waiting.poll(), "the term came and went between two polls");
    let _third = lead_in(&grantor, 3);
    assert!(waiting.is_woken());
    assert_eq!(assert_ready!(waiting.poll()), Term::new("uid", 3));
}

#[test]
fn s1_expired_grant_cannot_be_extended() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    clock.advance(TERM);
    assert!(grant.extend(leadership.now().saturating_add(TERM)).is_err());
    assert!(leadership.admit().is_none());
    // A late answer to an extension does not bypass this.
    clock.advance(TERM * 3);
    assert!(grant.extend(leadership.now().saturating_add(TERM)).is_err());
    assert!(!leadership.is_leader());
}

#[test]
fn s1_ended_grant_cannot_be_extended() {
    let (grantor, leadership, _clock) = stage();
    let grant = lead(&grantor);
    grantor.revoke(Loss::Taken);
    assert!(grant.extend(leadership.now().saturating_add(TERM)).is_err());
    assert!(leadership.admit().is_none());
    let next = lead_in(&grantor, 2);
    assert!(grant.extend(leadership.now().saturating_add(TERM * 2)).is_err(), "the next term is not its own");
    assert_eq!(leadership.deadline(), Some(leadership.now().saturating_add(TERM)));
    assert!(next.is_valid());
}

#[test]
fn s1_extension_sets_its_own_deadline() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    clock.advance(TERM / 2);
    grant.extend(leadership.now().saturating_add(TERM)).unwrap();
    clock.advance(ALMOST);
    assert!(leadership.admit().is_some());
    clock.advance(STEP);
    assert!(leadership.admit().is_none());
}

#[test]
fn s1_extension_never_shortens_the_term() {
    let (grantor, leadership, clock) = stage();
    let grant = lead(&grantor);
    let deadline = leadership.deadline().unwrap();
    // The answer to an earlier renewal comes after that to a later one.
    grant.extend(leadership.now().saturating_add(TERM / 2)).unwrap();
    assert_eq!(leadership.deadline(), Some(deadline));
    clock.advance(ALMOST);
    assert!(leadership.admit().is_some());
}

#[test]
fn s1_grant_after_its_deadline_opens_nothing() {
    let (grantor, leadership, clock) = stage();
    let deadline = leadership.now().saturating_add(TERM);
    clock.advance(TERM);
    assert!(grantor.grant(Term::new("uid", 1), deadline).is_err());
    assert!(leadership.admit().is_none());
    assert_eq!((leadership.term(), leadership.deadline()), (None, None));
}

#[test]
fn s1_next_grant_opens_expired_gate() {
    let (grantor, leadership, clock) = stage();
    let _first = lead(&grantor);
    clock.advance(TERM);
    assert!(leadership.admit().is_none());
    let _second = lead_in(&grantor, 2);
    assert!(leadership.admit().is_some());
    assert_eq!(leadership.term(), Some(Term::new("uid", 2)));
}

#[test]
fn s1_huge_deadline_is_still_a_deadline() {
    let (grantor, leadership, clock) = stage();
    let end = leadership.now().saturating_add(std::time::Duration::MAX);
    let grant = grantor.grant(Term::new("uid", 1), end).unwrap();
    clock.advance(TERM * 1_000_000);
    assert!(leadership.admit().is_some(), "the last bit of the word must not read as closing");
    grantor.close();
    assert!(leadership.admit().is_none());
    assert!(grant.is_valid());
}
