//! The way to the API server that a pool has found, for a client of the program's own.

use super::{clients::Clients, source::Connected};
use crate::{api::Credentials, lease::error::ErrLock};
use http::HeaderValue;
use kube_client::Config;
use std::{fmt, sync::Arc};
use tokio::time::Instant;

/// How this process reaches the API server now: [`LeasePool::access`](super::LeasePool::access) returns it.
///
/// Use it for a client of your own that renews its address and its credentials together with the lease calls, as the sidecar
/// does. Make the connections of your client from [`config`](Self::config), set [`authorization`](Self::authorization) in each
/// request, and call [`refused`](Self::refused) after each answer with the status 401. When this access is
/// [not the newest](Self::is_newest) any more, ask the pool for a new one.
#[derive(Clone)]
pub struct Access {
    clients: Arc<Clients>,
    config: Config,
    credentials: Option<Credentials>,
    read: Instant,
}

impl Access {
    /// The access that the newest client of the pool has. None if a function of the program made this client.
    pub(super) fn of(clients: &Arc<Clients>) -> Option<Self> {
        let Connected { client, config, read } = clients.connected();
        Some(Self { clients: clients.clone(), config: config?, credentials: client.credentials, read })
    }

    /// The configuration, without the sources of a token: [`authorization`](Self::authorization) asks those.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The value of the header `Authorization` for the next request. None if the configuration has no token, for example with a
    /// client certificate. Cancel-safe: a credential plugin runs in a task of its own. All callers wait for its first value, and
    /// use the last value while it runs again.
    ///
    /// # Errors
    /// The credential plugin fails, or a file cannot be read, and there is no earlier value.
    pub async fn authorization(&self) -> Result<Option<HeaderValue>, ErrLock> {
        match &self.credentials {
            Some(credentials) => credentials.authorization().await.map(Some),
            None => Ok(None),
        }
    }

    /// Says that the API server has not accepted these credentials, or that TLS has failed. The pool reads its sources
    /// anew, in a thread of its own, and at most once in five seconds.
    pub fn refused(&self) {
        self.clients.refused(self.read);
    }

    /// Whether this access is still the newest one: since the pool read its sources for it, it has not read them again.
    #[must_use]
    pub fn is_newest(&self) -> bool {
        self.clients.is_newest(self.read)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.config.cluster_url.host()).finish_non_exhaustive()
    }
}
