//! The user of a request: always the sidecar's own identity, never the caller's.

use crate::{
    callers::{Caller, ask, request},
    process::{Sidecar, kubeconfig},
    subprotocols::{PROTOCOLS, spellings, subprotocol, websocket},
    upstream::Upstream,
    wait::until,
};
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use std::fs;
use tempfile::TempDir;

fn protocols(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(PROTOCOLS).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

#[tokio::test]
async fn token_among_subprotocols_is_removed() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "own").await;
    for (lines, left) in spellings(&subprotocol("theirs")) {
        let shown: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        let mut caller = Caller::connect(sidecar.addr).await;
        assert_eq!(caller.send(websocket("/test/ws", &lines)).await.unwrap().status(), 101);
        assert_eq!(protocols(upstream.seen("/test/ws").headers()), left, "{shown:?}");
        // The same where no upgrade is asked for.
        let mut plain = request("GET", "/test/plain", "");
        for line in &lines {
            plain.headers_mut().append(PROTOCOLS, HeaderValue::from_bytes(line).unwrap());
        }
        assert_eq!(ask(sidecar.addr, plain).await.code, 200);
        assert_eq!(protocols(upstream.seen("/test/plain").headers()), left, "{shown:?}");
    }
    let upper = subprotocol("theirs").to_uppercase().into_bytes();
    let mut caller = Caller::connect(sidecar.addr).await;
    caller.send(websocket("/test/upper", &[upper])).await.unwrap();
    assert!(protocols(upstream.seen("/test/upper").headers()).is_empty());
}

#[tokio::test]
async fn other_subprotocols_pass_unchanged() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "own").await;
    let lines = ["v5.channel.k8s.io,v4.channel.k8s.io", "a , b", "base64.binary.k8s.io"];
    let sent: Vec<_> = lines.map(|line| line.as_bytes().to_vec()).into();
    Caller::connect(sidecar.addr).await.send(websocket("/test/ws", &sent)).await.unwrap();
    assert_eq!(protocols(upstream.seen("/test/ws").headers()), lines);
}

/// A kubeconfig with a client certificate has no token that would replace the caller's.
#[tokio::test]
async fn callers_credential_never_replaces_missing_token() {
    let upstream = Upstream::start().await;
    let mut kubeconfig = kubeconfig(&upstream.url(), "own");
    kubeconfig["users"][0]["user"] = json!({});
    let sidecar = Sidecar::start_with(kubeconfig, "own", &[]).await;
    let credentials = [
        ("authorization", "Bearer theirs"),
        ("authorization", "Basic dGhlaXJz"),
        ("cookie", "session=theirs"),
        ("proxy-authorization", "Basic dGhlaXJz"),
        ("x-remote-user", "theirs"),
        ("x-remote-uid", "theirs"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scopes", "theirs"),
    ];
    let mut request = request("GET", "/test/headers", "");
    for (name, value) in credentials {
        request.headers_mut().append(name, HeaderValue::from_static(value));
    }
    assert_eq!(ask(sidecar.addr, request).await.code, 200);
    let seen = upstream.seen("/test/headers");
    for (name, _) in credentials {
        assert_eq!(seen.headers().get(name), None, "{name}");
    }
}

#[tokio::test]
async fn only_the_kubeconfig_can_impersonate() {
    let upstream = Upstream::start().await;
    let own = [
        ("impersonate-extra-scopes", "own"),
        ("impersonate-group", "own-1"),
        ("impersonate-group", "own-2"),
        ("impersonate-uid", "own"),
        ("impersonate-user", "own"),
    ];
    let mut kubeconfig = kubeconfig(&upstream.url(), "own");
    kubeconfig["users"][0]["user"] = json!({
        "token": "own", "as": "own", "as-uid": "own", "as-groups": ["own-1", "own-2"],
        "as-user-extra": { "scopes": ["own"] },
    });
    let sidecar = Sidecar::start_with(kubeconfig, "own", &[]).await;
    let mut request = request("GET", "/test/headers", "");
    for name in ["user", "uid", "group", "extra-scopes", "extra-other", "new-in-some-later-version"] {
        let name: http::HeaderName = format!("impersonate-{name}").parse().unwrap();
        request.headers_mut().append(name.clone(), HeaderValue::from_static("theirs-1"));
        request.headers_mut().append(name, HeaderValue::from_static("theirs-2"));
    }
    assert_eq!(ask(sidecar.addr, request).await.code, 200);
    let seen = upstream.seen("/test/headers");
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    let mut names: Vec<_> = seen.headers().iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    names.retain(|(name, _)| name.starts_with("impersonate-"));
    names.sort();
    assert_eq!(names, own.map(|(name, value)| (name, value.to_owned())));
}

/// The plugin runs anew when its token has run out. What it prints then is a secret too, and so are its variables.
#[tokio::test]
async fn failing_credential_plugin_shows_no_secret() {
    let upstream = Upstream::start().await;
    let folder = TempDir::new().unwrap();
    let broken = folder.path().join("broken");
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": "own", "expirationTimestamp": "2020-01-01T00:00:00Z" },
    });
    let script = format!("[ -e {} ] && echo planted && exit 3; echo '{credential}'", broken.display());
    let mut kubeconfig = kubeconfig(&upstream.url(), "own");
    kubeconfig["users"][0]["user"] = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script], "env": [{ "name": "SECRET", "value": "planted" }],
    } });
    let sidecar = Sidecar::start_with(kubeconfig, "own", &["--timing", "fast"]).await;
    sidecar.leads().await;
    fs::write(&broken, "").unwrap();
    // The last token is used as long as the API server accepts it.
    assert_eq!(ask(sidecar.addr, request("GET", "/version", "")).await.code, 200);
    until("the log says so", || {
        sidecar.log().contains("cannot renew the credentials; the last ones are used")
    })
    .await;
    upstream.accept("Bearer another");
    until("the election fails", || sidecar.log().contains("lease calls fail: ")).await;
    let log = sidecar.log();
    let shown: Vec<_> =
        log.lines().filter(|line| line.contains("planted") && !line.contains(" kube_client")).collect();
    assert!(shown.is_empty(), "{shown:#?}");
}
