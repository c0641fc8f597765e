//! Requests that the server refuses, with Kubernetes' messages. And reviews, which it answers without storing them.

use fake_kube_apiserver::ApiServer;
use serde_json::{Value, json};

use tower::ServiceExt as _;

use crate::support::{MAPS, ask, read};

const X: &str = "/api/v1/namespaces/default/configmaps/x";

fn map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": value } })
}

async fn assert_said(server: &ApiServer, method: &str, path: &str, body: &Value, code: u16, said: &str) {
    let answer = ask(server, method, path, body).await;
    assert_eq!((answer.code, answer.said().as_str()), (code, said), "{method} {path}");
}

#[tokio::test]
async fn conflicts() {
    let server = ApiServer::new();
    let old = ask(&server, "POST", MAPS, map("x", "1")).await;
    ask(&server, "PUT", X, map("x", "2")).await;
    let said = "AlreadyExists: configmaps \"x\" already exists";
    assert_said(&server, "POST", MAPS, &map("x", "1"), 409, said).await;
    let cannot = "Conflict: Operation cannot be fulfilled on configmaps \"x\": the ";
    let said = "object has been modified; please apply your changes to the latest version and try again";
    assert_said(&server, "PUT", X, &old.body, 409, &format!("{cannot}{said}")).await;

    let cannot = "Conflict: Operation cannot be fulfilled on ConfigMap \"x\": the ";
    let options = json!({ "preconditions": { "resourceVersion": old.version() } });
    let said = "ResourceVersion in the precondition (2) does not match the ResourceVersion in record (3). The object \
                might have been modified";
    assert_said(&server, "DELETE", X, &options, 409, &format!("{cannot}{said}")).await;
    let options = json!({ "preconditions": { "uid": "other" } });
    let uid = old.body["metadata"]["uid"].as_str().unwrap();
    let said = format!(
        "UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted \
         and then recreated"
    );
    assert_said(&server, "DELETE", X, &options, 409, &format!("{cannot}{said}")).await;
    assert_eq!(ask(&server, "GET", X, "").await.body["data"]["k"], "2", "nothing of this had an effect");
    let options = json!({ "preconditions": { "uid": uid, "resourceVersion": "3" } });
    assert_eq!(ask(&server, "DELETE", X, options).await.code, 200);
}

#[tokio::test]
async fn contradictory_bodies_are_refused() {
    let server = ApiServer::new();
    ask(&server, "POST", MAPS, map("x", "1")).await;
    let said = "BadRequest: the name of the object (y) does not match the name on the URL (x)";
    assert_said(&server, "PUT", X, &map("y", "1"), 400, said).await;
    let mut elsewhere = map("y", "1");
    elsewhere["metadata"]["namespace"] = "other".into();
    let said =
        "BadRequest: the namespace of the provided object does not match the namespace sent on the request";
    assert_said(&server, "POST", MAPS, &elsewhere, 400, said).await;
    let said =
        "Invalid: ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    assert_said(&server, "POST", MAPS, &json!({}), 422, said).await;
    let mut versioned = map("y", "1");
    versioned["metadata"]["resourceVersion"] = "7".into();
    let said = ": resourceVersion should not be set on objects to be created";
    assert_said(&server, "POST", MAPS, &versioned, 500, said).await;
    let said = "BadRequest: the API version in the data (v2) does not match the expected API version (v1)";
    assert_said(&server, "POST", MAPS, &json!({ "apiVersion": "v2" }), 400, said).await;
    let said = "BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; \
                json parse error: the body is not an object (5b315d)";
    assert_said(&server, "POST", MAPS, &json!([1]), 400, said).await;
    let said =
        "BadRequest: the name of the object (x based on URL) was undeterminable: name must be provided";
    assert_said(&server, "PUT", X, &json!({}), 400, said).await;
    let bad_name = ask(&server, "POST", MAPS, map("Not_a_name", "1")).await;
    assert_eq!(
        (bad_name.code, &bad_name.body["details"]["causes"][0]["field"]),
        (422, &json!("metadata.name"))
    );
    assert_eq!(server.objects(MAPS).len(), 1);
}

#[tokio::test]
async fn missing_objects_and_paths_are_404() {
    let server = ApiServer::new();
    let said = "NotFound: configmaps \"x\" not found";
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
        let body = if method == "PUT" { map("x", "1") } else { json!({}) };
        assert_said(&server, method, X, &body, 404, said).await;
    }
    let said = "NotFound: the server could not find the requested resource";
    for path in [&format!("{X}/scale"), &format!("{X}/status"), "/api/v2/pods", "/api//v1/pods"] {
        assert_said(&server, "PUT", path, &json!({}), 404, said).await;
    }
    for path in ["/nothing", "//api/v1/pods", "/apis/nothing.example.com/v1"] {
        let nothing = ask(&server, "PUT", path, "{}").await;
        assert_eq!(
            (nothing.code, nothing.headers["content-type"].to_str().ok()),
            (404, Some("text/plain; charset=utf-8"))
        );
    }
    let said = "MethodNotAllowed: the server does not allow this method on the requested resource";
    for (method, path) in [("POST", X), ("PUT", MAPS), ("PATCH", MAPS), ("POST", "/version"), ("get", X)] {
        assert_said(&server, method, path, &json!({}), 405, said).await;
    }
    assert_eq!(ask(&server, "GET", "/readyz", "").await.code, 200);
}

