//! News, and ends of writes, that arrive at the worst moment.

use crate::{
    support::priority::ranked,
    support::{FIRST, LEASE, SOON, begin_write, build, builder, candidate, gated, pass, until, within},
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use kube_leader_gate::{
    LeaseTiming,
    election::Priority,
    leadership::{Clock, Moment},
    testing::{ApiServer, Fault, TokioClock, WatchBreak},
};
use std::{
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;
use tower::{Layer, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

/// The write took effect before the deletion, but its answer arrives after the watch event of the deletion.
#[tokio::test(start_paused = true)]
async fn s8_write_answer_after_deletion_opens_no_gate() {
    for verb in ["create", "update"] {
        let server = ApiServer::new();
        let election = candidate(&server, "a");
        let slow = Fault::delay_after(Duration::from_millis(200)).resource("leases").verb(verb).user("a");
        let slow = server.inject(slow.times(1));
        let a = election.start();
        until(SECOND * 4, "a write has been carried out", || {
            slow.hits() == 1 && server.object(LEASE).is_some()
        })
        .await;
        pass(Duration::from_millis(20)).await;
        let dead = server.object(LEASE).unwrap()["metadata"]["uid"].clone();
        server.delete("outsider", LEASE).unwrap();
        until(Duration::from_millis(20), "the gate is closed", || !a.candidate().can_write()).await;
        for _ in 0..3000 {
            pass(Duration::from_millis(1)).await;
            if let Some(term) = a.candidate().term() {
                assert_ne!(dead, term.lease_uid(), "{verb}: it leads by a lease that is gone");
            }
        }
        assert!(a.candidate().can_write(), "{verb}: it has begun a new term");
    }
}

/// A process freezes while it steps down. When it wakes, the time for that is over.
#[tokio::test(start_paused = true)]
async fn candidate_frozen_in_step_down_leads_again() {
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a").timing(LeaseTiming::default())).unwrap();
    let client = gated(&server, &election, "a");
    let mut a = election.start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let leader = a.candidate().clone();
    pass(SECOND * 20).await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(&leader, &client).await;
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    drop(hang);
    let stepping = tokio::spawn(async move {
        a.step_down(SECOND).await;
        a
    });
    until(SOON, "the gate closes", || !leader.can_write()).await;
    // Its knowledge of the lease is in doubt, so it reads the lease before it releases it.
    server.break_watches(|_| true, WatchBreak::Cut);
    pass(SECOND).await;
    let _slow = server.inject(Fault::delay_before(SECOND).resource("leases").verb("get"));
    tokio::time::advance(SECOND * 60).await;
    let _a = within(SECOND * 10, "the step down ends", stepping).await.unwrap();
    within(SECOND * 30, "the candidate leads again", leader.elected()).await;
}

type Act = Box<dyn FnOnce() + Send>;

/// A clock that runs an action at the n-th call.
struct Trap {
    clock: TokioClock,
    left: AtomicU64,
    act: Mutex<Option<Act>>,
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trap")
    }
}

impl Clock for Trap {
    fn now(&self) -> Moment {
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1)
            && let Some(act) = self.act.lock().unwrap().take()
        {
            act();
        }
        self.clock.now()
    }
}

/// The last write ends just before the elector begins to wait for that, at every possible point.
#[tokio::test(start_paused = true)]
async fn elector_always_notices_end_of_last_write() {
    for nth in 1..=6 {
        let server = ApiServer::new();
        let trap = Arc::new(Trap { clock: TokioClock::new(), left: 0.into(), act: Mutex::default() });
        let low =
            builder("a").priority(Priority::ranked("low", ["high", "low"]).unwrap()).clock(trap.clone());
        let election = build(&server, "a", low).unwrap();
        let (answer, answered) = oneshot::channel::<()>();
        let answered = Arc::new(Mutex::new(Some(answered)));
        let gate = election.layer().layer(service_fn(move |_: Request<String>| {
            let answered = answered.lock().unwrap().take().unwrap();
            async move { Ok::<_, Infallible>(Response::new(answered.await.is_ok())) }
        }));
        let a = election.start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let request = Request::post("/api/v1/namespaces/default/configmaps").body(String::new()).unwrap();
        let mut write: BoxFuture<'static, _> = gate.oneshot(request).boxed();
        assert!((&mut write).now_or_never().is_none());
        let high = ranked(&server, "b", "high").start();
        until(SOON, "a drains", || a.candidate().leadership().state().closing).await;
        pass(SECOND).await;
        assert!(!high.candidate().is_leader());
        *trap.act.lock().unwrap() = Some(Box::new(move || {
            answer.send(()).unwrap();
            write.now_or_never().expect("the write is answered").expect("it is not cut off");
        }));
        trap.left.store(nth, Ordering::SeqCst);
        // An event that makes the elector run its loop.
        server
            .edit("outsider", LEASE, |lease| lease["metadata"]["labels"]["round"] = nth.to_string().into())
            .unwrap();
        until(SECOND * 6, "the write has ended", || a.candidate().leadership().writes_under_way() == 0).await;
        within(SOON, &format!("b leads ({nth})"), high.candidate().elected()).await;
    }
}
