//! Answers that are ready before the caller has sent its whole body arrive in time, and do not get lost.

use crate::{
    callers::{Answer, Caller, MAPS, Raw, ask, map, request},
    process::{Sidecar, kubeconfig},
    upstream::Upstream,
    wait::{SOON, once_within, timed, within},
};
use std::{net::SocketAddr, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpListener, task::JoinSet};

/// How long the sidecar waits for the rest of a body.
const REST: Duration = Duration::from_secs(5);
/// Less than that, so that such an answer has not waited for a body.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Almost as much as an API server accepts.
const LONG: usize = 3_000_000;

fn post(headers: &str) -> String {
    format!("POST {MAPS} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n")
}

/// Sends this head, and reads up to `end`. The answer does not wait for the body.
async fn answered_at_once(sidecar: &Sidecar, head: &str, end: &str, code: u16) -> (Raw, String) {
    let mut last = None;
    once_within(AT_ONCE, "the answer does not wait for the body", async || {
        let mut raw = Raw::send(sidecar.addr, head).await;
        let (took, answer) = timed(raw.read_until(end)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{answer}");
        last = Some((raw, answer));
        took
    })
    .await;
    last.expect("one was sent")
}

#[tokio::test]
async fn refusal_does_not_wait_for_body() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    for head in [
        post("content-length: 100\r\n"),
        post("content-length: 100\r\n") + "a part",
        post("transfer-encoding: chunked\r\n"),
        post("transfer-encoding: chunked\r\n") + "5\r\nsome",
    ] {
        answered_at_once(&sidecar, &head, "NotLeader", 424).await;
    }
    let evil = post("content-length: 100\r\n").replace("localhost", "evil.example");
    answered_at_once(&sidecar, &evil, "Forbidden", 403).await;
}

/// Many clients send the whole body before they look for an answer.
#[tokio::test]
async fn refusal_arrives_despite_long_body() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let head = post(&format!("content-length: {LONG}\r\n"));
    for (head, code, reason) in [
        (head.clone(), 424, "NotLeader"),
        (head.replace("localhost", "evil.example"), 403, "Forbidden"),
        (head.replace(MAPS, "*"), 400, "BadRequest"),
    ] {
        for _ in 0..5 {
            let mut raw = Raw::send(sidecar.addr, &head).await;
            // A reset would fail it.
            raw.write(&" ".repeat(LONG)).await;
            let answer = raw.read_until(reason).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{answer}");
        }
    }
}

/// An API server that refuses each request before it has read the body, as Go's does: it answers, ends its side, and
/// lingers.
async fn hasty() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            let mut raw = Raw(stream);
            raw.read_until("\r\n\r\n").await;
            raw.write("HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhasty").await;
            raw.0.shutdown().await.unwrap();
            open.push(raw);
        }
    });
    (addr, server)
}

#[tokio::test]
async fn early_answer_does_not_reset_upload() {
    let (addr, _server) = hasty().await;
    let sidecar = Sidecar::start_with(kubeconfig(&format!("http://{addr}"), "a"), "a", &[]).await;
    let head = post(&format!("content-length: {LONG}\r\n")).replace("POST", "GET");
    let half = " ".repeat(LONG / 2);
    let mut raw = Raw::connect(sidecar.addr).await;
    for _ in 0..5 {
        raw.write(&head).await;
        raw.write(&half).await;
        let answer = raw.read_until("hasty").await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        raw.write(&half).await;
    }
}

#[tokio::test]
async fn connection_stays_open_after_refusal() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut caller = Caller::connect(sidecar.addr).await;
    for number in 0..20 {
        let response = caller.send(map(&format!("x-{number}"))).await.expect("the same connection");
        assert_eq!(Answer::read(response).await.status().1, "NotLeader");
    }
    // The body comes late, followed by the next request.
    let mut raw = Raw::send(sidecar.addr, &post("content-length: 4\r\n")).await;
    raw.read_until("NotLeader").await;
    raw.write("bodyGET /version HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(raw.read_until("gitVersion").await.contains("HTTP/1.1 200"));
    assert_eq!(ask(sidecar.addr, request("POST", MAPS, vec![b' '; LONG])).await.status().1, "NotLeader");
}

/// A caller that waits for `100 Continue` then sends no body. The sidecar does not read an endless one.
#[tokio::test]
async fn closing_connection_is_announced() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let head = post("content-length: 3000000\r\nexpect: 100-continue\r\n");
    let mut open = Vec::new();
    for (head, code) in [
        (head.clone(), 424),
        (head.replace("100-c", "100-C"), 424),
        (head.replace("localhost", "evil.example"), 403),
        (post("content-length: 3145729\r\n"), 424),
    ] {
        let (raw, answer) = answered_at_once(&sidecar, &head, "\r\n\r\n", code).await;
        assert!(answer.to_lowercase().contains("connection: close\r\n"), "{answer}");
        open.push(raw);
    }
    for mut raw in open {
        within(REST + SOON, "the sidecar hangs up", raw.rest()).await;
    }
    let empty = post("content-length: 0\r\nexpect: 100-continue\r\n");
    let answer = Raw::send(sidecar.addr, &empty).await.read_until("NotLeader").await;
    assert!(!answer.to_lowercase().contains("connection: close\r\n"), "{answer}");
}
