//! Many requests, big ones and idle ones: nothing leaks, and the election is not disturbed.
#![cfg(target_os = "linux")] // the kernel's own account of the process

use crate::{
    callers::{Answer, Caller, MAPS, Raw, create, get, map, request},
    process::{Sidecar, binary, kubeconfig},
    upstream::Upstream,
    wait::{SOON, until, within},
};
use bytes::Bytes;
use futures_util::{StreamExt, future::join_all, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;
use std::{convert::Infallible, fs, future::pending, io::ErrorKind, net::Ipv4Addr, process::Command};
use tempfile::TempDir;
use test_support::usage;
use tokio::{
    io::copy_bidirectional,
    net::{TcpSocket, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

const MIB: usize = 1 << 20;
/// One MiB, in the kernel's unit.
const MIB_IN_KIB: u64 = 1024;

/// Resident memory, in KiB.
fn memory(sidecar: &Sidecar) -> u64 {
    usage::memory(sidecar.process.pid().as_raw_nonzero()).unwrap()
}

fn descriptors(sidecar: &Sidecar) -> u64 {
    usage::descriptors(sidecar.process.pid().as_raw_nonzero()).unwrap()
}

/// The sidecar has led in this term all the time, and renews on. A term is over when its renewals are late.
async fn is_undisturbed(sidecar: &Sidecar, upstream: &Upstream, before: &Value) {
    let log = || upstream.server.write_log().into_iter();
    let renewals = || log().filter(|write| write.resource == "leases" && write.took_effect()).count();
    let before_now = renewals();
    until("it renews again", || renewals() > before_now).await;
    assert_eq!(sidecar.leader().await["term"], before["term"]);
}

#[tokio::test]
async fn big_bodies_use_little_memory() {
    const SIZE: usize = 128 * MIB;
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let pieces =
        stream::iter(0..SIZE / piece.len()).map(move |_| Ok::<_, Infallible>(Frame::data(piece.clone())));
    let request = request("POST", "/test/echo", "").map(|_| StreamBody::new(pieces));
    let mut echo = Caller::connect(sidecar.addr).await.send(request).await.unwrap().into_body();
    let (before, mut length, mut most) = (memory(&sidecar), 0, 0);
    while let Some(frame) = within(SOON, "the next piece", echo.frame()).await {
        let more = frame.unwrap().into_data().unwrap().len();
        if length / (8 * MIB) != (length + more) / (8 * MIB) {
            most = most.max(memory(&sidecar));
        }
        length += more;
    }
    assert_eq!(length, SIZE);
    assert!(most < before + 16 * MIB_IN_KIB, "{before} KiB of memory at first, {most} at most");
}

#[tokio::test]
async fn thousand_idle_connections_do_not_disturb_election() {
    const IDLE: u64 = 1000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let (leader, few) = (sidecar.leader().await, descriptors(&sidecar));
    let mut idle = Vec::new();
    for number in 0..IDLE {
        // Some have sent part of a request, some have had an answer, some watch.
        idle.push(match number % 4 {
            0 => Raw::connect(sidecar.addr).await,
            1 => Raw::send(sidecar.addr, "GET /version HTTP/1.1\r\nho").await,
            _ => {
                let mut raw =
                    Raw::send(sidecar.addr, "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
                raw.read_until("gitVersion").await;
                raw
            }
        });
    }
    // A few of the earlier connections may have been closed.
    until("all are accepted", || descriptors(&sidecar) + 10 >= few + IDLE).await;
    for number in 0..50 {
        assert_eq!(create(sidecar.addr, &format!("x-{number}")).await.code, 201);
        assert_eq!(get(sidecar.addr, MAPS).await.code, 200);
    }
    is_undisturbed(&sidecar, &upstream, &leader).await;
    drop(idle);
    until("all are closed", || descriptors(&sidecar) < few + 20).await;
    until("the watches too", || upstream.server.open_watches() == 1).await;
}

/// Kept connections and new ones, reads, writes, refusals, and callers that disconnect.
async fn batch(sidecar: &Sidecar, upstream: &Upstream, requests: usize) {
    const CALLERS: usize = 8;
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let addr = sidecar.addr;
        callers.spawn(async move {
            let mut kept = Caller::connect(addr).await;
            for number in 0..requests / CALLERS {
                let (request, expected) = match number % 5 {
                    0 => (map(&format!("x-{caller}")), None),
                    1 => (request("DELETE", &format!("{MAPS}/x-{caller}"), ""), None),
                    2 => (request("POST", "/test/echo", vec![b'x'; 20_000]), Some(200)),
                    3 => (request("GET", "/nowhere", ""), Some(404)),
                    _ => (request("GET", MAPS, ""), Some(200)),
                };
                if number % 50 == 49 {
                    kept = Caller::connect(addr).await;
                }
                if number % 50 == 25 {
                    drop(
                        Raw::send(
                            addr,
                            "POST /test/echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx",
                        )
                        .await,
                    );
                }
                let answer = Answer::read(kept.send(request).await.expect("an answer")).await;
                assert!(expected.is_none_or(|expected| expected == answer.code), "{answer:?}");
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    assert!(upstream.server.open_watches() <= 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_requests_leak_nothing() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let leader = sidecar.leader().await;
    batch(&sidecar, &upstream, 2_000).await;
    let (open, before) = (descriptors(&sidecar), memory(&sidecar));
    batch(&sidecar, &upstream, 10_000).await;
    until("its connections are closed", || descriptors(&sidecar) <= open + 8).await;
    let after = memory(&sidecar);
    assert!(
        after < before + 4 * MIB_IN_KIB,
        "{before} KiB of memory after 2,000 requests, {after} after 12,000"
    );
    is_undisturbed(&sidecar, &upstream, &leader).await;
}

/// The kernel drops what does not fit into its queue, and the caller tries again a second later: here that does not help.
#[tokio::test]
async fn burst_of_connections_waits_in_the_queue() {
    const BURST: usize = 200;
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::start(&upstream, "a", &[]).await;
    sidecar.process.freeze();
    let burst = join_all(
        (0..BURST).map(|_| Raw::send(sidecar.addr, "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n")),
    );
    let burst = within(SOON, "all are connected", burst).await;
    sidecar.process.thaw();
    for mut caller in burst {
        caller.read_until("gitVersion").await;
    }
}

/// A request waits for a connection of its own, or for one that another has finished with, and no more than that.
#[tokio::test]
async fn callers_take_no_more_descriptors_while_the_server_accepts_nothing() {
    const CALLERS: u64 = 2;
    let upstream = Upstream::start().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let (addr, behind) = (listener.local_addr().unwrap(), upstream.addr);
    let (stop, mut stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut wires = JoinSet::new();
        loop {
            let (mut near, _) = tokio::select! {
                accepted = listener.accept() => accepted.unwrap(),
                _ = &mut stopped => return pending().await,
            };
            wires.spawn(async move {
                let mut far = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let own = kubeconfig(&format!("http://{addr}"), "a");
    let sidecar = Sidecar::start_with(own, "a", &["--timing", "65/60/2"]).await;
    sidecar.leads().await;
    assert_eq!(get(sidecar.addr, "/version").await.code, 200);
    let before = descriptors(&sidecar);
    stop.send(()).unwrap();
    let mut full = JoinSet::new();
    (0..4).for_each(|_| drop(full.spawn(TcpStream::connect(addr))));
    for _ in 0..2 {
        full.join_next().await.unwrap().unwrap().unwrap();
    }
    let ask = async || {
        let mut caller = Caller::connect(sidecar.addr).await;
        for _ in 0..100 {
            let answer =
                within(SOON, "an answer", caller.send(request("GET", "/version", ""))).await.unwrap();
            assert_eq!(Answer::read(answer).await.code, 200);
        }
        caller
    };
    let _callers = tokio::join!(ask(), ask());
    let now = descriptors(&sidecar);
    assert!(now <= before + 2 * CALLERS, "{before} before, {now} now");
}

/// The election, the probes and the metrics have descriptors of their own: 64 each. Each connection may need 3.
#[tokio::test]
async fn connections_beyond_the_descriptors_wait() {
    descriptors_let_in(4, 140, &[]).await;
    descriptors_let_in(4, 204, &["--metrics", "127.0.0.1:0"]).await;
}

async fn descriptors_let_in(most: usize, descriptors: usize, options: &[&str]) {
    const REQUEST: &str = "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let limited = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
    let upstream = Upstream::start().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig(&upstream.url(), "a").to_string()).unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", &limited])
        .arg(binary())
        .args(["--lease", "default/app", "--identity", "a"])
        .args(options);
    command.args(["--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--kubeconfig"]).arg(file);
    let sidecar = Sidecar::start_by(command, folder).await;
    let mut open = Vec::new();
    for _ in 0..most {
        assert!(!sidecar.log().contains("connection limit reached"));
        let mut raw = Raw::send(sidecar.addr, REQUEST).await;
        raw.read_until("gitVersion").await;
        open.push(raw);
    }
    let mut waiting = Raw::send(sidecar.addr, REQUEST).await;
    until("it says so", || sidecar.log().contains("connection limit reached")).await;
    sidecar.leads().await;
    assert_eq!(sidecar.probe("/readyz").await.code, 200);
    let nothing = waiting.0.try_read(&mut [0; 1]).expect_err("no answer yet");
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    drop(open.pop());
    waiting.read_until("gitVersion").await;
}
