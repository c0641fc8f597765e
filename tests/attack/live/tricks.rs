//! Known tricks, byte by byte, which no HTTP library would send.

/// Each one tries to change something unnoticed: to create, patch or delete a `ConfigMap` in the namespace `default`,
/// or to run a command in a pod there. Generated requests do not use that namespace, so that the effect of a trick is
/// visible at the end. `{BODY}` stands for a body that creates a `ConfigMap`, `{LENGTH}` for its length.
const TRICKS: [&str; 46] = [
    // One request inside another.
    "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\ncontent-length: 5\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ncontent-length: 400\r\n\r\n0\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: identity\r\ncontent-length: 0\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: xchunked\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\nx: y\r\n transfer-encoding: chunked\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0;x=\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n00000000000000000\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n\r\nPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\nhost: localhost\n\nPOST {MAPS} HTTP/1.1\nhost: localhost\ncontent-type: application/json\ncontent-length: {LENGTH}\n\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\nx: \rPOST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    // Headers that Connection names do not pass: a length, an encoding, a host.
    "POST {MAPS}?dryRun=All HTTP/1.1\r\nhost: localhost\r\nconnection: content-length\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: content-length, close\r\ncontent-length: {SMUGGLED_LENGTH}\r\n\r\n{SMUGGLED}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: transfer-encoding, close\r\ntransfer-encoding: chunked\r\n\r\n{SMUGGLED_CHUNK}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: host\r\ncontent-length: {SMUGGLED_LENGTH}\r\n\r\n{SMUGGLED}",
    "GET /version HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {SMUGGLED_LENGTH}\r\n\r\n{SMUGGLED}",
    "HEAD /version HTTP/1.1\r\nhost: localhost\r\ncontent-length: {SMUGGLED_LENGTH}\r\n\r\n{SMUGGLED}",
    "OPTIONS /version HTTP/1.1\r\nhost: localhost\r\ncontent-length: {SMUGGLED_LENGTH}\r\n\r\n{SMUGGLED}",
    // A rejected write, and another request in what would be its body.
    "POST {MAPS} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n{JSON}content-length: {LENGTH}\r\n\r\n{SMUGGLED}",
    "DELETE {MAPS}/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n{SMUGGLED}",
    // The method is not what it looks like.
    "GET {MAPS}/x HTTP/1.1\r\nhost: localhost\r\nx-http-method-override: DELETE\r\nx-method-override: DELETE\r\nx-http-method: DELETE\r\n\r\n",
    "GET {MAPS}/x?_method=DELETE HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "delete {MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "GET\tDELETE {MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "DELETE  {MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "DELETE {MAPS}/x HTTP/1.0\r\nhost: localhost\r\n\r\n",
    "DELETE {MAPS}/x HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
    "DELETE {MAPS}/x\r\n\r\n",
    "DELETE {MAPS}/x HTTP/0.9\r\nhost: localhost\r\n\r\n",
    "\r\n\r\nDELETE {MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    // The target is not what it looks like.
    "DELETE http://localhost{MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "GET http://localhost/api/v1/namespaces/default/pods/x/exec?command=ls HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "GET /api/v1/namespaces/default/pods/x#/exec?command=ls HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "POST {MAPS}#?dryRun=All HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "POST {MAPS}?dryRun=All# HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "POST {MAPS}?x#&dryRun=All HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "POST {MAPS}\u{ff1f}dryRun=All HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    // Another protocol.
    "GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0",
    "GET /api/v1/pods?watch=1 HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n{SMUGGLED}",
    // Dry runs that are none.
    "POST {MAPS}?dryRun=All{FLOOD} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {LENGTH}\r\n\r\n{BODY}",
    "PATCH {MAPS}/y?dryRun=All{FLOOD} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/merge-patch+json\r\ncontent-length: {LENGTH}\r\n\r\n{BODY}",
    "POST {MAPS}?dryRun=All HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ntrailer: x-http-method-override\r\n{JSON}\r\n{CHUNK}0\r\nx-http-method-override: DELETE\r\n\r\n",
];

/// The bytes of each trick. `number` differs for each attacker.
pub fn all(number: usize) -> Vec<String> {
    let all =
        TRICKS.iter().enumerate().map(|(index, trick)| filled(trick, &format!("trick-{number}-{index}")));
    all.collect()
}

fn filled(trick: &str, name: &str) -> String {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    let maps = "/api/v1/namespaces/default/configmaps";
    let smuggled = format!(
        "POST {maps} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let parts = [
        ("{MAPS}", maps.to_owned()),
        ("{JSON}", "content-type: application/json\r\n".to_owned()),
        ("{FLOOD}", "&".repeat(10_000)),
        ("{LENGTH}", body.len().to_string()),
        ("{CHUNK}", chunk(&body)),
        ("{BODY}", body),
        ("{SMUGGLED_LENGTH}", smuggled.len().to_string()),
        ("{SMUGGLED_CHUNK}", chunk(&smuggled) + "0\r\n\r\n"),
        ("{SMUGGLED}", smuggled),
    ];
    parts.iter().fold(trick.to_owned(), |text, (part, with)| text.replace(part, with))
}
