//! The election: a side task that contends for the lease, for as long as it is not told to stop.
//!
//! [`Election`] is what a program builds, [`Running`] the task under way, [`Candidate`] the handle to ask. Inside,
//! `candidacy` says what to do next, purely, from what was seen and when; `preemption` is how a live holder is replaced;
//! `lease_watch` follows the lease by watch; `elector` is the loop between them, the lock and the leadership word.

mod attendants;
mod builder;
mod candidacy;
mod candidate;
mod client;
mod elector;
mod ended;
mod hooks;
mod lease_watch;
mod preemption;
mod pulse;
mod running;
mod wall_clock;
mod work;

#[cfg(feature = "metrics")]
pub(crate) use self::hooks::{LeaseCall, LeaseHook};
pub use self::{
    builder::{ElectionBuilder, ErrBuild},
    candidate::{Candidate, ErrUnhealthy},
    client::Connections,
    ended::{ErrElectionEnded, Finished, LeaseEnd},
    preemption::{ErrInvalidPriority, Priority},
    running::Running,
};

use self::{attendants::Attendants, candidate::Profile, client::WrappedClient, pulse::Alive};
use crate::{
    gate::WriteGateLayer,
    leadership::Grantor,
    lease::{KubeLock, LeaseTiming},
    policy::Policy,
};
use kube_client::{Client, Config, client::ClientBuilder};
use std::{sync::Arc, time::Duration};
use tower_layer::Layer;

/// An election that has not begun.
///
/// ```no_run
/// use kube_client::{Client, Config};
/// use kube_leader_gate::{Election, Identity, LeaseTiming};
///
/// # async fn controllers(_: Client) {}
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::infer().await?;
/// let election = Election::builder("my-namespace", "my-controller")
///     .identity(Identity::infer()?)
///     .timing(LeaseTiming::fast())
///     .build(&config)?;
/// let client = election.client(&config)?;
/// election.run(controllers(client)).await?.into_output();
/// # Ok(())
/// # }
/// ```
///
/// Take the workload's [`client`](Self::client) and the [`candidate`](Self::candidate) handle, then [`run`](Self::run) it, or
/// [`run_while_leading`](Self::run_while_leading).
/// Until then, and ever after it has ended, the gate is closed.
#[derive(Debug)]
#[must_use = "an election does nothing unless it is run or started"]
pub struct Election<L = KubeLock> {
    lock: L,
    grantor: Grantor,
    profile: Arc<Profile>,
    drain_timeout: Duration,
    grace: Duration,
    alive: Alive,
    attendants: Attendants,
    priority: Option<Priority>,
    policy: Policy,
}

// === impl Election ===

impl<L> Election<L> {
    /// A client for the workload: kube's own stack for `config`, behind the [gate](Self::layer), over
    /// [connections](Self::connections) that end with a lost term.
    ///
    /// With layers of your own between:
    /// `ClientBuilder::try_from((config, election.connections()))?.with_layer(&yours).with_layer(&election.layer()).build()`.
    ///
    /// # Errors
    /// What kube's [`ClientBuilder`] fails with: no TLS built in, a certificate that cannot be read, a failing credential
    /// plugin.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as every kube client does.
    pub fn client(&self, config: &Config) -> Result<Client, kube_client::Error> {
        let builder = ClientBuilder::try_from((config.clone(), self.connections()))?;
        Ok(builder.with_layer(&self.layer()).build())
    }

    /// What runs a client's connections, so that they send nothing more that was admitted in a term that was lost.
    #[must_use]
    pub fn connections(&self) -> Connections {
        Connections::new(self.grantor.leadership())
    }

    /// The gate, as a layer. A client that may send other things than the rest gets a policy of its own:
    /// `election.layer().with_policy(policy)`.
    #[must_use]
    pub fn layer(&self) -> WriteGateLayer {
        let layer = WriteGateLayer::new(self.grantor.leadership()).with_policy(self.policy.clone());
        match &self.profile.hooks.writes {
            Some(observer) => layer.with_observer(observer.clone()),
            None => layer,
        }
    }

    /// Puts the gate before a client that exists already. Whatever that client does to a request (retries, say) happens
    /// behind the gate. Its connections are its own: what they have been given they may send after a freeze, unlike
    /// those of [`client`](Self::client).
    ///
    /// # Panics
    /// Outside of a tokio runtime, as every kube client does.
    #[must_use]
    pub fn wrap(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let valid_until = *client.valid_until();
        let service = WrappedClient(client);
        Client::new(self.layer().layer(service), namespace).with_valid_until(valid_until)
    }

    fn timing(&self) -> LeaseTiming {
        self.profile.timing
    }

    /// The handle to ask who leads, which may outlive the election.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate::new(self.grantor.leadership(), self.profile.clone())
    }
}
