//! A replica's side of the layers: how a program wraps the lock and the client of its election.

use crate::{fence::fence, gateway::identity, plan::Layers};
use kube_client::Client;
use kube_leader_gate::{LeaseTiming, election::ElectionBuilder};
use test_support::early_takeover::EarlyTakeover;

#[derive(Clone, Debug)]
pub struct Layered {
    pub layers: Layers,
    /// The uid of the replica's pod.
    pub pod: Option<String>,
    pub machines: usize,
}

impl Layered {
    /// `client` makes the calls of the layers.
    pub fn wrap_lock(
        &self,
        number: usize,
        timing: LeaseTiming,
        client: &Client,
        builder: ElectionBuilder,
    ) -> ElectionBuilder {
        // A process that starts again on its machine is the next container of one pod.
        let pod = self.pod.clone().unwrap_or_else(|| format!("pod-{number}"));
        let mut builder = builder.pod_uid(pod);
        if self.layers.fence {
            builder = builder.layer_lock(fence(self.machines).layer(client.clone()));
        }
        if self.pod.is_some() && self.layers.early {
            // Writes are as late here as the guarantees allow.
            let early =
                EarlyTakeover::of_pod(client.clone(), identity(number)).settle(timing.safety_margin());
            builder = builder.layer_lock(early);
        }
        builder
    }

    pub fn wrap_client(&self, client: Client) -> Client {
        if self.layers.fence { fence(self.machines).refusals().wrap(client) } else { client }
    }
}
