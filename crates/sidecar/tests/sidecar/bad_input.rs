//! Callers that make mistakes. None of them may disturb the election. `load` has many of them at once.

use crate::{
    callers::{MAPS, Raw, create, get},
    process::Sidecar,
    upstream::Upstream,
    wait::until,
};
use kube_leader_gate::testing::Fault;

/// Sends a request head, and returns the answer until the sidecar closes.
async fn answer(sidecar: &Sidecar, head: &str) -> String {
    Raw::send(sidecar.addr, head).await.rest().await
}

#[tokio::test]
async fn malformed_request_is_answered_and_closed() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for nonsense in [
        "nonsense\r\n\r\n",
        "\0\u{1}\u{2}\r\n\r\n",
        "GET /version HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n",
        "GET /version HTTP/1.1\r\nhost: localhost\r\ncontent-length: many\r\n\r\n",
        "POST /version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n",
        "GET /version HTTP/3.0\r\nhost: localhost\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = answer(&sidecar, nonsense).await;
        assert!(answer.starts_with("HTTP/1.1 400") || answer.is_empty(), "{nonsense:?}: {answer}");
    }
    for target in [
        "OPTIONS *",
        "CONNECT localhost:443",
        "CONNECT localhost",
        "CONNECT /version",
        "TRACE /test/trace", // a server's answer would show the sidecar's token
    ] {
        let answer =
            answer(&sidecar, &format!("{target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
                .await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("BadRequest"), "{target}: {answer}");
    }
    assert!(!upstream.has_seen("/test/trace"));
    assert_eq!(create(sidecar.addr, "x").await.code, 201);
}

/// The sidecar takes off the chunks alone. Without its header, the API server would take a packed body for a plain one.
#[tokio::test]
async fn unknown_transfer_coding_is_refused() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for coding in ["gzip, chunked", "gzip\r\ntransfer-encoding: chunked", "chunked, chunked"] {
        let head = format!(
            "POST /test/coded HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: {coding}\r\n\r\n"
        );
        let answer = answer(&sidecar, &(head + "5\r\nhello\r\n0\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("BadRequest"), "{coding}: {answer}");
    }
    assert!(!upstream.has_seen("/test/coded"));
}

#[tokio::test]
async fn too_long_request_head_is_refused() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let long = |length| "x".repeat(length);
    let lines = "x: y\r\n".repeat(200);
    for (head, code) in [
        (format!("GET /version HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", long(100_000)), "431"),
        (format!("GET /version HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n"), "431"),
        (format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", long(100_000)), "431"),
        (format!("GET /{} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", long(40_000)), "400"),
    ] {
        let mut raw = Raw::connect(sidecar.addr).await;
        // The sidecar may refuse it before it is complete.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut raw.0, head.as_bytes()).await;
        let answer = raw.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{}: {answer}", head.len());
    }
    // The longest head that is allowed.
    let head = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", long(32_000));
    assert!(answer(&sidecar, &head).await.starts_with("HTTP/1.1 404"));
}

/// The caller disconnects in the middle of a write: the API server must not take the first half for the whole.
#[tokio::test]
async fn incomplete_write_is_not_carried_out() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let body = r#"{"metadata":{"name":"half"}}"#;
    let (length, chunk) = (body.len() + 1, body.len());
    for half in [
        format!("POST {MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"),
        format!(
            "POST {MAPS} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{chunk:x}\r\n{body}\r\n"
        ),
    ] {
        let arrived =
            || upstream.server.write_log().iter().filter(|write| write.resource == "configmaps").count();
        let before = arrived();
        let raw = Raw::send(sidecar.addr, &half).await;
        until("the request has arrived", || arrived() == before + 1).await;
        drop(raw);
    }
    assert_eq!(create(sidecar.addr, "whole").await.code, 201);
    assert_eq!(upstream.server.objects(MAPS).len(), 1);
}

/// The API server is not to blame, and the log does not blame it either.
#[tokio::test]
async fn broken_body_is_reported_as_callers_fault() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for broken in ["zz\r\n", "5\r\nhellozz\r\n"] {
        let head =
            format!("POST {MAPS} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{broken}");
        let answer = answer(&sidecar, &head).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 400") && answer.contains("badrequest"), "{answer}");
        assert!(
            answer.contains("connection: close\r\n") && answer.contains("the body of the request"),
            "{answer}"
        );
    }
    // The election may have troubles of its own.
    let log = sidecar.log();
    let own = |line: &&str| line.contains("WARN") && line.contains("kube_leader_gate_sidecar");
    let blames: Vec<_> = log.lines().filter(own).collect();
    assert!(blames.is_empty(), "{blames:?}");
    assert!(upstream.server.objects(MAPS).is_empty());
}

#[tokio::test]
async fn write_is_cancelled_when_caller_disconnects() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let hang = upstream.server.inject(Fault::hang_before().resource("configmaps"));
    let write = tokio::spawn(create(sidecar.addr, "x"));
    until("the request hangs", || hang.hits() == 1).await;
    write.abort();
    let _ = write.await;
    drop(hang);
    assert_eq!(get(sidecar.addr, MAPS).await.json()["items"].as_array().map(Vec::len), Some(0));
    let log = upstream.server.write_log();
    let write = log.iter().find(|write| write.resource == "configmaps").expect("the request has arrived");
    assert!(write.completed.is_none());
}
