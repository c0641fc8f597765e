//! Headers that ask for another protocol, in odd forms too.

use super::pick;
use fastrand::Rng;

const CONNECTIONS: [&str; 14] = [
    "Upgrade",
    "Upgrade",
    "upgrade",
    "UPGRADE",
    "keep-alive, Upgrade",
    "keep-alive,upgrade ,close",
    "xupgraded",
    "\"Upgrade\"",
    "up grade",
    "keep-alive",
    "close",
    "upgrad",
    "Upgrade\u{e9}",
    "\u{131}upgrade",
];
const PROTOCOLS: [&str; 6] = ["websocket", "WebSocket", "SPDY/3.1", "h2c", "websocket, h2c", ""];
const SUBPROTOCOLS: [&str; 3] = [
    "v5.channel.k8s.io",
    "SPDY/3.1+portforward.k8s.io",
    "base64url.bearer.authorization.k8s.io.eA, v5.channel.k8s.io",
];

pub fn headers(rng: &mut Rng) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    let mut add = |name, value: &str| headers.push((name, value.to_owned()));
    match rng.u8(..100) {
        0..75 => {}
        75..83 => add("connection", "Upgrade"),
        83..88 => add("upgrade", pick(rng, &PROTOCOLS)),
        _ => {
            add("connection", pick(rng, &CONNECTIONS));
            if rng.bool() {
                add("connection", pick(rng, &CONNECTIONS));
            }
            add("upgrade", pick(rng, &PROTOCOLS));
            if rng.bool() {
                add("sec-websocket-version", "13");
                add("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
                add("sec-websocket-protocol", pick(rng, &SUBPROTOCOLS));
            }
        }
    }
    if rng.u8(..40) == 0 {
        add("x-http-method-override", pick(rng, &["GET", "DELETE", "POST"]));
    }
    headers
}
