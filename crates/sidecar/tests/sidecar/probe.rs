//! The order `probe`, which the kubelet runs.

use crate::{
    process::{Sidecar, binary, run},
    upstream::Upstream,
};
use kube_leader_gate::testing::Fault;
use serde_json::Value;
use std::{net::TcpListener, process::Command};

/// Asks this sidecar for a page. Returns the exit status, the output and the error output.
///
/// A probe waits 2 s for an answer, as the kubelet's does, and comes again if there is none.
fn ask(sidecar: &Sidecar, page: &str) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut asked = (0..10).map(|_| {
        let output =
            Command::new(binary()).args(["probe", page, "--status", &sidecar.status.to_string()]).output();
        let output = output.expect("it runs");
        (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
    });
    asked.find(|(_, _, why)| !why.starts_with("error: no answer from")).expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_prints_the_page() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for page in ["livez", "healthz", "readyz"] {
        assert_eq!(ask(&sidecar, page), (0, "ok\n".to_owned(), String::new()));
    }
    let (code, page, _) = ask(&sidecar, "leader");
    let page: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!((code, &page["holder"]), (0, &"a".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_page_fails_the_probe() {
    let upstream = Upstream::start().await;
    let _outage = upstream.server.inject(Fault::status(503).resource("leases"));
    let sidecar = Sidecar::start(&upstream, "a", &["--timing", "fast"]).await;
    let (code, page, why) = ask(&sidecar, "readyz");
    assert_eq!((code, page.as_str()), (1, ""));
    assert!(why.starts_with("error: /readyz says "), "{why}");
    assert_eq!(ask(&sidecar, "healthz").0, 0);
}

#[tokio::test]
async fn probe_without_an_answer_fails_in_time() {
    // It accepts, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|addr| (addr.to_string(), silent)).unwrap();
    for addr in [&*silent.0, "127.0.0.1:1"] {
        let (status, said) = run(&["probe", "healthz", "--status", addr]).await;
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("error: no answer from {addr}")), "{said}");
    }
}

#[tokio::test]
async fn wrong_probe_is_a_usage_error() {
    for options in [
        &["probe"] as &[_],
        &["probe", "healthz"],
        &["probe", "metrics", "--status", "127.0.0.1:1"],
        &["probe", "healthz", "--status", "10.0.0.1:1"],
        &["--lease", "default/app", "probe", "healthz", "--status", "127.0.0.1:1"],
    ] {
        let (status, said) = run(options).await;
        assert_eq!(status.code(), Some(2), "{options:?}: {said}");
    }
}
