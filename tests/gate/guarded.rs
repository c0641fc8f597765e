//! A guarded future behaves as the gate does.

use crate::support::{ALMOST, Probe, TERM, lead, lead_in, stage};
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader, Leadership,
    gate::{ErrGuarded, ResponseFuture},
    leadership::{Grantor, Loss},
    testing::TokioClock,
};
use std::{
    convert::Infallible,
    fmt,
    future::{Ready, pending, ready},
    io,
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::Service;

const LABEL: &str = "charge the card";

#[track_caller]
fn assert_lost(error: &ErrGuarded, loss: Loss) {
    assert_eq!(ErrLeadershipLost::find(error).map(ErrLeadershipLost::loss), Some(loss), "{error:?}");
}

/// A guarded future that counts its polls.
fn probed(
    leadership: &Leadership,
    probe: &Probe,
) -> ResponseFuture<Pin<Box<<Probe as Service<()>>::Future>>, &'static str> {
    leadership.guard(LABEL, Service::<()>::call(&mut probe.clone(), ()))
}

#[test]
fn s1_followers_guarded_future_is_never_polled() {
    let (grantor, leadership, _clock) = stage();
    grantor.note_holder(Some("operator-0"));
    let probe = Probe::default();
    let error = assert_ready_err!(task::spawn(probed(&leadership, &probe)).poll());
    let refused = ErrNotLeader::find(&error).expect("refused");
    assert!(refused.attempt().label() == Some(LABEL) && refused.attempt().request().is_none());
    assert_eq!(
        error.to_string(),
        "write attempt rejected as client is not leader: charge the card; nothing was sent; the last known holder of the \
         lease is \"operator-0\"; once this process leads, read what is there and decide again"
    );
    assert_eq!((probe.polls(), probe.drops()), (0, 1), "its future is dropped unpolled");
    assert_eq!(leadership.unanswered(), None, "nothing was sent");
}

