//! What the clients of a pool are made from: the address and the credentials of the API server, as they are now.

use crate::api::{Authorized, Credentials, without_secrets};
use http::{HeaderValue, Uri, header::HOST};
use kube_client::{Client, Config, Error, client::ClientBuilder};
use std::net::{IpAddr, ToSocketAddrs};
use tokio::{runtime::Handle, time::Instant};

/// Where the clients of a pool come from.
pub(in crate::lease) enum Source {
    /// From a configuration, which is read anew when the API server does not accept the credentials.
    Config(Box<dyn Fn() -> Result<Config, Error> + Send + Sync>),
    /// A function of the program makes whole clients.
    Clients(Box<dyn Fn() -> Result<Client, Error> + Send + Sync>),
}

/// A client that a source has made, and what it was made from.
#[derive(Clone)]
pub(in crate::lease) struct Connected {
    pub(super) client: Authorized,
    /// The configuration, without the sources of a token: these are in the credentials of `client`. None if a function of the
    /// program made the client.
    pub(super) config: Option<Config>,
    /// When the source was read.
    pub(super) read: Instant,
}

// === impl Source ===

impl Source {
    /// Makes a client with connections of its own. May block. If `last` is given, its configuration and its credentials are
    /// still valid, so only the files of a certificate are read again. The API server may have more than one address: `attempt`
    /// chooses one.
    pub(super) fn connect(
        &self,
        last: Option<&Connected>,
        attempt: usize,
        runtime: &Handle,
    ) -> Result<Connected, Error> {
        let read = Instant::now();
        let load = match self {
            Self::Config(load) => load,
            Self::Clients(make) => {
                let client = make().map_err(without_secrets)?.into();
                return Ok(Connected { client, config: None, read });
            }
        };
        let known =
            last.and_then(|last| Some((last.config.clone()?, last.client.credentials.clone(), last.read)));
        let (config, credentials, read) = if let Some(known) = known {
            known
        } else {
            let mut config = load().map_err(without_secrets)?;
            // If the client repeated a renewal by itself, the renewal would outlive its own timeout (rule S9).
            config.default_retry = false;
            // Each call has its own time limit, and a watch is often idle.
            config.read_timeout = None;
            let credentials = Credentials::take_from(&mut config, runtime.clone())?;
            (config, credentials, read)
        };
        let at = if attempt == 0 { config.clone() } else { at_one_address(config.clone(), attempt) };
        let client = ClientBuilder::try_from(at).map_err(without_secrets)?.build();
        Ok(Connected { client: Authorized { client, credentials }, config: Some(config), read })
    }
}

/// Replaces the name of the API server by one of its addresses. A client that connects by name spends the whole time limit of
/// a call on the first address. The look-up of the name is not part of a call, because it would then end with that call
/// (rule S9).
fn at_one_address(mut config: Config, attempt: usize) -> Config {
    let url = &config.cluster_url;
    let (Some(host), None) = (url.host(), &config.proxy_url) else { return config };
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return config;
    }
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    let found = (host, port).to_socket_addrs();
    let found: Vec<_> = found.into_iter().flatten().collect();
    let Some(address) = attempt.checked_rem(found.len()).map(|chosen| found[chosen]) else { return config };
    let name = host.to_owned();
    let host = url
        .authority()
        .map(|authority| HeaderValue::from_str(authority.as_str().rsplit('@').next().unwrap_or_default()));
    let mut parts = url.clone().into_parts();
    parts.authority = address.to_string().parse().ok();
    if let (Ok(url), Some(Ok(host))) = (Uri::from_parts(parts), host) {
        config.cluster_url = url;
        config.tls_server_name = config.tls_server_name.or(Some(name));
        config.headers.push((HOST, host));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str, attempt: usize) -> Config {
        at_one_address(Config::new(url.parse().unwrap()), attempt)
    }

    #[test]
    fn each_attempt_takes_one_address_of_the_name() {
        for attempt in 1..4 {
            let config = at("https://localhost:6443/k8s", attempt);
            let url = config.cluster_url.to_string();
            assert!(["https://127.0.0.1:6443/k8s", "https://[::1]:6443/k8s"].contains(&&*url), "{url}");
            assert_eq!(config.tls_server_name.as_deref(), Some("localhost"));
            assert_eq!(config.headers, [(HOST, "localhost:6443".parse().unwrap())]);
        }
        let mut named = Config::new("https://localhost".parse().unwrap());
        named.tls_server_name = Some("kubernetes".into());
        assert_eq!(at_one_address(named, 1).tls_server_name.as_deref(), Some("kubernetes"));
    }

    #[test]
    fn address_and_unknown_name_stay() {
        for url in ["https://127.0.0.1:6443/", "https://[::1]:6443/", "https://no-such-name.invalid:6443/"] {
            let config = at(url, 1);
            assert_eq!(config.cluster_url, url);
            assert!(config.tls_server_name.is_none() && config.headers.is_empty());
        }
        let mut proxied = Config::new("https://localhost:6443/".parse().unwrap());
        proxied.proxy_url = Some("http://proxy:3128".parse().unwrap());
        assert_eq!(at_one_address(proxied, 1).cluster_url, "https://localhost:6443/");
    }
}
