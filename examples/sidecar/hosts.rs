//! Which `Host` a request may carry, and which `Origin`. A web page can give its own name the address 127.0.0.1 and then
//! talk to this port as to itself (DNS rebinding); the browser sends that name. Or it talks to `localhost` outright: it may
//! not see the answer, but a write is done by then, and a WebSocket (`exec`) is open. Then the browser sends its origin.

use http::{
    HeaderMap, HeaderValue, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};

const USUAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The accepted names, without ports.
#[derive(Clone, Debug)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// The default names and these.
    pub fn new(also: Vec<String>) -> Self {
        Self(USUAL.map(String::from).into_iter().chain(also).collect())
    }

    /// Checks a request. The error is for the caller.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
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
        Ok(())
    }

    fn check_name(&self, header: &str, host: &Authority) -> Result<(), String> {
        // Neither `user@localhost` nor `localhost:port` is a name.
        let name = host.host();
        let accepted = self.0.iter().any(|accepted| accepted.eq_ignore_ascii_case(name));
        if accepted && !host.as_str().contains('@') {
            return Ok(());
        }
        Err(format!(
            "the {header} {:?} is not accepted, allowed: {}; start the sidecar with --accept-host {name} to accept it",
            host.as_str(),
            self.0.join(", "),
        ))
    }
}

/// The host of `http://name:port`. `None` for `null`: that page hides its origin.
fn authority(origin: &HeaderValue) -> Option<Authority> {
    origin.to_str().ok()?.split_once("://")?.1.parse().ok()
}

/// Reads a value of `--accept-host`.
pub fn parse(given: &str) -> Result<String, String> {
    match given.parse::<Authority>() {
        Ok(authority) if authority.host() == given => Ok(given.to_owned()),
        _ => Err("allowed: a host without a port, such as my-pod, 10.0.0.7 or [fe80::1]".to_owned()),
    }
}
