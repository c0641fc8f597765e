//! Rule S4: the order of a stop.

use crate::{
    callers::{Answer, Caller, EXEC, MAPS, Raw, ask, create, map, request},
    process::{Sidecar, binary, kubeconfig},
    upstream::{BIG, LEASE, UNKNOWN, Upstream},
    wait::{SOON, until},
};
use http::HeaderValue;
use kube_leader_gate::{
    LeaseTiming,
    testing::{Fault, WriteRecord},
};
use rustix::process::Signal;
use serde_json::json;
use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use test_support::{apiserver::Guarded, port};
use tokio::net::TcpStream;

fn writes(upstream: &Upstream, resource: &str) -> Vec<WriteRecord> {
    let mut log = upstream.server.write_log();
    log.retain(|write| write.resource == resource);
    log
}

pub(crate) fn holder(upstream: &Upstream) -> String {
    upstream.server.object(LEASE).unwrap()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn stop_finishes_writes_before_releasing_lease() {
    let upstream = Upstream::start().await;
    // No other process takes this port once the sidecar has closed it.
    let [port] = port::free().unwrap();
    let listen = format!("127.0.0.1:{port}");
    let mut sidecar = Sidecar::start(&upstream, "a", &["--timing", "65/60/0.1", "--listen", &listen]).await;
    sidecar.leads().await;
    let mut watch =
        Raw::send(sidecar.addr, &format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
    watch.read_until("\r\n\r\n").await;
    let idle = Raw::connect(sidecar.addr).await;
    let (addr, held) = (sidecar.addr, upstream.hold());
    let write = tokio::spawn(create(addr, "x"));
    until("the write is under way", || upstream.waiting() == 1).await;

    let told = upstream.server.write_log().len();
    sidecar.process.signal(Signal::TERM);
    watch.rest().await;
    assert!(!write.is_finished(), "a watch holds up nothing");
    assert!(TcpStream::connect(addr).await.is_err(), "no new connection is accepted");
    until("the lease is renewed meanwhile", || upstream.server.write_log().len() >= told + 3).await;
    drop(held);
    let answer = write.await.unwrap();
    assert_eq!((answer.code, &answer.headers["connection"]), (201, &HeaderValue::from_static("close")));
    let status = sidecar.process.ended(SOON).await.expect("the sidecar ends");
    assert!(status.success(), "{status}");
    drop(idle);

    let written = writes(&upstream, "configmaps")[0].completed.expect("it took effect");
    let lease = writes(&upstream, "leases");
    let release = lease.last().expect("a release");
    assert_eq!(release.lease.as_ref().unwrap().holder_identity, "");
    assert!(written < release.received, "released once the write had finished");
}

/// The API server may still carry the write out: the lease is not released before that is impossible.
#[tokio::test]
async fn unfinished_write_delays_the_release() {
    let upstream = Upstream::start().await;
    // The API server gives the write up well before the sidecar would, 10 s after the signal.
    let timing: LeaseTiming = "12/7/1".parse().unwrap();
    let mut sidecar = Sidecar::start(&upstream, "a", &["--timing", &timing.to_string()]).await;
    sidecar.leads().await;
    let hang = upstream.server.inject(Fault::hang_before().resource("configmaps"));
    let write = tokio::spawn(create(sidecar.addr, "x"));
    until("the request hangs", || hang.hits() == 1).await;
    sidecar.process.signal(Signal::TERM);
    let (code, reason, message) = write.await.unwrap().status();
    // From the API server: it gives the write up when the leader that sent it may no longer be the leader.
    assert_eq!((code, reason.as_str()), (424, "OutcomeUnknown"));
    assert!(message.contains("the API server answered 504 Gateway Timeout; it is unknown"), "{message}");
    let margin = timing.safety_margin();
    assert!(sidecar.process.ended(margin + SOON).await.expect("the sidecar ends").success());
    assert_eq!(holder(&upstream), "");
    let given_up = writes(&upstream, "configmaps")[0].completed.expect("it was answered").at;
    let released = writes(&upstream, "leases").last().expect("a release").received.at;
    assert!(released >= given_up + margin, "released after {:?}", released - given_up);
}

/// A backend may answer before it has the whole body.
#[tokio::test]
async fn s4_release_waits_for_body_behind_its_answer() {
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::start(&upstream, "a", &["--timing", "65/60/0.1"]).await;
    sidecar.leads().await;
    let head =
        "POST /test/echo HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
    let mut upload = Raw::send(sidecar.addr, head).await;
    assert!(upload.read_until("first").await.contains("HTTP/1.1 200"));
    let told = writes(&upstream, "leases").len();
    sidecar.process.signal(Signal::TERM);
    until("the lease is renewed meanwhile", || {
        assert_eq!(holder(&upstream), "a");
        writes(&upstream, "leases").len() > told + 5
    })
    .await;
    upload.write("4\r\nlast\r\n0\r\n\r\n").await;
    upload.read_until("last").await;
    assert!(sidecar.process.ended(SOON).await.expect("the sidecar ends").success());
    assert_eq!(holder(&upstream), "");
}

/// The body has stalled, so a part of it is unread when the answer is due.
#[tokio::test]
async fn stop_answers_a_stalled_upload() {
    const STALLED: usize = 8;
    const LONG: usize = 1_000_000;
    /// What the writes get at a stop.
    const DRAIN: Duration = Duration::from_secs(10);
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::leading(&upstream, "a").await;
    let expects = ["", "expect: 100-continue\r\n"];
    let mut uploads = Vec::new();
    for number in 0..STALLED {
        let expects = expects[number % 2];
        let path = format!("/test/stalled-{number}");
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LONG}\r\n{expects}\r\nhalf");
        uploads.push(Raw::send(sidecar.addr, &head).await);
        until("the request has arrived", || upstream.has_seen(&path)).await;
    }
    let since = Instant::now();
    sidecar.process.signal(Signal::TERM);
    for upload in &mut uploads {
        let answer = upload.read_until("LeadershipLost").await;
        assert!(answer.contains("HTTP/1.1 424"), "{answer}");
        assert!(answer.to_lowercase().contains("connection: close\r\n"), "{answer}");
        // Not when the sidecar gives the rest of the body up, 5 s later.
        assert!(since.elapsed() < DRAIN + Duration::from_secs(5), "late: {:?}", since.elapsed());
    }
    for upload in &mut uploads {
        // A reset would fail it.
        upload.write(&" ".repeat(LONG - "half".len())).await;
        assert_eq!(upload.rest().await, "");
    }
    assert!(sidecar.process.ended(SOON).await.expect("the sidecar ends").success());
}

/// The stop waits less long for a write that does not need leadership, but answers it.
#[tokio::test]
async fn stop_answers_hanging_permitted_write() {
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::following(&upstream, "a", &["--allow", "dry-run"]).await;
    let hang = upstream.server.inject(Fault::hang_before().resource("configmaps"));
    let mut write = map("x");
    *write.uri_mut() = format!("{MAPS}?dryRun=All").parse().unwrap();
    let write = tokio::spawn(ask(sidecar.addr, write));
    until("the request hangs", || hang.hits() == 1).await;
    sidecar.process.signal(Signal::TERM);
    let (code, reason, message) = write.await.unwrap().status();
    assert_eq!((code, reason.as_str()), (424, "OutcomeUnknown"));
    assert!(message.contains("the sidecar stops") && message.contains("is not known"), "{message}");
    assert!(sidecar.process.ended(SOON).await.expect("the sidecar ends").success());
}

/// Sends the signal again and again. Returns the exit status.
async fn insists(process: &mut Guarded, signal: Signal) -> Option<i32> {
    let mut status = None;
    until("the process ends", || {
        process.signal(signal);
        status = process.try_wait().expect("its status");
        status.is_some()
    })
    .await;
    status.and_then(|status| status.code())
}

#[tokio::test]
async fn second_signal_ends_sidecar_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let upstream = Upstream::start().await;
        let mut sidecar = Sidecar::leading(&upstream, "a").await;
        let hang = upstream.server.inject(Fault::hang_before().resource("configmaps"));
        let mut write =
            Raw::send(sidecar.addr, &format!("DELETE {MAPS}/x HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        until("the request hangs", || hang.hits() == 1).await;
        sidecar.process.signal(signal);
        until("the sidecar is stopping", || sidecar.log().contains("stopping")).await;
        assert_eq!(insists(&mut sidecar.process, signal).await, Some(code));
        assert_eq!(write.rest().await, "", "it did not wait for the answer");
        assert_eq!(holder(&upstream), "a", "nothing was released");
        drop(hang);
    }
}

/// A credential plugin may wait for the network, and kube waits for the plugin.
#[tokio::test]
async fn second_signal_ends_a_start_that_hangs() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    // The plugin ends with the folder.
    let script = format!("touch {0}; while [ -e {0} ]; do sleep 0.1; done", path("begun").display());
    let mut kubeconfig = kubeconfig("http://127.0.0.1:1", "a");
    kubeconfig["users"][0]["user"] = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script],
    } });
    fs::write(path("kubeconfig"), kubeconfig.to_string()).unwrap();
    let mut command = Command::new(binary());
    command.args(["--listen", "127.0.0.1:0", "--lease", "default/app", "--kubeconfig"]);
    let log = fs::File::create(path("log")).unwrap();
    let command = command.arg(path("kubeconfig"));
    let mut sidecar = Guarded::spawn_with(command, Stdio::null(), log.into()).unwrap();
    until("the plugin hangs", || path("begun").exists()).await;
    sidecar.signal(Signal::TERM);
    until("it is stopping", || fs::read_to_string(path("log")).unwrap().contains("stopping")).await;
    assert_eq!(insists(&mut sidecar, Signal::TERM).await, Some(143));
}

