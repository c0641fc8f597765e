//! Verbs on one resource, and whether a request can match them.

use crate::{
    invalid::ErrInvalid,
    object_names::is_label,
    request::{ResourceRequest, Verb, is_built_in, is_name, is_word},
};
use std::fmt;

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
#[non_exhaustive]
pub struct Rule {
    /// The group. The core group is `""`.
    pub group: String,
    /// The plural of the resource.
    pub resource: String,
    /// The verbs.
    pub verbs: Vec<Verb>,
    /// None for the resource itself.
    pub subresource: Option<String>,
    /// None for any namespace.
    pub namespace: Option<String>,
    /// None for any name.
    pub name: Option<String>,
}

impl Rule {
    /// Permits the mutations of one resource. Give the plural as in paths (`deployments`).
    ///
    /// The core group is `""`. A variable that is not set looks the same, so check such a variable first.
    ///
    /// An invalid rule permits nothing, for example one with a kind instead of a resource, a group with its version, or
    /// an empty name or namespace. [`Policy::validate`](super::Policy::validate) says why.
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
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Permits the verbs only on the object of this name. As in RBAC, such a rule never covers `create` of the resource
    /// itself or `deletecollection`, since those requests name no object.
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
            && self.can_meet(request.verb)
    }
}

impl Rule {
    fn verbs_in_words(&self) -> String {
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

// --- whether a request can match ---

impl Rule {
    /// # Errors
    /// [`ErrInvalid`] if a part is empty, or if no request can match the rule.
    pub(super) fn validate(&self) -> Result<(), ErrInvalid> {
        self.validate_parts().and_then(|()| self.validate_verbs())
    }

    fn validate_parts(&self) -> Result<(), ErrInvalid> {
        // Manifests and code generators use these names for the core group. No real API group has such a name.
        let is_core = ["core", "v1"].contains(&self.group.as_str());
        if is_core || !self.group.is_empty() && !is_word(&self.group) {
            let allowed = "a group without its version, as \"apps\"; \"\" for the core group";
            return self.refuse("group", &self.group, allowed);
        }
        if let Some((resource, group)) = self.resource.split_once('.') {
            let allowed =
                format!("the plural alone, and the group before it: Rule::new({group:?}, {resource:?})");
            return self.refuse("resource", &self.resource, &allowed);
        }
        // Paths of the legacy verbs begin with these words.
        if !is_word(&self.resource) || ["watch", "proxy"].contains(&self.resource.as_str()) {
            let allowed = "the plural that stands in paths, as \"deployments\"";
            return self.refuse("resource", &self.resource, allowed);
        }
        if let Some(subresource) = self.subresource.as_deref().filter(|subresource| !is_word(subresource)) {
            let allowed = "its name in paths, as \"status\"; without one the rule is for the resource itself";
            return self.refuse("subresource", subresource, allowed);
        }
        if let Some(namespace) = self.namespace.as_deref().filter(|namespace| !is_label(namespace)) {
            let allowed = "a namespace's name; without one the rule is for all of them";
            return self.refuse("namespace", namespace, allowed);
        }
        if let Some(name) = self.name.as_deref().filter(|name| !is_name(name)) {
            let allowed =
                "the name of one object, without a slash, `%`, `;` or space; without one the rule is for all";
            return self.refuse("name", name, allowed);
        }
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) if self.is_for_namespaces() && name != namespace => self.refuse(
                "name",
                name,
                "the rule's own namespace, since a namespace object belongs to the namespace of its name",
            ),
            _ => Ok(()),
        }
    }

    fn validate_verbs(&self) -> Result<(), ErrInvalid> {
        for verb in &self.verbs {
            let allowed = match verb {
                Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => continue,
                Verb::Connect if !is_built_in(&self.group) || self.is_built_in_connection() => continue,
                Verb::Connect => {
                    "in the built-in groups, only on exec, attach, portforward and proxy of pods, proxy of services, \
                     and proxy of nodes"
                }
                _ => "create, update, patch, delete, deletecollection, connect; reads pass without a rule",
            };
            return self.refuse("verb", verb.as_str(), allowed);
        }
        if self.verbs.iter().any(|verb| self.can_meet(*verb)) {
            return Ok(());
        }
        let allowed = match (self.is_connection(), self.verbs.as_slice()) {
            (_, []) => "at least one",
            (true, _) => "connect, the only verb of this subresource",
            (false, _) if self.subresource.is_some() => {
                "a verb on one object: a subresource has no collection"
            }
            (false, _) => "a verb on one object, as \"patch\": neither create nor deletecollection names one",
        };
        self.refuse("list of verbs", &self.verbs_in_words(), allowed)
    }

    /// Whether a request with this verb can match the rule.
    fn can_meet(&self, verb: Verb) -> bool {
        let named = self.name.is_some() || self.is_for_namespaces() && self.namespace.is_some();
        match verb {
            Verb::Connect => true,
            _ if self.is_connection() => false,
            Verb::DeleteCollection => !named && self.subresource.is_none(),
            Verb::Create => !named || self.subresource.is_some(),
            _ => true,
        }
    }

    /// For a `namespaces` object, the server uses its name as its namespace.
    fn is_for_namespaces(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    fn is_connection(&self) -> bool {
        matches!(self.subresource.as_deref(), Some("exec" | "attach" | "portforward" | "proxy"))
    }

    fn is_built_in_connection(&self) -> bool {
        let resources: &[&str] = match self.subresource.as_deref() {
            Some("exec" | "attach" | "portforward") => &["pods"],
            Some("proxy") => &["pods", "services", "nodes"],
            _ => &[],
        };
        self.group.is_empty() && resources.contains(&self.resource.as_str())
    }

    fn refuse(&self, what: &str, given: &str, allowed: &str) -> Result<(), ErrInvalid> {
        let setting = format_args!("invalid rule in the policy: the {what} is");
        let allowed = format_args!("{allowed}; such a rule permits nothing: {self}");
        Err(ErrInvalid::new(setting, given, allowed))
    }
}
