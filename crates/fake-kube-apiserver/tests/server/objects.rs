//! Create, read, update, delete and list: what the server stores, and its messages when it refuses.

use fake_kube_apiserver::ApiServer;
use serde_json::json;

use crate::support::{MAPS, ask};

fn map(name: &str, value: &str) -> serde_json::Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": value } })
}

#[tokio::test]
async fn object_can_be_created_read_updated_and_deleted() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", MAPS, map("x", "1")).await;
    assert_eq!(made.code, 201);
    let metadata = &made.body["metadata"];
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("x"), &json!("default")));
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
    assert!(metadata["creationTimestamp"].as_str().is_some_and(|it| it.len() == 20 && it.ends_with('Z')));

    let path = format!("{MAPS}/x");
    assert_eq!(ask(&server, "GET", &path, "").await.body, made.body);
    let mut next = made.body.clone();
    next["data"]["k"] = "2".into();
    next["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let updated = ask(&server, "PUT", &path, &next).await;
    assert_eq!((updated.code, &updated.body["data"]["k"]), (200, &json!("2")));
    assert_eq!(updated.body["metadata"]["creationTimestamp"], metadata["creationTimestamp"]);
    assert!(updated.version().parse::<u64>().unwrap() > made.version().parse::<u64>().unwrap());

    let gone = ask(&server, "DELETE", &path, "").await;
    assert_eq!((gone.code, &gone.body["status"]), (200, &json!("Success")));
    assert_eq!(gone.body["details"]["uid"], metadata["uid"]);
    let missing = ask(&server, "GET", &path, "").await;
    assert_eq!((missing.code, missing.said().as_str()), (404, "NotFound: configmaps \"x\" not found"));
    let again = ask(&server, "POST", MAPS, map("x", "1")).await;
    assert_ne!(again.body["metadata"]["uid"], metadata["uid"]);
}

#[tokio::test]
async fn one_of_hundred_updates_of_a_version_succeeds() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", MAPS, map("x", "start")).await;
    let path = format!("{MAPS}/x");
    let attempts = (0..100).map(|number| {
        let mut body = made.body.clone();
        body["data"]["k"] = format!("{number}").into();
        let (server, path) = (server.clone(), path.clone());
        tokio::spawn(async move { (ask(&server, "PUT", &path, &body).await.code, number) })
    });
    let answers = futures_util::future::join_all(attempts).await;
    let codes: Vec<(u16, i32)> = answers.into_iter().map(Result::unwrap).collect();
    let winners: Vec<i32> = codes.iter().filter(|it| it.0 == 200).map(|it| it.1).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(codes.iter().filter(|it| it.0 == 409).count(), 99);
    assert_eq!(server.object(&path).unwrap()["data"]["k"], winners[0].to_string());
    assert_eq!(server.write_log().len(), 101);
}

#[tokio::test]
async fn update_without_change_keeps_the_version() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", MAPS, map("x", "1")).await;
    let path = format!("{MAPS}/x");
    assert_eq!(ask(&server, "PUT", &path, &made.body).await.version(), made.version());
    assert_eq!(ask(&server, "PUT", &path, map("x", "1")).await.version(), made.version());
    assert_ne!(ask(&server, "PUT", &path, map("x", "2")).await.version(), made.version());
    let seen: Vec<_> = server.write_log().into_iter().map(|it| it.seen_version).collect();
    assert_eq!(
        seen,
        [None, made.body["metadata"]["resourceVersion"].as_str().map(str::to_owned), None, None]
    );
}

