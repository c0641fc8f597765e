//! Which settings are refused.

use crate::{EarlyTakeover, ErrInvalidEarlyTakeover};
use kube_leader_gate::{
    Election, Identity, LeaseTiming, election::ErrBuild, kube_client::Client, lease::LeasePool,
    testing::ApiServer,
};
use std::time::Duration;

fn early() -> EarlyTakeover {
    EarlyTakeover::of_pod(client(), "a")
}

fn client() -> Client {
    Client::new(ApiServer::new().service(), "default")
}

fn build(early: EarlyTakeover) -> Result<Election, ErrBuild> {
    build_in_pod(early, Some("uid-1"))
}

fn build_in_pod(early: EarlyTakeover, uid: Option<&str>) -> Result<Election, ErrBuild> {
    let builder = Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let builder = match uid {
        Some(uid) => builder.pod_uid(uid),
        None => builder,
    };
    let builder = builder.timing(LeaseTiming::fast()).layer_lock(early);
    builder.build_in(&LeasePool::over(|| Ok(client())).expect("a client"))
}

#[tokio::test]
async fn pod_comes_from_the_downward_api() {
    let inferred = |name: &str| {
        let of = |variable: &str| match variable {
            "POD_NAME" => name.to_owned(),
            _ => panic!("{variable}"),
        };
        EarlyTakeover::infer_from(early().client, of)
    };
    assert_eq!(inferred("a").own, early().own);
    drop(build(inferred("a")).unwrap());
    build(inferred("")).unwrap_err();
}

#[tokio::test]
async fn invalid_settings_are_refused() {
    let of_pod = |name: &str| EarlyTakeover::of_pod(early().client, name);
    let long = "x".repeat(254);
    let cases = [
        (
            of_pod(""),
            r#"the pod's name is "", allowed: a pod's name, as the downward API's metadata.name in POD_NAME"#,
        ),
        (of_pod(&long), "the pod's name is \"xxx"),
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
    let Err(ErrBuild::Lock(error)) = build_in_pod(early(), None) else { panic!("without a uid") };
    let said = r#"the pod's uid is "", allowed: a pod's uid, as the downward API's metadata.uid in POD_UID"#;
    assert!(error.to_string().contains(said), "{error}");
    let most = early().container("manager").namespace("pods").settle(Duration::from_secs(15));
    drop(build(most).unwrap());
}
