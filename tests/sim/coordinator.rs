//! The coordinator of the API server: it names a holder for the first lease, and sometimes prefers another one.

use crate::{
    gateway::{self, identity},
    world::{World, path},
};
use fastrand::Rng;
use jiff::Timestamp;
use serde_json::{Value, json};

/// How often it looks, in milliseconds.
const LOOKS: u64 = 250;
/// How seldom it prefers another candidate: one of so many looks.
const PREFERS: u32 = 60;
/// Its name in the log of writes.
pub const COORDINATOR: &str = "coordinator";

#[derive(Debug)]
pub struct Coordinator {
    chance: Rng,
    next: u64,
    /// The last renewal of the lease, and when it was first seen.
    renewed: (Value, u64),
}

impl Coordinator {
    pub fn new(chance: Rng) -> Self {
        Self { chance, next: 0, renewed: (Value::Null, 0) }
    }
}

impl World<'_> {
    pub fn coordinate(&mut self) {
        let now = self.now();
        if !self.plan.layers.coordinated || now < self.coordinator.next {
            return;
        }
        self.coordinator.next = now + LOOKS;
        let is_there = |host: &usize| self.server.object(&candidate(*host)).is_some();
        let candidates: Vec<usize> = (0..self.hosts.len()).filter(is_there).collect();
        if candidates.is_empty() {
            return;
        }
        let chosen = identity(candidates[self.coordinator.chance.usize(..candidates.len())]);
        let Some(lease) = self.server.object(&path(0)) else {
            let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                "metadata": { "name": "lease-0", "namespace": "default" }, "spec": spec(&chosen) });
            let server = self.server.clone();
            let made = self.gateway.run(&self.net, async { server.put(COORDINATOR, &path(0), lease) });
            made.expect("there was none");
            return self.note_the_lease();
        };
        let renewed = &lease["spec"]["renewTime"];
        if self.coordinator.renewed.0 != *renewed {
            self.coordinator.renewed = (renewed.clone(), now);
        }
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let lasts = lease["spec"]["leaseDurationSeconds"].as_u64().unwrap_or(0) * 1_000;
        if holder.is_empty() || now > self.coordinator.renewed.1 + lasts {
            self.edit_the_lease(|lease| {
                let spec_of = lease["spec"].as_object_mut().expect("a spec");
                spec_of.remove("acquireTime");
                spec_of.remove("preferredHolder");
                spec_of.extend(spec(&chosen).as_object().expect("fields").clone());
            });
        } else if self.coordinator.chance.u32(..PREFERS) == 0 && chosen != holder {
            self.edit_the_lease(|lease| lease["spec"]["preferredHolder"] = chosen.as_str().into());
        }
    }

    fn edit_the_lease(&mut self, change: impl FnOnce(&mut Value)) {
        let server = self.server.clone();
        let edited = self.gateway.run(&self.net, async { server.edit(COORDINATOR, &path(0), change) });
        edited.expect("the lease is there");
        self.note_the_lease();
    }

    fn note_the_lease(&mut self) {
        if let Some(lease) = self.server.object(&path(0)) {
            gateway::note(&mut self.net.get(), lease);
        }
    }
}

fn spec(holder: &str) -> Value {
    json!({ "holderIdentity": holder, "leaseDurationSeconds": 5, "strategy": "OldestEmulationVersion",
            "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string() })
}

fn candidate(host: usize) -> String {
    format!("/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates/{}", identity(host))
}
