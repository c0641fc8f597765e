//! Which headers go through. What concerns one connection only (RFC 9110, 7.6.1) does not.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
        TRANSFER_ENCODING, UPGRADE,
    },
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// `Trailer` is none of them: hyper sends only the trailers that it names.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The protocol that a request asks for, or that an answer grants; a proxy must not pass on `h2c`,
/// not among others either: the requests in such a tunnel would pass no gate.
pub fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = words(headers, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    let h2c = words(headers, &UPGRADE).any(|word| word.eq_ignore_ascii_case("h2c"));
    headers.get(UPGRADE).filter(|_| asked && !h2c).cloned()
}

/// Makes the headers of a request fit for the API server.
///
/// The caller's credentials stay here: the sidecar's own take their place, as far as it `impersonates` those too. (`kubectl
/// proxy` lets the caller's pass, and with them writes under other names than the one that leads.)
pub fn to_upstream(headers: &mut HeaderMap, impersonates: bool) {
    let upgrade = upgrade(headers);
    let trailers = words(headers, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    strip(headers);
    // The upstream's name takes its place.
    headers.remove(HOST);
    headers.remove(AUTHORIZATION);
    // Answered here. The length follows from the body.
    headers.remove(EXPECT);
    headers.remove(CONTENT_LENGTH);
    if impersonates {
        let theirs = |name: &&HeaderName| name.as_str().starts_with("impersonate-");
        for name in headers.keys().filter(theirs).cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    keep_upgrade(headers, upgrade);
}

/// Makes the headers of an answer fit for the caller.
pub fn to_caller(headers: &mut HeaderMap, switches: bool) {
    let upgrade = upgrade(headers).filter(|_| switches);
    strip(headers);
    keep_upgrade(headers, upgrade);
}

fn keep_upgrade(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// Takes away what concerns the connection, and what `Connection` names as such.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = words(headers, &CONNECTION).filter_map(|word| word.parse().ok()).collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}
