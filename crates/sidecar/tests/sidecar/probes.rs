//! The status address.

use crate::{
    callers::{Raw, ask, request},
    process::Sidecar,
    upstream::{LEASE, Upstream},
    wait::{SOON, once_within, timed, within},
};
use kube_leader_gate::testing::Fault;
use serde_json::json;
use std::time::Duration;

/// How long the sidecar waits for the head of a probe.
const HEAD: Duration = Duration::from_secs(5);

#[tokio::test]
async fn probes_name_the_leader() {
    let upstream = Upstream::start().await;
    let a = Sidecar::leading(&upstream, "a").await;
    let b = Sidecar::start(&upstream, "b", &[]).await;
    b.sees("a").await;
    let uid = upstream.server.object(LEASE).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let told = |page: serde_json::Value| {
        ["identity", "holder", "is_leader", "term"].map(|field| page[field].clone())
    };
    assert_eq!(told(a.leader().await), [json!("a"), json!("a"), json!(true), json!(format!("{uid}/0"))]);
    assert_eq!(told(b.leader().await), [json!("b"), json!("a"), json!(false), json!(null)]);
    for sidecar in [&a, &b] {
        for path in ["/livez", "/healthz", "/readyz"] {
            let answer = sidecar.probe(path).await;
            assert_eq!((answer.code, answer.body.as_str()), (200, "ok\n"), "a follower is ready as well");
        }
    }
    assert_eq!(a.probe("/metrics").await.code, 404);
    assert_eq!(a.probe("/api/v1/pods").await.code, 404);
    assert_eq!(ask(a.status, request("POST", "/leader", "")).await.code, 405);
}

#[tokio::test]
async fn sidecar_is_ready_once_lease_is_seen() {
    let upstream = Upstream::start().await;
    let outage = upstream.server.inject(Fault::status(503).resource("leases"));
    let sidecar = Sidecar::start(&upstream, "a", &["--timing", "fast"]).await;
    within(SOON, "it says why", async {
        loop {
            let answer = sidecar.probe("/readyz").await;
            assert_eq!(answer.code, 503);
            if answer.body.starts_with("the election is in trouble: lease calls fail: ") {
                return;
            }
        }
    })
    .await;
    assert_eq!(sidecar.probe("/healthz").await.code, 200, "a restart would mend nothing");
    drop(outage);
    sidecar.leads().await;
    assert_eq!(sidecar.probe("/readyz").await.code, 200);
}

#[tokio::test]
async fn idle_callers_do_not_starve_probes() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    once_within(HEAD / 2, "no probe waits for the end of an idle caller", async || {
        let mut open = Vec::new();
        for number in 0..200 {
            let head = if number % 2 == 0 { "" } else { "GET /healthz HTTP/1.1\r\nhost: local" };
            open.push(Raw::send(sidecar.status, head).await);
        }
        let (took, ()) = timed(async {
            for path in ["/healthz", "/readyz", "/leader"] {
                assert_eq!(sidecar.probe(path).await.code, 200);
            }
        })
        .await;
        assert_eq!(open[0].rest().await, "", "the oldest made room");
        took
    })
    .await;
}

#[tokio::test]
async fn probe_leaves_no_open_connection() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &[]).await;
    once_within(HEAD / 2, "the sidecar waits for no other request", async || {
        let mut probe = Raw::send(sidecar.status, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let (took, answer) = timed(probe.rest()).await;
        assert!(answer.to_lowercase().contains("connection: close\r\n"), "{answer}");
        took
    })
    .await;
}

#[tokio::test]
async fn slow_probe_connection_is_closed() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &[]).await;
    let mut slow = Raw::send(sidecar.status, "GET /healthz HTTP/1.1\r\n").await;
    within(HEAD + SOON, "the sidecar hangs up", slow.rest()).await;
}
