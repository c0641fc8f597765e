//! The leader election: a task that contends for the lease until it is told to stop.
//!
//! A program builds an [`Election`], starts it as a [`Running`] task, and asks its [`Candidate`] handle who leads.
//! The main rules are [S1: leading is a deadline](crate::guide::guarantees#s1-leading-is-a-deadline), [S4: a clean
//! stop has an order](crate::guide::guarantees#s4-a-clean-stop-has-an-order) and [S10: a dead election closes the
//! gate](crate::guide::guarantees#s10-a-dead-election-closes-the-gate).
//!
//! Inside, `candidacy` decides what to do next: it is pure and knows only what the candidate saw, and when.
//! `preemption` replaces a live holder. `lease_watch` follows the lease by watch. `elector` is the loop that connects
//! these with the lock and the leadership word.

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
/// Take the workload's [`client`](Self::client) and the [`candidate`](Self::candidate) handle. Then call
/// [`run`](Self::run) or [`run_while_leading`](Self::run_while_leading). The gate is closed before the election
/// begins, and after it has ended.
#[derive(Debug)]
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
    /// Makes a client for the workload: kube's own stack for `config` behind the [gate](Self::layer). It uses
    /// [connections](Self::connections) that end when a term is lost.
    ///
    /// To add your own layers in between: `ClientBuilder::try_from((config,
    /// election.connections()))?.with_layer(&yours).with_layer(&election.layer()).build()`.
    ///
    /// # Errors
    /// [`ErrBuild::Client`] if kube-client cannot make a client from `config`.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    pub fn client(&self, config: &Config) -> Result<Client, ErrBuild> {
        let builder =
            ClientBuilder::try_from((config.clone(), self.connections())).map_err(ErrBuild::Client)?;
        Ok(builder.with_layer(&self.layer()).build())
    }

    /// Runs a client's connections. After a term is lost, they send nothing that the gate admitted in it.
    #[must_use]
    pub fn connections(&self) -> Connections {
        Connections::new(self.grantor.leadership())
    }

    /// The gate, as a tower layer.
    #[must_use]
    pub fn layer(&self) -> WriteGateLayer {
        self.profile.gate(self.grantor.leadership(), self.policy.clone())
    }

    /// Puts the gate in front of an existing client. If that client retries requests, for example, this happens
    /// behind the gate. The client keeps its own connections. After a freeze they may still send what they were
    /// given, unlike the connections of [`client`](Self::client).
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
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

    /// The handle to ask who leads. It may outlive the election.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate::new(self.grantor.leadership(), self.profile.clone())
    }
}
