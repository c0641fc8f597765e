//! Verbs on one resource.

use super::InvalidRule;
use crate::request::{ResourceRequest, Verb};

/// The verbs that a rule stands for until it is told otherwise: all that change objects, and no connection.
const MUTATIONS: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

/// A typed exemption: verbs on one resource.
///
/// Group and resource are always given, so that no rule covers everything because a line was forgotten. For the rest:
///
/// | part | when it is not set |
/// | --- | --- |
/// | [`verbs`](Rule::verbs) | `create`, `update`, `patch`, `delete`, `deletecollection`; never `connect` |
/// | [`subresource`](Rule::subresource) | the resource itself only; each subresource takes a rule of its own, as in RBAC |
/// | [`namespace`](Rule::namespace) | any, and resources without one |
/// | [`name`](Rule::name) | any, and requests without one |
///
/// The version of the group never matters: the API server converts between them.
///
/// ```
/// use http::Request;
/// use kube_leader_gate::policy::{Policy, Rule};
/// use kube_leader_gate::request::{RequestInfo, Verb};
///
/// let rule = Rule::new("apps", "deployments").verbs([Verb::Patch]).namespace("agents");
/// let policy = Policy::strict().allow(rule);
///
/// let patch = Request::patch("/apis/apps/v1/namespaces/agents/deployments/web").body(())?;
/// assert!(policy.permits(&RequestInfo::of(&patch)));
///
/// let scale = Request::patch("/apis/apps/v1/namespaces/agents/deployments/web/scale").body(())?;
/// assert!(!policy.permits(&RequestInfo::of(&scale)));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Rule {
    group: String,
    resource: String,
    verbs: Vec<Verb>,
    subresource: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Rule {
    /// The mutations of one resource, in the plural as it stands in paths (`deployments`). The core group is `""`.
    ///
    /// A rule that no request can match (a kind for a resource, a group with its version) exempts nothing;
    /// [`Policy::validate`](super::Policy::validate) says so.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            verbs: MUTATIONS.to_vec(),
            subresource: String::new(),
            namespace: None,
            name: None,
        }
    }

    /// Only these verbs, in place of those set before. `connect` covers upgraded connections, and `proxy`, `exec`,
    /// `attach` and `portforward` subresources with any method. `patch` creates what is missing when it is a server-side
    /// apply, and `update` does so for some resources.
    pub fn verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs = verbs.into_iter().collect();
        self
    }

    /// This subresource, and not the resource itself.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = subresource.into();
        self
    }

    /// Only in this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only the object of this name. As in RBAC such a rule never covers `create` of the resource itself nor
    /// `deletecollection`, since those requests name no object.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn validate(&self) -> Result<(), InvalidRule> {
        let plain = |text: &str| {
            let byte =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
            text.bytes().all(byte)
        };
        let refuse = |what, given: &str, allowed| Err(InvalidRule { what, given: given.to_owned(), allowed });
        if !plain(&self.group) {
            return refuse(
                "group",
                &self.group,
                "a group without its version, as \"apps\"; \"\" for the core group",
            );
        }
        if self.resource.is_empty() || !plain(&self.resource) {
            return refuse("resource", &self.resource, "the plural that stands in paths, as \"deployments\"");
        }
        if !plain(&self.subresource) {
            return refuse("subresource", &self.subresource, "its name in paths, as \"status\"");
        }
        if self.verbs.is_empty() {
            return refuse("list of verbs", "", "at least one");
        }
        Ok(())
    }

    pub(super) fn matches(&self, request: &ResourceRequest<'_>) -> bool {
        request.target() == (self.group.as_str(), self.resource.as_str(), self.subresource.as_str())
            && self.namespace.as_deref().is_none_or(|namespace| request.namespace() == namespace)
            && self.name.as_deref().is_none_or(|name| request.is_named(name))
            && self.verbs.contains(&request.verb)
    }
}
