//! What the gate adds to a query, and to which requests.

#![cfg(feature = "test-util")]

use super::*;
use crate::{
    gate::WriteGateLayer,
    leadership::{Grantor, Term},
    policy::{Policy, Preset},
    testing::ManualClock,
};
use http::{Request, Response};
use std::{convert::Infallible, sync::Arc};
use tower::{Layer, ServiceExt, service_fn};

fn gate(grantor: &Grantor) -> WriteGateLayer {
    WriteGateLayer::new(grantor.leadership()).with_request_deadline(true)
}

/// The URI that the gate passes on, for a leader that has 8 s left.
async fn passed_on(method: &str, uri: &str) -> String {
    let grantor = Grantor::with_clock(Arc::new(ManualClock::new()));
    let deadline = grantor.now().saturating_add(Duration::from_secs(8));
    let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
    let echo = service_fn(|request: Request<()>| async move {
        Ok::<_, Infallible>(Response::new(request.uri().to_string()))
    });
    let request = Request::builder().method(method).uri(uri).body(()).expect("a request");
    gate(&grantor).layer(echo).oneshot(request).await.expect("an answer").into_body()
}

#[tokio::test]
async fn each_write_to_a_resource_carries_what_is_left() {
    let writes = [
        ("POST", "/api/v1/namespaces/a/pods"),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/x/status"),
        ("PATCH", "/api/v1/nodes/x"),
        ("DELETE", "/api/v1/namespaces/a/pods/x"),
        ("DELETE", "/api/v1/namespaces/a/pods"),
    ];
    for (method, uri) in writes {
        assert_eq!(passed_on(method, uri).await, format!("{uri}?timeout=8000ms"), "{method}");
    }
}

/// An exempted request passes on every replica, so it is not a write of the leader. A 504 to it does not delay a release
/// (rule S4).
#[tokio::test]
async fn exempted_request_has_no_deadline() {
    let clock = Arc::new(ManualClock::new());
    let grantor = Grantor::with_clock(clock.clone());
    let leadership = grantor.leadership();
    let deadline = grantor.now().saturating_add(Duration::from_secs(8));
    let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
    let refuse = service_fn(|request: Request<()>| async move {
        assert_eq!(request.uri().query(), None);
        Ok::<_, Infallible>(Response::builder().status(504).body(()).expect("an answer"))
    });
    let policy = Policy::strict().allow(Preset::TokenReviews);
    let stack = gate(&grantor).with_policy(policy).layer(refuse);
    for late in [false, true] {
        if late {
            clock.advance(Duration::from_secs(9));
        }
        let review =
            Request::post("/apis/authentication.k8s.io/v1/tokenreviews").body(()).expect("a request");
        assert_eq!(stack.clone().oneshot(review).await.expect("an answer").status(), 504);
        assert_eq!(leadership.unanswered(), None, "late: {late}");
    }
}

/// If one gate admits a write, an exemption in another gate above or below it changes nothing (rule S4).
#[tokio::test]
async fn s4_write_that_one_gate_admits_has_a_deadline() {
    let grantor = Grantor::with_clock(Arc::new(ManualClock::new()));
    let leadership = grantor.leadership();
    let deadline = grantor.now().saturating_add(Duration::from_secs(8));
    let _grant = grantor.grant(Term::new("uid", 1), deadline).expect("in time");
    let refuse = service_fn(|request: Request<()>| async move {
        assert_eq!(request.uri().query(), Some("timeout=8000ms"));
        Ok::<_, Infallible>(Response::builder().status(504).body(()).expect("an answer"))
    });
    let strict = gate(&grantor);
    let lax = strict.clone().with_policy(Policy::strict().allow(Preset::TokenReviews));
    for (outer, inner) in [(&strict, &lax), (&lax, &strict)] {
        let review =
            Request::post("/apis/authentication.k8s.io/v1/tokenreviews").body(()).expect("a request");
        let stack = outer.layer(lax.layer(inner.layer(refuse)));
        assert_eq!(stack.oneshot(review).await.expect("an answer").status(), 504);
        assert_eq!(leadership.unanswered(), Some(leadership.now()));
    }
}

/// Some of these requests change nothing. A backend answers the others, and could read the parameter.
#[tokio::test]
async fn reads_and_requests_for_a_backend_stay() {
    let others = [
        ("GET", "/api/v1/nodes/x"),
        ("GET", "/api/v1/namespaces/a/pods?watch=true"),
        ("POST", "/api/v1/namespaces/a/pods/x/exec?command=ls"),
        ("POST", "/api/v1/namespaces/a/services/x/proxy/path"),
        ("POST", "/webhook"),
        ("PUT", "/apis"),
    ];
    for (method, uri) in others {
        assert_eq!(passed_on(method, uri).await, uri, "{method}");
    }
}

