//! The bytes after an upgrade: exec and similar requests.

use crate::{
    callers::{EXEC, MAPS, Raw, ask, request},
    process::{Sidecar, kubeconfig},
    upstream::{LEASE, Upstream},
    wait::until,
};
use rustix::{net::sockopt::set_socket_linger, process::Signal};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// Opens a tunnel byte by byte, and reads a byte back.
async fn tunnel(sidecar: &Sidecar, method: &str, protocol: &str) -> Raw {
    let head = format!(
        "{method} {EXEC} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n\
         sec-websocket-key: abc\r\ncontent-length: 0\r\n\r\n"
    );
    let mut raw = Raw::send(sidecar.addr, &head).await;
    let answer = raw.read_until("\r\n\r\n").await.to_lowercase();
    assert!(answer.starts_with("http/1.1 101"), "{answer}");
    assert!(answer.contains("connection: upgrade\r\n"), "{answer}");
    assert!(answer.contains(&format!("upgrade: {}\r\n", protocol.to_lowercase())), "{answer}");
    raw.write("echo").await;
    raw.read_until("echo").await;
    raw
}

#[tokio::test]
async fn upgrade_through_leader_succeeds() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for (method, protocol) in [("GET", "websocket"), ("POST", "SPDY/3.1")] {
        let raw = tunnel(&sidecar, method, protocol).await;
        let seen = upstream.seen("/exec");
        assert_eq!(seen.headers()["sec-websocket-key"], "abc");
        assert_eq!(seen.headers()["authorization"], "Bearer a");
        set_socket_linger(&raw.0, Some(Duration::ZERO)).unwrap();
    }
}

#[tokio::test]
async fn upgrade_through_follower_needs_permission() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut request = request("GET", EXEC, "");
    request.headers_mut().insert("connection", "Upgrade".parse().unwrap());
    request.headers_mut().insert("upgrade", "websocket".parse().unwrap());
    let (code, reason, message) = ask(sidecar.addr, request).await.status();
    assert_eq!((code, reason.as_str()), (424, "NotLeader"));
    assert!(message.contains("connect pods/exec \"web\""), "{message}");
    let allowed = Sidecar::following(&upstream, "b", &["--allow", "exec"]).await;
    tunnel(&allowed, "GET", "websocket").await;
}

#[tokio::test]
async fn tunnel_ends_with_its_term() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let mut raw = tunnel(&sidecar, "GET", "websocket").await;
    upstream
        .server
        .edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "outsider".into())
        .unwrap();
    assert_eq!(raw.rest().await, "");
}

/// Bytes arrived while the process was frozen past its deadline. The tunnel does not know yet that the term is over.
#[tokio::test]
async fn frozen_tunnel_sends_nothing_after_deadline() {
    const TUNNELS: usize = 8;
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &["--timing", "8/6/0.5"]).await;
    sidecar.leads().await;
    let mut tunnels = Vec::new();
    for _ in 0..TUNNELS {
        tunnels.push(tunnel(&sidecar, "GET", "websocket").await);
    }
    let mut sidecar = sidecar;
    // A process that freezes within a step ends the step when it wakes, and may send what it reads in it.
    until("no step is under way", || sidecar.process.is_idle()).await;
    sidecar.process.freeze();
    for raw in &mut tunnels {
        raw.write("late").await;
    }
    // Past its deadline, whenever it last renewed.
    tokio::time::sleep(Duration::from_millis(6100)).await;
    sidecar.process.thaw();
    for raw in &mut tunnels {
        assert_eq!(raw.rest().await, "");
    }
    let before = TUNNELS * "echo".len();
    assert_eq!(upstream.tunnelled(), before as u64);
}

/// A read with an upgrade to HTTP/2 would open a way around the gate.
#[tokio::test]
async fn upgrade_to_http2_is_refused() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    for lines in [
        "upgrade: h2c",
        "upgrade: websocket, H2C",
        "upgrade: websocket\r\nupgrade: h2c",
        "upgrade: h2c, \u{e4}",
        "upgrade: \u{e4}, h2c",
        "upgrade: websocket, \u{e4}",
        "upgrade: \u{e4}\r\nupgrade: websocket",
        "upgrade: websocket/13",
        "upgrade: TLS/1.0",
        "upgrade: ,",
    ] {
        let head = format!(
            "GET {MAPS} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade, HTTP2-Settings\r\n\
             http2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n{lines}\r\n\r\n"
        );
        let mut raw = Raw::send(sidecar.addr, &head).await;
        let answer = raw.read_until("\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{lines}: {answer}");
    }
}

