//! Who the API server takes a client for, and whether it can pass for another one.

use super::{
    definition::Fence,
    error::ErrFence,
    finding::Finding,
    server::{review, send},
    writers::POD_NAME,
};
use http::Method;
use kube_client::Client;
use serde_json::{Value, json};

/// Who sends the requests of a client, as the API server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asker {
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
    pub async fn identify(&self, client: &Client) -> Result<Asker, ErrFence> {
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
            return Ok(Asker::Other(username.to_owned()));
        }
        let identity = if self.writers.are_pods() {
            user["extra"][POD_NAME][0].as_str()
        } else {
            self.writers.identity_of(username)
        };
        match identity {
            Some(identity) => Ok(Asker::Replica(identity.to_owned())),
            None if self.writers.are_pods() => Err(ErrFence::NoPodInToken { username: username.to_owned() }),
            None => Ok(Asker::Other(username.to_owned())),
        }
    }

    /// Asks which writers may impersonate. It sees no permission that is bound to names.
    pub(super) async fn find_impersonators(&self, client: &Client) -> Result<Vec<Finding>, ErrFence> {
        let mut findings = Vec::new();
        for (name, mut spec) in self.writers.subjects() {
            let mut granted = Vec::new();
            for permission @ (verb, resource, group) in IMPERSONATES {
                let namespace = if resource == "serviceaccounts" { self.lease.namespace() } else { "" };
                let subresource = if resource == "userextras" { POD_NAME } else { "" };
                spec["resourceAttributes"] = json!({ "verb": verb, "group": group, "resource": resource,
                                                     "subresource": subresource, "namespace": namespace });
                let answer = review(client, "subjectaccessreviews.authorization.k8s.io", &spec).await?;
                granted.extend((answer["allowed"] == true).then_some(permission));
            }
            findings.extend(may(&format!("the writer {name:?}"), granted.into_iter()));
        }
        Ok(findings)
    }

    /// Asks a replica whether it may impersonate, also by permissions that are bound to names.
    pub(super) async fn is_impersonator(&self, replica: &Client) -> Result<Option<Finding>, ErrFence> {
        let spec = &json!({ "namespace": self.lease.namespace() });
        let answer = review(replica, "selfsubjectrulesreviews.authorization.k8s.io", spec).await?;
        let rules = answer["resourceRules"].as_array().into_iter().flatten();
        let has = |list: &Value, wanted| {
            list.as_array().is_some_and(|it| it.iter().any(|it| it == "*" || it == wanted))
        };
        let granted = IMPERSONATES.into_iter().filter(|(verb, resource, group)| {
            let wanted = [("verbs", *verb), ("resources", *resource), ("apiGroups", *group)];
            rules.clone().any(|rule| wanted.iter().all(|(list, wanted)| has(&rule[list], *wanted)))
        });
        Ok(may("the replica", granted))
    }
}

fn may<'a>(who: &str, granted: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Option<Finding> {
    let granted: Vec<_> = granted.map(|(verb, resource, _)| format!("{verb} {resource}")).collect();
    let meaning = "the fence sees only the impersonated user, and lets it pass; take the permission away";
    (!granted.is_empty()).then(|| Finding::new(who, format!("may {}", granted.join(", ")), meaning))
}
