//! Leases, treated as by the real server.

use fake_kube_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::support::{LEASES, ask};

fn lease(holder: &str) -> Value {
    json!({ "metadata": { "name": "x" }, "spec": {
        "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 1,
        "renewTime": "2026-01-02T03:04:05.678901Z",
    }})
}

#[tokio::test]
async fn update_needs_a_version() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", LEASES, lease("a")).await;
    let path = format!("{LEASES}/x");
    let refused = ask(&server, "PUT", &path, lease("b")).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.said(),
        "Invalid: leases.coordination.k8s.io \"x\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
         specified for an update"
    );
    let mut next = made.body.clone();
    next["spec"]["holderIdentity"] = "b".into();
    assert_eq!(ask(&server, "PUT", &path, &next).await.code, 200);
    assert_eq!(ask(&server, "PUT", &path, &next).await.code, 409, "the version is old now");
    let change = json!({ "spec": { "holderIdentity": "c" } });
    assert_eq!(
        ask(&server, "PATCH", &path, change).await.code,
        200,
        "a patch takes the version that it finds"
    );
}

#[tokio::test]
async fn put_without_uid_recreates_deleted_lease() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", LEASES, lease("a")).await;
    let path = format!("{LEASES}/x");
    ask(&server, "DELETE", &path, "").await;
    let refused = ask(&server, "PUT", &path, &made.body).await;
    assert_eq!(refused.code, 409);
    assert!(refused.said().contains("Precondition failed: UID in precondition: "), "{}", refused.said());
    let mut next = made.body.clone();
    next["metadata"].as_object_mut().unwrap().remove("uid");
    let remade = ask(&server, "PUT", &path, &next).await;
    assert_eq!(remade.code, 201);
    assert_ne!(remade.body["metadata"]["uid"], made.body["metadata"]["uid"]);
    let refused = ask(&server, "PUT", &path, &made.body).await;
    assert_eq!((refused.code, refused.said().contains("Precondition failed")), (409, true));
}

#[tokio::test]
async fn absurd_fields_are_refused() {
    let server = ApiServer::new();
    for (field, value, code) in [
        ("leaseDurationSeconds", json!(0), 422),
        ("leaseDurationSeconds", json!(-5), 422),
        ("leaseDurationSeconds", json!(15.5), 400),
        ("leaseTransitions", json!(-1), 422),
        ("leaseTransitions", json!("1"), 400),
        ("renewTime", json!("2026-01-02T03:04:05Z"), 400),
        ("renewTime", json!("2026-01-02T03:04:05.678901z"), 400),
        ("holderIdentity", json!(7), 400),
    ] {
        let mut body = lease("a");
        body["spec"][field] = value.clone();
        assert_eq!(ask(&server, "POST", LEASES, &body).await.code, code, "{field}: {value}");
    }
    assert_eq!(ask(&server, "POST", LEASES, lease("a")).await.code, 201);
    let patched =
        ask(&server, "PATCH", &format!("{LEASES}/x"), json!({ "spec": { "leaseDurationSeconds": 0 } })).await;
    assert_eq!(patched.code, 422);
    let causes = &patched.body["details"]["causes"];
    assert_eq!(causes[0]["field"], "spec.leaseDurationSeconds");
    assert_eq!(causes[0]["reason"], "FieldValueInvalid");
}

#[tokio::test]
async fn stored_lease_has_canonical_form() {
    let server = ApiServer::new();
    let body = json!({
        "metadata": { "name": "x", "labels": {}, "annotations": null, "unknown": 1 },
        "spec": {
            "holderIdentity": "", "leaseTransitions": null, "renewTime": "2026-01-02T03:04:05.678901+02:00",
            "strategy": "OldestEmulationVersion", "unknown": 1,
        },
        "status": {},
    });
    let made = ask(&server, "POST", LEASES, &body).await;
    assert_eq!(
        made.body["spec"],
        json!({ "holderIdentity": "", "renewTime": "2026-01-02T01:04:05.678901Z" })
    );
    assert_eq!((made.body.get("status"), made.body["metadata"].get("labels")), (None, None));
    let warnings: Vec<_> = made.headers.get_all("warning").iter().map(|it| it.to_str().unwrap()).collect();
    assert_eq!(
        warnings,
        [
            r#"299 - "unknown field \"metadata.unknown\"""#,
            r#"299 - "unknown field \"spec.unknown\"""#,
            r#"299 - "unknown field \"status\"""#,
        ]
    );
    assert_eq!(ask(&server, "POST", &format!("{LEASES}?fieldValidation=Strict"), &body).await.code, 400);
    let mut bare = body.clone();
    bare["metadata"] = json!({ "name": "y" });
    bare["spec"] = Value::Null;
    let made = ask(&server, "POST", &format!("{LEASES}?fieldValidation=Ignore"), &bare).await;
    assert_eq!((&made.body["spec"], made.headers.get("warning")), (&json!({}), None));
    assert_eq!(ask(&server, "GET", LEASES, "").await.body["items"][0].get("kind"), None);
}

#[tokio::test]
async fn log_shows_written_lease_fields() {
    let server = ApiServer::new();
    ask(&server, "POST", LEASES, lease("a")).await;
    ask(&server, "POST", LEASES, lease("b")).await;
    let log = server.write_log();
    let written = log[0].lease.as_ref().expect("what was written");
    assert_eq!((written.holder_identity.as_str(), written.lease_transitions), ("a", Some(1)));
    assert_eq!(written.lease_duration_seconds, Some(15));
    assert_eq!(written.renew_time.as_deref(), Some("2026-01-02T03:04:05.678901Z"));
    assert_eq!(log[0].name.as_deref(), Some("x"));
    assert_eq!((log[1].status, &log[1].lease), (409, &None));
    assert!(log[0].received < log[0].completed.unwrap() && log[0].completed.unwrap() < log[1].received);
}