/// As `timeout` and some supervisors do: they signal the process and its group.
#[tokio::test]
async fn two_signals_at_once_are_one() {
    for (first, second) in
        [(Signal::TERM, Signal::TERM), (Signal::TERM, Signal::INT), (Signal::INT, Signal::TERM)]
    {
        let upstream = Upstream::start().await;
        let mut sidecar = Sidecar::leading(&upstream, "a").await;
        let held = upstream.hold();
        let write = tokio::spawn(create(sidecar.addr, "x"));
        until("the write is under way", || upstream.waiting() == 1).await;
        sidecar.process.signal(first);
        sidecar.process.signal(second);
        until("the sidecar is stopping", || sidecar.log().contains("stopping")).await;
        drop(held);
        assert_eq!(write.await.unwrap().code, 201);
        assert!(
            sidecar.process.ended(SOON).await.expect("the sidecar ends").success(),
            "{first:?} {second:?}"
        );
        assert_eq!(holder(&upstream), "", "the lease was released");
    }
}

#[tokio::test]
async fn stop_delivers_answer_already_on_its_way() {
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::leading(&upstream, "a").await;
    let mut caller = Caller::connect(sidecar.addr).await;
    let response = caller.send(request("GET", "/test/big", "")).await.unwrap();
    sidecar.process.signal(Signal::TERM);
    until("the lease is free", || holder(&upstream).is_empty()).await;
    assert_eq!(Answer::read(response).await.body.len(), BIG);
    assert!(sidecar.process.ended(SOON).await.expect("the sidecar ends").success());
}

/// The API server may ignore the wish, and the write is one like any other.
#[tokio::test]
async fn stop_answers_write_that_asks_for_upgrade() {
    let upstream = Upstream::start().await;
    let mut sidecar = Sidecar::leading(&upstream, "a").await;
    let held = upstream.hold();
    let body = r#"{"metadata":{"name":"x"}}"#;
    let request = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-protocol: {UNKNOWN}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut write = Raw::send(sidecar.addr, &request).await;
    let mut watch =
        Raw::send(sidecar.addr, &format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
    let wish = "connection: Upgrade\r\nupgrade: websocket\r\n";
    let mut command =
        Raw::send(sidecar.addr, &format!("GET {EXEC} HTTP/1.1\r\nhost: localhost\r\n{wish}\r\n")).await;
    until("all have arrived", || upstream.waiting() == 3).await;
    sidecar.process.signal(Signal::TERM);
    assert_eq!(watch.rest().await, "", "the streams have ended");
    drop(held);
    let answer = write.rest().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    // Its answer is a tunnel, which ends at once.
    let answer = command.rest().await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    until("the tunnel has ended at the server", || upstream.tunnels() == 0).await;
    assert!(sidecar.process.ended(SOON).await.expect("the sidecar ends").success());
}
