//! What Prometheus scrapes.

use crate::{
    callers::{MAPS, ask, create, get, request},
    process::Sidecar,
    upstream::Upstream,
    wait::{SOON, within},
};
use std::time::Duration;
use tokio::time::sleep;

const METRICS: [&str; 2] = ["--metrics", "127.0.0.1:0"];

/// The line with these parts, once it has this value.
async fn shows(sidecar: &Sidecar, parts: &[&str], value: &str) -> String {
    within(SOON, &format!("{parts:?} is {value}"), async {
        loop {
            let page = get(sidecar.metrics(), "/metrics").await;
            assert_eq!(page.code, 200);
            let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
            let line = page.body.lines().find(has_all).unwrap_or_default();
            if line.ends_with(&format!(" {value}")) {
                return line.to_owned();
            }
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test]
async fn metrics_show_leadership_and_writes() {
    let upstream = Upstream::start().await;
    let leader = Sidecar::start(&upstream, "a", &[METRICS[0], METRICS[1], "--timing", "fast"]).await;
    leader.leads().await;
    let status = shows(&leader, &["leader_election_master_status{"], "1").await;
    assert!(status.contains("lease_namespace=\"default\"") && status.contains("name=\"app\""), "{status}");
    assert_eq!(create(leader.addr, "x").await.code, 201);
    let writes = shows(&leader, &["leader_gate_writes_total{", "admitted"], "1").await;
    assert!(writes.contains("resource=\"configmaps\""), "{writes}");

    let follower = Sidecar::start(&upstream, "b", &METRICS).await;
    follower.sees("a").await;
    assert_eq!(create(follower.addr, "y").await.code, 424);
    shows(&follower, &["leader_gate_writes_total{", "rejected"], "1").await;
}

#[tokio::test]
async fn metrics_port_shows_nothing_else() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &METRICS).await;
    for path in ["/", "/leader", MAPS, "/metrics/x"] {
        assert_eq!(get(sidecar.metrics(), path).await.code, 404, "{path}");
    }
    assert_eq!(ask(sidecar.metrics(), request("POST", "/metrics", "")).await.code, 405);
    let mut scrape = request("GET", "/metrics", "");
    scrape.headers_mut().insert("host", "10.0.0.7:9090".parse().unwrap());
    assert_eq!(ask(sidecar.metrics(), scrape).await.code, 200, "Prometheus asks for the pod's address");
}