#[tokio::test]
async fn dry_run_checks_everything_and_changes_nothing() {
    let server = ApiServer::new();
    let dry = format!("{MAPS}?dryRun=All");
    let tried = ask(&server, "POST", &dry, map("x", "1")).await;
    assert_eq!((tried.code, tried.body["metadata"]["uid"].is_string()), (201, true));
    assert_eq!(server.object(&format!("{MAPS}/x")), None);

    let made = ask(&server, "POST", MAPS, map("x", "1")).await;
    assert_eq!(ask(&server, "POST", &dry, map("x", "1")).await.code, 409);
    let path = format!("{MAPS}/x?dryRun=All");
    assert_eq!(ask(&server, "PUT", &path, map("x", "2")).await.body["data"]["k"], "2");
    assert_eq!(ask(&server, "PATCH", &path, json!({ "data": { "k": "3" } })).await.body["data"]["k"], "3");
    assert_eq!(ask(&server, "DELETE", &path, "").await.code, 200);
    assert_eq!(ask(&server, "DELETE", &format!("{MAPS}/x"), json!({ "dryRun": ["All"] })).await.code, 200);
    assert_eq!(ask(&server, "DELETE", &dry, "").await.code, 200);
    assert_eq!(server.object(&format!("{MAPS}/x")), Some(made.body));
    assert_eq!(ask(&server, "PUT", &format!("{MAPS}/x?dryRun=Some"), map("x", "2")).await.code, 422);
    let dry: Vec<bool> = server.write_log().iter().map(|it| it.dry_run).collect();
    assert_eq!(dry, [true, false, true, true, true, true, true, true, false]);
}

#[tokio::test]
async fn lists_and_collections_follow_namespace_and_selectors() {
    let server = ApiServer::new();
    for (namespace, name, app) in [("a", "x", "one"), ("a", "y", "two"), ("b", "x", "one")] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let body = json!({ "metadata": { "name": name, "labels": { "app": app } } });
        assert_eq!(ask(&server, "POST", &path, body).await.code, 201);
    }
    // Neighbours that a careless range would include.
    ask(
        &server,
        "POST",
        "/apis/example.com/v1/namespaces/a/configmaps",
        json!({ "kind": "C", "metadata": { "name": "z" } }),
    )
    .await;
    ask(&server, "POST", "/api/v1/namespaces/a/secrets", json!({ "metadata": { "name": "z" } })).await;
    let names = async |path: &str| -> Vec<String> {
        let list = ask(&server, "GET", path, "").await;
        assert_eq!(list.body["kind"], "ConfigMapList", "{list:?}");
        assert_eq!(list.version(), "6");
        let name =
            |it: &serde_json::Value| format!("{}/{}", it["metadata"]["namespace"], it["metadata"]["name"]);
        list.body["items"].as_array().unwrap().iter().map(name).map(|it| it.replace('"', "")).collect()
    };
    assert_eq!(names("/api/v1/configmaps").await, ["a/x", "a/y", "b/x"]);
    assert_eq!(names("/api/v1/configmaps?labelSelector=app%3Done").await, ["a/x", "b/x"]);
    assert_eq!(
        names("/api/v1/configmaps?fieldSelector=metadata.name%3Dx,metadata.namespace=b").await,
        ["b/x"]
    );
    assert_eq!(names("/api/v1/namespaces/none/configmaps").await, [""; 0]);

    let gone = ask(&server, "DELETE", "/api/v1/namespaces/a/configmaps?labelSelector=app=one", "").await;
    assert_eq!(gone.body["items"].as_array().map(Vec::len), Some(1));
    let left = server.objects("/api/v1/configmaps");
    assert_eq!(left.iter().map(|it| &it["metadata"]["name"]).collect::<Vec<_>>(), ["y", "x"]);
    let verbs: Vec<_> = server.write_log().iter().map(|it| it.verb).collect();
    assert_eq!(verbs.last(), Some(&"deletecollection"));
}

