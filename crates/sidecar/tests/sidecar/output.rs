//! A reader of the sidecar's output that has gone away. Nothing may depend on what the sidecar says.

use crate::{
    callers::{Answer, ask, get, request},
    process::{Sidecar, binary, kubeconfig},
    upstream::{LEASE, Upstream},
    wait::{SOON, until, within},
};
use rustix::process::Signal;
use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::{Command, Stdio},
};
use tempfile::TempDir;
use test_support::{apiserver::Guarded, port};

/// No process reads it.
fn broken() -> Stdio {
    let (_, writer) = io::pipe().unwrap();
    writer.into()
}

fn start(addr: SocketAddr, kubeconfig: &str, folder: &TempDir) -> Guarded {
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig).unwrap();
    let mut command = Command::new(binary());
    command.args(["--lease", "default/app", "--identity", "a", "--status", "127.0.0.1:0", "--listen"]);
    command.arg(addr.to_string()).arg("--kubeconfig").arg(file);
    Guarded::spawn_with(&command, broken(), broken()).unwrap()
}

/// Each log line ended the task that wrote it, such as the election's.
#[tokio::test]
async fn broken_output_ends_no_request_and_no_release() {
    let (upstream, folder) = (Upstream::start().await, TempDir::new().unwrap());
    // The sidecar cannot say which port it has.
    let [port] = port::free().unwrap();
    let addr = (Ipv4Addr::LOCALHOST, port).into();
    let mut sidecar = start(addr, &kubeconfig(&upstream.url(), "a").to_string(), &folder);
    until("it serves", || {
        assert!(sidecar.is_running(), "it has ended");
        TcpStream::connect(addr).is_ok()
    })
    .await;
    let holder = || upstream.server.object(LEASE).unwrap()["spec"]["holderIdentity"].clone();
    until("it leads", || upstream.server.object(LEASE).is_some() && holder() == "a").await;
    let mut foreign = request("GET", "/version", "");
    foreign.headers_mut().insert("host", "evil.example".parse().unwrap());
    let refused: Answer = ask(addr, foreign).await;
    assert_eq!((refused.code, get(addr, "/version").await.code), (403, 200));
    sidecar.signal(Signal::TERM);
    assert!(sidecar.ended(SOON).await.expect("it ends").success());
    assert_eq!(holder(), "");
}

/// The election reports a trouble once. The libraries below it would do so with each attempt.
#[tokio::test]
async fn default_filter_shows_only_own_lines() {
    let folder = TempDir::new().unwrap();
    let (file, log) = (folder.path().join("kubeconfig"), folder.path().join("log"));
    // No server listens there.
    fs::write(&file, kubeconfig("https://127.0.0.1:1", "a").to_string()).unwrap();
    let mut command = Command::new(binary());
    command.args([
        "--lease",
        "default/app",
        "--timing",
        "1/0.5/0.02",
        "--listen",
        "127.0.0.1:0",
        "--kubeconfig",
    ]);
    command.arg(&file).args(["--status", "127.0.0.1:0"]).env_remove("RUST_LOG");
    let out = fs::File::create(&log).unwrap();
    let mut sidecar = Guarded::spawn_with(&command, Stdio::null(), out.into()).unwrap();
    let lines = || fs::read_to_string(&log).unwrap();
    until("the election is in trouble", || lines().contains("lease calls fail")).await;
    sidecar.signal(Signal::TERM);
    sidecar.ended(SOON).await.expect("it ends");
    for line in lines().lines() {
        assert!(line.contains(" kube_leader_gate"), "{line}");
    }
    assert_eq!(lines().matches("lease calls fail").count(), 1, "{}", lines());
}

#[tokio::test]
async fn broken_output_keeps_the_exit_status() {
    let folder = TempDir::new().unwrap();
    let mut sidecar = start((Ipv4Addr::LOCALHOST, 0).into(), "{{{", &folder);
    let status = within(SOON, "it ends", sidecar.ended(SOON)).await.expect("it ends");
    assert_eq!(status.code(), Some(1));
}

/// The API server is away, and a page in a browser asks again and again. What a caller sends may be long, and a password.
#[tokio::test]
async fn log_grows_with_no_request() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    drop(upstream);
    let host = "x".repeat(10_000);
    for _ in 0..20 {
        assert_eq!(get(sidecar.addr, "/version").await.code, 502);
        let mut foreign = request("GET", "/version", "");
        foreign.headers_mut().insert("host", format!("user:secret@{host}").parse().unwrap());
        assert_eq!(ask(sidecar.addr, foreign).await.code, 403);
    }
    let log = sidecar.log();
    let warned = |what: &str| log.lines().filter(|line| line.contains("WARN") && line.contains(what)).count();
    assert_eq!(warned("requests to the API server have no answer"), 1, "{log}");
    assert_eq!(warned("a Host or an origin that is not accepted"), 1, "{log}");
    assert!(!log.contains("secret") && !log.contains(&host[..1_000]), "{log}");
}
