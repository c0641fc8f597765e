//! Which headers pass: the tables in the package's `README.md`. Headers of one connection (RFC 9110, 7.6.1) do not pass,
//! and neither do the caller's credentials.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE,
    },
};

/// `Trailer` is none of them: hyper sends only the trailers that it names.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What the API server switches to.
const PROTOCOLS: [&[u8]; 2] = [b"websocket", b"SPDY/3.1"];
/// The API server believes these headers from a client with a front-proxy certificate, and the sidecar's own
/// certificate could be one.
const FRONT_PROXY: &str = "x-remote-";
const IMPERSONATION: &str = "impersonate-";
/// How a subprotocol with a bearer token begins: browsers cannot set `Authorization` on a WebSocket.
const TOKEN: &[u8] = b"base64url.bearer.authorization.k8s.io";

/// The protocol that a request asks for, or that an answer grants. Only the API server's own pass, and none in a list
/// with others: the requests in a tunnel of HTTP/2 would bypass the gate.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_known = |word: &[u8]| PROTOCOLS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let first = words(headers, &UPGRADE).next().filter(|_| has(headers, &CONNECTION, b"upgrade"))?;
    words(headers, &UPGRADE).all(is_known).then(|| HeaderValue::from_bytes(first).ok())?
}

/// Whether the caller waits for `100 Continue` before it sends the body.
pub(crate) fn holds_body_back(headers: &HeaderMap) -> bool {
    has(headers, &EXPECT, b"100-continue")
}

/// Whether the body is coded in another way than in chunks. hyper decodes the chunks, which come last, and no more.
pub(crate) fn is_packed(headers: &HeaderMap) -> bool {
    words(headers, &TRANSFER_ENCODING).nth(1).is_some()
}

/// Whether the caller asks as another user.
pub(crate) fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(IMPERSONATION))
}

/// Makes the headers of a request with this method fit for the API server.
///
/// Removes the caller's credentials. Removes the caller's impersonation headers too if the sidecar itself
/// `impersonates`. The sidecar's own credentials are added behind the gate.
pub(crate) fn to_upstream(method: &Method, headers: &mut HeaderMap, impersonates: bool) {
    let upgrade = upgrade(headers);
    let trailers = has(headers, &TE, b"trailers");
    strip(headers);
    remove_credentials(headers, impersonates);
    // The upstream's name takes its place.
    headers.remove(HOST);
    // The sidecar answers these itself. The length follows from the body.
    headers.remove(EXPECT);
    headers.remove(CONTENT_LENGTH);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    keep_upgrade(headers, upgrade);
    // After its answer to a `HEAD`, the API server goes on with a watch of custom resources, and lets the next request on
    // that connection wait for the end of the watch.
    if *method == Method::HEAD {
        headers.append(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Makes the headers of an answer fit for the caller.
pub(crate) fn to_caller(headers: &mut HeaderMap, switches: bool) {
    let upgrade = upgrade(headers).filter(|_| switches);
    strip(headers);
    // A session would belong to the sidecar, not to the caller.
    headers.remove(SET_COOKIE);
    keep_upgrade(headers, upgrade);
}

fn remove_credentials(headers: &mut HeaderMap, impersonates: bool) {
    headers.remove(AUTHORIZATION);
    // The API server reads none, but a proxy in front of it may.
    headers.remove(COOKIE);
    remove_tokens(headers);
    let is_identity = |name: &&HeaderName| {
        let name = name.as_str();
        name.starts_with(FRONT_PROXY) || impersonates && name.starts_with(IMPERSONATION)
    };
    for name in headers.keys().filter(is_identity).cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

/// Removes each subprotocol that holds a token. The API server trims Unicode's white space around one, so every element
/// that contains the prefix counts, in any case.
fn remove_tokens(headers: &mut HeaderMap) {
    let holds_token = |part: &[u8]| part.windows(TOKEN.len()).any(|part| part.eq_ignore_ascii_case(TOKEN));
    let lines: Vec<_> = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().cloned().collect();
    if !lines.iter().any(|line| holds_token(line.as_bytes())) {
        return;
    }
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    for line in lines {
        let parts = line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let kept: Vec<_> = parts.filter(|part| !part.is_empty() && !holds_token(part)).collect();
        if let Ok(line) = HeaderValue::from_bytes(&kept.join(&b", "[..]))
            && !line.is_empty()
        {
            headers.append(SEC_WEBSOCKET_PROTOCOL, line);
        }
    }
}

fn keep_upgrade(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// Removes the headers of one connection, and those that `Connection` names.
fn strip(headers: &mut HeaderMap) {
    let named = words(headers, &CONNECTION).filter_map(|word| HeaderName::from_bytes(word).ok());
    let named: Vec<_> = named.collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn has(headers: &HeaderMap, name: &HeaderName, word: &[u8]) -> bool {
    words(headers, name).any(|found| found.eq_ignore_ascii_case(word))
}

/// The elements of a list. They are bytes, so that one that is not ASCII hides no other.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    values.map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}
