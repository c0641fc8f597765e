//! The settings of early takeover.

use crate::holder::HolderPod;
use kube_leader_gate::{
    extension::{LockContext, is_label, is_subdomain},
    kube_client::Client,
};
use std::{env, error::Error, fmt, time::Duration};

/// The variable of the downward API with the pod's name.
const POD_NAME: &str = "POD_NAME";

/// The end of a connection reaches the API server within this time, even if three packets in a row are lost: TCP
/// repeats them after 0.2, 0.6 and 1.4 s.
const SETTLE: Duration = Duration::from_secs(2);

/// Takes over from a holder whose container has ended, without waiting for the end of its lease. The kubelet reports
/// the end in the status of the holder's pod. Pass it to
/// [`layer_lock`](kube_leader_gate::election::ElectionBuilder::layer_lock).
///
/// Each replica needs it. As the holder, it writes into the lease in which pod it runs. As a follower, it watches the
/// holder's pod. A holder that does not write this is never succeeded early.
#[derive(Clone)]
#[must_use = "pass it to `ElectionBuilder::layer_lock`"]
pub struct EarlyTakeover {
    pub(crate) client: Client,
    pub(crate) own: HolderPod,
    /// The namespace of the pods. None if it is the lease's.
    pub(crate) namespace: Option<String>,
    pub(crate) settle: Duration,
}

/// Early takeover cannot work with this value. The error says what was given and what is allowed.
///
/// It comes in an [`ErrBuild::Lock`](kube_leader_gate::election::ErrBuild::Lock), when the election is built. Nothing
/// has begun. Correct the value, for example in the variables of the pod: a retry with the same one fails again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidEarlyTakeover {
    what: &'static str,
    given: String,
    allowed: String,
}

// === impl EarlyTakeover ===

impl EarlyTakeover {
    /// Reads the name of this process's pod from the variable `POD_NAME`. Set it from the downward API's `metadata.name`. If
    /// it is missing, or if the election does not know [the uid of the
    /// pod](kube_leader_gate::election::ElectionBuilder::pod_uid), the election is not built.
    ///
    /// `client` reads and watches pods. It needs no gate.
    pub fn infer(client: Client) -> Self {
        Self::infer_from(client, |name| env::var_os(name).unwrap_or_default().to_string_lossy().into_owned())
    }

    pub(crate) fn infer_from(client: Client, variable: impl Fn(&str) -> String) -> Self {
        Self::of_pod(client, variable(POD_NAME))
    }

    /// Names the pod in which this process runs.
    pub fn of_pod(client: Client, name: impl Into<String>) -> Self {
        let own = HolderPod { name: name.into(), container: None };
        Self { client, own, namespace: None, settle: SETTLE }
    }

    /// Names the container in which this process runs. Then the end of that container is enough. Default: each
    /// container of the pod must have ended.
    ///
    /// The name must be right. With the name of another container, the end of that container counts as the end of
    /// this process, and two replicas may write at once.
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.own.container = Some(name.into());
        self
    }

    /// Sets the namespace of the pods. Default: the namespace of the lease.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Sets how long a takeover waits after the end of the holder's container was seen. In this time a write that the
    /// holder had sent may still take effect. Default: 2 s. At most the lease duration.
    ///
    /// When a lease runs out, this margin is the [safety margin](kube_leader_gate::LeaseTiming::safety_margin). Set that here to keep
    /// it.
    pub fn settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
    }

    /// Checks each value.
    pub(crate) fn validate(&self, context: &LockContext) -> Result<(), ErrInvalidEarlyTakeover> {
        let timing = context.candidate().timing();
        let refuse = |what, given: &str, allowed: &str| {
            Err(ErrInvalidEarlyTakeover { what, given: format!("{given:?}"), allowed: allowed.to_owned() })
        };
        let HolderPod { name, container } = &self.own;
        if !is_subdomain(name) {
            let allowed = "a pod's name, as the downward API's metadata.name in POD_NAME";
            return refuse("the pod's name", name, allowed);
        }
        if context.pod_uid().is_none() {
            let allowed = "a pod's uid, as the downward API's metadata.uid in POD_UID";
            return refuse("the pod's uid", "", allowed);
        }
        if let Some(container) = container.as_ref().filter(|name| !is_label(name)) {
            let allowed = "the name of a container: 1 to 63 of a-z, 0-9 and '-'";
            return refuse("the container", container, allowed);
        }
        if let Some(namespace) = self.namespace.as_ref().filter(|name| !is_label(name)) {
            return refuse("the pods' namespace", namespace, "1 to 63 of a-z, 0-9 and '-'");
        }
        if self.settle > timing.lease_duration() {
            return Err(ErrInvalidEarlyTakeover {
                what: "the time to settle",
                given: format!("{:?}", self.settle),
                allowed: format!("at most the lease duration, {:?}", timing.lease_duration()),
            });
        }
        Ok(())
    }
}

impl fmt::Debug for EarlyTakeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client: _, own, namespace, settle } = self;
        f.debug_struct("EarlyTakeover")
            .field("own", own)
            .field("namespace", namespace)
            .field("settle", settle)
            .finish_non_exhaustive()
    }
}

// === impl ErrInvalidEarlyTakeover ===

impl ErrInvalidEarlyTakeover {
    /// Which value was refused: `the container`, for example.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The refused value, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Describes the allowed values in words.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ErrInvalidEarlyTakeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, allowed } = self;
        write!(f, "invalid early takeover: {what} is {given}, allowed: {allowed}")
    }
}

impl Error for ErrInvalidEarlyTakeover {}
