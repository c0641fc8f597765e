//! Which settings are refused.

use crate::{EarlyTakeover, ErrInvalidEarlyTakeover};
use kube_leader_gate::{
    Election, Identity, LeaseTiming, election::ErrBuild, kube_client::Client, lease::LeasePool,
    testing::ApiServer,
};
use std::time::Duration;

fn early() -> EarlyTakeover {
    EarlyTakeover::of_pod(client(), "a", "uid-1")
}

fn client() -> Client {
    Client::new(ApiServer::new().service(), "default")
}

fn build(early: EarlyTakeover) -> Result<Election, ErrBuild> {
    let builder = Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let builder = builder.timing(LeaseTiming::fast()).layer_lock(early);
    builder.build_in(&LeasePool::over(|| Ok(client())).expect("a client"))
}

#[tokio::test]
async fn pod_comes_from_the_downward_api() {
    let inferred = |name: &str, uid: &str| {
        let of = |variable: &str| match variable {
            "POD_NAME" => name.to_owned(),
            "POD_UID" => uid.to_owned(),
            _ => panic!("{variable}"),
        };
        EarlyTakeover::infer_from(early().client, of)
    };
    assert_eq!(inferred("a", "uid-1").own, early().own);
    drop(build(inferred("a", "uid-1")).unwrap());
    build(inferred("", "uid-1")).unwrap_err();
    build(inferred("a", "")).unwrap_err();
}

#[tokio::test]
async fn invalid_settings_are_refused() {
    let of_pod = |name: &str, uid: &str| EarlyTakeover::of_pod(early().client, name, uid);
    let long = "x".repeat(254);
    let cases = [
        (
            of_pod("", "u"),
            r#"the pod's name is "", allowed: a pod's name, as the downward API's metadata.name in POD_NAME"#,
        ),
        (of_pod(&long, "u"), "the pod's name is \"xxx"),
        (
            of_pod("a", ""),
            r#"the pod's uid is "", allowed: a pod's uid, as the downward API's metadata.uid in POD_UID"#,
        ),
        (of_pod("a", "u/v"), "the pod's uid is \"u/v\""),
        (
            early().container("Manager"),
            "the container is \"Manager\", allowed: the name of a container: 1 to 63",
        ),
        (early().namespace("a/b"), "the pods' namespace is \"a/b\", allowed: 1 to 63"),
        (
            early().settle(Duration::from_secs(16)),
            "the time to settle is 16s, allowed: at most the lease duration, 15s",
        ),
    ];
    for (early, said) in cases {
        let Err(ErrBuild::Lock(error)) = build(early) else { panic!("{said}") };
        let error: ErrInvalidEarlyTakeover = *error.downcast().unwrap();
        assert!(said.starts_with(error.what()));
        let parts = format!(" is {}, allowed: {}", error.given(), error.allowed());
        let error = error.to_string();
        assert!(error.ends_with(&parts) && !parts.ends_with(": "), "{error}");
        assert!(error.starts_with("invalid early takeover: ") && error.contains(said), "{error}");
    }
    let most = early().container("manager").namespace("pods").settle(Duration::from_secs(15));
    drop(build(most).unwrap());
}
