//! Observers that run in a task of their own, beside the election.

use crate::support::{FIRST, SOON, build, builder, until, within};
use futures_util::StreamExt;
use kube_leader_gate::{CancellationToken, leadership::Loss, testing::ApiServer};
use std::{
    future::{self, Ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

#[tokio::test(start_paused = true)]
async fn observer_sees_release_before_stop_ends() {
    let server = ApiServer::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = heard.clone();
    let builder = builder("a").attend(|leader, stopped| async move {
        let mut changes = leader.changes();
        while let Some(Some(state)) = stopped.run_until_cancelled(changes.next()).await {
            notes.lock().unwrap().push(state.lost);
        }
        notes.lock().unwrap().push(leader.leadership().state().lost);
    });
    let running = build(&server, "a", builder).unwrap().start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    assert!(!heard.lock().unwrap().contains(&Some(Loss::Released)));
    running.stop().await;
    assert_eq!(heard.lock().unwrap().last(), Some(&Some(Loss::Released)));
}

/// Decrements the count when it is dropped.
struct Present(Arc<AtomicUsize>);

impl Present {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn endless_observer_delays_stop_by_one_call_timeout() {
    for stop in [true, false] {
        let server = ApiServer::new();
        let present = Arc::new(AtomicUsize::new(0));
        let count = present.clone();
        let builder = builder("a").attend(move |_, _| {
            let present = Present::new(&count);
            async move {
                let _present = present;
                future::pending::<()>().await;
            }
        });
        let running = build(&server, "a", builder).unwrap().start();
        let leader = running.candidate().clone();
        within(FIRST, "the candidate leads", leader.elected()).await;
        assert_eq!(present.load(Ordering::SeqCst), 1);
        if stop {
            let bound = kube_leader_gate::LeaseTiming::fast().call_timeout();
            within(bound + SOON, "the stop ends", running.stop()).await;
            assert!(!leader.is_leader());
        } else {
            drop(running);
        }
        until(SOON, "the observer is dropped", || present.load(Ordering::SeqCst) == 0).await;
    }
}

/// The function itself panics, or its future.
#[tokio::test(start_paused = true)]
async fn observer_panic_does_not_end_the_election() {
    let function = |_, _: CancellationToken| -> Ready<()> { panic!("an observer's own trouble") };
    let future = |_, _| async { panic!("an observer's own trouble") };
    for builder in [builder("a").attend(function), builder("a").attend(future)] {
        let server = ApiServer::new();
        let running = build(&server, "a", builder).unwrap().start();
        within(FIRST, "it leads all the same", running.candidate().elected()).await;
        running.stop().await;
    }
}
