//! What the elections of one process share.

pub(super) mod clients;
mod hub;
mod slot;
pub(super) mod watches;

use self::{clients::Clients, watches::SharedWatches};
use super::{kube_lock::KubeLock, name::LeaseName, timing::LeaseTiming};
use kube_client::{Client, Config};
use std::{fmt, sync::Arc};

/// A call may wait this part of its time for room.
const PART_FOR_WAITING: u32 = 8;

/// What the elections of one process share: the connections of their lease calls, and, if asked for, one watch for all
/// leases of a namespace. Clones share everything.
///
/// ```no_run
/// use kube_leader_gate::{Election, lease::LeasePool};
///
/// # fn example(config: &kube_client::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let pool = LeasePool::new(config)?.share_watches();
/// let mut elections = Vec::new();
/// for shard in 0..100 {
///     let election = Election::builder("my-namespace", format!("shard-{shard}")).build_in(&pool)?;
///     elections.push(election.start());
/// }
/// # Ok(())
/// # }
/// ```
///
/// The elections stay apart in failure. A call that goes unanswered moves its own election to a fresh client (rule S9); the
/// others stay where they are until their own calls go unanswered, and then move to the same one. Sixteen calls are under way
/// at once. One that finds no room waits an eighth of its call timeout at most, and then goes out all the same, so that calls
/// which hang do not hold up the others.
///
/// A client has tasks of its own, in the runtime in which the pool was made, and a watch in that of the election which began
/// it; they end with the last lock that uses them, or with that runtime. A watch is begun anew then, clients are not: let the
/// pool's runtime outlive the elections.
#[derive(Clone)]
pub struct LeasePool {
    clients: Arc<Clients>,
    watches: Option<Arc<SharedWatches>>,
}

// === impl LeasePool ===

impl LeasePool {
    /// A pool over clients made from `config`: ungated, without retries, apart from the workload's (rule S14).
    ///
    /// # Errors
    /// What kube's [`ClientBuilder`](kube_client::client::ClientBuilder) fails with: no TLS built in, a certificate that cannot be read, a failing credential plugin.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as every kube client does.
    pub fn new(config: &Config) -> Result<Self, kube_client::Error> {
        Ok(Self { clients: Clients::from_config(config)?, watches: None })
    }

    /// A pool over clients of your own making: one now, and a fresh one after calls that were not answered in time (rule
    /// S9). They must neither retry nor share a limit or a buffer with the workload (rule S14).
    ///
    /// # Errors
    /// What `connect` fails with.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn over(
        connect: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Self, kube_client::Error> {
        Ok(Self { clients: Clients::new(connect)?, watches: None })
    }

    /// Lets all locks in a namespace share one watch, of all its leases. Without it each lease has its own watch, and with
    /// that a connection.
    ///
    /// This needs the permission to `watch` *all* leases of the namespace: a Role that lists `resourceNames` does not give
    /// it. Where it is refused each lease is watched by itself, and the pool asks again after ten minutes. All the
    /// namespace's leases are sent, so use a namespace of your own: in `kube-node-lease` that is one for each node, renewed
    /// every ten seconds.
    #[must_use]
    pub fn share_watches(self) -> Self {
        let watches = SharedWatches::new(self.clients.clone());
        Self { watches: Some(watches), ..self }
    }

    /// The lock on `lease`, for an election of this timing;
    /// [`ElectionBuilder::build_in`](crate::election::ElectionBuilder::build_in) asks for it.
    #[must_use]
    pub fn lock(&self, lease: LeaseName, timing: &LeaseTiming) -> KubeLock {
        let member = self.watches.as_ref().map(SharedWatches::member);
        KubeLock::with(lease, self.clients.caller(timing.call_timeout() / PART_FOR_WAITING), member)
    }
}

impl fmt::Debug for LeasePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasePool").field("shares_watches", &self.watches.is_some()).finish_non_exhaustive()
    }
}
