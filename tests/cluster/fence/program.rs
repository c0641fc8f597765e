//! The example `fence` as a process.

use super::ground::{ACCOUNT, Ground, LEASE};
use std::{fs, process::Command};
use test_support::example;

/// The exit code, the output and the errors.
fn run(ground: &Ground, user: &str, task: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let namespace = &ground.namespace;
    let (lease, writers) = (format!("{namespace}/{LEASE}"), format!("service-account:{namespace}/{ACCOUNT}"));
    let output = Command::new(example::build("fence"))
        .args([task, "--lease", &lease, "--writers", &writers])
        .args(more)
        .env("KUBECONFIG", ground.cluster.kubeconfig(user, &ground.cluster.url()))
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
    assert!(code == Some(1) && error.starts_with("error: RBAC does not allow it; grant get on"), "{error}");

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
    assert!(code == Some(1) && error.contains("names no pod"), "{error}");
    assert_eq!(run(&ground, "admin", "remove", &[]).1, format!("{name}: was not there\n"));
}
