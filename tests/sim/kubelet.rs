//! The pods of the machines, and what the kubelets report of them, some time later.

use crate::{gateway::identity, world::World};
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The longest time between something that happens to a process and its report, in milliseconds.
const LATE: u64 = 1_500;

#[derive(Debug)]
pub struct Kubelets {
    chance: Rng,
    /// What will be reported: when, of which machine, and the state of its container.
    reports: Vec<(u64, usize, Value)>,
}

impl Kubelets {
    pub fn new(chance: Rng) -> Self {
        Self { chance, reports: vec![] }
    }
}

impl World<'_> {
    /// A pod whose container runs.
    pub fn make_pod(&mut self, host: usize) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": identity(host), "namespace": "default" },
            "spec": { "containers": [{ "name": "manager" }] },
            "status": { "containerStatuses": [{ "name": "manager", "state": { "running": {} }, "lastState": {} }] },
        });
        let server = self.server.clone();
        let made = self.gateway.run(&self.net, async { server.put("kubelet", &pod_path(host), pod) });
        made.expect("a pod");
    }

    /// The uid of a machine's pod.
    pub fn pod_uid(&self, host: usize) -> Option<String> {
        Some(self.server.object(&pod_path(host))?["metadata"]["uid"].as_str()?.to_owned())
    }

    /// A process has begun.
    pub fn report_begin(&mut self, host: usize) {
        self.report(host, json!({ "running": {} }));
    }

    /// A process has ended. The time of its end is on the clock by which it wrote the times of the lease.
    pub fn report_end(&mut self, host: usize) {
        let now = Timestamp::now() + SignedDuration::from_secs(self.hosts[host].machine.wall);
        let now = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        self.report(host, json!({ "terminated": { "exitCode": 137, "reason": "Error", "finishedAt": now } }));
    }

    fn report(&mut self, host: usize, state: Value) {
        if !self.plan.layers.early {
            return;
        }
        let of_it = self.kubelets.reports.iter().filter(|it| it.1 == host).map(|it| it.0).max();
        let at = self.now() + self.kubelets.chance.u64(50..=LATE);
        self.kubelets.reports.push((at.max(of_it.unwrap_or(0)), host, state));
    }

    /// Reports what is due.
    pub fn kubelets_report(&mut self) {
        let now = self.now();
        let (due, later) = std::mem::take(&mut self.kubelets.reports).into_iter().partition(|it| it.0 <= now);
        self.kubelets.reports = later;
        let due: Vec<(u64, usize, Value)> = due;
        for (_, host, state) in due {
            let (server, path) = (self.server.clone(), pod_path(host));
            let set = |pod: &mut Value| pod["status"]["containerStatuses"][0]["state"] = state;
            let edited = self.gateway.run(&self.net, async { server.edit("kubelet", &path, set) });
            edited.expect("the pod is there");
        }
    }
}

fn pod_path(host: usize) -> String {
    format!("/api/v1/namespaces/default/pods/{}", identity(host))
}
