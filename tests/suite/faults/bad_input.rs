//! What a lease and a server can do wrong. The candidate never panics, never opens its gate, and goes on contending.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, candidate, gated, is_not_leader, leading, lease, pass, release,
    until, within, write,
};
use kube_leader_gate::{
    Election, Identity, LeaseTiming, Policy,
    election::ErrBuild,
    lease::BoxLock,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::{Value, json};
use std::{convert::Infallible, time::Duration};

#[tokio::test(start_paused = true)]
async fn invalid_lease_is_taken_after_own_duration() {
    // The duration is missing or absurd, so this candidate's own 15 s count.
    let specs = [
        json!({ "holderIdentity": "x" }),
        json!({ "holderIdentity": "x", "leaseDurationSeconds": null, "leaseTransitions": null }),
        json!({ "holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "not a time" }),
        json!({ "holderIdentity": "x", "leaseDurationSeconds": 15, "leaseTransitions": i32::MAX }),
    ];
    for spec in specs {
        let server = ApiServer::new();
        server.put("outsider", LEASE, lease(&spec)).unwrap();
        let a = candidate(&server, "a").start();
        pass(Duration::from_millis(14_900)).await;
        assert!(!a.candidate().is_leader(), "{spec}");
        within(Duration::from_millis(200), "the candidate leads", a.candidate().elected()).await;
        let transitions = server.object(LEASE).unwrap()["spec"]["leaseTransitions"].as_i64().unwrap();
        assert!(i32::try_from(transitions).is_ok(), "{transitions}");
    }
}

#[tokio::test(start_paused = true)]
async fn lease_without_spec_is_free() {
    for spec in [Value::Null, json!({}), json!({ "holderIdentity": null })] {
        let server = ApiServer::new();
        server.put("outsider", LEASE, lease(&spec)).unwrap();
        let a = candidate(&server, "a").start();
        within(FIRST, "the candidate leads", a.candidate().elected()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn huge_lease_duration_is_respected() {
    let server = ApiServer::new();
    let spec = json!({ "holderIdentity": "x", "leaseDurationSeconds": i32::MAX });
    server.put("outsider", LEASE, lease(&spec)).unwrap();
    let a = candidate(&server, "a").start();
    pass(Duration::from_secs(3600)).await;
    assert!(!a.candidate().is_leader());
    release(&server);
    within(FIRST, "the candidate leads", a.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn candidate_contends_on_after_every_server_error() {
    let faults = [
        Fault::forbidden().resource("leases"),
        Fault::forbidden().verb("create").resource("leases"),
        Fault::namespace_not_found(),
        Fault::status(429),
        Fault::status(500),
        Fault::status_retry_after(503, Duration::from_secs(3600)),
        Fault::hang_before(),
        Fault::drop_before(),
    ];
    for fault in faults {
        let server = ApiServer::new();
        let shown = format!("{fault:?}");
        let fault = server.inject(fault);
        let election = candidate(&server, "a");
        let client = gated(&server, &election, "a");
        let a = election.start();
        pass(Duration::from_secs(60)).await;
        assert!(!a.candidate().is_leader(), "{shown}");
        let refused = within(SOON, "a rejection needs no server", write(&client)).await;
        assert!(is_not_leader(&refused), "{shown}: {refused:?}");
        // Neither too few requests nor too many: the retry period is 2 s.
        assert!((10..=400).contains(&fault.hits()), "{shown}: {} requests in 60 s", fault.hits());
        drop(fault);
        within(Duration::from_secs(5), &shown, a.candidate().elected()).await;
        a.candidate().check(Duration::ZERO).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn broken_watches_never_open_gate_or_end_election() {
    for how in [WatchBreak::End, WatchBreak::Cut, WatchBreak::Garbage] {
        let server = ApiServer::new();
        let _breaking = server.inject(Fault::break_watch(how));
        let (a, _) = leading(&server, "a").await;
        let b = candidate(&server, "b").start();
        until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
        for _ in 0..600 {
            pass(Duration::from_millis(100)).await;
            assert!(a.candidate().is_leader() && !b.candidate().is_leader(), "{how:?}");
        }
        let watches = server.reads("b", "watch", "leases");
        assert!((3..=60).contains(&watches), "{how:?}: {watches} watches in 60 s");
        a.stop().await;
        within(Duration::from_secs(3), "b leads", b.candidate().elected()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_watch_is_tried_again() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let hang = server.inject(Fault::hang_before().verb("watch").user("b"));
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    pass(Duration::from_secs(60)).await;
    assert!(a.candidate().is_leader() && !b.candidate().is_leader());
    assert!(hang.hits() > 1, "tried again");
}

#[test]
fn invalid_configuration_fails_at_build() {
    let refused = |namespace: &str, name: &str| {
        let builder = Election::builder(namespace, name).identity(Identity::new("a").unwrap());
        match builder.build_with(|_| -> Result<BoxLock, Infallible> { unreachable!() }) {
            Err(error @ ErrBuild::Invalid(_)) => error.to_string(),
            other => panic!("{namespace}/{name}: {other:?}"),
        }
    };
    let long = "x".repeat(254);
    for name in ["", "Operator", "a_b", "-a", "a-", "a..b", ".a", "a/b", "ü", &long] {
        let error = refused("default", name);
        assert!(error.contains(&format!("invalid lease name: {name:?}, allowed: 1 to 253")), "{error}");
    }
    let builder = || Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let label = builder()
        .lease_labels([("a b", "c")])
        .build_with(|_| -> Result<BoxLock, Infallible> { unreachable!() });
    assert!(
        matches!(label, Err(ErrBuild::Invalid(error)) if error.to_string().contains("label of the lease"))
    );
    let policy = Policy::strict().allow_status("example.com", "Widget");
    let refused_policy =
        builder().policy(policy).build_with(|_| -> Result<BoxLock, Infallible> { unreachable!() });
    assert!(
        matches!(refused_policy, Err(ErrBuild::Invalid(error)) if error.to_string().contains("rule in the policy"))
    );
    for namespace in ["", "a.b", "A", &long[..64]] {
        let error = refused(namespace, "operator");
        assert!(
            error.contains(&format!("invalid lease namespace: {namespace:?}, allowed: 1 to 63")),
            "{error}"
        );
    }
}

#[test]
fn error_of_custom_lock_is_kept() {
    let builder = Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let error = builder.build_with(|_| Err::<BoxLock, _>(std::fmt::Error)).unwrap_err();
    assert!(matches!(&error, ErrBuild::Lock(cause) if cause.is::<std::fmt::Error>()), "{error:?}");
    let cause = std::error::Error::source(&error).expect("a cause");
    assert!(cause.is::<std::fmt::Error>(), "{cause:?}");
    assert!(error.to_string().starts_with("cannot make the lock of the election: "), "{error}");
}

#[test]
fn timing_error_names_value_and_allowed_range() {
    let ms = Duration::from_millis;
    let refused =
        |lease, renew, retry| LeaseTiming::new(ms(lease), ms(renew), ms(retry)).unwrap_err().to_string();
    let cases = [
        (0, 10, 1, "the lease duration is 0ns, allowed: whole seconds from 1s"),
        (15_500, 10_000, 2000, "the lease duration is 15.5s, allowed: whole seconds"),
        (15_000, 15_000, 2000, "the renew deadline is 15s, allowed: less than the lease duration, 15s"),
        (
            15_000,
            10_000,
            8334,
            "the retry period is 8.334s, allowed: less than the renew deadline / 1.2, 8.33",
        ),
        (15_000, 10_000, 0, "the retry period is 0ns, allowed: at least 10ms"),
        (1000, 300, 200, "the renew deadline is 300ms, allowed: at least 430ms with this retry period"),
    ];
    for (lease, renew, retry, message) in cases {
        let error = refused(lease, renew, retry);
        assert!(error.starts_with("invalid lease timing: ") && error.contains(message), "{error}");
    }
    let error = LeaseTiming::fast().with_call_timeout(ms(1700)).unwrap_err().to_string();
    assert!(error.contains("the call timeout is 1.7s, allowed: 20ms to 1.625s"), "{error}");
    assert!(LeaseTiming::new(Duration::from_secs(1), ms(430), ms(200)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn failed_client_creation_is_an_error() {
    // No TLS provider is needed here: no built-in proxy type fits the address.
    let mut config = kube_client::Config::new("http://127.0.0.1:1".parse().unwrap());
    config.proxy_url = Some("ftp://127.0.0.1:1".parse().unwrap());
    let error = builder("a").build(&config).unwrap_err();
    assert!(matches!(error, ErrBuild::Client(_)));
    assert!(error.to_string().starts_with("cannot make a client for the election from the configuration: "));
    // A client that can be made but reaches no server is no error: the election goes on trying.
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a")).unwrap();
    // The workload's client fails with kube's own error.
    let error: kube_client::Error = election.client(&config).map(drop).unwrap_err();
    assert!(error.to_string().contains("ftp"), "{error}");
}
