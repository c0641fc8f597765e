//! Who the API server takes a client for, and whether it can pass for another one.

use crate::{
    definition::Fence,
    drift::Drift,
    error::ErrFence,
    server::{review, send},
    writers::POD_NAME,
};
use http::Method;
use kube_leader_gate::kube_client::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Who sends the requests of a client, as the API server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Impersonator {
    /// A replica that the fence judges. It may write while the Lease names this identity.
    Replica(String),
    /// A user that the fence does not judge, for example an administrator.
    Other(String),
}

/// The permissions to impersonate: verb, resource and group. Kubernetes 1.35 adds the verbs with a colon.
const IMPERSONATES: [(&str, &str, &str); 9] = [
    ("impersonate", "users", ""),
    ("impersonate", "groups", ""),
    ("impersonate", "serviceaccounts", ""),
    ("impersonate", "uids", "authentication.k8s.io"),
    ("impersonate", "userextras", "authentication.k8s.io"),
    ("impersonate:user-info", "users", "authentication.k8s.io"),
    ("impersonate:serviceaccount", "serviceaccounts", "authentication.k8s.io"),
    ("impersonate:arbitrary-node", "nodes", "authentication.k8s.io"),
    ("impersonate:associated-node", "nodes", "authentication.k8s.io"),
];

impl Fence {
    /// Asks the API server who `client` is, with a `SelfSubjectReview`. Every user may do so. Call it with the
    /// credentials of a replica, to learn whether the fence can tell which replica that is. Cancel-safe.
    ///
    /// # Errors
    /// - [`ErrFence::NoPodInToken`] if the token belongs to the service account and names no pod: a token that was
    ///   made by hand, or that a Secret holds.
    /// - [`ErrFence::Request`] if the request failed.
    pub async fn identify(&self, client: &Client) -> Result<Impersonator, ErrFence> {
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let answer = send(client, Method::POST, path, Some(&review)).await.map_err(|source| {
            ErrFence::Request { what: "find out whose token this is".to_owned(), source }
        })?;
        let user = &answer["status"]["userInfo"];
        let username = user["username"].as_str().unwrap_or_default();
        let groups = user["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let groups: Vec<_> = groups.map(str::to_owned).collect();
        if !self.writers.contain(username, &groups) {
            return Ok(Impersonator::Other(username.to_owned()));
        }
        let identity = if self.writers.are_pods() {
            user["extra"][POD_NAME][0].as_str()
        } else {
            self.writers.identity_of(username)
        };
        match identity {
            Some(identity) => Ok(Impersonator::Replica(identity.to_owned())),
            None if self.writers.are_pods() => Err(ErrFence::NoPodInToken { username: username.to_owned() }),
            None => Ok(Impersonator::Other(username.to_owned())),
        }
    }

    /// Asks which writers may impersonate. It sees no permission that is bound to names.
    pub(crate) async fn find_impersonators(&self, client: &Client) -> Result<Vec<Drift>, ErrFence> {
        let mut findings = Vec::new();
        for (name, mut spec) in self.writers.subjects() {
            let mut granted = Vec::new();
            for permission @ (verb, resource, group) in IMPERSONATES {
                let subresource = if resource == "userextras" { POD_NAME } else { "" };
                for namespace in self.namespaces(resource) {
                    spec["resourceAttributes"] = json!({ "verb": verb, "group": group, "resource": resource,
                                                         "subresource": subresource, "namespace": namespace });
                    let answer = review(client, "subjectaccessreviews.authorization.k8s.io", &spec).await?;
                    granted.extend((answer["allowed"] == true).then_some(permission));
                }
            }
            granted.dedup();
            findings.extend(may(&format!("the writer {name:?}"), granted));
        }
        Ok(findings)
    }

    /// Asks a replica whether it may impersonate, also by permissions that are bound to names.
    pub(crate) async fn is_impersonator(&self, replica: &Client) -> Result<Option<Drift>, ErrFence> {
        let mut answers = Vec::new();
        for namespace in self.namespaces("serviceaccounts") {
            let spec = json!({ "namespace": namespace });
            answers.push(review(replica, "selfsubjectrulesreviews.authorization.k8s.io", &spec).await?);
        }
        let rules = answers.iter().filter_map(|it| it["resourceRules"].as_array()).flatten();
        let has = |list: &Value, wanted| {
            list.as_array().is_some_and(|it| it.iter().any(|it| it == "*" || it == wanted))
        };
        let granted = IMPERSONATES.into_iter().filter(|(verb, resource, group)| {
            let wanted = [("verbs", *verb), ("resources", *resource), ("apiGroups", *group)];
            rules.clone().any(|rule| wanted.iter().all(|(list, wanted)| has(&rule[list], *wanted)))
        });
        Ok(may("the replica", granted))
    }

    /// Where permissions are looked for. Those on service accounts: beside the Lease, and beside the writers.
    fn namespaces(&self, resource: &str) -> BTreeSet<&str> {
        let accounts = self.writers.namespaces().chain([self.lease.namespace()]);
        if resource == "serviceaccounts" { accounts.collect() } else { [""].into() }
    }
}

fn may<'a>(who: &str, granted: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Option<Drift> {
    let words = |(verb, resource, _)| format!("{verb} {resource}");
    let granted: Vec<_> = granted.into_iter().map(words).collect();
    let meaning = "the fence sees only the impersonated user, and lets it pass; take the permission away";
    (!granted.is_empty()).then(|| Drift::new(who, format!("may {}", granted.join(", ")), meaning))
}
