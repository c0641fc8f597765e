//! Causes before the sidecar, as a process of its own.

use crate::{
    Said,
    server::{Manner, Server, answer, refusal, refused_write},
};
use kube_leader_gate::testing::{Fault, WatchBreak};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;
use test_support::sidecar::{
    callers::{create, get},
    process::{Sidecar, binary, kubeconfig, run_by},
    upstream::{LEASE, Upstream},
    wait::until_some,
};

const HTML: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<h1>502 Bad Gateway</h1>\r\n</body>\r\n</html>\r\n";

/// What is no API server, or does not answer as one.
fn strangers() -> Vec<(&'static str, Manner)> {
    use Manner::{Ends, Hangs, Says};
    vec![
        ("the API server does not answer", Hangs),
        ("the connection breaks before the answer", Ends),
        (
            "the URL is another web server's",
            Says(|_| answer("200 OK", "", "<html>\n<h1>Welcome</h1>\n</html>")),
        ),
        ("a load balancer has no API server behind it", Says(|_| answer("502 Bad Gateway", "", HTML))),
        ("an answer without a text", Says(|_| answer("503 Service Unavailable", "", ""))),
        (
            "a login page on the way",
            Says(|_| answer("302 Found", "location: https://login.example/start?state=secret\r\n", "")),
        ),
        (
            "a proxy refuses the request",
            Says(|_| answer("403 Forbidden", "", "<html>\nAccess denied\n</html>")),
        ),
    ]
}

/// What an API server refuses, in the words of Kubernetes 1.36.
fn refusals() -> Vec<(&'static str, Manner)> {
    use Manner::Says;
    vec![
        ("the token is unknown", Says(|_| refusal(401, "Unauthorized", "Unauthorized"))),
        (
            "the API server takes the request for anonymous",
            Says(|_| {
                refusal(
                    403,
                    "Forbidden",
                    r#"leases.coordination.k8s.io "app" is forbidden: User "system:anonymous" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "default""#,
                )
            }),
        ),
        (
            "the Role is missing",
            Says(|_| {
                refusal(
                    403,
                    "Forbidden",
                    r#"leases.coordination.k8s.io "app" is forbidden: User "system:serviceaccount:default:app" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "default""#,
                )
            }),
        ),
        (
            "the namespace is being deleted",
            Says(|line| {
                refused_write(
                    line,
                    403,
                    "Forbidden",
                    r#"leases.coordination.k8s.io "app" is forbidden: unable to create new content in namespace default because it is being terminated"#,
                )
            }),
        ),
        (
            "a quota permits no more leases",
            Says(|line| {
                refused_write(
                    line,
                    403,
                    "Forbidden",
                    r#"leases.coordination.k8s.io "app" is forbidden: exceeded quota: objects, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=0, limited: count/leases.coordination.k8s.io=0"#,
                )
            }),
        ),
        (
            "a webhook refuses the lease",
            Says(|line| {
                refused_write(
                    line,
                    400,
                    "BadRequest",
                    r#"admission webhook "labels.example.com" denied the request: each object needs the label owner"#,
                )
            }),
        ),
        (
            "a webhook does not run",
            Says(|line| {
                refused_write(
                    line,
                    500,
                    "InternalError",
                    r#"Internal error occurred: failed calling webhook "labels.example.com": failed to call webhook: Post "https://labels.default.svc:443/?timeout=10s": dial tcp 10.0.0.9:443: connect: connection refused"#,
                )
            }),
        ),
        (
            "an admission policy refuses the lease",
            Says(|line| {
                refused_write(
                    line,
                    422,
                    "Invalid",
                    r#"leases.coordination.k8s.io "app" is forbidden: ValidatingAdmissionPolicy 'labels' with binding 'labels' denied request: each object needs the label owner"#,
                )
            }),
        ),
        (
            "the namespace does not exist",
            Says(|line| refused_write(line, 404, "NotFound", r#"namespaces "default" not found"#)),
        ),
        ("the URL has a wrong path", Says(|_| answer("404 Not Found", "", "404 page not found\n"))),
        (
            "the API server has too many requests",
            Says(|_| refusal(429, "TooManyRequests", "too many requests, please try again later")),
        ),
    ]
}

pub(crate) async fn all() -> Vec<Said> {
    let mut said = vec![];
    for (cause, manner) in strangers().into_iter().chain(refusals()) {
        let server = Server::start(manner).await;
        said.push(Said::new(cause, "trouble", &trouble(kubeconfig(&server.url(), "a")).await));
    }
    said.extend(connections().await);
    said.extend(leases().await);
    said.extend(starts().await);
    said.extend(answers().await);
    said
}

async fn trouble(kubeconfig: Value) -> String {
    let sidecar = Sidecar::start_with(kubeconfig, "a", &["--timing", "fast"]).await;
    trouble_of(&sidecar).await
}

async fn trouble_of(sidecar: &Sidecar) -> String {
    until_some("the election is in trouble", async || {
        let trouble = sidecar.leader().await["trouble"].as_str().map(str::to_owned);
        // For a moment after the start.
        trouble.filter(|it| !it.contains("has not begun"))
    })
    .await
}

/// What fails before a request is sent.
async fn connections() -> Vec<Said> {
    let mut said = vec![];
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (plain, untrusted) = (Server::start(Manner::Complains).await, Server::untrusted().await);
    // A label of a name has 63 letters at most, so no name server is asked.
    let name = "a".repeat(64);
    for (cause, url) in [
        ("nothing listens at the API server's port", format!("http://{closed}")),
        ("the API server's name has no address", format!("http://{name}.example:6443")),
        ("the API server's certificate is not trusted", format!("https://{}", untrusted.addr)),
        ("the port speaks no TLS", format!("https://{}", plain.addr)),
    ] {
        let told = trouble(kubeconfig(&url, "a")).await;
        said.push(Said::new(cause, "trouble", &told.replace(&name, "NAME")));
    }
    let folder = TempDir::new().unwrap();
    let broken = folder.path().join("broken");
    let token = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z" },
    });
    let script = format!("[ -e {} ] && exit 3; echo '{token}'", broken.display());
    let mut with_plugin = kubeconfig(&plain.url(), "a");
    with_plugin["users"][0]["user"] = plugin(&script);
    let sidecar = Sidecar::start_with(with_plugin, "a", &["--timing", "fast"]).await;
    fs::write(&broken, "").unwrap();
    let told = until_some("the plugin fails", async || {
        trouble_of(&sidecar).await.lines().find(|it| it.contains("credential plugin")).map(str::to_owned)
    });
    said.push(Said::new("the credential plugin fails", "trouble", &told.await));
    said
}

