//! S10: a dead election closes the gate.

use crate::support::{Probe, TERM, assert_lost, lead, lead_in, stage, write};
use futures_util::FutureExt;
use kube_leader_gate::{
    WriteGateLayer,
    leadership::{Clock, Grantor, Loss, Moment, Term},
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
use tokio_test::{assert_pending, assert_ready, assert_ready_err, task};
use tower::{Layer, Service};

#[test]
fn s10_dropping_grant_closes_the_gate() {
    let (grantor, leadership, _clock) = stage();
    let grant = lead(&grantor);
    assert!(leadership.can_write());
    drop(grant);
    assert!(leadership.admit().is_none());
    assert!(!leadership.is_leader());
    assert_eq!(leadership.state().lost, Some(Loss::Abandoned));
}

#[test]
fn s10_dropping_grantor_closes_gate_for_good() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let grant = lead(&grantor);
    let mut writing = task::spawn(service.call(write()));
    assert_pending!(writing.poll());
    let (mut changes, mut elected) = (leadership.changes(), task::spawn(leadership.elected()));
    let mut change = || changes.next().now_or_never().expect("no need to wait");
    assert!(change().is_some_and(|state| state.term.is_some()));

    drop(grantor);
    assert!(!leadership.is_leader() && leadership.admit().is_none());
    assert!(writing.is_woken());
    assert_lost(&assert_ready_err!(writing.poll()), Loss::Abandoned);
    assert!(grant.extend(leadership.now().saturating_add(TERM)).is_err());
    assert!(leadership.trouble().is_some_and(|trouble| trouble.contains("has ended")));
    let last = change().expect("the loss is seen");
    assert_eq!((last.term, last.lost), (None, Some(Loss::Abandoned)));
    assert_eq!(change(), None, "no change can come any more");
    assert_pending!(elected.poll());
}

/// The streams end even if the last state was read before the drop.
#[test]
fn s10_dropping_idle_grantor_ends_change_streams() {
    let (grantor, leadership, _clock) = stage();
    let mut changes = leadership.changes();
    assert!(changes.next().now_or_never().flatten().is_some(), "the present state");
    let mut next = task::spawn(changes.next());
    assert_pending!(next.poll());
    drop(grantor);
    assert!(next.is_woken());
    assert_eq!(assert_ready!(next.poll()), None);
}

#[test]
fn s10_panic_that_drops_grant_closes_the_gate() {
    let (grantor, leadership, _clock) = stage();
    let probe = Probe::default();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(probe.clone());
    let mut response = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _grant = lead(&grantor);
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
async fn s10_aborting_grant_task_closes_the_gate() {
    let (grantor, leadership, _clock) = stage();
    let grant = lead(&grantor);
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
fn s10_late_drop_of_old_grant_keeps_new_term() {
    let (grantor, leadership, _clock) = stage();
    let first = lead_in(&grantor, 1);
    let _second = lead_in(&grantor, 2);
    drop(first);
    assert!(leadership.can_write());
}

/// A clock that stops one thread when it asks for the time, until the other thread has gone on or cannot.
#[derive(Debug)]
struct Trap {
    clock: ManualClock,
    armed: Mutex<Option<Armed>>,
}

#[derive(Debug)]
struct Armed {
    /// The number of calls that pass before the stop.
    pass: u32,
    reached: Sender<()>,
    go_on: Receiver<()>,
}

/// The other thread may wait for a lock that the stopped one holds.
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
fn s10_concurrent_drop_of_old_grant_keeps_new_term() {
    for pass in 0..3 {
        let trap = Arc::new(Trap { clock: ManualClock::new(), armed: Mutex::default() });
        let grantor = Grantor::with_clock(trap.clone());
        let leadership = grantor.leadership();
        let first = lead_in(&grantor, 1);
        let ((reached, has_reached), (gone_on, go_on)) = (channel(), channel());
        *trap.armed.lock().unwrap() = Some(Armed { pass, reached, go_on });
        let second = thread::scope(|scope| {
            scope.spawn(move || drop(first));
            // An error says that the thread asks for the time less often, and has finished.
            let _ = has_reached.recv_timeout(BOUND);
            let second = lead_in(&grantor, 2);
            // An error says the same.
            let _ = gone_on.send(());
            second
        });
        assert!(second.is_valid() && leadership.can_write(), "the clock stopped at call {pass}");
        assert_eq!(leadership.state().term, Some(Term::new("uid", 2)));
        second.end(Loss::Released);
        assert_eq!(leadership.state().term, None);
    }
}
