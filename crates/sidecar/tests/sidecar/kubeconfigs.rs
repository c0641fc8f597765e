//! Where the sidecar has its kubeconfig and its token from.

use crate::{
    callers::{ask, request},
    process::{STEADY, Sidecar, binary, kubeconfig, run_by},
    upstream::Upstream,
    wait::until,
};
use serde_json::json;
use std::{env, fs, process::Command, time::Duration};
use tempfile::TempDir;
use test_support::wait::within;

/// kube reads a token file again after 50 s.
const TOKEN_LIFETIME: Duration = Duration::from_secs(50);

/// As with kubectl, each file may have a part of the whole.
#[tokio::test]
async fn several_files_in_kubeconfig_variable_are_one() {
    let upstream = Upstream::start().await;
    let folder = TempDir::new().unwrap();
    let (cluster, user) = (folder.path().join("cluster"), folder.path().join("user"));
    let mut parts = [kubeconfig(&upstream.url(), "own"), kubeconfig("http://127.0.0.1:1", "own")];
    parts[0].as_object_mut().unwrap().remove("users");
    parts[1].as_object_mut().unwrap().retain(|name, _| name == "users" || name == "kind");
    fs::write(&cluster, parts[0].to_string()).unwrap();
    fs::write(&user, parts[1].to_string()).unwrap();
    let command = |files: &[&std::path::Path]| {
        let mut command = Command::new(binary());
        command.args(["--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--lease", "default/app"]);
        command.env("KUBECONFIG", env::join_paths(files).unwrap());
        command
    };
    let both = command(&[&cluster, &user]);
    let missing = folder.path().join("missing");
    let (status, said) = run_by(&command(&[&cluster, &missing])).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(missing.to_str().unwrap()) && said.contains("No such file"), "{said}");
    assert!(said.contains("name a kubeconfig by --kubeconfig or KUBECONFIG"), "{said}");

    let one = env::join_paths([&cluster, &user]).unwrap();
    let mut command = Command::new(binary());
    command.args(["--listen", "127.0.0.1:0", "--lease", "default/app", "--kubeconfig"]).arg(one);
    let (status, said) = run_by(&command).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("--kubeconfig takes one file, KUBECONFIG takes several"), "{said}");

    let sidecar = Sidecar::start_by(both, folder).await;
    assert_eq!(ask(sidecar.addr, request("GET", "/test/merged", "")).await.code, 200);
    assert_eq!(upstream.seen("/test/merged").headers()["authorization"], "Bearer own");
}

/// The kubelet rotates the token of a pod. A program may also remove the file once it is read: then the last token counts.
#[tokio::test]
async fn token_file_is_read_again_until_it_vanishes() {
    struct Case {
        upstream: Upstream,
        sidecar: Sidecar,
        file: std::path::PathBuf,
    }
    let folder = TempDir::new().unwrap();
    let start = async |name: &str| {
        let (upstream, file) = (Upstream::start().await, folder.path().join(name));
        fs::write(&file, name).unwrap();
        let mut kubeconfig = kubeconfig(&upstream.url(), name);
        kubeconfig["users"][0]["user"] = json!({ "tokenFile": file });
        let sidecar = Sidecar::start_with(kubeconfig, name, &["--timing", STEADY]).await;
        sidecar.leads().await;
        Case { upstream, sidecar, file }
    };
    let token = async |case: &Case| {
        assert_eq!(ask(case.sidecar.addr, request("GET", "/test/token", "")).await.code, 200);
        case.upstream.seen("/test/token").headers()["authorization"].clone()
    };
    // Read first, so it is also read again first.
    let removed = start("removed").await;
    fs::remove_file(&removed.file).unwrap();
    let rotated = start("old").await;
    fs::write(&rotated.file, "new").unwrap();
    assert_eq!(token(&rotated).await, "Bearer old");
    within(10 * TOKEN_LIFETIME, "the new token counts", async {
        while token(&rotated).await != "Bearer new" {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let has_renewed =
        || rotated.upstream.server.write_log().iter().any(|it| it.user == "new" && it.resource == "leases");
    until("the election has it too", has_renewed).await;
    assert_eq!(token(&removed).await, "Bearer removed");
    for case in [&removed, &rotated] {
        assert_eq!(case.sidecar.leader().await["is_leader"], true);
    }
}
