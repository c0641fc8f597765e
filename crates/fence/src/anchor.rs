//! What keeps the API servers reading Leases while no fence stands.
//!
//! If for a second no binding names a policy with a Lease as its parameter, an API server stops reading Leases for its
//! policies, and begins again only with its process (kubernetes/kubernetes#130887, still so in 1.36). A fence that is
//! applied after that judges by the holder of that time. So the first fence brings a policy and a binding that judge
//! nothing, and they stay.

use crate::{
    drift::Drift,
    error::ErrFence,
    server::{self, Kind},
};
use kube_leader_gate::kube_client::Client;
use serde_json::{Value, json};

/// The name of the policy and of the binding. All fences of a cluster share them.
pub(crate) const NAME: &str = "kube-leader-gate.anchor";

const MEANING: &str = "if the last fence is gone for a second, a later one judges by the holder of that time until the \
                       API server restarts; apply makes it";

/// The binding comes first: it needs more permissions.
const KINDS: [Kind; 2] = [Kind::Binding, Kind::Policy];

/// Makes it stand. An error changes nothing that judges a request.
pub(crate) async fn apply(client: &Client) -> Result<(), ErrFence> {
    for kind in KINDS {
        let found = server::get(client, kind, NAME).await?;
        if found.as_ref().is_none_or(|found| server::is_ending(found) || differs(kind, found)) {
            server::apply(client, kind, wanted(kind), found.as_ref()).await?;
        }
    }
    Ok(())
}

pub(crate) async fn check(client: &Client) -> Result<Vec<Drift>, ErrFence> {
    let mut findings = Vec::new();
    for kind in KINDS {
        let what = match server::get(client, kind, NAME).await? {
            None => "is missing",
            Some(found) if server::is_ending(&found) => "is being deleted",
            Some(found) if differs(kind, &found) => "says something else than this crate wrote",
            Some(_) => continue,
        };
        findings.push(Drift::new(format!("{} {NAME:?}", kind.as_str()), what, MEANING));
    }
    Ok(findings)
}

/// Its labels do not count: another tool that applies it puts its own one on it.
fn differs(kind: Kind, found: &Value) -> bool {
    found["spec"] != wanted(kind)["spec"]
}

/// The object. It is the same for each fence, so that manifests of several fences agree.
pub(crate) fn wanted(kind: Kind) -> Value {
    let spec = match kind {
        Kind::Policy => json!({
            "failurePolicy": "Ignore",
            // There is no such resource.
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [{ "apiGroups": ["anchor.kube-leader-gate.invalid"], "apiVersions": ["*"],
                                    "operations": ["CREATE"], "resources": ["anchors"], "scope": "*" }],
            },
            "paramKind": { "apiVersion": "coordination.k8s.io/v1", "kind": "Lease" },
            "validations": [{ "expression": "true" }],
        }),
        Kind::Binding => json!({
            "paramRef": { "name": NAME, "namespace": "kube-system", "parameterNotFoundAction": "Allow" },
            "policyName": NAME,
            "validationActions": ["Audit"],
        }),
    };
    let (key, value) = server::MANAGED_BY;
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind.as_str(),
        "metadata": { "name": NAME, "labels": { key: value } },
        "spec": spec,
    })
}
