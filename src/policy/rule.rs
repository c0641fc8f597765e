//! Verbs on one resource.

use std::fmt;

use crate::request::{ResourceRequest, Verb};

/// The verbs of a rule that names none: all that change objects, and no connection.
const MUTATIONS: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

/// Permits the given verbs on one resource or one subresource, in one namespace or any, on one name or any.
///
/// Group and resource are always given, so that no rule covers everything because a line was forgotten.
///
/// | rule | permits |
/// | --- | --- |
/// | `Rule::new("apps", "deployments")` | `create`, `update`, `patch`, `delete` and `deletecollection` of deployments themselves, in any namespace, with any name |
/// | [`.verbs([Verb::Patch])`](Rule::verbs) | only these verbs |
/// | [`.verbs([Verb::Connect])`](Rule::verbs) | only connections through the API server |
/// | [`.subresource("scale")`](Rule::subresource) | the verbs on this subresource of an object, and nothing on the object itself, as in RBAC |
/// | [`.namespace("a")`](Rule::namespace) | only requests in this namespace, so none on a resource that has no namespace |
/// | [`.name("web")`](Rule::name) | only requests that name this object, so neither `create` of the resource itself nor `deletecollection` |
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
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) verbs: Vec<Verb>,
    pub(super) subresource: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
}

impl Rule {
    /// Permits the mutations of one resource, in the plural as it stands in paths (`deployments`).
    ///
    /// The core group is `""`. Nothing here can tell it from a variable that is not set: check such a variable first.
    ///
    /// A rule that cannot mean what it says (a kind for a resource, a group with its version, an empty name) permits
    /// nothing; [`Policy::validate`](super::Policy::validate) says why.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            verbs: MUTATIONS.to_vec(),
            subresource: None,
            namespace: None,
            name: None,
        }
    }

    /// Permits only these verbs, in place of those set before.
    ///
    /// - `create`, `update`, `patch`, `delete`, `deletecollection`: `POST`, `PUT`, `PATCH`, and `DELETE` with or without
    ///   a name. `patch` creates what is missing when it is a server-side apply, and `update` does so for some resources.
    /// - `connect` on the subresource `proxy`: any method, since the backend answers.
    /// - `connect` on `exec`, `attach` and `portforward`: `GET` and `POST`.
    /// - `connect` elsewhere: `GET` and `HEAD` that ask an aggregated API for a protocol upgrade.
    ///
    /// A write that asks for a protocol upgrade is still that write in `v1` of a built-in group (and `v2` of
    /// `autoscaling`), where the API server ignores the wish. No rule permits it elsewhere.
    pub fn verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs = verbs.into_iter().collect();
        self
    }

    /// Permits the verbs on this subresource, and not on the resource itself.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Permits the verbs only in this namespace.
    ///
    /// An empty one (from a variable that is not set, say) makes the rule invalid: it permits nothing.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Permits the verbs only on the object of this name.
    ///
    /// As in RBAC, such a rule never covers `create` of the resource itself nor `deletecollection`, since those requests
    /// name no object. An empty name (from a variable that is not set, say) makes the rule invalid: it permits nothing.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn matches(&self, request: &ResourceRequest<'_>) -> bool {
        let subresource = self.subresource.as_deref().unwrap_or_default();
        request.target() == (self.group.as_str(), self.resource.as_str(), subresource)
            && self.namespace.as_deref().is_none_or(|namespace| request.namespace() == namespace)
            && self.name.as_deref().is_none_or(|name| request.is_named(name))
            && self.verbs.contains(&request.verb)
    }
}

impl Rule {
    pub(super) fn verbs_in_words(&self) -> String {
        self.verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// As a person would say it: `update, patch of "probes.example.com/status" in namespace "a"`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of \"{}", self.verbs_in_words(), self.resource.escape_debug())?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group.escape_debug())?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{}", subresource.escape_debug())?;
        }
        f.write_str("\"")?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace:?}")?;
        }
        match &self.name {
            Some(name) => write!(f, " with the name {name:?}"),
            None => Ok(()),
        }
    }
}
