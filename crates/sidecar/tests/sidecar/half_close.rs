//! Callers that end their side of the connection, or reset it. For the sidecar, as for the API server, they have gone away.

use crate::{
    callers::{EXEC, MAPS, Raw},
    process::Sidecar,
    upstream::Upstream,
    wait::until,
};
use kube_leader_gate::testing::Fault;
use rustix::net::sockopt::set_socket_linger;
use std::{net::SocketAddr, time::Duration};
use tokio::io::AsyncWriteExt;

/// Sends a request, and ends the sending side.
async fn half_closed(addr: SocketAddr, head: &str) -> Raw {
    let mut raw = Raw::send(addr, head).await;
    raw.0.shutdown().await.unwrap();
    raw
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// A read whose caller has gone must not keep its place: a hundred of them would use up all descriptors.
#[tokio::test]
async fn read_ends_with_its_caller() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let _held = upstream.hold();
    for path in [MAPS, "/api/v1/namespaces/default/services/web/proxy/x"] {
        for is_reset in [false, true] {
            let mut raw = Raw::send(sidecar.addr, &get(path)).await;
            until("the request hangs", || upstream.waiting() == 1).await;
            if is_reset {
                set_socket_linger(&raw.0, Some(Duration::ZERO)).unwrap();
                drop(raw);
            } else {
                raw.0.shutdown().await.unwrap();
                assert_eq!(raw.rest().await, "");
            }
            until("the server is hung up on", || upstream.waiting() == 0).await;
        }
    }
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
async fn half_close_ends_a_watch() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut open = Raw::send(sidecar.addr, &get(&format!("{MAPS}?watch=1"))).await;
    open.read_until("\r\n\r\n").await;
    // The other watch is the follower's own, of the lease.
    until("it watches", || upstream.server.open_watches() == 2).await;
    open.0.shutdown().await.unwrap();
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
}
