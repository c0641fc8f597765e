//! Which headers go through, and which Host is accepted.

use crate::{
    callers::{Answer, Caller, Raw, ask, create, request},
    process::Sidecar,
    upstream::Upstream,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;

#[tokio::test]
async fn what_concerns_the_connection_alone_stays_there() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let mut request = request("POST", "/test/headers?a=b", "12345");
    for (name, value) in [
        ("accept", "application/vnd.kubernetes.protobuf"),
        ("accept-encoding", "gzip"),
        ("authorization", "Bearer mallory"),
        ("connection", "keep-alive, X-Own"),
        ("expect", "100-continue"),
        ("impersonate-user", "somebody"),
        ("keep-alive", "timeout=5"),
        ("proxy-authorization", "Basic x"),
        ("te", "gzip;q=0.5"),
        ("user-agent", "my-app/1.0"),
        ("x-end-to-end", "yes"),
        ("x-own", "no"),
    ] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let answer = ask(sidecar.addr, request).await;
    assert_eq!((answer.code, answer.body.as_str()), (200, "5 bytes"));
    let headers = |headers: &HeaderMap| {
        let text = |(name, value): (_, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut lines: Vec<_> = headers.iter().map(text).collect();
        lines.sort();
        lines
    };
    let seen = upstream.seen("/test/headers");
    assert_eq!(seen.uri(), "/test/headers?a=b");
    assert_eq!(
        headers(seen.headers()),
        [
            "accept-encoding: gzip",
            "accept: application/vnd.kubernetes.protobuf",
            "authorization: Bearer a",
            "content-length: 5",
            "content-type: application/json",
            &format!("host: {}", upstream.addr),
            "impersonate-user: somebody",
            "user-agent: my-app/1.0",
            "x-end-to-end: yes",
        ]
    );
    let mut back = answer.headers;
    back.remove("date");
    assert_eq!(headers(&back), ["content-length: 7", "x-end-to-end: yes"]);
}

#[tokio::test]
async fn a_kubeconfig_that_impersonates_is_not_overruled() {
    let upstream = Upstream::start().await;
    let mut kubeconfig = crate::process::kubeconfig(&upstream.url(), "a");
    kubeconfig["users"][0]["user"]["as"] = "app".into();
    let sidecar = Sidecar::start_with(kubeconfig, "a", &[]).await;
    let mut request = request("GET", "/test/headers", "");
    request.headers_mut().insert("impersonate-user", HeaderValue::from_static("system:admin"));
    request.headers_mut().insert("impersonate-group", HeaderValue::from_static("system:masters"));
    assert_eq!(ask(sidecar.addr, request).await.code, 200);
    let seen = upstream.seen("/test/headers");
    let users: Vec<_> = seen.headers().get_all("impersonate-user").iter().collect();
    assert_eq!(users, ["app"]);
    assert!(!seen.headers().contains_key("impersonate-group"));
}

/// With a client certificate, say, nothing would take the place of the caller's token.
#[tokio::test]
async fn the_callers_credentials_never_pass() {
    let upstream = Upstream::start().await;
    let mut kubeconfig = crate::process::kubeconfig(&upstream.url(), "a");
    kubeconfig["users"][0]["user"] = serde_json::json!({});
    let sidecar = Sidecar::start_with(kubeconfig, "a", &[]).await;
    let mut request = request("GET", "/test/headers", "");
    request.headers_mut().insert("authorization", HeaderValue::from_static("Bearer mallory"));
    assert_eq!(ask(sidecar.addr, request).await.code, 200);
    assert_eq!(upstream.seen("/test/headers").headers().get("authorization"), None);
}

#[tokio::test]
async fn the_path_of_the_kubeconfigs_server_comes_first() {
    let upstream = Upstream::start().await;
    let url = format!("{}/test/k8s/clusters/c-1/", upstream.url());
    let sidecar = Sidecar::start_with(crate::process::kubeconfig(&url, "a"), "a", &[]).await;
    assert_eq!(ask(sidecar.addr, request("GET", "/api/v1/pods?limit=1", "")).await.code, 200);
    assert_eq!(upstream.seen("/pods").uri(), "/test/k8s/clusters/c-1/api/v1/pods?limit=1");
    // The gate judges the path as the caller has it.
    let (code, _, message) = create(sidecar.addr, "x").await.status();
    assert_eq!(code, 503);
    assert!(message.contains("create configmaps in namespace \"default\""), "{message}");
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let sum = || HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("42"))]);
    let frames = [Frame::data(Bytes::from("body")), Frame::trailers(sum())];
    let body = StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>)));
    let mut request = request("POST", "/test/trailers", "").map(|_| body);
    request.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    request.headers_mut().insert("trailer", HeaderValue::from_static("x-sum"));
    let response = Caller::connect(sidecar.addr).await.send(request).await.unwrap();
    let answer = Answer::read(response).await;
    assert_eq!((answer.body.as_str(), answer.trailers), ("body", sum()));
}

