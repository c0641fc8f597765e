//! Callers that end their side of the connection. After a plain read they still wait for the answer. Otherwise they
//! have disconnected. To the sidecar the two look the same.

use crate::{
    callers::{EXEC, MAPS, Raw},
    process::Sidecar,
    upstream::{BIG, Upstream},
    wait::{SOON, until, within},
};
use kube_leader_gate::testing::Fault;
use rustix::net::sockopt::set_socket_linger;
use std::{net::SocketAddr, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends a request, and ends the sending side.
async fn half_closed(addr: SocketAddr, head: &str) -> Raw {
    let mut raw = Raw::send(addr, head).await;
    raw.0.shutdown().await.unwrap();
    raw
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

#[tokio::test]
async fn read_is_answered_after_half_close() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    for _ in 0..20 {
        let answer = half_closed(sidecar.addr, &get(MAPS)).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("ConfigMapList"), "{answer}");
    }
    let _slow =
        upstream.server.inject(Fault::delay_before(Duration::from_millis(300)).resource("configmaps"));
    let answer = half_closed(sidecar.addr, &get(MAPS)).await.rest().await;
    assert!(answer.contains("ConfigMapList"), "{answer}");
    let big = half_closed(sidecar.addr, &get("/test/big")).await.rest().await;
    assert!(big.len() > BIG, "{} bytes", big.len());
    let refused = half_closed(sidecar.addr, &get("/version").replace("localhost", "evil.example")).await;
    assert!({ refused }.rest().await.starts_with("HTTP/1.1 403"));
    let old = half_closed(sidecar.addr, &get(MAPS).replace("1.1", "1.0")).await.rest().await;
    assert!(old.contains("ConfigMapList"), "{old}");
}

#[tokio::test]
async fn probe_is_answered_after_half_close() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    for _ in 0..100 {
        let answer = half_closed(sidecar.status, &get("/healthz")).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn pipelined_reads_are_answered_after_half_close() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let both = format!("{}{}", get(MAPS), get("/test/end"));
    let answers = half_closed(sidecar.addr, &both).await.rest().await;
    assert!(answers.contains("ConfigMapList") && answers.contains("0 bytes"), "{answers}");
}

#[tokio::test]
async fn half_close_ends_a_watch() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let watch = get(&format!("{MAPS}?watch=1"));
    let mut open = Raw::send(sidecar.addr, &watch).await;
    open.read_until("\r\n\r\n").await;
    // The other watch is the follower's own, of the lease.
    until("it watches", || upstream.server.open_watches() == 2).await;
    open.0.shutdown().await.unwrap();
    until("the watch has ended upstream", || upstream.server.open_watches() == 1).await;
    half_closed(sidecar.addr, &watch).await.rest().await;
    until("the watch has ended upstream", || upstream.server.open_watches() == 1).await;
}

#[tokio::test]
async fn half_close_cancels_a_write() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let hang = upstream.server.inject(Fault::hang_before().resource("configmaps"));
    let head = format!("DELETE {MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut raw = Raw::send(sidecar.addr, &head).await;
    until("the request hangs", || hang.hits() == 1).await;
    raw.0.shutdown().await.unwrap();
    assert_eq!(raw.rest().await, "");
}

#[tokio::test]
async fn half_close_during_body_cancels_read() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    // The server answers once it has the whole body.
    let half = get("/test/half").replace("\r\n\r\n", "\r\ncontent-length: 5\r\n\r\nhalf");
    let answer = half_closed(sidecar.addr, &half).await.rest().await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn half_close_ends_an_idle_connection() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut raw = Raw::send(sidecar.addr, &get("/version")).await;
    raw.read_until("gitVersion").await;
    raw.0.shutdown().await.unwrap();
    raw.rest().await;
    for part in ["", "GET /version HT"] {
        half_closed(sidecar.addr, part).await.rest().await;
        half_closed(sidecar.addr, &(get("/version") + part)).await.rest().await;
    }
    let tunnel = get(EXEC).replace("\r\n\r\n", "\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    half_closed(sidecar.addr, &tunnel).await.rest().await;
}

/// hyper looks for no end while it has unread bytes. The watch must end all the same, or it stays for an hour.
#[tokio::test]
async fn watch_with_bytes_behind_it_ends_with_its_caller() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let watch = format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n");
    for rest in [
        "\r\nGET /version HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET /version HTTP/1.1\r\n",
        "transfer-encoding: chunked\r\n\r\n5\r\nhalf",
    ] {
        let raw = Raw::send(sidecar.addr, &format!("{watch}{rest}")).await;
        until("it watches", || upstream.server.open_watches() == 2).await;
        drop(raw);
        until("only the election watches", || upstream.server.open_watches() == 1).await;
    }
    let mut broken =
        Raw::send(sidecar.addr, &format!("{watch}transfer-encoding: chunked\r\n\r\nzz\r\n")).await;
    assert!(broken.rest().await.starts_with("HTTP/1.1 400"));
    until("only the election watches", || upstream.server.open_watches() == 1).await;
}

/// An application behind `proxy` may let a read wait for hours.
#[tokio::test]
async fn half_close_cancels_a_read_through_proxy() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let _held = upstream.hold();
    let mut raw = Raw::send(sidecar.addr, &get("/api/v1/namespaces/default/services/web/proxy/x")).await;
    until("the request hangs", || upstream.waiting() == 1).await;
    raw.0.shutdown().await.unwrap();
    assert_eq!(raw.rest().await, "");
    until("the server is hung up on", || upstream.waiting() == 0).await;
}

#[tokio::test]
async fn reset_cancels_a_plain_read() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let _held = upstream.hold();
    let raw = Raw::send(sidecar.addr, &get(MAPS)).await;
    until("the request hangs", || upstream.waiting() == 1).await;
    set_socket_linger(&raw.0, Some(Duration::ZERO)).unwrap();
    drop(raw);
    until("the server is hung up on", || upstream.waiting() == 0).await;
}

/// The rest of the body has come when the answer goes out. A reset could take the answer with it.
#[tokio::test]
async fn refusal_after_half_close_resets_nothing() {
    const LONG: usize = 200_000;
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let head = format!("POST {MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LONG}\r\n\r\n");
    sidecar.process.freeze();
    let mut raw = half_closed(sidecar.addr, &(head + &" ".repeat(LONG))).await;
    sidecar.process.thaw();
    let mut answer = String::new();
    within(SOON, "the answer", raw.0.read_to_string(&mut answer)).await.expect("no reset");
    assert!(answer.contains("NotLeader"), "{answer}");
}