#[tokio::test]
async fn non_json_requests_are_refused() {
    let server = ApiServer::new();
    let send = async |name: &str, value: &str| {
        let body = map("x", "1").to_string();
        let request = ::http::Request::post(MAPS).header(name, value).body(body).unwrap();
        read(server.service().oneshot(request).await.unwrap()).await
    };
    for accept in ["text/html", "application/yaml", "application/vnd.kubernetes.protobuf", "application/*"] {
        assert_eq!(send("accept", accept).await.code, 406, "{accept}");
    }
    for content_type in ["text/plain", "application/yaml", "*/*"] {
        assert_eq!(send("content-type", content_type).await.code, 415, "{content_type}");
    }
    assert_eq!(
        send("accept", "application/json;as=Table;v=v1;g=meta.k8s.io, application/json").await.code,
        201
    );
}

#[tokio::test]
async fn reviews_are_answered_but_not_stored() {
    let server = ApiServer::new();
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = ask(&server, "POST", path, json!({ "spec": { "token": "bob" } })).await;
    assert_eq!((review.code, &review.body["kind"]), (201, &json!("TokenReview")));
    assert_eq!(review.body["status"]["authenticated"], true);
    assert_eq!(review.body["status"]["user"]["username"], "bob");
    assert_eq!(ask(&server, "POST", path, json!({ "spec": { "token": "" } })).await.code, 400);
    assert_eq!(ask(&server, "GET", path, "").await.code, 405);
    let me = ask(&server, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await;
    assert_eq!(me.body["status"]["userInfo"]["username"], "a");
    let may = ask(&server, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!({})).await;
    assert_eq!(may.body["status"]["allowed"], true);
    let log: Vec<_> = server.write_log().iter().map(|it| (it.resource.clone(), it.status)).collect();
    assert_eq!(log[0], ("tokenreviews".into(), 201));
    assert_eq!(log[1], ("tokenreviews".into(), 400));
}

#[tokio::test]
async fn too_large_bodies_are_refused() {
    let server = ApiServer::new();
    let room = 3 * 1024 * 1024 - map("x", "").to_string().len();
    assert_eq!(ask(&server, "POST", MAPS, map("x", &"v".repeat(room))).await.code, 201);
    let refused = ask(&server, "POST", MAPS, map("y", &"v".repeat(room + 1))).await;
    assert_eq!(refused.said(), "RequestEntityTooLarge: Request entity too large: limit is 3145728");
    assert_eq!(refused.code, 413);
}

#[tokio::test]
async fn test_can_store_invalid_objects() {
    let server = ApiServer::new();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x";
    assert_eq!(server.edit("thief", path, |_| ()).unwrap_err().code(), 404);
    server.put("thief", path, json!({ "spec": { "leaseDurationSeconds": -1 }, "status": 1 })).unwrap();
    let edited = server.edit("thief", path, |it| it["spec"]["holderIdentity"] = "thief".into()).unwrap();
    assert_eq!(edited["spec"], json!({ "leaseDurationSeconds": -1, "holderIdentity": "thief" }));
    server.delete("thief", path).unwrap();
    assert_eq!(server.delete("thief", path).unwrap_err().code(), 404);
    let log = server.write_log();
    assert_eq!(
        log.iter().map(|it| (it.verb, it.status)).collect::<Vec<_>>(),
        [("create", 201), ("update", 200), ("delete", 200)]
    );
    assert!(log.iter().all(|it| it.user == "thief"));
    assert_eq!(log[1].lease.as_ref().map(|it| it.holder_identity.as_str()), Some("thief"));
}

/// What kube-apiserver 1.36.3 says of these owners.
#[tokio::test]
async fn owners_without_a_version_and_events_as_owners_are_refused() {
    let server = ApiServer::new();
    for (api_version, kind) in
        [("apps/", "Deployment"), ("apps/v1/x", "Deployment"), ("/", "Deployment"), ("v1", "Event")]
    {
        let mut owned = map("x", "1");
        owned["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": api_version, "kind": kind, "name": "d", "uid": "u" }]);
        assert_eq!(ask(&server, "POST", MAPS, owned).await.code, 422, "{api_version} {kind}");
    }
}
