//! Verbs on one resource.

use std::fmt;

use crate::request::{ResourceRequest, Verb};

/// The verbs of a rule that names none: all verbs that change objects, but no connection.
const MUTATIONS: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

/// Permits the given verbs on one resource or one subresource. It can be limited to one namespace and to one name.
///
/// Group and resource are required, so that a forgotten line never permits everything.
///
/// | rule | permits |
/// | --- | --- |
/// | `Rule::new("apps", "deployments")` | `create`, `update`, `patch`, `delete` and `deletecollection` of deployments themselves, in any namespace, with any name |
/// | [`.verbs([Verb::Patch])`](Rule::verbs) | only these verbs |
/// | [`.verbs([Verb::Connect])`](Rule::verbs) | only connections through the API server |
/// | [`.subresource("scale")`](Rule::subresource) | the verbs on this subresource of an object, but not on the object itself, as in RBAC |
/// | [`.namespace("a")`](Rule::namespace) | only requests in this namespace, so none on a resource that has no namespace |
/// | [`.name("web")`](Rule::name) | only requests that name this object, so neither `create` of the resource itself nor `deletecollection` |
///
/// The version of the group does not matter: the API server converts between versions.
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
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) verbs: Vec<Verb>,
    pub(crate) subresource: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl Rule {
    /// Permits the mutations of one resource. Give the plural as in paths (`deployments`).
    ///
    /// The core group is `""`. A variable that is not set looks the same, so check such a variable first.
    ///
    /// An invalid rule permits nothing, for example one with a kind instead of a resource, a group with its version,
    /// or an empty name. [`Policy::validate`](super::Policy::validate) says why.
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

    /// Permits only these verbs. They replace the verbs that were set before.
    ///
    /// - `create`, `update`, `patch`, `delete`, `deletecollection`: `POST`, `PUT`, `PATCH`, and `DELETE` with or
    ///   without a name. A `patch` that is a server-side apply creates a missing object. So does an `update` of some
    ///   resources.
    /// - `connect` on the subresource `proxy`: any method, since the backend answers it.
    /// - `connect` on `exec`, `attach` and `portforward`: `GET` and `POST`.
    /// - `connect` elsewhere: a `GET` or `HEAD` that asks an aggregated API for a protocol upgrade.
    ///
    /// A write may ask for a protocol upgrade. In `v1` of a built-in group (and `v2` of `autoscaling`) the API server
    /// ignores that, and the verb stays the same. Elsewhere no rule permits such a write.
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
    /// An empty namespace (for example from an unset variable) makes the rule invalid: it permits nothing.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Permits the verbs only on the object of this name.
    ///
    /// As in RBAC, such a rule never covers `create` of the resource itself or `deletecollection`, since those
    /// requests name no object. An empty name (for example from an unset variable) makes the rule invalid: it permits
    /// nothing.
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

/// Describes the rule in words: `update, patch of "probes.example.com/status" in namespace "a"`.
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
