//! The status address.

use crate::{
    callers::{ask, request},
    process::{LEASE, Sidecar},
    upstream::Upstream,
};
use kube_leader_gate::testing::Fault;
use serde_json::json;

#[tokio::test]
async fn tell_who_leads() {
    let upstream = Upstream::start().await;
    let a = Sidecar::leading(&upstream, "a").await;
    let b = Sidecar::start(&upstream, "b", &[]).await;
    b.sees("a").await;
    let uid = upstream.server.object(LEASE).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let leading = json!({ "identity": "a", "holder": "a", "leading": true, "term": format!("{uid}/0") });
    assert_eq!(a.leader().await, leading);
    let following = json!({ "identity": "b", "holder": "a", "leading": false, "term": null });
    assert_eq!(b.leader().await, following);
    for sidecar in [&a, &b] {
        for path in ["/healthz", "/readyz"] {
            let answer = sidecar.probe(path).await;
            assert_eq!((answer.code, answer.body.as_str()), (200, "ok\n"), "a follower is ready as well");
        }
    }
    assert_eq!(a.probe("/metrics").await.code, 404);
    assert_eq!(a.probe("/api/v1/pods").await.code, 404);
    assert_eq!(ask(a.status, request("POST", "/leader", "")).await.code, 405);
}

#[tokio::test]
async fn ready_is_whoever_has_seen_the_lease() {
    let upstream = Upstream::start().await;
    let outage = upstream.server.inject(Fault::status(503).resource("leases"));
    let sidecar = Sidecar::start(&upstream, "a", &["--timing", "fast"]).await;
    let answer = sidecar.probe("/readyz").await;
    assert_eq!((answer.code, answer.body.as_str()), (503, "the lease default/app has not been seen yet\n"));
    assert_eq!(sidecar.probe("/healthz").await.code, 200, "a restart would mend nothing");
    drop(outage);
    sidecar.leads().await;
    assert_eq!(sidecar.probe("/readyz").await.code, 200);
}
