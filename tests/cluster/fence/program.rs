//! The example `fence` as a process.

use super::ground::{ACCOUNT, Ground, LEASE};
use crate::support::closed_port;
use std::{fs, path::Path, process::Command};
use test_support::program;

/// The exit code, the output and the errors.
fn run(ground: &Ground, user: &str, task: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let namespace = &ground.namespace;
    let (lease, writers) = (format!("{namespace}/{LEASE}"), format!("service-account:{namespace}/{ACCOUNT}"));
    run_with(&ground.cluster.kubeconfig(user, &ground.cluster.url()), &lease, &writers, task, more)
}

fn run_with(
    kubeconfig: &Path,
    lease: &str,
    writers: &str,
    task: &str,
    more: &[&str],
) -> (Option<i32>, String, String) {
    let output = Command::new(program::example_of("kube-leader-gate-fence", "fence"))
        .args([task, "--lease", lease, "--writers", writers])
        .args(more)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub async fn it_applies_checks_and_removes() {
    let ground = Ground::new().await;
    ground.hold("no-pod").await;
    let name = ground.fence(&kube_leader_gate::Policy::strict()).name().to_owned();
    let (code, printed, _) = run(&ground, "admin", "print", &[]);
    assert_eq!((code, printed.matches("kind: Validating").count()), (Some(0), 4), "{printed}");
    let (code, missing, _) = run(&ground, "admin", "check", &[]);
    assert!(code == Some(1) && missing.contains("is missing: the API server refuses no write"), "{missing}");
    for done in ["created", "unchanged"] {
        assert_eq!(
            run(&ground, "admin", "apply", &[]),
            (Some(0), format!("{name}: {done}\n"), String::new())
        );
    }
    assert_eq!(run(&ground, "admin", "check", &[]).1, format!("{name}: stands\n"));
    let (code, differs, _) = run(&ground, "admin", "check", &["--allow", "events"]);
    assert!(code == Some(1) && differs.contains("matchConditions[is-not-of-events] is missing"), "{differs}");
    for done in ["removed", "was not there"] {
        assert_eq!(
            run(&ground, "admin", "remove", &[]),
            (Some(0), format!("{name}: {done}\n"), String::new())
        );
    }
    let (code, _, error) = run(&ground, "restricted-14", "check", &[]);
    assert!(code == Some(2) && error.starts_with("error: RBAC does not allow it; grant get on"), "{error}");

    let file = |token: String| {
        let file = ground.cluster.folder().join(format!("{}.token", fastrand::u64(..)));
        fs::write(&file, token).expect("its folder is there");
        file.display().to_string()
    };
    let (bound, podless) = (file(ground.token(Some("pod-a")).await), file(ground.token(None).await));
    let (_, said, _) = run(&ground, "admin", "apply", &["--replica-token", &bound]);
    assert!(said.starts_with("the token is of the replica \"pod-a\"\n"), "{said}");
    run(&ground, "admin", "remove", &[]);
    let (code, _, error) = run(&ground, "admin", "apply", &["--replica-token", &podless]);
    assert!(code == Some(2) && error.contains("names no pod"), "{error}");
    assert_eq!(run(&ground, "admin", "remove", &[]).1, format!("{name}: was not there\n"));
}

pub async fn it_says_why_it_could_not_ask() {
    let ground = Ground::new().await;
    let fails = |more: &[&str]| {
        let (code, said, error) = run(&ground, "admin", "check", more);
        assert_eq!((code, &*said), (Some(2), ""), "{error}");
        error
    };
    assert_eq!(
        fails(&["--replica-token", "/nonexistent"]),
        "error: cannot read the token file \"/nonexistent\": No such file or directory (os error 2)\n"
    );
    let empty = ground.cluster.folder().join("empty.token");
    fs::write(&empty, "\n").expect("its folder is there");
    let empty = empty.display().to_string();
    assert_eq!(fails(&["--replica-token", &empty]), format!("error: the token file {empty:?} is empty\n"));
    assert!(fails(&["--allow", "everything"]).starts_with("error: invalid value 'everything'"));

    let (_socket, addr) = closed_port();
    let server = format!("https://{addr}");
    let away = ground.cluster.kubeconfig("admin", &server);
    let (code, _, error) = run_with(&away, "default/x", "users:a,b", "check", &[]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.starts_with("error: cannot find out what the API server offers: "), "{error}");
    assert!(error.ends_with(&format!(" (the API server is {server}/)\n")), "{error}");
    assert_eq!(error.matches("Connection refused (os error 111)").count(), 1, "{error}");

    let stranger = ground.cluster.kubeconfig("restricted-15", &ground.cluster.url());
    let kubeconfig = fs::read_to_string(&stranger).expect("it was written");
    let unknown = ground.cluster.folder().join("unknown.kubeconfig");
    fs::write(&unknown, kubeconfig.replace("token-of-", "no-token-of-")).expect("its folder is there");
    let (code, _, error) = run_with(&unknown, "default/x", "users:a,b", "check", &[]);
    let says = format!(
        "error: cannot find out what the API server offers: Unauthorized (the API server is {}/)\n",
        ground.cluster.url()
    );
    assert_eq!((code, error), (Some(2), says));
}