#[tokio::test]
async fn list_is_paged() {
    let server = ApiServer::new();
    for name in ["a", "b", "c"] {
        ask(&server, "POST", MAPS, map(name, "1")).await;
    }
    let first = ask(&server, "GET", &format!("{MAPS}?limit=2"), "").await;
    let names = |it: &serde_json::Value| {
        let items = it["items"].as_array().unwrap().iter();
        items.map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&first.body), ["a", "b"]);
    assert_eq!(first.body["metadata"]["remainingItemCount"], 1);
    let token = first.body["metadata"]["continue"].as_str().expect("a token");
    let second = ask(&server, "GET", &format!("{MAPS}?limit=2&continue={token}"), "").await;
    assert_eq!(names(&second.body), ["c"]);
    assert_eq!(second.body["metadata"].get("continue"), None);
    assert_eq!(second.version(), first.version());
    assert_eq!(ask(&server, "GET", &format!("{MAPS}?continue=x"), "").await.code, 400);
}

#[tokio::test]
async fn later_page_and_exact_version_show_what_was_stored_then() {
    let server = ApiServer::new();
    for name in ["a", "b", "c", "d"] {
        ask(&server, "POST", MAPS, map(name, "1")).await;
    }
    let whole = ask(&server, "GET", MAPS, "").await;
    let then = whole.body["items"].as_array().expect("items");
    let first = ask(&server, "GET", &format!("{MAPS}?limit=1"), "").await;
    let token = first.body["metadata"]["continue"].as_str().expect("a token");
    let version = &first.version();
    ask(&server, "PATCH", &format!("{MAPS}/b"), map("b", "2")).await;
    ask(&server, "DELETE", &format!("{MAPS}/c"), "").await;
    ask(&server, "DELETE", &format!("{MAPS}/d"), "").await;
    ask(&server, "POST", MAPS, map("d", "2")).await;
    ask(&server, "POST", MAPS, map("e", "1")).await;
    ask(&server, "DELETE", &format!("{MAPS}/a"), "").await;

    let later = format!("{MAPS}?limit=2&continue={token}");
    let exact = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let legacy = format!("{MAPS}?resourceVersion={version}&limit=4");
    for (path, shown, left) in
        [(&later, &then[1..3], json!(1)), (&exact, then, json!(null)), (&legacy, then, json!(null))]
    {
        let list = ask(&server, "GET", path, "").await;
        let found = (&list.version(), &list.body["items"], &list.body["metadata"]["remainingItemCount"]);
        assert_eq!(found, (version, &json!(shown), &left), "{path}");
    }
    let newer = ask(&server, "GET", &format!("{MAPS}?resourceVersion={version}"), "").await;
    assert_ne!(newer.version(), *version, "this version or a newer one");

    server.compact();
    for path in [later, exact, legacy] {
        let gone = ask(&server, "GET", &path, "").await;
        assert_eq!((gone.code, &gone.body["reason"]), (410, &json!("Expired")), "{path}");
    }
}

#[tokio::test]
async fn finalizer_delays_deletion() {
    let server = ApiServer::new();
    let path = format!("{MAPS}/x");
    let body = json!({ "metadata": { "name": "x", "finalizers": ["example.com/hold"] } });
    ask(&server, "POST", MAPS, body).await;
    let held = ask(&server, "DELETE", &path, "").await;
    assert_eq!((held.code, &held.body["kind"]), (200, &json!("ConfigMap")));
    assert!(held.body["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(ask(&server, "DELETE", &path, "").await.version(), held.version(), "once is enough");
    let refused = ask(&server, "POST", MAPS, json!({ "metadata": { "name": "x" } })).await;
    assert_eq!(refused.said(), "AlreadyExists: object is being deleted: configmaps \"x\" already exists");
    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } });
    assert_eq!(ask(&server, "PATCH", &path, more).await.code, 422);
    let freed = ask(&server, "PATCH", &path, json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(freed.code, 200);
    assert_eq!(ask(&server, "GET", &path, "").await.code, 404);
}

#[tokio::test]
async fn log_contains_generated_name() {
    let server = ApiServer::new();
    let made = ask(&server, "POST", MAPS, json!({ "metadata": { "generateName": "x-" } })).await;
    let name = made.body["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("x-") && name.len() == 7, "{name}");
    assert_eq!(server.write_log()[0].name.as_deref(), Some(name));
}
