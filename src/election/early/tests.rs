//! Which lease a proof lets a candidate take, how long its gate waits, and which settings are refused.

use super::{
    settings::EarlyTakeover,
    succession::{Ended, Succession},
};
use crate::{
    election::candidacy::{Candidacy, Decision},
    leadership::Moment,
    lease::{Identity, LeaseRecord, LeaseTiming},
    testing::ApiServer,
};
use kube_client::Client;
use serde_json::json;
use std::time::Duration;

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

fn lease(uid: &str, version: &str, holder: &str) -> LeaseRecord {
    let time = format!("2026-01-02T03:04:05.{version:0>6}Z");
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 4,
                       "acquireTime": time, "renewTime": time });
    let metadata = json!({ "uid": uid, "resourceVersion": version });
    LeaseRecord::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn early() -> EarlyTakeover {
    EarlyTakeover::of_pod(Client::new(ApiServer::new().service(), "default"), "a", "uid-1")
}

#[test]
fn proof_of_one_version_says_nothing_of_the_next() {
    let mut succession = Succession::default();
    let seen = lease("u", "7", "a");
    assert!(!succession.has_ended(&seen));
    succession.ended(Ended::of(&seen));
    assert!(succession.has_ended(&seen));
    assert!(!succession.has_ended(&lease("u", "8", "a")));
    assert!(!succession.has_ended(&lease("v", "7", "a")));
}

#[tokio::test]
async fn s6_candidate_takes_only_the_version_of_the_proof() {
    let mut candidacy = Candidacy::new(Identity::new("me").unwrap(), LeaseTiming::fast(), None);
    candidacy.early = Succession::new(Some(&early()));
    candidacy.observe(lease("u", "7", "a"), at(1));
    candidacy.early.ended(Ended::of(&lease("u", "7", "a")));
    assert_eq!(candidacy.decide(at(2), false), Decision::Succeed);
    candidacy.observe(lease("u", "8", "a"), at(3));
    assert_eq!(candidacy.decide(at(4), false), Decision::WaitUntil(at(18)), "it has renewed");
    candidacy.early.ended(Ended::of(&lease("u", "8", "a")));
    let claim = candidacy.acquisition(at(5), "now".into());
    let mut own = candidacy.clone();
    own.observe(lease("u", "8", "a").with(&claim), at(5));
    assert_eq!(own.formers.until(at(6)), Some(at(7)), "the settle time");
    assert!(claim.annotations["kube-leader-gate/holder-pod"].as_ref().is_some_and(|it| it.contains("uid-1")));
    candidacy.observe(lease("u", "9", "me"), at(8));
    candidacy.early.ended(Ended::of(&lease("u", "9", "me")));
    assert_eq!(
        candidacy.decide(at(9), false),
        Decision::WaitUntil(at(23)),
        "another process with this identity"
    );
}

/// Then the candidates go in their order, whether or not the holder's process has ended.
#[test]
fn early_takeover_ends_with_the_holders_time() {
    let mut candidacy = Candidacy::new(Identity::new("me").unwrap(), LeaseTiming::fast(), None);
    let seen = lease("u", "7", "a");
    candidacy.observe(seen.clone(), at(1));
    candidacy.early.ended(Ended::of(&seen));
    assert_eq!(candidacy.decide(at(15), false), Decision::Succeed);
    assert_eq!(candidacy.decide(at(16), false), Decision::Take);
}

#[tokio::test]
async fn gate_waits_for_the_settle_time_at_most_until_expiry() {
    let seen = lease("u", "7", "a");
    let mut succession = Succession::new(Some(&early()));
    assert_eq!(succession.settles(&seen, at(100), at(10)), at(100), "no proof");
    succession.ended(Ended::of(&seen));
    assert_eq!(succession.settles(&seen, at(100), at(10)), at(12));
    assert_eq!(succession.settles(&seen, at(11), at(10)), at(11));
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
    let timing = LeaseTiming::fast();
    assert_eq!(inferred("a", "uid-1").own, early().own);
    assert_eq!(inferred("a", "uid-1").validate(&timing), Ok(()));
    assert!(inferred("", "uid-1").validate(&timing).is_err());
    assert!(inferred("a", "").validate(&timing).is_err());
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
        let error = early.validate(&LeaseTiming::fast()).unwrap_err();
        let parts = format!(" is {}, allowed: {}", error.given(), error.allowed());
        let error = error.to_string();
        assert!(error.ends_with(&parts) && !parts.ends_with(": "), "{error}");
        assert!(error.starts_with("invalid early takeover: ") && error.contains(said), "{error}");
    }
    let most = early().container("manager").namespace("pods").settle(Duration::from_secs(15));
    assert_eq!(most.validate(&LeaseTiming::fast()), Ok(()));
}
