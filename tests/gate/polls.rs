//! S2: every poll checks again.

use crate::support::{Probe, TERM, assert_lost, lead, stage, write};
use http::Request;
use kube_leader_gate::{
    Leadership, WriteGateLayer,
    leadership::{Grantor, Loss, Term},
    testing::TokioClock,
};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::{Instant, advance, timeout};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, service_fn};

#[test]
fn s2_deadline_drops_write_without_another_poll() {
    let (grantor, leadership, clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let _grant = lead(&grantor);
    let mut response = task::spawn(service.call(write()));
    assert_pending!(response.poll());
    assert_pending!(response.poll());
    assert_eq!((probe.polls(), probe.drops()), (2, 0));

    clock.advance(TERM);
    // The answer is ready, but polling for it could send something.
    probe.answer();
    assert_lost(&assert_ready_err!(response.poll()), Loss::Expired);
    assert_eq!((probe.polls(), probe.drops()), (2, 1), "dropped before the response future is");
    assert_eq!(leadership.writes_under_way(), 0);
}

#[test]
fn s2_admitted_but_unpolled_write_is_not_sent() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let grant = lead(&grantor);
    let mut response = task::spawn(service.call(write()));
    grant.end(Loss::Released);
    assert_lost(&assert_ready_err!(response.poll()), Loss::Released);
    assert_eq!((probe.polls(), probe.drops()), (0, 1));
}

#[test]
fn s2_loss_wakes_hanging_write() {
    for loss in [Loss::Taken, Loss::Deleted] {
        let (grantor, leadership, _clock) = stage();
        let probe = Probe::default();
        let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
        let _grant = lead(&grantor);
        let mut response = task::spawn(service.call(write()));
        assert_pending!(response.poll());
        assert!(!response.is_woken());
        grantor.revoke(loss);
        assert!(response.is_woken());
        assert_lost(&assert_ready_err!(response.poll()), loss);
        assert_eq!((probe.polls(), probe.drops()), (1, 1));
    }
}

#[test]
fn s2_loss_wakes_write_moved_to_another_task() {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let _grant = lead(&grantor);
    let mut response = Box::pin(service.call(write()));
    let mut first = task::spawn(std::future::poll_fn(|cx| response.as_mut().poll(cx).map(drop)));
    assert_pending!(first.poll());
    drop(first);
    let mut second = task::spawn(response);
    assert_pending!(second.poll());
    grantor.revoke(Loss::Taken);
    assert!(second.is_woken());
}

/// The loss comes while the inner future is in its first poll: after the check, before the gate waits for a wake-up.
#[test]
fn s2_loss_during_poll_wakes_the_write() {
    let (grantor, leadership, _clock) = stage();
    let grantor = Arc::new(grantor);
    let lose = grantor.clone();
    let mut service = WriteGateLayer::new(leadership).layer(service_fn(move |_: Request<&str>| {
        let lose = lose.clone();
        std::future::poll_fn(move |_| {
            lose.revoke(Loss::Taken);
            std::task::Poll::<Result<http::Response<()>, std::convert::Infallible>>::Pending
        })
    }));
    let _grant = lead(&grantor);
    let mut response = task::spawn(service.call(write()));
    // Either at once, or after a wake-up.
    match response.poll() {
        std::task::Poll::Ready(outcome) => assert_lost(&outcome.unwrap_err(), Loss::Taken),
        std::task::Poll::Pending => assert!(response.is_woken(), "no wake-up will ever come"),
    }
}

/// A write that is being dropped may still send. It counts until it is gone.
#[test]
fn s2_write_is_counted_until_fully_dropped() {
    struct Last(Leadership, Arc<AtomicUsize>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.store(self.0.writes_under_way(), SeqCst);
        }
    }
    for answers in [true, false] {
        let (grantor, leadership, _clock) = stage();
        let seen = Arc::new(AtomicUsize::new(usize::MAX));
        let (inside, noted) = (leadership.clone(), seen.clone());
        let mut service =
            WriteGateLayer::new(leadership.clone()).layer(service_fn(move |_: Request<&str>| {
                let last = Last(inside.clone(), noted.clone());
                std::future::poll_fn(move |_| {
                    let _last = &last;
                    if answers {
                        return std::task::Poll::Ready(Ok::<_, std::convert::Infallible>(
                            http::Response::new(()),
                        ));
                    }
                    std::task::Poll::Pending
                })
            }));
        let _grant = lead(&grantor);
        let mut response = task::spawn(service.call(write()));
        if answers {
            assert_ready_ok!(response.poll());
        } else {
            assert_pending!(response.poll());
            grantor.revoke(Loss::Taken);
            assert_ready_err!(response.poll());
        }
        assert_eq!(seen.load(SeqCst), 1, "answers: {answers}");
        assert_eq!(leadership.writes_under_way(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn s2_deadline_wakes_hanging_write() {
    let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
    let leadership = grantor.leadership();
    let watching = tokio::spawn(grantor.watch_deadline());
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let grant = lead(&grantor);
    let begin = Instant::now();
    let hanging = tokio::spawn(service.call(write()));

    // A renewal moves the wake-up too.
    advance(Duration::from_secs(50)).await;
    grant.extend(leadership.now().saturating_add(TERM)).unwrap();
    let lost = timeout(TERM * 3, hanging).await.expect("woken").unwrap().unwrap_err();
    assert_lost(&lost, Loss::Expired);
    let took = begin.elapsed();
    let deadline = Duration::from_secs(50) + TERM;
    assert!(took >= deadline && took < deadline + Duration::from_millis(5), "{took:?}");
    assert_eq!((probe.polls(), probe.drops()), (1, 1));

    // Observers have learned of the end, and the watcher goes on with the next term.
    assert_eq!(leadership.state().lost, Some(Loss::Expired));
    let _second = grantor.grant(Term::new("uid", 2), leadership.now().saturating_add(TERM)).unwrap();
    let lost = timeout(TERM * 2, service.call(write())).await.expect("woken").unwrap_err();
    assert_lost(&lost, Loss::Expired);
    drop(grantor);
    timeout(TERM, watching).await.expect("it ends with its grantor").unwrap();
}

#[tokio::test(start_paused = true)]
async fn s2_deadline_watcher_can_be_dropped_and_restarted() {
    let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
    let leadership = grantor.leadership();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let _grant = lead(&grantor);
    assert!(timeout(TERM / 2, grantor.watch_deadline()).await.is_err());
    let hanging = tokio::spawn(service.call(write()));
    assert!(timeout(TERM, grantor.watch_deadline()).await.is_err());
    assert!(hanging.is_finished());
    assert_lost(&hanging.await.unwrap().unwrap_err(), Loss::Expired);
}

/// As tower-http's futures do.
#[test]
fn polling_after_completion_panics() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let rejected = service.call(write());
    let grant = lead(&grantor);
    let cut_off = service.call(write());
    grant.end(Loss::Taken);
    let _grant = lead(&grantor);
    probe.answer();
    let answered = service.call(write());
    for (what, response) in [("rejected", rejected), ("cut off", cut_off), ("answered", answered)] {
        let mut response = task::spawn(response);
        assert!(response.poll().is_ready(), "{what}");
        let again = catch_unwind(AssertUnwindSafe(|| response.poll().is_ready()));
        let message = *again.expect_err(what).downcast::<String>().expect("a message");
        assert_eq!(message, "ResponseFuture polled after completion", "{what}");
    }
    assert_eq!(leadership.writes_under_way(), 0);
}
