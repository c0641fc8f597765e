//! Options that the sidecar refuses to start with. It says why in plain words, on standard error.

use crate::{
    callers::{ask, request},
    process::{Sidecar, binary, kubeconfig, run, run_by},
    upstream::Upstream,
};
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs,
    net::{SocketAddr, TcpListener},
    os::unix::ffi::OsStrExt,
    path::Path,
    process::Command,
};
use tempfile::TempDir;
use test_support::port;

const USAGE: i32 = 2;
const FAILURE: i32 = 1;

/// Runs the sidecar with these options, and the usual ones for the rest. Its message must contain each of `words`.
async fn refuses(code: i32, options: &[&str], words: &[&str]) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig("http://127.0.0.1:1", "a").to_string()).unwrap();
    refuses_with(&file, code, options, words).await;
}

async fn refuses_with(kubeconfig: &Path, code: i32, options: &[&str], words: &[&str]) {
    let kubeconfig = kubeconfig.to_str().unwrap();
    let usual = [("--listen", "127.0.0.1:0"), ("--lease", "default/app"), ("--kubeconfig", kubeconfig)];
    let mut all = options.to_vec();
    for (name, value) in usual.into_iter().filter(|(name, _)| !options.contains(name)) {
        all.extend([name, value]);
    }
    let (status, said) = run(&all).await;
    assert_eq!(status.code(), Some(code), "{options:?}: {said}");
    assert!(!["panicked", "planted", "hidden"].iter().any(|word| said.contains(word)), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[tokio::test]
async fn non_loopback_addresses_are_refused() {
    for addr in ["0.0.0.0:8001", "10.0.0.1:8001", "[::]:8001", "localhost:8001", "8001", "127.0.0.1"] {
        for option in ["--listen", "--status"] {
            refuses(USAGE, &[option, addr], &[addr, option, "127.0.0.1:8001 or [::1]:8001"]).await;
        }
    }
}

#[tokio::test]
async fn option_errors_name_allowed_values() {
    let timing = "default, fast, a lease duration in seconds, or three numbers";
    for (option, value, words) in [
        ("--lease", "app", &["default/my-app"] as &[_]),
        ("--lease", "default/App", &["invalid lease name: \"App\"", "a-z"]),
        ("--timing", "1/2/3", &["renew deadline is 2s", "less than the lease duration"]),
        ("--timing", "15/10", &[timing]),
        ("--timing", "15/ten/2", &["\"ten\"", timing]),
        ("--timing", "15/-10/2", &["\"-10\"", timing]),
        ("--timing", "NaN/10/2", &[timing]),
        ("--identity", "", &["1 to 253 bytes"]),
        ("--allow", "everything", &["access-reviews", "token-requests", "dry-run", "exec"]),
        ("--fence", "app", &["service-account:NAMESPACE/NAME", "users:NAME,NAME", "group:NAME"]),
        ("--fence", "service-account:app", &["invalid fence: the service account is \"app/\""]),
        ("--fence", "users:", &["a name without control characters"]),
        ("--fence", "group:system:masters", &["a group of the replicas alone"]),
        (
            "--lead-if",
            "http://10.0.0.1/ready",
            &["a page on this machine, such as http://127.0.0.1:8080/readyz"],
        ),
        ("--lead-if", "https://127.0.0.1/ready", &["a page on this machine"]),
        ("--lead-if", "/ready", &["a page on this machine"]),
        ("--accept-host", "app.test:80", &["a host without a port"]),
        ("--accept-host", "*", &["a host without a port", "no patterns"]),
        ("--accept-host", "*.test", &["no patterns"]),
        ("--accept-host", "^localhost$", &["no patterns"]),
        ("--accept-host", "fe80::1", &["[fe80::1]"]),
        ("--accept-host", "[x]", &["[fe80::1]"]),
        ("--accept-host", "", &["a host without a port"]),
    ] {
        refuses(USAGE, &[&format!("{option}={value}")], words).await;
    }
}

#[tokio::test]
async fn error_names_port_already_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    for option in ["--listen", "--status"] {
        refuses(FAILURE, &[option, &addr], &[&addr, "in use"]).await;
    }
}

#[tokio::test]
async fn kubeconfig_error_names_the_problem() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wrong");
    refuses_with(&file, FAILURE, &[], &["wrong", "No such file"]).await;
    for (text, words) in [
        ("{{{", &["wrong", "YAML"]),
        ("", &["wrong", "current context"]),
        ("apiVersion: v1", &["wrong", "current context"]),
    ] {
        fs::write(&file, text).unwrap();
        refuses_with(&file, FAILURE, &[], words).await;
    }
    let plugin = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "false", "interactiveMode": "Never" });
    let cluster = "/clusters/0/cluster";
    let user = "/users/0/user";
    for (place, value, words) in [
        ("", json!({ "current-context": "y" }), &["current context: y"] as &[_]),
        ("/clusters/0", json!({ "name": "d" }), &["cluster of context: c"]),
        (cluster, json!({ "server": "10.0.0.1:6443" }), &["10.0.0.1:6443", "not a URL"]),
        (cluster, json!({ "server": "a b" }), &["cluster url"]),
        (cluster, json!({ "server": "ftp://10.0.0.1:6443" }), &["ftp://10.0.0.1:6443", "not a URL"]),
        (
            cluster,
            json!({ "certificate-authority": "/nowhere/ca.crt" }),
            &["/nowhere/ca.crt", "No such file"],
        ),
        (cluster, json!({ "proxy-url": "http://127.0.0.1:3128" }), &["proxy", "127.0.0.1:3128"]),
        (cluster, json!({ "proxy-url": "http://user:planted@127.0.0.1:3128" }), &["proxy", "127.0.0.1:3128"]),
        (cluster, json!({ "server": "user:planted@127.0.0.1:1" }), &["not a URL"]),
        (cluster, json!({ "server": "u:hidden@10.0.0.1:6443" }), &["10.0.0.1:6443", "not a URL"]),
        (user, json!({ "token": "a\nb" }), &["token", "line break"]),
        (user, json!({ "as-groups": ["a"] }), &["as-groups", "no user in `as`"]),
        (user, json!({ "as-uid": "a" }), &["as-uid", "no user in `as`"]),
        (user, json!({ "as-user-extra": { "a": ["b"] } }), &["as-user-extra", "no user in `as`"]),
        (user, json!({ "as": "", "as-groups": ["a"] }), &["as-groups", "no user in `as`"]),
        (
            user,
            json!({ "token": null, "exec": plugin }),
            &["credential plugin \"false\" failed", "exit status: 1"],
        ),
        (
            user,
            json!({ "token": "planted", "as-groups": { "not": "a list" } }),
            &["parse kubeconfig", "line 1"],
        ),
    ] {
        let mut kubeconfig = kubeconfig("http://127.0.0.1:1", "a");
        let place = kubeconfig.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        place.extend(value.as_object().unwrap().clone());
        fs::write(&file, kubeconfig.to_string()).unwrap();
        refuses_with(&file, FAILURE, &[], words).await;
    }
}

