//! A coordinator that does what a test says, and candidates for it.

use crate::support::{FIRST, LEASE, SOON, build, builder, gated, lease, until, within};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::{Coordination, Running},
    testing::ApiServer,
};
use serde_json::{Value, json};

const COLLECTION: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";

pub fn path(identity: &str) -> String {
    format!("{COLLECTION}/{identity}")
}

pub fn coordination() -> Coordination {
    Coordination::new("1.5.0").expect("a version")
}

/// A candidate for the lease `operator`. Its `LeaseCandidate` calls go straight to the server too.
pub fn coordinated(server: &ApiServer, identity: &str) -> Election {
    let client = Client::new(server.service().user(identity), "default");
    let builder = builder(identity).coordinated(client, coordination());
    build(server, identity, builder).expect("a valid election")
}

/// A candidate that the coordinator has named, and that leads.
pub async fn leading(server: &ApiServer, identity: &str) -> (Running, Client) {
    let election = coordinated(server, identity);
    let client = gated(server, &election, identity);
    let running = election.start();
    is_listed(server, identity).await;
    name(server, identity);
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

pub async fn is_listed(server: &ApiServer, identity: &str) {
    until(FIRST, "it has a LeaseCandidate", || server.object(&path(identity)).is_some()).await;
}

/// What the coordinator of the API server writes when it names a holder.
pub fn name(server: &ApiServer, holder: &str) {
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 5, "strategy": "OldestEmulationVersion",
                       "renewTime": "2026-01-02T03:04:05.000000Z" });
    if server.object(LEASE).is_none() {
        server.put("coordinator", LEASE, lease(&spec)).expect("a valid lease");
        return;
    }
    let naming = |lease: &mut Value| {
        for (field, value) in spec.as_object().expect("fields") {
            lease["spec"][field] = value.clone();
        }
        let spec = lease["spec"].as_object_mut().expect("a spec");
        spec.remove("acquireTime");
        spec.remove("preferredHolder");
    };
    server.edit("coordinator", LEASE, naming).expect("the lease is there");
}

/// What it writes when it prefers another candidate than the holder.
pub fn prefer(server: &ApiServer, preferred: &str) {
    server
        .edit("coordinator", LEASE, |lease| lease["spec"]["preferredHolder"] = preferred.into())
        .expect("the lease is there");
}

/// Waits until a candidate has released the lease.
pub async fn is_released(server: &ApiServer) {
    let holder = || server.object(LEASE).expect("the lease")["spec"]["holderIdentity"].take();
    until(SOON, "the lease is released", || holder() == "").await;
}
