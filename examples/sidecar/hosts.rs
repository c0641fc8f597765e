//! Which `Host` a request may carry. A web page can give its own name the address 127.0.0.1 and then talk to this port
//! as to itself (DNS rebinding); the browser sends that name.

use http::{HeaderMap, Uri, header::HOST, uri::Authority};

const USUAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names that are accepted, without ports.
#[derive(Clone, Debug)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// The usual ones and these.
    pub fn new(also: Vec<String>) -> Self {
        Self(USUAL.map(String::from).into_iter().chain(also).collect())
    }

    /// The error is for the caller.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
        let mut given = headers.get_all(HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return Err("the request must have one Host header".to_owned());
        };
        let host =
            Authority::try_from(host.as_bytes()).map_err(|error| format!("the Host header: {error}"))?;
        // A request for `http://name/path` says it twice.
        for host in [Some(&host), uri.authority()].into_iter().flatten() {
            // Neither `user@localhost` nor `localhost:port` is a name.
            let name = host.host();
            let accepted = self.0.iter().any(|accepted| accepted.eq_ignore_ascii_case(name));
            if !accepted || host.as_str().contains('@') {
                return Err(format!(
                    "the Host {:?} is not accepted, allowed: {}; start the sidecar with --accept-host {name} to accept it",
                    host.as_str(),
                    self.0.join(", "),
                ));
            }
        }
        Ok(())
    }
}

/// Reads a value of `--accept-host`.
pub fn parse(given: &str) -> Result<String, String> {
    match given.parse::<Authority>() {
        Ok(authority) if authority.host() == given => Ok(given.to_owned()),
        _ => Err("allowed: a host without a port, as my-pod, 10.0.0.7 or [fe80::1]".to_owned()),
    }
}