fn bounded(uri: &str, left: Duration) -> Option<String> {
    within(&uri.parse().unwrap(), left).map(|uri| uri.to_string())
}

#[test]
fn write_gets_what_is_left() {
    let left = Duration::from_micros(8_123_900);
    let cases = [
        ("/api/v1/nodes", "/api/v1/nodes?timeout=8123ms"),
        ("/api/v1/nodes?", "/api/v1/nodes?timeout=8123ms"),
        ("/api/v1/nodes?&fieldManager=x", "/api/v1/nodes?timeout=8123ms&fieldManager=x"),
        ("https://host:1/api/v1/nodes?a=b&&c", "https://host:1/api/v1/nodes?timeout=8123ms&a=b&&c"),
        ("/api/v1/nodes/a%2Fb?x=%20", "/api/v1/nodes/a%2Fb?timeout=8123ms&x=%20"),
        // The caller's limit is longer, or the server reads it as no limit.
        ("/n?timeout=9s", "/n?timeout=8123ms&timeout=9s"),
        ("/n?timeout=0s", "/n?timeout=8123ms&timeout=0s"),
        ("/n?timeout=-1s", "/n?timeout=8123ms&timeout=-1s"),
        ("/n?timeout=", "/n?timeout=8123ms&timeout="),
        ("/n?timeoutSeconds=1", "/n?timeout=8123ms&timeoutSeconds=1"),
        ("/n?Timeout=1s", "/n?timeout=8123ms&Timeout=1s"),
        // The server drops a pair with a broken escape or a semicolon.
        ("/n?timeout=1s;&x=y", "/n?timeout=8123ms&timeout=1s;&x=y"),
        ("/n?timeout=1s%2", "/n?timeout=8123ms&timeout=1s%2"),
    ];
    for (uri, expected) in cases {
        assert_eq!(bounded(uri, left).as_deref(), Some(expected), "{uri}");
    }
}

#[test]
fn shorter_limit_of_caller_stays() {
    for query in ["timeout=8s", "timeout=7999ms", "x=y&timeout=1s", "timeout=1s&timeout=9s", "&timeout=1s"] {
        assert_eq!(bounded(&format!("/n?{query}"), Duration::from_micros(8_123_900)), None, "{query}");
    }
    // Durations as Go writes and reads them.
    for limit in ["1m0s", "1m", "1.5s", ".5s", "1s500ms", "500us", "20ns", "0.001h", "1h", "1h0m0.5s"] {
        assert_eq!(bounded(&format!("/n?timeout={limit}"), Duration::from_secs(3_601)), None, "{limit}");
    }
}

/// The server may read another limit than the text shows, or none.
#[test]
fn unclear_limit_of_caller_is_none() {
    let queries = [
        "timeout=1",
        "timeout=x",
        "timeout=s",
        "timeout=1s1h",
        "timeout=1m0",
        "timeout=1..5s",
        "timeout=.s",
        "timeout=+1s",
        "timeout=1e3ms",
        "timeout=infs",
        "timeout=1d",
        "timeout=0.1ns",
        "timeout=1h",
        "timeout=99999999999999999999s",
        "timeout&timeout=1s",
        "timeout=9s&timeout=1s",
        "t%69meout=9s&timeout=1s",
        "x=%2&timeout=1s",
        "x;y&timeout=1s",
    ];
    for query in queries {
        let expected = format!("/n?timeout=8000ms&{query}");
        assert_eq!(bounded(&format!("/n?{query}"), Duration::from_secs(8)), Some(expected));
    }
}

#[test]
fn limit_is_never_zero() {
    for left in [Duration::ZERO, Duration::from_nanos(1)] {
        assert_eq!(bounded("/n", left).as_deref(), Some("/n?timeout=1ms"));
    }
}

/// A grant may have no end. Go refuses a duration of more than 292 years, and the server then refuses the write.
#[test]
fn limit_is_one_that_the_server_reads() {
    assert_eq!(bounded("/n", Duration::MAX).as_deref(), Some("/n?timeout=3600000ms"));
}

/// With one pair more, the server would ignore the whole query, `dryRun` too.
#[test]
fn query_with_as_many_pairs_as_the_server_reads_stays() {
    let query = |pairs: usize| format!("/n?dryRun=All{}", "&".repeat(pairs - 1));
    assert!(bounded(&query(9_999), Duration::from_secs(1)).is_some());
    assert!(bounded(&query(10_000), Duration::from_secs(1)).is_none());
}

#[test]
fn uri_without_room_stays() {
    let uri = format!("/n?x={}", "y".repeat(65_520));
    assert!(bounded(&uri, Duration::from_secs(1)).is_none());
}
