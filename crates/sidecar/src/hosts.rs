//! Which `Host` a request may carry, and which origin. A web page can give its own name the address 127.0.0.1 and then
//! talk to this port as to itself (DNS rebinding); the browser sends that name. Or it talks to `localhost` outright: it may
//! not see the answer, but a write is done by then, and a WebSocket (`exec`) is open. Then the browser sends the page's
//! origin, or with a `GET` at least whether that is another one.

use http::{
    HeaderMap, HeaderValue, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};
use std::net::IpAddr;

const FETCH_SITE: &str = "sec-fetch-site";
/// The browser's user has asked, or a page that came from here.
const HARMLESS: [&[u8]; 2] = [b"none", b"same-origin"];

/// The accepted names, without ports. Loopback addresses are accepted too: no page can have one as its name.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    /// The default names and these.
    pub(crate) fn new(also: &[String]) -> Self {
        Self([&[String::from("localhost")], also].concat())
    }

    /// Checks a request. The error is for the caller.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
        let mut given = headers.get_all(HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return Err("the request must have exactly one Host header".to_owned());
        };
        let host =
            Authority::try_from(host.as_bytes()).map_err(|error| format!("the Host header: {error}"))?;
        // A request for `http://name/path` says it twice.
        for host in [Some(&host), uri.authority()].into_iter().flatten() {
            self.check_name("Host", host)?;
        }
        for origin in headers.get_all(ORIGIN) {
            let host = authority(origin).ok_or("the Origin header names no site")?;
            self.check_name("Origin", &host)?;
        }
        if headers.get_all(FETCH_SITE).iter().all(|site| HARMLESS.contains(&site.as_bytes())) {
            return Ok(());
        }
        Err("a browser sent the request for a page of another origin (Sec-Fetch-Site)".to_owned())
    }

    fn check_name(&self, header: &str, host: &Authority) -> Result<(), String> {
        // Neither `user@localhost` nor `localhost:port` is a name.
        let (name, ip) = (host.host(), ip(host.host()));
        let is_same = |accepted: &String| match ip {
            Some(_) => self::ip(accepted) == ip,
            None => accepted.eq_ignore_ascii_case(name),
        };
        let accepted = ip.is_some_and(|ip| ip.is_loopback()) || self.0.iter().any(is_same);
        if accepted && !host.as_str().contains('@') {
            return Ok(());
        }
        Err(format!(
            "the {header} {:?} is not accepted, allowed: loopback addresses, {}; start the sidecar with --accept-host \
             {name} to accept it",
            host.as_str(),
            self.0.join(", "),
        ))
    }
}

/// The host of `http://name:port`. `None` for `null`: that page hides its origin.
fn authority(origin: &HeaderValue) -> Option<Authority> {
    origin.to_str().ok()?.split_once("://")?.1.parse().ok()
}

fn ip(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

/// Reads a value of `--accept-host`.
pub(crate) fn parse(given: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if ip(given).is_some() || !given.is_empty() && given.bytes().all(is_name) {
        return Ok(given.to_owned());
    }
    Err("allowed: a host without a port, such as my-pod, 10.0.0.7 or [fe80::1]; no patterns".to_owned())
}
