//! Each bad input for a long time: no two leaders, no storm of requests, and a leader after it.

use crate::support::{LEASE, SOON, candidate, leading, pass, until, within};
use kube_leader_gate::testing::{ApiServer, Fault, FaultGuard, WatchBreak};
use serde_json::{Value, json};
use std::time::Duration;

/// How long each of them lasts. The figures are the same for an hour.
const MINUTES: u64 = 10;
/// How many requests each candidate may send in a minute. A healthy holder renews 30 times.
const MOST: u64 = 130;

const USERS: [&str; 2] = ["a", "b"];

fn faults() -> Vec<(&'static str, Fault)> {
    let status = |code| Fault::status(code).resource("leases");
    vec![
        ("403", Fault::forbidden().resource("leases")),
        ("404", status(404)),
        ("404 of the namespace", Fault::namespace_not_found()),
        ("409", status(409)),
        ("410", status(410)),
        ("422", status(422)),
        ("429 with Retry-After of an hour", Fault::status_retry_after(429, Duration::from_secs(3600))),
        ("500", status(500)),
        ("503 with Retry-After of 0", Fault::status_retry_after(503, Duration::ZERO)),
        ("no answer", Fault::hang_before().resource("leases")),
        ("no answer to what was carried out", Fault::hang_after().resource("leases")),
        ("connections that break", Fault::drop_before().resource("leases")),
        ("409 of each write", status(409).writes()),
        ("422 of each write", status(422).writes()),
        ("watches that end at once", Fault::break_watch(WatchBreak::End)),
        ("watches that are cut", Fault::break_watch(WatchBreak::Cut)),
        ("watches of garbage", Fault::break_watch(WatchBreak::Garbage)),
        ("410 of each watch", status(410).verb("watch")),
        ("500 of each read", status(500).verb("get")),
    ]
}

/// What another client writes into the lease, each second one of them.
fn garbage() -> Vec<Value> {
    vec![
        Value::Null,
        json!({}),
        json!({ "holderIdentity": "" }),
        json!({ "holderIdentity": "x", "leaseDurationSeconds": 0, "leaseTransitions": i32::MAX }),
        json!({ "holderIdentity": "a", "renewTime": "2100-01-01T00:00:00.000000Z" }),
        json!({ "holderIdentity": "b b", "renewTime": "1970-01-01T00:00:00.000000Z", "leaseTransitions": 1 }),
        json!({ "holderIdentity": "x".repeat(10_000), "leaseDurationSeconds": 1 }),
    ]
}

fn requests(server: &ApiServer) -> u64 {
    let reads =
        |user| ["get", "list", "watch"].map(|verb| server.reads(user, verb, "leases")).iter().sum::<u64>();
    let writes = server.write_log().iter().filter(|it| USERS.contains(&&*it.user)).count();
    USERS.map(reads).iter().sum::<u64>() + writes as u64
}

/// Two candidates for these minutes. `each_second` spoils something.
async fn spoilt(what: &str, fault: Option<Fault>, mut each_second: impl FnMut(&ApiServer, u64)) {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    let before = requests(&server);
    let fault: Option<FaultGuard> = fault.map(|fault| server.inject(fault));
    for second in 0..MINUTES * 60 {
        each_second(&server, second);
        pass(Duration::from_secs(1)).await;
        assert!(!(a.candidate().can_write() && b.candidate().can_write()), "{what}: two lead");
    }
    let each = (requests(&server) - before) / MINUTES / USERS.len() as u64;
    println!("{what}: {each} requests a minute of each candidate");
    assert!(each <= MOST, "{what}: {each} requests a minute of each candidate");
    if let Some(fault) = &fault {
        assert!(fault.hits() > 0, "{what}: it has never gone wrong");
    }
    drop(fault);
    if server.object(LEASE).is_some() {
        server.delete("admin", LEASE).unwrap();
    }
    until(Duration::from_secs(60), what, || a.candidate().can_write() != b.candidate().can_write()).await;
    for running in [a, b] {
        within(Duration::from_secs(30), what, running.stop()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn long_failures_make_no_storm() {
    for (what, fault) in faults() {
        spoilt(what, Some(fault), |_, _| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lasting_garbage_in_the_lease_makes_no_storm() {
    for (what, pause) in [("garbage each second", 1), ("garbage each minute", 60)] {
        let mut garbage = garbage().into_iter().cycle();
        spoilt(what, None, |server, second| {
            if second % pause == 0 {
                let spec = garbage.next();
                // The lease may be gone.
                let _ = server.edit("outsider", LEASE, |lease| lease["spec"] = spec.clone().into());
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn lasting_deletions_make_no_storm() {
    spoilt("a deletion each second", None, |server, _| {
        let _ = server.delete("outsider", LEASE);
    })
    .await;
}

/// A role without `watch`, and a client that edits the lease before each renewal. A conflict is no failure of the API server, so
/// the pauses between two attempts to watch grow all the same.
#[tokio::test(start_paused = true)]
async fn conflicts_begin_no_watch_that_is_refused() {
    let server = ApiServer::new();
    let _refused = server.inject(Fault::forbidden().verb("watch").resource("leases"));
    let (a, _) = leading(&server, "a").await;
    for second in 0..MINUTES * 60 {
        let label = json!({ "second": second.to_string() });
        server.edit("outsider", LEASE, |lease| lease["metadata"]["labels"] = label).unwrap();
        pass(Duration::from_secs(1)).await;
    }
    let watches = server.reads("a", "watch", "leases");
    assert!(a.candidate().is_leader() && watches < 30, "{watches} watches");
}
