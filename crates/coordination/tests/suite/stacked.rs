//! Coordination beside early takeover, which wraps the same lock.

use crate::support::{
    FIRST, LEASE, SOON, build, builder, coordination, gated, is_listed, lease_writes, name, pass, spec,
    until, within, write,
};
use jiff::{SignedDuration, Timestamp};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::{ElectionBuilder, Running},
    testing::ApiServer,
};
use kube_leader_gate_coordination::Coordinated;
use kube_leader_gate_early_takeover::EarlyTakeover;
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// How long an early takeover waits after it has seen an end.
const SETTLE: Duration = Duration::from_secs(2);

fn pod(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

/// Early takeover, in a new pod whose container runs, and the uid of that pod.
fn early(server: &ApiServer, name: &str) -> (String, EarlyTakeover) {
    let created = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "manager" }] },
        "status": { "containerStatuses": [{ "name": "manager", "state": { "running": {} }, "lastState": {} }] },
    });
    let created = server.put("kubelet", &pod(name), created).expect("a valid pod");
    let client = Client::new(server.service().user(name), "default");
    let uid = created["metadata"]["uid"].as_str().expect("a uid").to_owned();
    (uid, EarlyTakeover::of_pod(client, name))
}

/// The kubelet reports that the container has ended, two seconds after the last renewal of the lease.
fn report_end(server: &ApiServer, name: &str) {
    let renewed: Timestamp = spec(server)["renewTime"].as_str().expect("a renewal").parse().expect("a time");
    let ended = (renewed + SignedDuration::from_secs(2)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let state = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "finishedAt": ended } });
    let report = |pod: &mut Value| pod["status"]["containerStatuses"][0]["state"] = state.clone();
    server.edit("kubelet", &pod(name), report).expect("the pod is there");
}

/// A coordinated candidate with early takeover under it.
fn stacked(server: &ApiServer, identity: &str, builder: ElectionBuilder) -> Election {
    let (uid, early) = early(server, identity);
    let builder = builder.pod_uid(uid).layer_lock(early).coordinated(coordination(server, identity));
    build(server, identity, builder).expect("a valid election")
}

/// A candidate that the coordinator has named.
async fn leads(server: &ApiServer, identity: &str, election: Election) -> Running {
    let running = election.start();
    is_listed(server, identity).await;
    name(server, identity);
    within(FIRST, "it leads", running.candidate().elected()).await;
    running
}

/// It knows that the holder has ended. Still, the coordinator alone chooses.
#[tokio::test(start_paused = true)]
async fn s6_named_candidate_waits_for_no_holder_that_has_ended() {
    let server = ApiServer::new();
    let a = leads(&server, "a", stacked(&server, "a", builder("a"))).await;
    let election = stacked(&server, "b", builder("b"));
    let client = gated(&server, &election, "b");
    let b = election.start();
    is_listed(&server, "b").await;
    until(SOON, "it watches the pod", || server.reads("b", "watch", "pods") > 0).await;
    drop(a);
    report_end(&server, "a");
    pass(SETTLE + SECOND).await;
    assert!(lease_writes(&server, "b").is_empty() && !b.candidate().is_leader());
    assert_eq!(b.candidate().holder(), None, "the end is seen");
    name(&server, "b");
    within(SOON, "it waits for no time to be over", b.candidate().elected()).await;
    write(&client).await.unwrap();
    let said = server.object(LEASE).unwrap()["metadata"]["annotations"]["kube-leader-gate/holder-pod"].take();
    assert!(said.as_str().is_some_and(|said| said.contains(r#""holder":"b""#)), "{said}");
}

/// In the other order the coordinator chooses too. The named candidate waits for the end of the former holder's lease.
#[tokio::test(start_paused = true)]
async fn s6_early_takeover_over_the_coordinator_takes_no_lease_either() {
    let server = ApiServer::new();
    let a = leads(&server, "a", stacked(&server, "a", builder("a"))).await;
    let (uid, early) = early(&server, "b");
    let over = builder("b").pod_uid(uid).coordinated(coordination(&server, "b")).layer_lock(early);
    let b = build(&server, "b", over).unwrap().start();
    is_listed(&server, "b").await;
    until(SOON, "it watches the pod", || server.reads("b", "watch", "pods") > 0).await;
    drop(a);
    report_end(&server, "a");
    until(SETTLE * 3, "the end is seen", || b.candidate().holder().is_none()).await;
    pass(60 * SECOND).await;
    assert!(lease_writes(&server, "b").is_empty());
    name(&server, "b");
    within(16 * SECOND, "it is named", b.candidate().elected()).await;
}
