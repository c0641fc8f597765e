//! Which `Host` a request may carry, and which origin. A web page can give its own name the address 127.0.0.1 and then
//! talk to this port as to itself (DNS rebinding); the browser sends that name. Or it talks to `localhost` outright: it may
//! not see the answer, but a write is done by then, and a WebSocket (`exec`) is open. Then the browser sends the page's
//! origin, or with a `GET` at least whether that is another one.

use http::{HeaderMap, HeaderValue, Uri};
use std::net::IpAddr;

/// A name has 253 bytes at most.
const LONGEST_SHOWN: usize = 260;

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
        // A request for `http://name/path` says it twice.
        if let Some(host) = uri.authority() {
            self.check_name("Host", host.as_str().as_bytes())?;
        }
        let mut hosts = 0;
        for (name, value) in headers {
            match name.as_str() {
                "host" => {
                    self.check_name("Host", value.as_bytes())?;
                    hosts += 1;
                }
                "origin" => {
                    self.check_name("Origin", authority(value).ok_or("the Origin header names no site")?)?;
                }
                "sec-fetch-site" if !HARMLESS.contains(&value.as_bytes()) => {
                    return Err(
                        "a browser sent the request for a page of another origin (Sec-Fetch-Site)".to_owned()
                    );
                }
                _ => {}
            }
        }
        if hosts == 1 { Ok(()) } else { Err("the request must have exactly one Host header".to_owned()) }
    }

    fn check_name(&self, header: &str, given: &[u8]) -> Result<(), String> {
        let name = str::from_utf8(given).map_or("", without_port);
        let ip = ip(name);
        let is_same = |accepted: &String| match ip {
            Some(_) => self::ip(accepted) == ip,
            None => accepted.eq_ignore_ascii_case(name),
        };
        if ip.is_some_and(|ip| ip.is_loopback()) || self.0.iter().any(is_same) {
            return Ok(());
        }
        let remedy = match parse(name) {
            Ok(name) => format!("start the sidecar with --accept-host {name} to accept it"),
            Err(_) => "it is no host".to_owned(),
        };
        Err(format!(
            "the {header} \"{}\" is not accepted, allowed: loopback addresses, {}; {remedy}",
            shown(given).escape_ascii(),
            self.0.join(", "),
        ))
    }
}

/// What may be shown of it: without a name and a password in front, and its beginning.
fn shown(given: &[u8]) -> &[u8] {
    let host = given.rsplit(|byte| *byte == b'@').next().unwrap_or_default();
    &host[..host.len().min(LONGEST_SHOWN)]
}

/// The host of `http://name:port`. `None` for `null`: that page hides its origin.
fn authority(origin: &HeaderValue) -> Option<&[u8]> {
    let (_, host) = origin.to_str().ok()?.split_once("://")?;
    Some(host.as_bytes())
}

/// `localhost` of `localhost:8001`, and `[::1]` of `[::1]:8001`. What is left of `user@localhost` is no name.
fn without_port(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    }
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
    let is_short = !given.is_empty() && given.len() <= LONGEST_SHOWN;
    if ip(given).is_some() || is_short && given.bytes().all(is_name) {
        return Ok(given.to_owned());
    }
    Err("allowed: a host without a port, such as my-pod, 10.0.0.7 or [fe80::1]; no patterns".to_owned())
}
