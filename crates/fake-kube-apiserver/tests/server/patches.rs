//! Patches and the status subresource.

use ::http::Request;
use fake_kube_apiserver::ApiServer;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{Answer, MAPS, ask, read};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn patch(server: &ApiServer, path: &str, content_type: &str, body: &Value) -> Answer {
    let request = Request::patch(path).header("content-type", content_type).body(body.to_string()).unwrap();
    read(server.service().oneshot(request).await.unwrap()).await
}

#[tokio::test]
async fn merge_patch_changes_only_named_fields() {
    let server = ApiServer::new();
    let body = json!({ "metadata": { "name": "x" }, "data": { "a": "1", "b": "2" } });
    let made = ask(&server, "POST", MAPS, body).await;
    let path = format!("{MAPS}/x");
    let body = json!({ "data": { "a": null, "c": "3" } });
    for content_type in
        ["application/merge-patch+json", "application/strategic-merge-patch+json; charset=utf-8"]
    {
        let patched = patch(&server, &path, content_type, &body).await;
        assert_eq!((patched.code, &patched.body["data"]), (200, &json!({ "b": "2", "c": "3" })));
    }
    let stale = json!({ "metadata": { "resourceVersion": made.version() }, "data": { "a": "9" } });
    assert_eq!(patch(&server, &path, "application/merge-patch+json", &stale).await.code, 409);
    let renamed = json!({ "metadata": { "name": "y" } });
    assert_eq!(patch(&server, &path, "application/merge-patch+json", &renamed).await.code, 400);
    assert_eq!(patch(&server, &path, "application/merge-patch+json", &json!([])).await.code, 400);
    assert_eq!(patch(&server, &format!("{MAPS}/y"), "application/merge-patch+json", &body).await.code, 404);
    let refused = patch(&server, &path, "application/json", &json!({})).await;
    assert_eq!(refused.said(), "UnsupportedMediaType: 415: Unsupported Media Type");
}

#[tokio::test]
async fn json_patch_applies_completely_or_not_at_all() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", MAPS, json!({ "metadata": { "name": "x" }, "data": { "a": "1" } })).await;
    let path = format!("{MAPS}/x");
    let test = json!({ "op": "test", "path": "/metadata/resourceVersion", "value": made.version() });
    let add = json!({ "op": "add", "path": "/data/b", "value": "2" });
    let patched = patch(&server, &path, "application/json-patch+json", &json!([test, add])).await;
    assert_eq!((patched.code, &patched.body["data"]), (200, &json!({ "a": "1", "b": "2" })));
    let remove = json!({ "op": "remove", "path": "/data/a" });
    let refused = patch(&server, &path, "application/json-patch+json", &json!([remove, test])).await;
    assert_eq!((refused.code, refused.body["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(patch(&server, &path, "application/json-patch+json", &json!({})).await.code, 400);
    assert_eq!(ask(&server, "GET", &path, "").await.body, patched.body);
}

#[tokio::test]
async fn apply_patch_creates_or_merges() {
    let server = ApiServer::new();
    let path = format!("{MAPS}/x?fieldManager=test");
    let apply = "application/apply-patch+yaml";
    let made = patch(
        &server,
        &path,
        apply,
        &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" }, "data": { "a": "1" } }),
    )
    .await;
    assert_eq!((made.code, &made.body["metadata"]["name"]), (201, &json!("x")));
    let body =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" }, "data": { "b": "2" } });
    let merged = patch(&server, &path, apply, &body).await;
    assert_eq!((merged.code, &merged.body["data"]), (200, &json!({ "a": "1", "b": "2" })));
    assert_eq!(patch(&server, &format!("{MAPS}/x"), apply, &body).await.code, 422, "no field manager");
    let untyped = patch(&server, &path, apply, &json!({ "metadata": { "name": "x" } })).await;
    assert_eq!(untyped.said(), "BadRequest: invalid object type: /, Kind=");
}

#[tokio::test]
async fn status_has_its_own_endpoint() {
    let server = ApiServer::new();
    let body = json!({ "metadata": { "name": "x" }, "spec": { "a": 1 }, "status": { "phase": "Lost" } });
    let made = ask(&server, "POST", PODS, body).await;
    assert_eq!(made.body.get("status"), None, "a create has no say in the status");
    let (main, status) = (format!("{PODS}/x"), format!("{PODS}/x/status"));

    let set =
        ask(&server, "PATCH", &status, json!({ "spec": { "a": 2 }, "status": { "phase": "Running" } })).await;
    assert_eq!((&set.body["spec"]["a"], &set.body["status"]["phase"]), (&json!(1), &json!("Running")));
    let mut next = set.body.clone();
    next["spec"]["a"] = 3.into();
    next["status"]["phase"] = "Failed".into();
    let updated = ask(&server, "PUT", &main, &next).await;
    assert_eq!(
        (&updated.body["spec"]["a"], &updated.body["status"]["phase"]),
        (&json!(3), &json!("Running"))
    );
    next["metadata"]["resourceVersion"] = updated.version().into();
    next["spec"]["a"] = 4.into();
    let updated = ask(&server, "PUT", &status, &next).await;
    assert_eq!((&updated.body["spec"]["a"], &updated.body["status"]["phase"]), (&json!(3), &json!("Failed")));
    assert_eq!(ask(&server, "PUT", &status, &next).await.code, 409);
    assert_eq!(ask(&server, "GET", &status, "").await.body, updated.body);
    assert_eq!(ask(&server, "DELETE", &status, "").await.code, 405);
    assert_eq!(server.write_log().last().unwrap().subresource.as_deref(), Some("status"));
}
