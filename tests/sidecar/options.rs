//! What it refuses to start with: each in plain words, on standard error.

use crate::process::{kubeconfig, run};
use serde_json::Value;
use std::{net::TcpListener, path::Path};

/// Runs it with a kubeconfig that is all right, and these options in place of the usual ones.
fn refusal(code: i32, options: &[&str]) -> String {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig("http://127.0.0.1:1", "a").to_string()).unwrap();
    refusal_with(code, &file, options)
}

fn refusal_with(code: i32, kubeconfig: &Path, options: &[&str]) -> String {
    let usual = [
        ("--listen", "127.0.0.1:0"),
        ("--lease", "default/app"),
        ("--kubeconfig", kubeconfig.to_str().unwrap()),
    ];
    let mut all = options.to_vec();
    for (name, value) in usual.into_iter().filter(|(name, _)| !options.contains(name)) {
        all.extend([name, value]);
    }
    let output = run(&all);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn assert_says(said: &str, what: &[&str]) {
    for what in what {
        assert!(said.contains(what), "{what:?} is not in: {said}");
    }
}

#[test]
fn nobody_else_may_reach_its_ports() {
    for addr in ["0.0.0.0:8001", "10.0.0.1:8001", "[::]:8001", "localhost:8001", "8001", "127.0.0.1"] {
        for option in ["--listen", "--status"] {
            assert_says(&refusal(2, &[option, addr]), &[addr, option, "127.0.0.1:8001 or [::1]:8001"]);
        }
    }
}

#[test]
fn options_say_what_is_allowed() {
    assert_says(&refusal(2, &["--lease", "app"]), &["default/my-app"]);
    assert_says(&refusal(2, &["--lease", "default/App"]), &["invalid lease name: \"App\"", "a-z"]);
    assert_says(
        &refusal(2, &["--timing", "1/2/3"]),
        &["renew deadline is 2s", "less than the lease duration"],
    );
    assert_says(&refusal(2, &["--timing", "15/10"]), &["default, fast, or three numbers"]);
    assert_says(&refusal(2, &["--timing", "15/ten/2"]), &["\"ten\"", "default, fast, or three numbers"]);
    assert_says(&refusal(2, &["--timing", "15/-10/2"]), &["negative"]);
    assert_says(&refusal(2, &["--timing", "NaN/10/2"]), &["default, fast, or three numbers"]);
    assert_says(&refusal(2, &["--identity", ""]), &["1 to 253 bytes"]);
    assert_says(
        &refusal(2, &["--allow", "everything"]),
        &["access-reviews", "token-requests", "dry-run", "exec"],
    );
    assert_says(&refusal(2, &["--accept-host", "app.test:80"]), &["a host without a port"]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    for option in ["--listen", "--status"] {
        assert_says(&refusal(1, &[option, &addr]), &[&addr, "in use"]);
    }
}

#[test]
fn a_wrong_kubeconfig_is_explained() {
    let folder = tempfile::TempDir::new().unwrap();
    let given = |text: &str| {
        let file = folder.path().join("wrong");
        std::fs::write(&file, text).unwrap();
        refusal_with(1, &file, &[])
    };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut kubeconfig = kubeconfig("http://127.0.0.1:1", "a");
        change(&mut kubeconfig);
        given(&kubeconfig.to_string())
    };
    let missing = folder.path().join("missing");
    assert_says(&refusal_with(1, &missing, &[]), &["missing", "No such file"]);
    assert_says(&given("{{{"), &["wrong", "YAML"]);
    assert_says(&given(""), &["wrong", "current context"]);
    assert_says(&given("apiVersion: v1"), &["current context"]);
    assert_says(&changed(&|it| it["current-context"] = "y".into()), &["current context: y"]);
    assert_says(&changed(&|it| it["clusters"][0]["name"] = "d".into()), &["cluster of context: c"]);
    assert_says(&changed(&|it| it["clusters"][0]["cluster"]["server"] = "10.0.0.1:6443".into()), &["no URL"]);
    assert_says(&changed(&|it| it["clusters"][0]["cluster"]["server"] = "a b".into()), &["cluster url"]);
    let ca =
        |it: &mut Value| it["clusters"][0]["cluster"]["certificate-authority"] = "/nowhere/ca.crt".into();
    assert_says(&changed(&ca), &["/nowhere/ca.crt", "No such file"]);
    let proxy = |it: &mut Value| it["clusters"][0]["cluster"]["proxy-url"] = "http://127.0.0.1:3128".into();
    assert_says(&changed(&proxy), &["proxy", "127.0.0.1:3128"]);
    assert_says(&changed(&|it| it["users"][0]["user"]["token"] = "a\nb".into()), &["token", "line break"]);
    let exec = serde_json::json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "false", "interactiveMode": "Never" });
    assert_says(
        &changed(&|it| it["users"][0]["user"] = serde_json::json!({ "exec": exec })),
        &["auth exec", "false"],
    );
}

#[test]
fn it_is_not_its_own_server() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig(&format!("http://{port}"), "a").to_string()).unwrap();
    assert_says(&refusal_with(1, &file, &["--listen", &port]), &[&port, "is this proxy itself"]);
}
