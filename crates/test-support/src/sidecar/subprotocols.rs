//! WebSocket subprotocols, among which a browser sends its token.

use super::callers::request;
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::Full;
use k8s_openapi::ByteString;
use serde_json::json;

/// The header that names them.
pub const PROTOCOLS: &str = "sec-websocket-protocol";

/// A read that asks for a WebSocket and names these subprotocols, one header line for each of `lines`.
pub fn websocket(path: &str, lines: &[Vec<u8>]) -> Request<Full<Bytes>> {
    let mut request = request("GET", path, "");
    let headers = request.headers_mut();
    for (name, value) in [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "x3JJHMbDL1EzLkh9GBhXDw=="),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for line in lines {
        headers.append(PROTOCOLS, HeaderValue::from_bytes(line).unwrap());
    }
    request
}

/// Every way to put the subprotocol `token` among others that the API server reads, and the subprotocols that remain
/// without it.
pub fn spellings(token: &str) -> Vec<(Vec<Vec<u8>>, Vec<&'static str>)> {
    let line = |text: &str| text.replace("TOKEN", token).into_bytes();
    let cases: [(&[&str], &[&str]); 12] = [
        (&["v5.channel.k8s.io, TOKEN"], &["v5.channel.k8s.io"]),
        (&["TOKEN, v5.channel.k8s.io"], &["v5.channel.k8s.io"]),
        (&["TOKEN,v5.channel.k8s.io,v4.channel.k8s.io"], &["v5.channel.k8s.io, v4.channel.k8s.io"]),
        (&["a", "TOKEN", "b"], &["a", "b"]),
        (&["a", "b,\tTOKEN"], &["a", "b"]),
        (&["TOKEN", "a"], &["a"]),
        (&["TOKEN,"], &[]),
        (&[",TOKEN", ""], &[]),
        (&["TOKEN"], &[]),
        // Go trims all of Unicode's white space.
        (&["\u{a0}TOKEN, a"], &["a"]),
        (&["a,\u{3000}TOKEN\u{2003}"], &["a"]),
        (&["a,\u{85}TOKEN"], &["a"]),
    ];
    cases.map(|(lines, left)| (lines.iter().map(|it| line(it)).collect(), left.to_vec())).into()
}

/// The subprotocol in which a browser sends this token.
pub fn subprotocol(token: &str) -> String {
    let base64 = json!(ByteString(token.into()));
    let base64url = base64.as_str().unwrap().trim_end_matches('=').replace('+', "-").replace('/', "_");
    format!("base64url.bearer.authorization.k8s.io.{base64url}")
}
