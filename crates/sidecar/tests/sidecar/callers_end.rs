//! Callers that end their side or reset the connection, before or after the answer, with further bytes behind the
//! request or without. In each case the sidecar soon closes both connections, lets no write through, and passes on the
//! whole answer to a plain read.
#![cfg(target_os = "linux")] // the kernel's own account of the process

use crate::{
    callers::{EXEC, MAPS, Raw, get},
    process::Sidecar,
    upstream::{BRIEF, DEAF, UNKNOWN, Upstream},
    wait::until,
};
use futures_util::{FutureExt, future::join_all};
use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};
use std::{panic::AssertUnwindSafe, time::Duration};
use test_support::usage;
use tokio::io::AsyncWriteExt;

/// The pool of connections to the API server may have a few more than at first.
const SPARE: u64 = 3;

/// A wish for a WebSocket, up to the name of its subprotocol.
const WEBSOCKET: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: ";
/// A subprotocol that the server grants.
const ECHO: &str = "echo";

/// A further request on the same connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behind {
    Nothing,
    AtOnce,
    /// Once the server has the first request.
    Later,
}

/// A request, and what the server does with it.
struct Kind {
    method: &'static str,
    path: String,
    /// A wish for a WebSocket with this subprotocol.
    protocol: Option<&'static str>,
    /// The server's answer is due even if the caller has ended its side.
    is_plain_read: bool,
    /// The gate refuses the request, so the server does not see it.
    is_refused: bool,
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
        let ask = |method, path: &str, is_refused| {
            let is_plain_read = path == MAPS && protocol != Some(ECHO);
            Kind { method, path: path.to_owned(), protocol, is_plain_read, is_refused }
        };
        kinds.extend([ask("GET", MAPS, false), ask("GET", &watch, false)]);
        kinds.push(ask("DELETE", &format!("{MAPS}/x"), true));
    }
    let path = EXEC.to_owned();
    let exec = Kind { method: "GET", path, protocol: Some(ECHO), is_plain_read: false, is_refused: false };
    kinds.push(exec);
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

async fn play(kind: &Kind, behind: Behind, when: When, how: End, upstream: &Upstream, sidecar: &Sidecar) {
    let case = format!("{} {} {:?} {behind:?} {when:?} {how:?}", kind.method, kind.path, kind.protocol);
    let before = open(sidecar);
    let held = (when == When::BeforeAnswer).then(|| upstream.hold());
    let (first, second) = (head(kind.method, &kind.path, kind.protocol), head("POST", MAPS, None));
    let at_once = if behind == Behind::AtOnce { first + &second } else { first };
    let mut raw = Raw::send(sidecar.addr, &at_once).await;
    if when == When::AfterHead {
        raw.read_until("\r\n\r\n").await;
    } else if !kind.is_refused {
        until(&format!("the server has it: {case}"), || upstream.waiting() > 0).await;
    }
    if behind == Behind::Later {
        raw.write(&second).await;
    }
    // The answer comes once the caller has ended its side.
    let (answers, ()) = tokio::join!(end(raw, how), async { drop(held) });
    if kind.is_plain_read && (when, how) == (When::BeforeAnswer, End::Fin) {
        let body = answers.split("\r\n\r\n").nth(1).unwrap_or_default();
        let body = body.split("HTTP/1.1").next().unwrap_or_default();
        let list: Value =
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{case}: {error}: {answers}"));
        assert_eq!(list["kind"], "ConfigMapList", "{case}");
    }
    is_closed(&case, upstream, sidecar, before).await;
}

/// Every case of one kind. Each failure is told.
async fn play_all(kind: Kind) -> Vec<String> {
    let mut failed = Vec::new();
    let mut pair = start().await;
    for behind in [Behind::Nothing, Behind::AtOnce, Behind::Later] {
        for when in [When::BeforeAnswer, When::AfterHead] {
            for how in [End::Fin, End::Reset] {
                let case = play(&kind, behind, when, how, &pair.0, &pair.1);
                if AssertUnwindSafe(case).catch_unwind().await.is_err() {
                    let path = &kind.path;
                    failed.push(format!(
                        "{} {path} {:?} {behind:?} {when:?} {how:?}",
                        kind.method, kind.protocol
                    ));
                    // What has stayed open must not fail the next case.
                    pair = start().await;
                }
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

/// hyper gives the socket away after an answer to a wish for an upgrade. That must not cut the answer short.
#[tokio::test]
async fn big_answer_to_ungranted_upgrade_arrives_whole() {
    const MAPS_OF_A_MIB: usize = 16;
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let big = json!({ "data": { "x": "x".repeat(1 << 20) } });
    for number in 0..MAPS_OF_A_MIB {
        upstream.server.put("outsider", &format!("{MAPS}/x-{number}"), big.clone()).unwrap();
    }
    let ask = head("GET", MAPS, Some(UNKNOWN));
    for behind in [String::new(), head("POST", MAPS, None)] {
        let raw = Raw::send(sidecar.addr, &(ask.clone() + &behind)).await;
        let answer = end(raw, End::Fin).await;
        assert!(answer.len() > MAPS_OF_A_MIB << 20, "{} bytes with {behind:?} behind", answer.len());
    }
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
