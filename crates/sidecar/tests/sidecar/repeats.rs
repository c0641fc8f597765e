//! kube's client as it comes repeats a request after a 429, 503 or 504, up to 15 times. Through the sidecar one call makes
//! at most one object, whatever becomes of the answer and of the term.

use crate::{
    callers,
    process::Sidecar,
    upstream::{LEASE, Upstream},
    wait::{SOON, until, within},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config, Error,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use kube_leader_gate::testing::Fault;
use serde_json::{Value, json};

/// A client with its own retries.
fn maps(sidecar: &Sidecar) -> Api<ConfigMap> {
    let config = Config::new(format!("http://{}", sidecar.addr).parse().unwrap());
    Api::default_namespaced(Client::try_from(config).unwrap())
}

/// The server chooses the name, so that a second request makes a second object.
async fn create(maps: &Api<ConfigMap>) -> Result<ConfigMap, Error> {
    let metadata = ObjectMeta { generate_name: Some("x-".to_owned()), ..ObjectMeta::default() };
    let map = ConfigMap { metadata, ..ConfigMap::default() };
    within(SOON, "the call ends", maps.create(&PostParams::default(), &map)).await
}

/// Requests that have reached the server.
fn creates(upstream: &Upstream) -> usize {
    upstream.server.write_log().iter().filter(|write| write.resource == "configmaps").count()
}

/// With an empty name, the last holder has released it.
fn held_by(upstream: &Upstream, holder: &str) {
    let edit = |lease: &mut Value| {
        lease["spec"]["holderIdentity"] = holder.into();
        if holder.is_empty() {
            lease["spec"]["leaseDurationSeconds"] = 1.into();
            lease["spec"]["acquireTime"] = "2126-01-01T00:00:00.000000Z".into();
            lease["spec"]["renewTime"] = "2126-01-01T00:00:00.000000Z".into();
        }
    };
    upstream.server.edit("outsider", LEASE, edit).unwrap();
}

fn reason(outcome: Result<ConfigMap, Error>) -> String {
    match outcome {
        Err(Error::Api(status)) => status.reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn kube_does_not_repeat_unknown_outcomes() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let maps = maps(&sidecar);
    let faults = [408, 500, 502, 503, 504].map(Fault::status).into_iter();
    for (number, fault) in faults.chain([Fault::drop_before(), Fault::drop_after()]).enumerate() {
        let fault = upstream.server.inject(fault.resource("configmaps").times(1));
        reason(create(&maps).await);
        assert_eq!((fault.hits(), creates(&upstream)), (1, number + 1));
    }
}

/// The write took effect, but its answer is held back, and the term ends. In the next term a repetition would pass.
#[tokio::test]
async fn kube_does_not_repeat_a_write_in_next_term() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let hang = upstream.server.inject(Fault::hang_after().resource("configmaps").times(1));
    let maps = maps(&sidecar);
    let call = tokio::spawn(async move { create(&maps).await });
    until("the answer hangs", || hang.hits() == 1).await;
    held_by(&upstream, "outsider");
    sidecar.sees("outsider").await;
    held_by(&upstream, "");
    sidecar.leads().await;
    assert_eq!(reason(call.await.unwrap()), "LeadershipLost");
    assert_eq!(creates(&upstream), 1);
}

/// Its decision was a follower's, and the leader has written since. So it must not land when the follower leads.
#[tokio::test]
async fn kube_does_not_repeat_a_refused_write_after_the_gain() {
    const MAP: &str = "/api/v1/namespaces/default/configmaps/x";
    const REFUSED: &str = "kube_leader_gate_sidecar::proxy: write attempt rejected";
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &["--timing", "fast"]).await;
    let maps = maps(&sidecar);
    let call = tokio::spawn(async move {
        let old = Patch::Merge(json!({ "data": { "value": "old" } }));
        within(SOON, "the call ends", maps.patch("x", &PatchParams::default(), &old)).await
    });
    until("the gate has rejected it", || sidecar.log().contains(REFUSED)).await;
    upstream.server.put("outsider", MAP, json!({ "data": { "value": "new" } })).unwrap();
    held_by(&upstream, "");
    sidecar.leads().await;
    let outcome = call.await.unwrap();
    assert_eq!(upstream.server.object(MAP).unwrap()["data"]["value"], "new");
    assert_eq!(reason(outcome), "NotLeader");
    assert_eq!(sidecar.log().matches(REFUSED).count(), 1, "it was sent once");
}

/// The API server's own Status may name a time after which clients send a request again.
#[tokio::test]
async fn unknown_outcome_names_no_time_to_repeat() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let _fault = upstream.server.inject(Fault::status_retry_after(503, SOON).resource("configmaps"));
    let answer = callers::create(sidecar.addr, "x").await;
    let (code, reason, message) = answer.status();
    assert_eq!((code, &*reason), (424, "OutcomeUnknown"));
    assert!(message.ends_with("out: the server is currently unable to handle the request"), "{message}");
    assert!(!answer.headers.contains_key("retry-after") && !answer.body.contains("retryAfter"), "{answer:?}");
}
