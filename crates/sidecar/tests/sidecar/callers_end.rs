//! Callers that end their side or reset the connection, before or after the answer. In each case the sidecar soon closes both
//! connections, and lets no write through.
#![cfg(target_os = "linux")] // the kernel's own account of the process

use crate::{
    callers::{EXEC, MAPS, Raw, get},
    process::Sidecar,
    upstream::{BRIEF, DEAF, UNKNOWN, Upstream},
    wait::until,
};
use futures_util::{FutureExt, future::join_all};
use rustix::net::sockopt::set_socket_linger;
use std::{panic::AssertUnwindSafe, time::Duration};
use test_support::usage;
use tokio::io::AsyncWriteExt;

/// The pool of connections to the API server may have a few more than at first.
const SPARE: u64 = 3;

/// A wish for a WebSocket, up to the name of its subprotocol.
const WEBSOCKET: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: ";
/// A subprotocol that the server grants.
const ECHO: &str = "echo";

/// A request, and what the server does with it.
struct Kind {
    method: &'static str,
    path: String,
    /// A wish for a WebSocket with this subprotocol.
    protocol: Option<&'static str>,
    /// The sidecar answers the request itself, so the server does not see it.
    is_kept_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Fin,
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    BeforeAnswer,
    AfterHead,
}

/// Plain reads, watches, writes and commands, with every outcome of an upgrade.
fn kinds() -> Vec<Kind> {
    let watch = format!("{MAPS}?watch=1");
    let mut kinds = Vec::new();
    for protocol in [None, Some(ECHO), Some(UNKNOWN)] {
        let ask =
            |method, path: &str, is_kept_back| Kind { method, path: path.to_owned(), protocol, is_kept_back };
        kinds.extend([ask("GET", MAPS, false), ask("GET", &watch, protocol.is_some())]);
        kinds.push(ask("DELETE", &format!("{MAPS}/x"), true));
    }
    kinds.push(Kind { method: "GET", path: EXEC.to_owned(), protocol: Some(ECHO), is_kept_back: false });
    kinds
}

fn head(method: &str, path: &str, protocol: Option<&str>) -> String {
    let wish = protocol.map_or_else(String::new, |it| format!("{WEBSOCKET}{it}\r\n"));
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{wish}\r\n")
}

/// Ends the connection in this way. Returns what was still to read.
async fn end(mut raw: Raw, end: End) -> String {
    match end {
        End::Fin => raw.0.shutdown().await.unwrap(),
        End::Reset => {
            set_socket_linger(&raw.0, Some(Duration::ZERO)).unwrap();
            return String::new();
        }
    }
    raw.rest().await
}

/// The follower's own watch of the lease is left.
async fn is_closed(case: &str, upstream: &Upstream, sidecar: &Sidecar, before: u64) {
    let left = || (upstream.waiting(), upstream.tunnels(), upstream.server.open_watches());
    until(&format!("nothing is open at the server: {case}"), || left() == (0, 0, 1)).await;
    until(&format!("nothing is open in the sidecar: {case}"), || open(sidecar) <= before + SPARE).await;
}

fn open(sidecar: &Sidecar) -> u64 {
    usage::descriptors(sidecar.process.pid().as_raw_nonzero()).unwrap()
}

async fn play(kind: &Kind, when: When, how: End, upstream: &Upstream, sidecar: &Sidecar) {
    let case = format!("{} {} {:?} {when:?} {how:?}", kind.method, kind.path, kind.protocol);
    let before = open(sidecar);
    let held = (when == When::BeforeAnswer).then(|| upstream.hold());
    let mut raw = Raw::send(sidecar.addr, &head(kind.method, &kind.path, kind.protocol)).await;
    if when == When::AfterHead {
        raw.read_until("\r\n\r\n").await;
    } else if !kind.is_kept_back {
        until(&format!("the server has it: {case}"), || upstream.waiting() > 0).await;
    }
    // The answer comes once the caller has ended its side.
    tokio::join!(end(raw, how), async { drop(held) });
    is_closed(&case, upstream, sidecar, before).await;
}

/// Every case of one kind. Each failure is told.
async fn play_all(kind: Kind) -> Vec<String> {
    let mut failed = Vec::new();
    let mut pair = start().await;
    for when in [When::BeforeAnswer, When::AfterHead] {
        for how in [End::Fin, End::Reset] {
            let case = play(&kind, when, how, &pair.0, &pair.1);
            if AssertUnwindSafe(case).catch_unwind().await.is_err() {
                failed.push(format!("{} {} {:?} {when:?} {how:?}", kind.method, kind.path, kind.protocol));
                // What has stayed open must not fail the next case.
                pair = start().await;
            }
        }
    }
    let log = pair.0.server.write_log();
    assert!(log.iter().all(|write| write.resource == "leases"), "{log:?}");
    failed
}

/// A server and a follower that lets commands through.
async fn start() -> (Upstream, Sidecar) {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &["--allow", "exec"]).await;
    assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
    (upstream, sidecar)
}

#[tokio::test]
async fn every_end_of_a_caller_closes_both_connections() {
    let failed = join_all(kinds().into_iter().map(play_all)).await.concat();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The server keeps its side of a tunnel open after the caller has ended the other one.
#[tokio::test]
async fn tunnel_ends_with_its_caller_though_server_goes_on() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &["--allow", "exec"]).await;
    let mut raw = Raw::send(sidecar.addr, &head("GET", EXEC, Some(DEAF))).await;
    raw.read_until("\r\n\r\n").await;
    raw.write("last words").await;
    assert!(end(raw, End::Fin).await.ends_with("last words"));
}

/// The caller keeps its side of a tunnel open after the server has ended the other one.
#[tokio::test]
async fn tunnel_ends_with_its_server_though_caller_stays() {
    const TUNNELS: u64 = 10;
    let (_upstream, sidecar) = start().await;
    let before = open(&sidecar);
    let mut callers = Vec::new();
    for _ in 0..TUNNELS {
        let mut raw = Raw::send(sidecar.addr, &head("GET", EXEC, Some(BRIEF))).await;
        raw.read_until("\r\n\r\n").await;
        assert_eq!(raw.rest().await, "");
        callers.push(raw);
    }
    until("the sidecar has closed them", || open(&sidecar) <= before + SPARE).await;
    drop(callers);
}
