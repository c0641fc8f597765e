//! An answer that is no lease is an error, and a lease keeps all that this crate does not own.

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::{Client, client::Body};
use kube_leader_gate::{
    internal::{self, LONGEST},
    lease::{BoxLock, ErrLockKind, LeaseName, LeasePool, LeaseRecord, Lock},
};
use serde_json::Value;
use std::{collections::BTreeMap, convert::Infallible, future};
use tokio::runtime::{Builder, Runtime};
use tower::service_fn;

pub(super) const SEEDS: &[&str] = &[
    r#"{"metadata":{"namespace":"default","name":"operator","uid":"u","resourceVersion":"7"}}"#,
    r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"default","name":"operator","uid":"0b54e6ce","resourceVersion":"4711","labels":{"a":"b"},"annotations":{"team":"x","kube-leader-gate/waits-for":"{\"c\":1}"}},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"leaseTransitions":4,"acquireTime":"2026-01-02T03:04:05.000006Z","renewTime":"2026-01-02T03:04:05.000006Z","strategy":"OldestEmulationVersion","preferredHolder":"b"}}"#,
    r#"{"metadata":{"namespace":"default","name":"operator","uid":"u","resourceVersion":"x","annotations":null},"spec":null}"#,
    r#"{"metadata":{"namespace":"default","name":"other","uid":"u","resourceVersion":"1"},"spec":{"holderIdentity":"a"}}"#,
    r#"{"kind":"Status","code":404,"message":"not found"}"#,
];

pub(super) const WORDS: &[&str] = &[
    "\"metadata\":",
    "\"annotations\":",
    "\"namespace\":",
    "\"name\":",
    "\"uid\":",
    "\"resourceVersion\":",
    "\"spec\":",
    "\"holderIdentity\":",
    "\"leaseDurationSeconds\":",
    "\"leaseTransitions\":",
    "\"acquireTime\":",
    "\"renewTime\":",
    "\"preferredHolder\":",
    "\"strategy\":",
    "\"default\"",
    "\"operator\"",
    "\"\"",
    "\"a\"",
    "null",
    "true",
    "0",
    "-1",
    "15",
    "1e3",
    "0.5",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993",
    "[",
    "]",
    "{",
    "}",
    "{}",
    "[]",
    ",",
    ":",
    "\\u0000",
    "\\ud800",
];

/// The body of a 200 answer.
pub(super) fn body(bytes: &[u8]) {
    let answer = run(async { answering(vec![Bytes::copy_from_slice(bytes)]).get().await });
    match answer {
        Ok(Some(record)) => check(&record),
        Ok(None) => panic!("the answer was no 404"),
        Err(error) => {
            assert_eq!(error.kind(), ErrLockKind::BadAnswer, "{error}");
            assert!(record(bytes).is_none(), "{error}: {}", String::from_utf8_lossy(bytes));
        }
    }
}

fn record(bytes: &[u8]) -> Option<LeaseRecord> {
    LeaseRecord::from_json(serde_json::from_slice(bytes).ok()?).ok()
}

/// A lock whose every request gets a 200 answer with these frames.
pub(super) fn answering(frames: Vec<Bytes>) -> BoxLock {
    let connect = move || {
        let frames = frames.clone();
        let answer = move |_: Request<Body>| {
            let frames = frames.clone().into_iter().map(|frame| Ok::<_, Infallible>(Frame::data(frame)));
            future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(stream::iter(frames)))))
        };
        Ok(Client::new(service_fn(answer), "default"))
    };
    let pool = LeasePool::over(connect).expect("a client");
    pool.lock(LeaseName::new("default", "operator").expect("a name"))
}

pub(super) fn run<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// What holds for any lease.
pub(super) fn check(record: &LeaseRecord) {
    assert!(!record.uid().is_empty() && !record.resource_version().is_empty());
    assert!(record.holder().is_none_or(|holder| !holder.is_empty()));
    assert!(record.duration().is_none_or(|duration| duration.as_secs() > 0));
    assert!(record.has_spec_of(record));
    assert_eq!(record.term().transitions(), record.transitions());
    let json = record.clone().into_json();
    assert_eq!(LeaseRecord::from_json(json.clone()).as_ref().ok(), Some(record));
    assert!(json.to_string().len() <= LONGEST * 6, "an escape of one byte has six");
    if let (None, Some(_)) = (record.oddity(), record.holder()) {
        assert!(record.duration().is_some_and(|duration| duration.as_secs() <= 24 * 60 * 60));
    }
    claims(record, &json);
    if let Some(claim) = record.annotated(BTreeMap::from([("mark", Some("x".to_owned()))])) {
        let after = record.with(&claim);
        assert!(after.has_spec_of(record));
        assert_eq!(after.annotation("mark"), Some(&Value::from("x")));
    }
}

/// A claim stands in the lease as it was made, and all other fields stay.
fn claims(record: &LeaseRecord, before: &Value) {
    let mut claim = internal::claim();
    (claim.holder, claim.duration_seconds) = ("me".to_owned(), 15);
    (claim.acquire_time, claim.renew_time) = ("then".to_owned(), "now".to_owned());
    claim.transitions = record.transitions().saturating_add(1);
    claim.annotations = BTreeMap::from([("mark", Some("x".to_owned())), ("gone", None)]);
    let after = record.with(&claim);
    assert_eq!(after.holder(), Some("me"));
    assert_eq!(after.duration().map(|duration| duration.as_secs()), Some(15));
    assert_eq!((after.acquire_time(), after.renew_time()), (Some("then"), Some("now")));
    assert_eq!(after.transitions(), claim.transitions);
    assert_eq!((after.uid(), after.resource_version()), (record.uid(), record.resource_version()));
    assert!(after.oddity().is_none() && after.annotation("gone").is_none());
    assert_eq!(after.annotation("mark"), Some(&Value::from("x")));
    assert_eq!(without_claim(after.clone().into_json()), without_claim(before.clone()));
    assert_eq!(after.with(&claim), after, "twice is once");
}

/// The fields that no claim changes.
fn without_claim(mut json: Value) -> Value {
    if let Some(spec) = json.get_mut("spec").and_then(Value::as_object_mut) {
        for owned in
            ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"]
        {
            spec.remove(owned);
        }
    }
    // A spec or annotations that are no objects are replaced, and so may be missing before.
    let hollow =
        |value: Option<&Value>| value.is_none_or(|it| it.as_object().is_none_or(serde_json::Map::is_empty));
    if let Some(annotations) = json.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove("mark");
        annotations.remove("gone");
    }
    if hollow(json.pointer("/metadata/annotations"))
        && let Some(metadata) = json.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("annotations");
    }
    if hollow(json.get("spec"))
        && let Some(object) = json.as_object_mut()
    {
        object.remove("spec");
    }
    json
}
