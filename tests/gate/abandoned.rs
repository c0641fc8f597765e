//! S10: a dead election fails closed.

use crate::support::{Probe, assert_lost, lead, lead_in, stage, write};
use kube_leader_gate::{
    Leadership, WriteGateLayer,
    leadership::{Clock, Loss, Moment},
    testing::ManualClock,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};
use tokio_test::{assert_pending, assert_ready_err, task};
use tower::{Layer, Service};

#[test]
fn s10_dropping_the_grant_closes_the_gate() {
    let (leadership, _clock) = stage();
    let grant = lead(&leadership);
    assert!(leadership.can_write());
    drop(grant);
    assert!(leadership.admit().is_none());
    assert!(!leadership.is_leader());
    assert_eq!(leadership.state().lost, Some(Loss::Abandoned));
}

#[test]
fn s10_a_panic_of_whoever_holds_the_grant_closes_the_gate() {
    let (leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let mut response = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _grant = lead(&leadership);
        let response = response.insert(task::spawn(service.call(write())));
        assert_pending!(response.poll());
        panic!("the election fell over");
    }));
    assert!(outcome.is_err());
    assert!(leadership.admit().is_none());
    let mut response = response.expect("it was sent before the panic");
    assert!(response.is_woken());
    assert_lost(&assert_ready_err!(response.poll()), Loss::Abandoned);
    assert_eq!((probe.polls(), probe.drops()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s10_aborting_the_task_that_holds_the_grant_closes_the_gate() {
    let (leadership, _clock) = stage();
    let grant = lead(&leadership);
    let election = tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(grant);
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(leadership.can_write());
    election.abort();
    assert!(election.await.unwrap_err().is_cancelled());
    assert!(leadership.admit().is_none());
}

#[test]
fn s10_an_old_grant_that_is_dropped_late_ends_nothing_else() {
    let (leadership, _clock) = stage();
    let first = lead_in(&leadership, 1);
    let _second = lead_in(&leadership, 2);
    drop(first);
    assert!(leadership.can_write());
}

/// A clock that holds up one thread when it asks for the time, until the other one has gone on, or cannot.
#[derive(Debug)]
struct Trap {
    clock: ManualClock,
    armed: Mutex<Option<Armed>>,
}

#[derive(Debug)]
struct Armed {
    /// Calls that pass before it.
    pass: u32,
    reached: Sender<()>,
    go_on: Receiver<()>,
}

/// The other thread may wait for a lock that the trapped one has.
const BOUND: Duration = Duration::from_millis(200);

impl Clock for Trap {
    fn now(&self) -> Moment {
        let mut armed = self.armed.lock().unwrap();
        let springs = armed.take_if(|it| it.pass == 0);
        if let Some(armed) = armed.as_mut() {
            armed.pass -= 1;
        }
        drop(armed);
        if let Some(trap) = springs {
            trap.reached.send(()).unwrap();
            let _ = trap.go_on.recv_timeout(BOUND);
        }
        self.clock.now()
    }
}

/// The drop is half done when the next term begins.
#[test]
fn s10_an_old_grant_that_is_dropped_in_another_thread_ends_nothing_else() {
    for pass in 0..3 {
        let trap = Arc::new(Trap { clock: ManualClock::new(), armed: Mutex::default() });
        let leadership = Leadership::with_clock(trap.clone());
        let first = lead_in(&leadership, 1);
        let ((reached, has_reached), (gone_on, go_on)) = (channel(), channel());
        *trap.armed.lock().unwrap() = Some(Armed { pass, reached, go_on });
        let second = thread::scope(|scope| {
            scope.spawn(move || drop(first));
            // An error says that it asks for the time less often, and is complete.
            let _ = has_reached.recv_timeout(BOUND);
            let second = lead_in(&leadership, 2);
            // An error says the same.
            let _ = gone_on.send(());
            second
        });
        assert!(second.is_valid() && leadership.can_write(), "the clock stopped at call {pass}");
        assert_eq!(leadership.state().term.as_ref(), Some(second.term()));
        second.end(Loss::Released);
        assert_eq!(leadership.state().term, None);
    }
}
