//! A write that another thread begins while the election closes the gate.

use crate::support::{FIRST, LEASE, SOON, build, builder, pass, priority::ASKED, spec, until, within};
use kube_leader_gate::{
    Candidate,
    election::Priority,
    leadership::{Clock, Moment, WritePermit},
    testing::{ApiServer, TokioClock},
};
use serde_json::Value;
use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A clock that begins a write when it is read next.
#[derive(Debug, Default)]
struct BeginsAWrite {
    clock: TokioClock,
    armed: AtomicBool,
    candidate: OnceLock<Candidate>,
    write: Mutex<Option<WritePermit>>,
}

impl Clock for BeginsAWrite {
    fn now(&self) -> Moment {
        if self.armed.swap(false, Ordering::SeqCst) {
            let write = self.candidate.get().expect("a candidate").admit("the last one");
            *self.write.lock().unwrap() = Some(write.expect("the gate is open"));
        }
        self.clock.now()
    }
}

/// Another thread begins a write after the election has decided to give the lease away, and before the gate closes.
#[tokio::test(start_paused = true)]
async fn s4_writes_are_counted_behind_the_closed_gate() {
    let (server, clock) = (ApiServer::new(), Arc::new(BeginsAWrite::default()));
    let (yields, once, arms) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(true), clock.clone());
    let precedes = {
        let yields = yields.clone();
        move |_: &str| {
            let yields = yields.load(Ordering::SeqCst);
            if yields && once.swap(false, Ordering::SeqCst) {
                arms.armed.store(true, Ordering::SeqCst);
            }
            !yields
        }
    };
    let builder = builder("a").clock(clock.clone()).priority(Priority::new("a", precedes).unwrap());
    let a = build(&server, "a", builder).unwrap().start();
    clock.candidate.set(a.candidate().clone()).unwrap();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let ask = |lease: &mut Value| lease["metadata"]["annotations"][ASKED] = "b\nb".into();
    server.edit("b", LEASE, ask).unwrap();
    pass(SOON).await;
    yields.store(true, Ordering::SeqCst);
    until(Duration::from_secs(3), "the gate closes", || !a.candidate().can_write()).await;
    pass(SOON).await;
    let write = clock.write.lock().unwrap().take();
    let mut write = write.expect("a write has begun");
    assert!(write.is_valid() && spec(&server)["holderIdentity"] == "a", "the lease waits for the write");
    write.answered();
    drop(write);
    until(SOON, "the lease is released", || spec(&server)["holderIdentity"] == "").await;
}
