//! Replicas with pods, and a kubelet that reports what a test says.

use crate::support::{FIRST, SOON, build, builder, spec, until, within};
use jiff::{SignedDuration, Timestamp};
use kube_leader_gate::{
    Election,
    election::{ElectionBuilder, Running},
    kube_client::Client,
    testing::ApiServer,
};
use kube_leader_gate_early_takeover::EarlyTakeover;
use serde_json::{Value, json};

pub fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

/// Creates the pod, whose containers run. Returns its uid.
pub fn create(server: &ApiServer, name: &str) -> String {
    let running = |name: &str| json!({ "name": name, "state": { "running": {} }, "lastState": {} });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
        "spec": { "nodeName": "node", "containers": [{ "name": "manager" }, { "name": "proxy" }] },
        "status": { "phase": "Running", "containerStatuses": [running("manager"), running("proxy")] },
    });
    let pod = server.put("kubelet", &path(name), pod).expect("a valid pod");
    pod["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// The settings of a replica in the pod `name`, in its container `manager`.
pub fn early(server: &ApiServer, name: &str) -> EarlyTakeover {
    let client = Client::new(server.service().user(name), "default");
    EarlyTakeover::of_pod(client, name).container("manager")
}

/// A replica in a new pod of its name.
pub fn replica(server: &ApiServer, name: &str) -> Election {
    replica_with(server, name, |early| early, builder(name))
}

pub fn replica_with(
    server: &ApiServer,
    name: &str,
    settings: impl FnOnce(EarlyTakeover) -> EarlyTakeover,
    builder: ElectionBuilder,
) -> Election {
    let (uid, early) = (create(server, name), settings(early(server, name)));
    build(server, name, builder.pod_uid(uid).layer_lock(early)).expect("a valid election")
}

/// `a` leads, and `b` watches its pod.
pub async fn leader_and_follower(server: &ApiServer) -> (Running, Running) {
    let a = replica(server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = replica(server, "b").start();
    watches(server, "b").await;
    (a, b)
}

pub async fn watches(server: &ApiServer, follower: &str) {
    until(SOON, "the follower watches the pod", || server.reads(follower, "watch", "pods") > 0).await;
}

/// A time this long after the last renewal, cut to whole seconds as in the status of a pod.
pub fn after_renewal(server: &ApiServer, seconds: i64) -> String {
    let renewed: Timestamp = spec(server)["renewTime"].as_str().expect("a renewal").parse().expect("a time");
    (renewed + SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn terminated(at: &str) -> Value {
    json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "finishedAt": at } })
}

/// The kubelet reports this of the container in this place.
pub fn report(server: &ApiServer, name: &str, container: usize, state: &Value, last: &Value) {
    let report = |pod: &mut Value| {
        let status = &mut pod["status"]["containerStatuses"][container];
        status["state"] = state.clone();
        status["lastState"] = last.clone();
    };
    server.edit("kubelet", &path(name), report).expect("the pod is there");
}

/// The kubelet reports that the container `manager` has ended, two seconds after the last renewal.
pub fn report_end(server: &ApiServer, name: &str) {
    let end = terminated(&after_renewal(server, 2));
    report(server, name, 0, &end, &json!({}));
}