fn plugin(script: &str) -> Value {
    json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script],
    } })
}

/// What is wrong with the lease, or with its watch.
async fn leases() -> Vec<Said> {
    let mut said = vec![];
    for (cause, fault) in [
        ("the Role lacks watch", Fault::forbidden().verb("watch")),
        ("each watch ends with an error", Fault::break_watch(WatchBreak::Expired)),
        ("a device on the way ends each watch", Fault::break_watch(WatchBreak::End)),
    ] {
        let upstream = Upstream::start().await;
        let _fault = upstream.server.inject(fault);
        let sidecar = Sidecar::start(&upstream, "a", &["--timing", "fast"]).await;
        let line =
            until_some("it warns", async || warning(&sidecar.log(), "the lease cannot be watched")).await;
        said.push(Said::new(cause, "log", &line));
    }
    let upstream = Upstream::start().await;
    upstream.held_by("outsider");
    upstream
        .server
        .edit("outsider", LEASE, |it| it["spec"]["leaseDurationSeconds"] = 1_000_000.into())
        .unwrap();
    let sidecar = Sidecar::start(&upstream, "a", &[]).await;
    said.push(Said::new("the lease's duration is a typing error", "trouble", &trouble_of(&sidecar).await));

    let upstream = Upstream::start().await;
    let first = Sidecar::start(&upstream, "a", &["--timing", "fast"]).await;
    first.leads().await;
    let second = Sidecar::start(&upstream, "a", &["--timing", "fast"]).await;
    let twins = async || {
        let troubles = [first.leader().await["trouble"].clone(), second.leader().await["trouble"].clone()];
        troubles.iter().filter_map(Value::as_str).find(|it| !it.contains("has not begun")).map(str::to_owned)
    };
    let told = until_some("one of them says it", twins).await;
    said.push(Said::new("two processes have one identity", "trouble", &told));
    said
}

/// The text of the first warning that begins so.
fn warning(log: &str, begins: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains(" WARN ") && line.contains(begins))?;
    let text = &line[line.find(begins)?..];
    // The fields come last.
    Some(text.split(" error=").next().unwrap_or(text).to_owned())
}

/// Why the sidecar does not start.
async fn starts() -> Vec<Said> {
    let mut said = vec![];
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig("https://10.0.0.1:6443", "a").to_string()).unwrap();
    let told = fails(&file, &[("HTTPS_PROXY", "http://10.0.0.2:3128")]).await;
    said.push(Said::new("HTTPS_PROXY is set in the shell", "start", &told));
    let mut with_plugin = kubeconfig("https://10.0.0.1:6443", "a");
    with_plugin["users"][0]["user"] = plugin("echo secret; exit 255");
    fs::write(&file, with_plugin.to_string()).unwrap();
    said.push(Said::new("the credential plugin fails at the start", "start", &fails(&file, &[]).await));
    said
}

async fn fails(file: &Path, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(binary());
    command.args(["--listen", "127.0.0.1:0", "--lease", "default/app", "--kubeconfig"]).arg(file);
    let (_, log) = run_by(command.envs(variables.iter().copied())).await;
    log
}

/// What the sidecar answers its application.
async fn answers() -> Vec<Said> {
    let mut said = vec![];
    let message = |it: &Value| it["message"].as_str().unwrap_or_default().to_owned();
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let refused = create(sidecar.addr, "x").await.json();
    said.push(Said::new("a follower's application writes", "answer", &message(&refused)));

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sidecar = Sidecar::start_with(kubeconfig(&format!("http://{closed}"), "a"), "a", &[]).await;
    let unsent = get(sidecar.addr, "/version").await.json();
    said.push(Said::new("the application reads, and the API server is away", "answer", &message(&unsent)));
    said
}
