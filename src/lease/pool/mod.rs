//! The clients and watches that the elections of one process share.

mod access;
pub(super) mod clients;
pub(super) mod places;
mod shared_watch;
mod source;
pub(super) mod watches;

pub use self::access::Access;

use self::{clients::Clients, source::Source, watches::SharedWatches};
use super::{kube_lock::KubeLock, lock::BoxLock, name::LeaseName, timing::LeaseTiming};
use kube_client::{Client, Config};
use std::{fmt, sync::Arc, time::Duration};
use tower::service_fn;

/// What the elections of one process share: the connections of their lease calls and, as an option, one watch for all
/// leases of a namespace. Clones share everything.
///
/// The [guide](crate::guide::getting_started#many-elections) has an example.
///
/// If a call of one election has no answer in time, the pool makes a fresh client, and the later calls of all elections use it
/// ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)). If another call has ended over the same client
/// meanwhile, that client works, and the pool keeps it. Calls and watches that are under way keep their client.
///
/// A pool has 32 places for calls, each over a connection of its own. If the last call of a lease had no answer, the next call
/// of this lease takes one of 16 other places. If that call has no answer either, the next one takes one of 16 further places.
/// So at most 64 calls are under way, and leases whose calls hang delay only each other. An election makes a call only when it
/// has a place for it. So a thousand elections that begin together, or that find the API server again after a restart, do not
/// need a thousand connections.
///
/// The tasks of a client run in the runtime in which the pool was made. The task of a watch runs in the runtime of the election
/// that began the watch. These tasks end when the last lock that uses them is dropped, or when their runtime ends. After the
/// end of a runtime, the pool can begin a new watch in another runtime, but it cannot make a new client. So let the pool's
/// runtime outlive the elections.
#[derive(Clone)]
pub struct LeasePool {
    clients: Arc<Clients>,
    watches: Option<Arc<SharedWatches>>,
}

// === impl LeasePool ===

impl LeasePool {
    /// Makes a pool that makes its clients from `config`. They have no gate and no retries, and share nothing with the clients
    /// of the workload ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    ///
    /// # Errors
    /// The errors of kube's [`ClientBuilder`](kube_client::client::ClientBuilder): TLS is not compiled in, a
    /// certificate cannot be read, or a credential plugin fails.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    pub fn new(config: &Config) -> Result<Self, kube_client::Error> {
        let config = config.clone();
        Self::of(Source::Config(Box::new(move || Ok(config.clone()))))
    }

    /// Makes a pool that makes its clients from the configuration that `load` reads. The pool calls `load` now, and again each
    /// time that the API server does not accept the credentials, or that TLS fails. So the pool notices a new kubeconfig. With
    /// [`new`](Self::new), the pool reads again only what the configuration names: the files of a certificate or a token, and a
    /// credential plugin.
    ///
    /// `load` may block. It runs in a thread of its own, except for the first time.
    ///
    /// ```no_run
    /// use kube_client::{Config, Error, config::Kubeconfig};
    /// use kube_leader_gate::{Election, lease::LeasePool};
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let load = || Kubeconfig::read().and_then(Config::try_from).map_err(Error::InferKubeconfig);
    /// let pool = LeasePool::reading(load)?;
    /// let election = Election::builder("my-namespace", "my-controller").build_in(&pool)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`new`](Self::new), and the errors of `load`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn reading(
        load: impl Fn() -> Result<Config, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Self, kube_client::Error> {
        Self::of(Source::Config(Box::new(load)))
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
        Self::of(Source::Clients(Box::new(connect)))
    }

    fn of(source: Source) -> Result<Self, kube_client::Error> {
        Ok(Self { clients: Clients::new(source)?, watches: None })
    }

    /// Lets all locks in a namespace share one watch of all its leases. Without this option, each lease has its own
    /// watch, and each watch its own connection.
    ///
    /// This needs the permission to `watch` *all* leases of the namespace. A Role that lists `resourceNames` does not give
    /// this permission. If the API server refuses the shared watch for ten seconds, each lock watches its own lease over a
    /// connection of its own, and the pool tries again after ten minutes. A refusal just after a restart of the API server is
    /// normal, because the API server does not know any Role yet. The watch receives all leases of the namespace, and the pool
    /// keeps them, so use a separate namespace. In `kube-node-lease`, for example, there is one lease for each node, and each
    /// node renews its lease every ten seconds.
    #[must_use]
    pub fn share_watches(self) -> Self {
        let watches = SharedWatches::new(self.clients.clone());
        Self { watches: Some(watches), ..self }
    }

    /// A client for calls of your own, without gate and retries. It always uses the newest client of this pool, so it renews
    /// its credentials as the pool does.
    #[must_use]
    pub fn client(&self) -> Client {
        let clients = self.clients.clone();
        let send = move |request| {
            let client = clients.client();
            async move { client.send(request).await }
        };
        Client::new(
            service_fn(send),
            self.access().map_or_else(String::new, |access| access.config().default_namespace.clone()),
        )
    }

    /// How this process reaches the API server now. None if a function makes the clients ([`over`](Self::over)).
    #[must_use]
    pub fn access(&self) -> Option<Access> {
        Access::of(&self.clients)
    }

    /// Makes a lock on `lease`, for an elector of your own.
    #[must_use]
    pub fn lock(&self, lease: LeaseName) -> BoxLock {
        self.lock_within(lease, LeaseTiming::default().call_timeout())
    }

    /// Makes a lock for an election with this call timeout. A shared watch may take as long to begin as the longest call
    /// timeout of all elections that share watches.
    pub(crate) fn lock_within(&self, lease: LeaseName, call_timeout: Duration) -> BoxLock {
        let member = self.watches.as_ref().map(|watches| watches.member(call_timeout));
        let lock = KubeLock::new(lease, self.clients.caller(), member);
        let places = lock.places();
        BoxLock::with_places(lock, places)
    }
}

impl fmt::Debug for LeasePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasePool").field("shares_watches", &self.watches.is_some()).finish_non_exhaustive()
    }
}
