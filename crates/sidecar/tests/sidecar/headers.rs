//! Paths, trailers, and which Host is accepted. `header_table` tests the other headers.

use crate::{
    callers::{Answer, Caller, Raw, ask, create, request},
    process::Sidecar,
    upstream::{Upstream, WARNINGS},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;

#[tokio::test]
async fn path_of_kubeconfig_server_is_prepended() {
    let upstream = Upstream::start().await;
    let url = format!("{}/test/k8s/clusters/c-1/", upstream.url());
    let sidecar = Sidecar::start_with(crate::process::kubeconfig(&url, "a"), "a", &[]).await;
    assert_eq!(ask(sidecar.addr, request("GET", "/api/v1/pods?limit=1", "")).await.code, 200);
    assert_eq!(upstream.seen("/pods").uri(), "/test/k8s/clusters/c-1/api/v1/pods?limit=1");
    // The gate judges the path that the caller sent.
    let (code, _, message) = create(sidecar.addr, "x").await.status();
    assert_eq!(code, 424);
    assert!(message.contains("create configmaps in namespace \"default\""), "{message}");
}

#[tokio::test]
async fn trailers_pass_in_both_directions_without_credentials() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let sum = || HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("42"))]);
    let mut sent = sum();
    for name in ["cookie", "proxy-authorization", "impersonate-group", "x-remote-user", "x-remote-uid"] {
        sent.insert(name, HeaderValue::from_static("theirs"));
    }
    let names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
    let names = HeaderValue::try_from(names.join(", ")).unwrap();
    let frames = [Frame::data(Bytes::from("body")), Frame::trailers(sent)];
    let body = StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>)));
    let mut request = request("POST", "/test/trailers", "").map(|_| body);
    request.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    request.headers_mut().insert("trailer", names);
    let response = Caller::connect(sidecar.addr).await.send(request).await.unwrap();
    let answer = Answer::read(response).await;
    assert_eq!((answer.body.as_str(), answer.trailers), ("body", sum()));
}

/// DNS rebinding: a page at `evil.example`, which resolves to 127.0.0.1.
#[tokio::test]
async fn only_local_host_names_are_accepted() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &["--accept-host", "app.test"]).await;
    let answer = async |lines: &str| {
        let mut raw = Raw::send(sidecar.addr, &format!("{lines}connection: close\r\n\r\n")).await;
        raw.rest().await
    };
    for host in [
        "localhost",
        "127.0.0.1",
        "[::1]",
        "LOCALHOST:8001",
        "127.0.0.1:80",
        "127.0.0.2:80",
        "[::1]:80",
        "[0:0::1]:80",
        "app.test:1",
    ] {
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
        "GET /version HTTP/1.1\r\nhost: 127.0.0.1.evil.example\r\n",
        "GET /version HTTP/1.1\r\nhost: 10.0.0.1\r\n",
        "GET /version HTTP/1.1\r\nhost: [fe80::1]\r\n",
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

/// A page of another site can send requests to this port under its right name. Such a request carries the page's
/// origin.
#[tokio::test]
async fn requests_from_other_web_sites_are_refused() {
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

/// A browser sends no `Origin` with a plain `GET`, but says that another site's page asks.
#[tokio::test]
async fn gets_of_other_web_sites_are_refused() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    for (site, code) in [
        ("", 403),
        ("cross-site", 403),
        ("same-site", 403),
        ("none, cross-site", 403),
        ("Cross-Site", 403),
        ("same-origin", 200),
        ("none", 200),
    ] {
        for addr in [sidecar.addr, sidecar.status] {
            let mut request = request("GET", if addr == sidecar.addr { "/version" } else { "/leader" }, "");
            request.headers_mut().insert("sec-fetch-site", HeaderValue::from_static(site));
            assert_eq!(ask(addr, request).await.code, code, "{site:?}");
        }
    }
    let mut two = request("GET", "/version", "");
    two.headers_mut().append("sec-fetch-site", HeaderValue::from_static("none"));
    two.headers_mut().append("sec-fetch-site", HeaderValue::from_static("cross-site"));
    assert_eq!(ask(sidecar.addr, two).await.code, 403);
}

/// A header that is not ASCII hides no other.
#[tokio::test]
async fn lists_of_other_bytes_hide_nothing() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for (number, line) in
        ["X-Own, \u{e4}", "\u{e4}, X-Own", "\u{a0}, ,\tX-Own", "\u{e4}\r\nconnection: x-own"]
            .into_iter()
            .enumerate()
    {
        let path = format!("/test/hidden-{number}");
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: {line}\r\nx-own: 1\r\nte: \u{e4}, trailers\r\n\r\n"
        );
        Raw::send(sidecar.addr, &head).await.read_until("\r\n\r\n").await;
        let seen = upstream.seen(&path);
        assert!(!seen.headers().contains_key("x-own"), "{line:?}: {seen:?}");
        assert_eq!(seen.headers()["te"], "trailers", "{line:?}");
    }
    let held = "POST /api/v1/pods HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 9\r\nexpect: \u{e4}, 100-continue\r\n\r\n";
    let answer = Raw::send(sidecar.addr, held).await.read_until("\r\n\r\n").await;
    assert!(answer.to_lowercase().contains("connection: close\r\n"), "{answer}");
}

/// The fence judges the writers that it knows, and would let another user's write pass.
#[tokio::test]
async fn impersonation_is_refused_under_a_fence() {
    let upstream = Upstream::start().await;
    let plain = Sidecar::following(&upstream, "a", &[]).await;
    let fenced = Sidecar::following(&upstream, "a", &["--fence", "users:a"]).await;
    for name in ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-scopes"] {
        for (sidecar, code) in [(&plain, 200), (&fenced, 403)] {
            let mut request = request("GET", "/version", "");
            request.headers_mut().insert(name, HeaderValue::from_static("jane"));
            let answer = ask(sidecar.addr, request).await;
            assert_eq!(answer.code, code, "{name}: {answer:?}");
        }
    }
}

/// A list of objects with a field that the CRD does not know. hyper takes a hundred headers by itself.
#[tokio::test]
async fn answer_with_many_warnings_arrives() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for method in ["GET", "POST"] {
        let head =
            format!("{method} /test/warnings HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
        let answer = Raw::send(sidecar.addr, &head).await.read_until("\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(answer.matches("unknown field").count(), WARNINGS);
    }
}