/// As a reconciler's error type has it: what stands behind `transparent` shows only its sources.
#[test]
fn refusal_is_found_behind_a_transparent_error() {
    #[derive(Debug, thiserror::Error)]
    #[error(transparent)]
    struct Failure(#[from] ErrGuarded);
    let (_grantor, leadership, _clock) = stage();
    let error = assert_ready_err!(task::spawn(probed(&leadership, &Probe::default())).poll());
    assert!(ErrNotLeader::find(&Failure::from(error)).is_some());
}

#[test]
fn s2_loss_wakes_and_drops_guarded_future() {
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let probe = Probe::default();
    let mut writing = task::spawn(probed(&leadership, &probe));
    assert_pending!(writing.poll());
    grantor.revoke(Loss::Taken);
    assert!(writing.is_woken());
    let error = assert_ready_err!(writing.poll());
    assert_lost(&error, Loss::Taken);
    let lost = ErrLeadershipLost::find(&error).expect("lost");
    assert_eq!((lost.label(), lost.verb()), (Some(LABEL), None));
    assert_eq!(probe.polls(), 1, "not polled after the loss");
    assert_eq!(leadership.writes_under_way(), 0);
}

#[test]
fn s2_guarded_future_is_not_polled_past_deadline() {
    let (grantor, leadership, clock) = stage();
    let _grant = lead(&grantor);
    let probe = Probe::default();
    let mut writing = task::spawn(probed(&leadership, &probe));
    clock.advance(ALMOST);
    assert_pending!(writing.poll());
    clock.advance(TERM);
    assert_lost(&assert_ready_err!(writing.poll()), Loss::Expired);
    assert_eq!(probe.polls(), 1);
}

#[test]
fn s2_guarded_future_of_earlier_term_is_cut_off() {
    let (grantor, leadership, _clock) = stage();
    let _first = lead_in(&grantor, 1);
    let probe = Probe::default();
    let mut writing = task::spawn(probed(&leadership, &probe));
    let _second = lead_in(&grantor, 2);
    assert_lost(&assert_ready_err!(writing.poll()), Loss::Expired);
    assert_eq!(probe.polls(), 0);
}

/// Rule S4: only `Ok` is an answer.
#[test]
fn s4_guarded_write_without_ok_holds_the_lease() {
    type End = fn(&Leadership);
    let ends: [(&str, End, bool); 4] = [
        (
            "ok",
            |it| assert_ready_ok!(task::spawn(it.guard(LABEL, ready(Ok::<_, io::Error>(())))).poll()),
            true,
        ),
        (
            "a certain error inside ok",
            |it| {
                let answer = ready(Ok::<_, io::Error>(Err::<(), _>("constraint violated")));
                assert_eq!(
                    assert_ready_ok!(task::spawn(it.guard(LABEL, answer)).poll()),
                    Err("constraint violated")
                );
            },
            true,
        ),
        (
            "error",
            |it| {
                let failed = ready(Err::<(), _>(io::Error::other("no answer")));
                assert_ready_err!(task::spawn(it.guard(LABEL, failed)).poll());
            },
            false,
        ),
        ("dropped", |it| drop(it.guard(LABEL, pending::<Result<(), io::Error>>())), false),
    ];
    for (how, end, answered) in ends {
        let (grantor, leadership, _clock) = stage();
        let _grant = lead(&grantor);
        end(&leadership);
        assert_eq!(leadership.unanswered().is_none(), answered, "{how}");
        assert_eq!(leadership.writes_under_way(), 0, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn s4_drain_waits_for_guarded_write() {
    let clock = TokioClock::new();
    let grantor = Grantor::with_clock(Arc::new(clock));
    let leadership = grantor.leadership();
    let _grant = lead(&grantor);
    let second = Duration::from_secs(1);
    let writing = leadership.guard(LABEL, async move {
        tokio::time::sleep(second).await;
        Ok::<_, Infallible>(())
    });
    let writing = tokio::spawn(writing);
    grantor.close();
    assert!(leadership.admit().is_none());
    let begun = Instant::now();
    leadership.drain(10 * second).await.expect("it ends in time");
    assert_eq!(begun.elapsed(), second);
    writing.await.unwrap().expect("answered");
    assert_eq!(leadership.unanswered(), None);
}

#[tokio::test(start_paused = true)]
async fn s2_deadline_wakes_hanging_guarded_write() {
    let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
    let _watching = tokio::spawn(grantor.watch_deadline());
    let _grant = lead(&grantor);
    let begun = grantor.now();
    let hanging = grantor.leadership().guard(LABEL, pending::<Result<(), io::Error>>());
    let error = timeout(2 * TERM, hanging).await.expect("woken").unwrap_err();
    assert_lost(&error, Loss::Expired);
    let took = grantor.now().saturating_since(begun);
    assert!(took >= ALMOST && took < TERM + Duration::from_millis(5), "{took:?}");
}

/// A response future has the size that it had when it knew only requests to Kubernetes.
#[test]
fn response_future_of_request_keeps_its_size() {
    const ADMITTED_BESIDES_INNER: usize = 112;
    type Inner = Ready<[u64; 16]>;
    let besides = size_of::<ResponseFuture<Inner>>() - size_of::<Inner>();
    assert!(besides <= ADMITTED_BESIDES_INNER, "{besides}");
}

/// What is under guard may be neither `Send` nor `Debug`.
#[test]
fn guard_asks_nothing_more_of_its_future() {
    struct Plain;
    impl fmt::Display for Plain {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("plain")
        }
    }
    let (grantor, leadership, _clock) = stage();
    let _grant = lead(&grantor);
    let local = std::rc::Rc::new(Plain);
    let writing = leadership.guard(LABEL, async move { Ok::<_, String>(local.to_string()) });
    assert_eq!(assert_ready_ok!(task::spawn(writing).poll()), "plain");
}
