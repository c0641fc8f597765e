//! Which headers pass: the tables in the package's `HTTP.md`. Headers of one connection (RFC 9110, 7.6.1) do not pass,
//! and neither do the caller's credentials.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{CONNECTION, EXPECT, SEC_WEBSOCKET_PROTOCOL, TE, TRANSFER_ENCODING, UPGRADE},
};

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

/// Makes the headers of a request with this method fit for the API server, but for the `Host`, which is the server's own
/// behind the gate. Returns whether the request asks for an upgrade.
///
/// Removes the caller's credentials. Removes the caller's impersonation headers too if the sidecar itself
/// `impersonates`. The sidecar's own credentials are added behind the gate.
pub(crate) fn to_upstream(method: &Method, headers: &mut HeaderMap, impersonates: bool) -> bool {
    // One look at what is there costs less than a look for each name, and most requests have none of them.
    let due = due(headers, |name| is_callers_own(name, impersonates));
    let upgrade = if due.is_empty() { None } else { upgrade(headers) };
    let upgrades = upgrade.is_some();
    if !due.is_empty() {
        let trailers = has(headers, &TE, b"trailers");
        let protocols = without_tokens(headers);
        remove(headers, due);
        for protocols in protocols {
            headers.append(SEC_WEBSOCKET_PROTOCOL, protocols);
        }
        if trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        keep_upgrade(headers, upgrade);
    }
    // After its answer to a `HEAD`, the API server goes on with a watch of custom resources, and lets the next request on
    // that connection wait for the end of the watch.
    if *method == Method::HEAD {
        headers.append(CONNECTION, HeaderValue::from_static("close"));
    }
    upgrades
}

/// Makes the trailers of a request fit for the API server. A proxy on the way may take them for headers.
pub(crate) fn clean_trailers(trailers: &mut HeaderMap) {
    remove(trailers, due(trailers, |name| is_callers_own(name, true)));
}

/// Whether the API server must not see the caller's header of this name.
fn is_callers_own(name: &str, impersonates: bool) -> bool {
    match name {
        // A proxy in front of the API server may read cookies. The length follows from the body.
        "authorization" | "content-length" | "cookie" | "expect" | "sec-websocket-protocol" => true,
        name => name.starts_with(FRONT_PROXY) || impersonates && name.starts_with(IMPERSONATION),
    }
}

/// Makes the headers of an answer fit for the caller.
pub(crate) fn to_caller(headers: &mut HeaderMap, switches: bool) {
    let upgrade = if switches { upgrade(headers) } else { None };
    // A session would belong to the sidecar, not to the caller.
    remove(headers, due(headers, |name| name == "set-cookie"));
    keep_upgrade(headers, upgrade);
}

/// The subprotocols without those that hold a token. The API server trims Unicode's white space around one, so every
/// element that contains the prefix counts, in any case.
fn without_tokens(headers: &HeaderMap) -> Vec<HeaderValue> {
    let holds_token = |part: &[u8]| part.windows(TOKEN.len()).any(|part| part.eq_ignore_ascii_case(TOKEN));
    let cleaned = |line: &HeaderValue| {
        if !line.is_empty() && !holds_token(line.as_bytes()) {
            return Some(line.clone());
        }
        let parts = line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let kept: Vec<_> = parts.filter(|part| !part.is_empty() && !holds_token(part)).collect();
        HeaderValue::from_bytes(&kept.join(&b", "[..])).ok().filter(|line| !line.is_empty())
    };
    headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(cleaned).collect()
}

fn keep_upgrade(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// The headers of one connection, those that `Connection` names, and `others`. `Trailer` is none of them: hyper sends only
/// the trailers that it names.
fn due(headers: &HeaderMap, others: impl Fn(&str) -> bool) -> Vec<HeaderName> {
    let is_due = |name: &&HeaderName| match name.as_str() {
        "connection"
        | "keep-alive"
        | "proxy-authenticate"
        | "proxy-authorization"
        | "proxy-connection"
        | "te"
        | "transfer-encoding"
        | "upgrade" => true,
        name => others(name),
    };
    let mut due: Vec<_> = headers.keys().filter(is_due).cloned().collect();
    if due.contains(&CONNECTION) {
        due.extend(words(headers, &CONNECTION).filter_map(|word| HeaderName::from_bytes(word).ok()));
    }
    due
}

fn remove(headers: &mut HeaderMap, due: Vec<HeaderName>) {
    for name in due {
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
