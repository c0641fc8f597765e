//! Reviews: creates that are answered and not stored.

use serde_json::{Value, json};

use crate::object::kinds::kind_of;
use crate::object::members::{members, metadata};
use crate::object::time;
use crate::ops::answer::Answer;
use crate::path::{Collection, Target};
use crate::status::Refusal;

pub(crate) fn is_review(collection: &Collection) -> bool {
    matches!(
        (collection.group.as_str(), collection.resource.as_str()),
        ("authentication.k8s.io", "tokenreviews" | "selfsubjectreviews")
            | (
                "authorization.k8s.io",
                "localsubjectaccessreviews"
                    | "selfsubjectaccessreviews"
                    | "selfsubjectrulesreviews"
                    | "subjectaccessreviews"
            )
    )
}

/// Answers a review. Every token is valid and is the user's name. Every access is allowed.
pub(crate) fn answer(target: &Target, user: &str, mut object: Value) -> Result<Answer, Refusal> {
    let collection = &target.collection;
    let groups = json!(["system:authenticated"]);
    let status = match collection.resource.as_str() {
        "tokenreviews" => match object["spec"]["token"].as_str() {
            Some(token) if !token.is_empty() => {
                json!({ "authenticated": true, "user": { "username": token, "groups": groups } })
            }
            _ => {
                return Err(Refusal::bad_request("token is required for TokenReview in authentication"));
            }
        },
        "selfsubjectreviews" => json!({ "userInfo": { "username": user, "groups": groups } }),
        "selfsubjectrulesreviews" => {
            let all = ["*"];
            json!({ "resourceRules": [{ "verbs": all, "apiGroups": all, "resources": all }],
                    "nonResourceRules": [{ "verbs": all, "nonResourceURLs": all }], "incomplete": false })
        }
        _ => json!({ "allowed": true }),
    };
    let kind = kind_of(collection, &object);
    let members = members(&mut object);
    members.insert("apiVersion".into(), collection.api_version().into());
    members.insert("kind".into(), kind.into());
    members.insert("status".into(), status);
    if let Some(namespace) = &target.namespace {
        metadata(&mut object).insert("namespace".into(), namespace.as_str().into());
    }
    if collection.resource == "selfsubjectreviews" {
        metadata(&mut object).insert("creationTimestamp".into(), time::now().into());
    }
    Ok(Answer::Json(201, object))
}
