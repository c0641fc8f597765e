//! Where the API server is.

use crate::failure::{Failure, chain};
use futures_util::FutureExt;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use kube_client::{Config, config::Kubeconfig};
use std::{
    env,
    net::{IpAddr, SocketAddr},
    path::Path,
};
use tokio::net::lookup_host;

/// The configuration from `file`, or from where kubectl and pods have it.
pub(crate) fn load(file: Option<&Path>) -> Result<Config, Failure> {
    let mut config = match file {
        Some(file) => {
            let read = Kubeconfig::read_from(file).and_then(Config::try_from);
            let explain = |error| {
                let list = env::split_paths(file).count() > 1 && !file.exists();
                let hint = if list { "; --kubeconfig takes one file, KUBECONFIG takes several" } else { "" };
                format!("the kubeconfig {}: {}{hint}", file.display(), chain(&error))
            };
            read.map_err(explain)?
        }
        // Its future waits for nothing.
        None => Config::infer()
            .now_or_never()
            .ok_or("the configuration of the pod is not there at once")?
            .map_err(|error| format!("{}; name a kubeconfig by --kubeconfig or KUBECONFIG", chain(&error)))?,
    };
    let is_own =
        names_a_proxy(&file.map_or_else(Kubeconfig::read, Kubeconfig::read_from).unwrap_or_default());
    if !is_own && config.proxy_url.as_ref().is_some_and(|proxy| goes_direct(&config.cluster_url, proxy)) {
        config.proxy_url = None;
    }
    // kube would panic on such a token. Only the library of its secret type can read it.
    let token = serde_json::to_value(&config.auth_info)?["token"].take();
    let problem = if !matches!(config.cluster_url.scheme_str(), Some("http" | "https")) {
        let server = shown(&config.cluster_url);
        format!("the server {server} in the kubeconfig is not a URL such as https://10.0.0.1:6443")
    } else if let Some(proxy) = config.proxy_url.as_ref().map(shown) {
        let server = shown(&config.cluster_url);
        if is_own {
            format!(
                "the kubeconfig sets the proxy {proxy} for {server} (proxy-url), but the sidecar does not support proxies"
            )
        } else {
            format!(
                "the variable HTTPS_PROXY sets the proxy {proxy} for {server}, but the sidecar does not support proxies; \
                 add the server's host to NO_PROXY, or unset the variable"
            )
        }
    } else if token.as_str().is_some_and(|token| HeaderValue::from_str(token).is_err()) {
        "the token in the kubeconfig has a line break or other characters that an HTTP header cannot contain"
            .into()
    } else if impersonates(&config) && config.auth_info.impersonate.as_deref().unwrap_or_default().is_empty()
    {
        "the kubeconfig has as-groups, as-uid or as-user-extra, but no user in `as`: the API server refuses all \
         such requests; name the user, or remove the others"
            .into()
    } else {
        return Ok(config);
    };
    Err(problem.into())
}

/// Whether the current cluster names a proxy. If not, kube takes it from `HTTPS_PROXY`.
fn names_a_proxy(kubeconfig: &Kubeconfig) -> bool {
    let named = || {
        let current = kubeconfig.current_context.as_ref()?;
        let context = kubeconfig.contexts.iter().find(|it| it.name == *current)?.context.as_ref()?;
        let cluster = kubeconfig.clusters.iter().find(|it| it.name == context.cluster)?.cluster.as_ref()?;
        cluster.proxy_url.as_ref().map(|proxy| !proxy.is_empty())
    };
    named().unwrap_or_default()
}

/// Whether this server is reached without the proxy of the variables, as kubectl does: a loopback address, or one of
/// `NO_PROXY`.
fn goes_direct(server: &Uri, proxy: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback());
    let no = ["NO_PROXY", "no_proxy"].iter().find_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    let no = no.unwrap_or_default();
    let matcher = Matcher::builder().all(proxy.to_string()).no(&*no).build();
    is_loopback || no.split(',').any(|it| it.trim() == "*") || matcher.intercept(server).is_none()
}

/// Whether the kubeconfig impersonates in any way. Then the caller must not add to that.
pub(crate) fn impersonates(config: &Config) -> bool {
    let info = &config.auth_info;
    info.impersonate.as_ref().is_some_and(|user| !user.is_empty())
        || info.impersonate_uid.as_ref().is_some_and(|uid| !uid.is_empty())
        || info.impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty())
        || info.impersonate_user_extra.as_ref().is_some_and(|extra| !extra.is_empty())
}

/// The application's kubeconfig names this proxy as its server. If the proxy itself gets that file by mistake, each
/// request goes round in a circle until the descriptors run out.
pub(crate) async fn refuse_loop(config: &Config, own: SocketAddr) -> Result<(), Failure> {
    let url = &config.cluster_url;
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let usual = if url.scheme_str() == Some("https") { 443 } else { 80 };
    if url.port_u16().unwrap_or(usual) != own.port() {
        return Ok(());
    }
    // A name that is not known yet is not this proxy. To connect to the address 0.0.0.0 is to connect to this machine.
    let mut found = lookup_host((host, own.port())).await.into_iter().flatten();
    if found.any(|found| found.ip().to_canonical() == own.ip() || found.ip().is_unspecified()) {
        return Err(format!(
            "the kubeconfig's server {} is this proxy itself: give --kubeconfig the API server's own, not the \
             application's",
            shown(url)
        )
        .into());
    }
    Ok(())
}

/// A URL without a name and a password in it.
fn shown(url: &Uri) -> String {
    let host = url.authority().and_then(|authority| authority.as_str().rsplit('@').next());
    let host = host.unwrap_or_else(|| url.path());
    url.scheme_str().map_or_else(|| host.to_owned(), |scheme| format!("{scheme}://{host}"))
}
