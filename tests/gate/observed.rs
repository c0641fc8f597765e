//! What an observer learns: the fate of each write, and nothing of reads.

use crate::support::{PATH, Probe, lead, stage};
use http::Request;
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader, Policy, WriteGate, WriteGateLayer,
    gate::{Attempt, WriteObserver},
    leadership::{Grantor, Loss},
    policy::Preset,
    request::{RequestInfo, Verb},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};
use tokio_test::{assert_pending, assert_ready_err, task};
use tower::{Layer, Service};

#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, fate: &str, attempt: &Attempt<'_>) {
        self.0.lock().unwrap().push(format!("{fate} {attempt}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl WriteObserver for Notes {
    fn exempted(&self, request: &RequestInfo<'_>) {
        self.note("exempted", &Attempt::Request(request.clone()));
    }

    fn admitted(&self, attempt: &Attempt<'_>) {
        self.note("admitted", attempt);
    }

    fn rejected(&self, error: &ErrNotLeader) {
        self.note("rejected", &error.attempt());
    }

    fn cut_off(&self, error: &ErrLeadershipLost) {
        let what = error.verb().map_or_else(|| error.label().unwrap(), Verb::as_str);
        self.0.lock().unwrap().push(format!("cut off {what} {}", error.loss().as_str()));
    }
}

fn policy() -> Policy {
    Policy::strict().allow(Preset::Events)
}

#[derive(Debug)]
struct Panics;

impl WriteObserver for Panics {
    fn cut_off(&self, _: &ErrLeadershipLost) {
        panic!("the observer fell over");
    }
}

#[test]
fn s2_write_ends_though_its_observer_panics() {
    let (grantor, leadership, _clock) = stage();
    let (probe, _grant) = (Probe::default(), lead(&grantor));
    let layer = WriteGateLayer::new(leadership.clone()).with_observer(Arc::new(Panics));
    let mut writing = task::spawn(layer.layer(probe.clone()).call(Request::post(PATH).body(()).unwrap()));
    assert_pending!(writing.poll());
    grantor.revoke(Loss::Taken);
    assert!(catch_unwind(AssertUnwindSafe(|| writing.poll())).is_err());
    assert_eq!((probe.drops(), leadership.writes_under_way()), (1, 0));
}

#[test]
fn observer_learns_outcome_of_each_write() {
    let (grantor, leadership, _clock) = stage();
    let notes = Arc::new(Notes::default());
    let layer = WriteGateLayer::new(leadership.clone()).with_policy(policy()).with_observer(notes.clone());
    hears_the_outcomes(layer.layer(Probe::default()), &grantor, &notes);
}

/// As metrics and an observer of one's own.
#[test]
fn each_of_two_observers_learns_outcome_of_each_write() {
    for at in [0, 1] {
        let (grantor, leadership, _clock) = stage();
        let notes = [Arc::new(Notes::default()), Arc::new(Notes::default())];
        let layer = WriteGateLayer::new(leadership.clone()).with_policy(policy());
        let layer = layer.with_observer(notes[0].clone()).with_observer(notes[1].clone());
        hears_the_outcomes(layer.layer(Probe::default()), &grantor, &notes[at]);
    }
}

fn hears_the_outcomes(mut service: WriteGate<Probe>, grantor: &Grantor, notes: &Notes) {
    let request = |method: &str, uri: &str| Request::builder().method(method).uri(uri).body(()).unwrap();
    let event = "/apis/events.k8s.io/v1/namespaces/a/events";

    assert_pending!(task::spawn(service.call(request("GET", PATH))).poll());
    assert_pending!(task::spawn(service.call(request("POST", event))).poll());
    assert_ready_err!(task::spawn(service.call(request("DELETE", PATH))).poll());
    assert_eq!(
        notes.take(),
        [
            "exempted create events.events.k8s.io in namespace \"a\"",
            "rejected deletecollection configmaps in namespace \"default\""
        ]
    );

    let _grant = lead(grantor);
    let mut writing = task::spawn(service.call(request("POST", PATH)));
    assert_eq!(
        notes.take(),
        [r#"admitted create configmaps in namespace "default""#],
        "before the first poll"
    );
    assert_pending!(writing.poll());
    assert_eq!(notes.take(), [""; 0]);
    grantor.revoke(Loss::Taken);
    assert_ready_err!(writing.poll());
    assert_eq!(notes.take(), ["cut off create taken"]);

    // The observer also sees a clone of the service. A write that its caller drops was not cut off.
    let _grant = lead(grantor);
    drop(service.clone().call(request("PATCH", PATH)));
    grantor.revoke(Loss::Expired);
    assert_eq!(notes.take(), [r#"admitted patch configmaps in namespace "default""#]);
}