/// HTTP/1.0 has no upgrades (RFC 9110, 7.8). The command would run, and no caller would get its output.
#[tokio::test]
async fn http_1_0_opens_no_tunnel() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for (method, protocol) in [("GET", "websocket"), ("POST", "SPDY/3.1")] {
        let head = format!(
            "{method} {EXEC} HTTP/1.0\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n\r\n"
        );
        let answer = Raw::send(sidecar.addr, &head).await.rest().await;
        assert!(answer.starts_with("HTTP/1.0 4"), "{answer}");
    }
    assert!(upstream.heads().is_empty(), "{:?}", upstream.heads());
    let wish = "connection: Upgrade\r\nupgrade: websocket\r\n";
    let head = format!("GET {MAPS}?watch=1 HTTP/1.0\r\nhost: localhost\r\n{wish}\r\n");
    let answer = Raw::send(sidecar.addr, &head).await.read_until("\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200") && !answer.contains("content-length"), "{answer}");
}

/// A server need not grant the wish. Where the upgrade is what the request is for, it stays a write.
#[tokio::test]
async fn follower_reads_without_upgrade() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let wish = "connection: Upgrade\r\nupgrade: websocket\r\n";
    let head = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{wish}\r\n");
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    for (path, code) in [
        (format!("{widgets}/x"), "404"),
        (MAPS.to_owned(), "200"),
        (format!("{widgets}/x/console"), "424"),
        (EXEC.to_owned(), "424"),
        (EXEC.replace("exec", "attach"), "424"),
        (EXEC.replace("exec", "portforward"), "424"),
        (EXEC.replace("exec", "proxy"), "424"),
        (EXEC.replace("exec", "proxy/x"), "424"),
        ("/api/v1/proxy/namespaces/default/pods/web".to_owned(), "424"),
        ("/test/x".to_owned(), "424"),
    ] {
        let mut raw = Raw::send(sidecar.addr, &head(&path)).await;
        let answer = raw.read_until("\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{path}: {answer}");
    }
}

/// fabric8's client asks for each watch as a WebSocket, and begins it again without one when an answer other than 101 has
/// ended. A wish for HTTP/2, as the JDK's client has it, is no reason to keep the watch back.
#[tokio::test]
async fn watch_as_websocket_gets_an_answer_that_ends() {
    let upstream = Upstream::start().await;
    let leader = Sidecar::leading(&upstream, "a").await;
    let follower = Sidecar::following(&upstream, "b", &[]).await;
    for (sidecar, protocol, framing) in [
        (&leader, "websocket", "content-length: 0\r\n"),
        (&follower, "WebSocket", "content-length: 0\r\n"),
        (&leader, "h2c", "transfer-encoding: chunked\r\n"),
        (&follower, "h2c", "transfer-encoding: chunked\r\n"),
    ] {
        for path in [MAPS, "/apis/example.com/v1/namespaces/default/widgets"] {
            let head = format!(
                "GET {path}?watch=1 HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n\r\n"
            );
            let answer = Raw::send(sidecar.addr, &head).await.read_until("\r\n\r\n").await.to_lowercase();
            assert!(answer.starts_with("http/1.1 200 ok\r\n"), "{protocol} {path}: {answer}");
            assert!(answer.contains(framing), "{protocol} {path}: {answer}");
        }
    }
}

/// What a server grants must be what was asked for, too.
#[tokio::test]
async fn granted_upgrade_to_http2_opens_no_tunnel() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let _server = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            let mut raw = Raw(stream);
            raw.read_until("\r\n\r\n").await;
            raw.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
                .await;
            open.push(raw);
        }
    }));
    let sidecar = Sidecar::start_with(kubeconfig(&url, "a"), "a", &["--allow", "exec"]).await;
    let head = format!(
        "GET {EXEC} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    );
    let answer = Raw::send(sidecar.addr, &head).await.read_until("OutcomeUnknown").await;
    assert!(answer.starts_with("HTTP/1.1 424"), "{answer}");
}

#[tokio::test]
async fn permitted_tunnel_survives_end_of_term() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::start(&upstream, "a", &["--allow", "exec"]).await;
    sidecar.leads().await;
    let mut raw = tunnel(&sidecar, "GET", "websocket").await;
    upstream
        .server
        .edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "outsider".into())
        .unwrap();
    sidecar.sees("outsider").await;
    raw.write("still there").await;
    raw.read_until("still there").await;
}

#[tokio::test]
async fn stop_ends_tunnel_before_releasing_lease() {
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::leading(&upstream, "a").await;
    let mut raw = tunnel(&sidecar, "GET", "websocket").await;
    sidecar.process.signal(Signal::TERM);
    assert_eq!(raw.rest().await, "");
    let status = sidecar.process.ended(crate::wait::SOON).await.expect("the sidecar ends");
    assert!(status.success());
    assert_eq!(upstream.server.object(LEASE).unwrap()["spec"]["holderIdentity"], "");
}
