//! An election with a fence.

use super::{definition::Fence, probe::Probe, writers::Writers};
use crate::{
    election::{ElectionBuilder, Fenced},
    refusal::RefusalLayer,
};
use kube_client::Client;
use std::sync::Arc;

impl ElectionBuilder {
    /// Relies on a [fence](crate::fence) in the API server, so that no write of a former leader lands.
    ///
    /// 1. After a gain, the gate opens only when the API server's fence lets this replica pass in the new term. Until
    ///    then the election renews the lease. [`trouble`](crate::Candidate::trouble) and the log say why the gate stays
    ///    shut. If that takes longer than the renew deadline, the election leaves the lease to another candidate for a
    ///    retry period.
    /// 2. If there is no fence in the cluster, the gate never opens.
    /// 3. If the fence refuses a write that the gate has admitted, clients of this election report
    ///    [`ErrNotLeader`](crate::ErrNotLeader): see [`refusal`](crate::refusal).
    ///
    /// This does not make the fence. [`Fence::apply`] does, with the same lease and policy.
    ///
    /// `client` must have the credentials of the workload, and no gate. It sends the questions of the first point: dry
    /// runs that need `create` on `leases` and change nothing.
    ///
    /// ```no_run
    /// use kube_client::{Client, Config};
    /// use kube_leader_gate::{Election, fence::Writers};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Config::infer().await?;
    /// let election = Election::builder("my-namespace", "my-controller")
    ///     .fence(Writers::service_account("my-namespace", "my-controller")?, Client::try_from(config.clone())?)
    ///     .build(&config)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If a fence cannot tell this identity from another, or cannot express the policy, building the election fails with
    /// [`ErrBuild::Fence`](crate::election::ErrBuild::Fence).
    pub fn fence(mut self, writers: Writers, client: Client) -> Self {
        self.fence = Some(Box::new(move |lease, identity, policy| {
            writers.admit(identity)?;
            let fence = Fence::new(lease, &writers, policy)?;
            let refusals = RefusalLayer::new(fence.name());
            Ok(Fenced { opening: Arc::new(Probe::new(&fence, client, identity.clone())), refusals })
        }));
        self
    }
}