/// DNS rebinding: a page at `evil.example`, which resolves to 127.0.0.1.
#[tokio::test]
async fn only_names_of_this_machine_are_accepted_as_host() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &["--accept-host", "app.test"]).await;
    let answer = async |lines: &str| {
        let mut raw = Raw::send(sidecar.addr, &format!("{lines}connection: close\r\n\r\n")).await;
        raw.rest().await
    };
    for host in
        ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:8001", "127.0.0.1:80", "[::1]:80", "app.test:1"]
    {
        let answer = answer(&format!("GET /version HTTP/1.1\r\nhost: {host}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
    }
    for lines in [
        "GET /version HTTP/1.1\r\nhost: evil.example\r\n",
        "GET /version HTTP/1.1\r\nhost: evil.example:8001\r\n",
        "GET /version HTTP/1.1\r\nhost: localhost.evil.example\r\n",
        "GET /version HTTP/1.1\r\nhost: localhost@evil.example\r\n",
        "GET /version HTTP/1.1\r\nhost: evil.example@localhost\r\n",
        "GET /version HTTP/1.1\r\nhost: 127.0.0.1.\r\n",
        "GET /version HTTP/1.1\r\nhost: \r\n",
        "GET /version HTTP/1.1\r\n",
        "GET /version HTTP/1.0\r\n",
        "GET /version HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n",
        "GET http://evil.example/version HTTP/1.1\r\nhost: localhost\r\n",
    ] {
        let answer = answer(lines).await;
        assert!(
            answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.0 403"),
            "{lines}: {answer}"
        );
        assert!(answer.contains("\"Forbidden\""), "{answer}");
    }
    let mut raw =
        Raw::send(sidecar.status, "GET /leader HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
            .await;
    assert!(raw.rest().await.starts_with("HTTP/1.1 403"));
}

/// A page of another site can send to this port under its right name; what it then sends says where it comes from.
#[tokio::test]
async fn no_page_of_another_site_may_ask() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &["--accept-host", "app.test"]).await;
    let code = async |origin: &'static str| {
        let mut request = request("GET", "/version", "");
        request.headers_mut().insert("origin", HeaderValue::from_static(origin));
        ask(sidecar.addr, request).await.code
    };
    for origin in ["http://localhost:8001", "http://127.0.0.1", "https://[::1]:3000", "http://app.test"] {
        assert_eq!(code(origin).await, 200, "{origin}");
    }
    for origin in
        ["https://evil.example", "http://localhost.evil.example:8001", "null", "", "http://localhost@evil"]
    {
        assert_eq!(code(origin).await, 403, "{origin}");
    }
    let mut two = request("GET", "/version", "");
    two.headers_mut().append("origin", HeaderValue::from_static("http://localhost"));
    two.headers_mut().append("origin", HeaderValue::from_static("https://evil.example"));
    assert_eq!(ask(sidecar.addr, two).await.code, 403);
}
