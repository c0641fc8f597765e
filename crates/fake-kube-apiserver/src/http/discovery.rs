//! The pages that are no resources: version, health, some discovery.

use serde_json::{Value, json};

/// The content of such a page.
#[derive(Debug)]
pub(crate) enum Page {
    Text(&'static str),
    Json(Value),
}

/// The page at a decoded path without slashes at both ends.
pub(crate) fn page(path: &str) -> Option<Page> {
    let page = match path {
        "healthz" | "readyz" | "livez" => return Some(Page::Text("ok")),
        "version" => json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": "",
        }),
        "api" => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        "apis" => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [
            group("authentication.k8s.io"), group("authorization.k8s.io"), group("coordination.k8s.io"),
        ]}),
        "api/v1" => resources(
            "v1",
            &[
                resource("configmaps", "ConfigMap", true, &EVERYTHING),
                resource("events", "Event", true, &EVERYTHING),
                resource("namespaces", "Namespace", false, &EVERYTHING),
                resource("pods", "Pod", true, &EVERYTHING),
                resource("secrets", "Secret", true, &EVERYTHING),
            ],
        ),
        "apis/coordination.k8s.io/v1" => {
            resources("coordination.k8s.io/v1", &[resource("leases", "Lease", true, &EVERYTHING)])
        }
        "apis/authentication.k8s.io/v1" => resources(
            "authentication.k8s.io/v1",
            &[
                resource("selfsubjectreviews", "SelfSubjectReview", false, &["create"]),
                resource("tokenreviews", "TokenReview", false, &["create"]),
            ],
        ),
        "apis/authorization.k8s.io/v1" => resources(
            "authorization.k8s.io/v1",
            &[
                resource("selfsubjectaccessreviews", "SelfSubjectAccessReview", false, &["create"]),
                resource("selfsubjectrulesreviews", "SelfSubjectRulesReview", false, &["create"]),
                resource("subjectaccessreviews", "SubjectAccessReview", false, &["create"]),
            ],
        ),
        _ => group(path.strip_prefix("apis/").filter(|it| it.ends_with(".k8s.io") && !it.contains('/'))?),
    };
    Some(Page::Json(page))
}

const EVERYTHING: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn group(name: &str) -> Value {
    let version = json!({ "groupVersion": format!("{name}/v1"), "version": "v1" });
    json!({ "kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": [version], "preferredVersion": version })
}

fn resources(group_version: &str, resources: &[Value]) -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    })
}

fn resource(name: &str, kind: &str, namespaced: bool, verbs: &[&str]) -> Value {
    let singular = kind.to_ascii_lowercase();
    json!({ "name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs })
}
