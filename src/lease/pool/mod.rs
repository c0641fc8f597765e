//! The clients and watches that the elections of one process share.

pub(super) mod clients;
mod shared_watch;
pub(super) mod watches;

use self::{clients::Clients, watches::SharedWatches};
use super::{kube_lock::KubeLock, lock::BoxLock, name::LeaseName, timing::LeaseTiming};
use kube_client::{Client, Config};
use std::{fmt, sync::Arc};

/// A call waits for room for at most its time divided by this.
const PART_FOR_WAITING: u32 = 8;

/// What the elections of one process share: the connections of their lease calls and, as an option, one watch for all
/// leases of a namespace. Clones share everything.
///
/// The [guide](crate::guide::getting_started#many-elections) has an example.
///
/// A failure of one election does not affect the others. If a call is not answered, its own election moves to a fresh
/// client ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)). The other elections stay with
/// their client until one of their own calls is not answered; then they move to the same fresh client.
///
/// Sixteen calls can run at once. If there is no room, a call waits for an eighth of its call timeout at most. Then
/// it is sent anyway, so that hanging calls do not delay others.
///
/// A client has tasks in the runtime in which the pool was made. A watch has its task in the runtime of the election
/// that began it. They end with the last lock that uses them, or with their runtime. After that a new watch begins,
/// but no new client: let the pool's runtime outlive the elections.
#[derive(Clone)]
pub struct LeasePool {
    clients: Arc<Clients>,
    watches: Option<Arc<SharedWatches>>,
}

// === impl LeasePool ===

impl LeasePool {
    /// Makes a pool over clients made from `config`: without gate and retries, apart from the workload's clients
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// # Errors
    /// The errors of kube's [`ClientBuilder`](kube_client::client::ClientBuilder): TLS is not compiled in, a
    /// certificate cannot be read, or a credential plugin fails.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    pub fn new(config: &Config) -> Result<Self, kube_client::Error> {
        Ok(Self { clients: Clients::from_config(config)?, watches: None })
    }

    /// Makes a pool over clients that `connect` makes: one now, and a fresh one after calls that were not answered in
    /// time ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)). These clients must not
    /// retry, and must not share a limit or a buffer with the workload
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// # Errors
    /// The errors of `connect`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn over(
        connect: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Self, kube_client::Error> {
        Ok(Self { clients: Clients::new(connect)?, watches: None })
    }

    /// Lets all locks in a namespace share one watch of all its leases. Without this option, each lease has its own
    /// watch, and each watch its own connection.
    ///
    /// This needs the permission to `watch` *all* leases of the namespace; a Role that lists `resourceNames` does not
    /// give it. If the API server refuses the shared watch, each lock watches its own lease, and the pool tries again
    /// after ten minutes. The watch receives all leases of the namespace, so use a separate namespace. In
    /// `kube-node-lease`, for example, there is one lease for each node, renewed every ten seconds.
    #[must_use]
    pub fn share_watches(self) -> Self {
        let watches = SharedWatches::new(self.clients.clone());
        Self { watches: Some(watches), ..self }
    }

    /// Makes a lock on `lease`, for an election with this timing.
    /// [`ElectionBuilder::build_in`](crate::election::ElectionBuilder::build_in) uses it.
    #[must_use]
    pub fn lock(&self, lease: LeaseName, timing: &LeaseTiming) -> BoxLock {
        let member = self.watches.as_ref().map(SharedWatches::member);
        BoxLock::new(KubeLock::new(
            lease,
            self.clients.caller(timing.call_timeout() / PART_FOR_WAITING),
            member,
        ))
    }
}

impl fmt::Debug for LeasePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasePool").field("shares_watches", &self.watches.is_some()).finish_non_exhaustive()
    }
}