#[tokio::test]
async fn upstream_pointing_at_sidecar_is_refused() {
    let [port] = port::free().unwrap();
    let own = format!("127.0.0.1:{port}");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    for host in [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "user:hidden@localhost",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::]",
    ] {
        fs::write(&file, kubeconfig(&format!("http://{host}:{port}"), "a").to_string()).unwrap();
        let said = [&port.to_string(), "is this proxy itself"];
        refuses_with(&file, FAILURE, &["--listen", &own], &said).await;
    }
}

#[tokio::test]
async fn every_loopback_address_serves() {
    let upstream = Upstream::start().await;
    let sidecar =
        Sidecar::start(&upstream, "a", &["--listen", "127.0.0.2:0", "--status", "127.0.0.3:0"]).await;
    let code = async |addr: SocketAddr, path| {
        let mut request = request("GET", path, "");
        request.headers_mut().insert("host", addr.to_string().parse().unwrap());
        ask(addr, request).await.code
    };
    assert_eq!(code(sidecar.addr, "/version").await, 200);
    assert_eq!(code(sidecar.status, "/leader").await, 200);
}

/// Runs the sidecar for this server, with these variables. Its exit status must be [`FAILURE`]. Returns what it said.
async fn fails_with(server: &str, variables: &[(&str, &[u8])]) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig(server, "a").to_string()).unwrap();
    let mut command = Command::new(binary());
    command.args(["--listen", "127.0.0.1:0", "--lease", "default/app", "--kubeconfig"]).arg(&file);
    command.envs(variables.iter().map(|(name, value)| (name, OsStr::from_bytes(value))));
    let (status, said) = run_by(&command).await;
    assert_eq!(status.code(), Some(FAILURE), "{said}");
    said
}

/// Not passed over: the name of the host may be that of every replica.
#[tokio::test]
async fn pod_name_that_is_not_utf8_is_refused() {
    let said = fails_with("http://127.0.0.1:1", &[("POD_NAME", b"pod-\xff")]).await;
    assert!(said.contains("allowed: UTF-8; set POD_NAME from the downward API's metadata.name"), "{said}");
}

/// kube takes the proxy from there if the kubeconfig has none.
#[tokio::test]
async fn error_names_the_variable_with_a_proxy() {
    let proxy = b"http://user:planted@127.0.0.1:3128";
    let no: (&str, &[u8]) = ("NO_PROXY", b"10.0.0.0/9, other.example");
    for variables in [&[("HTTPS_PROXY", &proxy[..])][..], &[("https_proxy", &proxy[..]), no]] {
        let said = fails_with("https://10.128.0.1:6443", variables).await;
        for part in ["variable HTTPS_PROXY", "http://127.0.0.1:3128", "https://10.128.0.1:6443", "NO_PROXY"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("planted"), "{said}");
    }
}

/// As kubectl does. No proxy listens at that address.
#[tokio::test]
async fn loopback_and_no_proxy_go_direct() {
    let upstream = Upstream::start().await;
    let port = upstream.url().rsplit(':').next().unwrap().to_owned();
    for (server, no) in
        [(upstream.url(), ""), (format!("http://localhost:{port}"), ""), (upstream.url(), "other.example")]
    {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kubeconfig");
        fs::write(&file, kubeconfig(&server, "a").to_string()).unwrap();
        let mut command = Command::new(binary());
        command.args([
            "--listen",
            "127.0.0.1:0",
            "--status",
            "127.0.0.1:0",
            "--lease",
            "default/app",
            "--kubeconfig",
        ]);
        command.arg(&file).env("HTTPS_PROXY", "http://127.0.0.1:1").env("NO_PROXY", no);
        let sidecar = Sidecar::start_by(command, folder).await;
        assert_eq!(ask(sidecar.addr, request("GET", "/version", "")).await.code, 200, "{server}");
    }
    // It is refused for its own reason.
    for no in ["10.0.0.0/8", "*", "10.0.0.1"] {
        let variables: [(&str, &[u8]); 3] =
            [("HTTPS_PROXY", b"http://127.0.0.1:1"), ("NO_PROXY", no.as_bytes()), ("POD_NAME", b"\xff")];
        let said = fails_with("https://10.0.0.1:6443", &variables).await;
        assert!(!said.contains("proxy") && said.contains("POD_NAME"), "{no}: {said}");
    }
}
