//! An election that is built, and has not begun.

use super::{
    attendants::Attendants,
    candidate::{Candidate, Profile},
    client::{Connections, WrappedClient},
    preemption::Priority,
    pulse::Alive,
};
use crate::{
    gate::WriteGateLayer,
    leadership::Grantor,
    lease::{ErrInvalidIdentity, ErrInvalidLeaseName, KubeLock},
    policy::{ErrInvalidRule, Policy},
};
use kube_client::{Client, Config, client::ClientBuilder};
use std::{error::Error, fmt, sync::Arc, time::Duration};
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
    pub(super) lock: L,
    pub(super) grantor: Grantor,
    pub(super) profile: Arc<Profile>,
    pub(super) drain_timeout: Duration,
    pub(super) grace: Duration,
    pub(super) alive: Alive,
    pub(super) attendants: Attendants,
    pub(super) priority: Option<Priority>,
    pub(super) policy: Policy,
}

/// An election that cannot be: what was given, and what is allowed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrBuild {
    /// Kubernetes would refuse the namespace or the name.
    LeaseName(ErrInvalidLeaseName),
    /// No identity was given, and the inferred one cannot stand in a lease.
    Identity(ErrInvalidIdentity),
    /// A rule of the policy can never match.
    Policy(ErrInvalidRule),
    /// No client can be made from the configuration.
    Client(kube_client::Error),
    /// The lock that [`build_with`](super::ElectionBuilder::build_with) was given cannot be made: that lock's own error.
    Lock(Box<dyn Error + Send + Sync>),
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
        Connections { leadership: self.grantor.leadership() }
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

    /// The handle to ask who leads, which may outlive the election.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate::new(self.grantor.leadership(), self.profile.clone())
    }
}

// === impl ErrBuild ===

impl fmt::Display for ErrBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseName(error) => error.fmt(f),
            Self::Identity(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::Client(error) => {
                write!(f, "no client for the election can be made from the configuration: {error}")
            }
            Self::Lock(error) => write!(f, "the lock of the election cannot be made: {error}"),
        }
    }
}

impl Error for ErrBuild {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Client(error) => Some(error),
            Self::Lock(error) => Some(&**error),
            Self::LeaseName(_) | Self::Identity(_) | Self::Policy(_) => None,
        }
    }
}
