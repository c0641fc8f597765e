//! A recorder of metrics that panics.

use crate::{
    faults::panics::SECOND,
    support::{FIRST, SOON, build, builder, gated, pass, within, write},
};
use kube_leader_gate::testing::{ApiServer, Fault};
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};
use std::cell::Cell;

#[derive(Default)]
struct Broken {
    panics: Cell<u32>,
}

impl Broken {
    fn breaks(&self) -> ! {
        self.panics.set(self.panics.get() + 1);
        panic!("the recorder breaks");
    }
}

impl Recorder for Broken {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.breaks()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        self.breaks()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        self.breaks()
    }
}

/// Every write, every call and every failure of a call is reported. The term goes on, and so do writes.
#[tokio::test(start_paused = true)]
async fn s9_panic_of_a_recorder_does_not_cost_the_term() {
    let broken = Broken::default();
    let _here = set_default_local_recorder(&broken);
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a").metrics()).expect("valid");
    let client = gated(&server, &election, "a");
    let a = election.start();
    let term = within(FIRST, "a leads", a.candidate().elected()).await;
    let _failing = server.inject(Fault::status(500).resource("leases").user("a").times(2));
    for _ in 0..20 {
        pass(SECOND).await;
        write(&client).await.expect("a leads");
    }
    assert_eq!(a.candidate().term(), Some(term));
    assert!(broken.panics.get() > 10, "only {}", broken.panics.get());
    within(SOON, "a stops", a.stop()).await;
}
