//! The policy: a list of exemptions, asked one after the other.

use super::{preset::Preset, rule::Rule, validate::ErrInvalidRule};
use crate::request::{RequestInfo, Verb};
use std::{fmt, sync::Arc};

/// Which writes a follower may send. By default none. Clones are cheap and share their rules.
///
/// The [module](super) lists the ways to permit a write, in the order to try them.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    exemptions: Arc<Vec<Exemption>>,
}

impl Policy {
    /// Permits nothing. This is the default.
    #[must_use]
    pub fn strict() -> Self {
        Self::default()
    }

    /// Also permits what this [`Rule`] or [`Preset`] describes. An invalid rule permits nothing: see
    /// [`validate`](Self::validate).
    #[must_use]
    pub fn allow(mut self, exemption: impl Into<Exemption>) -> Self {
        Arc::make_mut(&mut self.exemptions).push(exemption.into());
        self
    }

    /// Permits `update` and `patch` on the `status` subresource of this resource, for a follower that reports its own
    /// status. The core group is `""`.
    ///
    /// - For a **custom resource** such a request changes only the status: the API server keeps the metadata as it
    ///   is.
    /// - For most of **Kubernetes' own kinds** (pods, nodes, services, claims, deployments, jobs and more) such a
    ///   request may also change labels, annotations and finalizers. A follower can then complete a deletion: an
    ///   object that is being deleted is gone once its last finalizer is removed.
    /// - An aggregated API decides this by itself.
    ///
    /// ```
    /// # use http::Request;
    /// # use kube_leader_gate::{policy::Policy, request::RequestInfo};
    /// let policy = Policy::strict().allow_status("example.com", "probes");
    ///
    /// let status = Request::patch("/apis/example.com/v1/namespaces/a/probes/p/status").body(())?;
    /// assert!(policy.permits(&RequestInfo::of(&status)));
    ///
    /// let spec = Request::patch("/apis/example.com/v1/namespaces/a/probes/p").body(())?;
    /// assert!(!policy.permits(&RequestInfo::of(&spec)));
    /// # Ok::<(), http::Error>(())
    /// ```
    #[must_use]
    pub fn allow_status(self, group: impl Into<String>, resource: impl Into<String>) -> Self {
        self.allow(Rule::new(group, resource).subresource("status").verbs([Verb::Update, Verb::Patch]))
    }

    /// Permits a request if the closure returns true. Use it if nothing else fits.
    ///
    /// - The gate asks it about each write that no earlier rule permits. If a request does not parse, its parts are
    ///   empty and its verb is [`Verb::Unknown`].
    /// - Compare whole parts, never pieces of the path or of the query. The server decodes both, and ignores a query
    ///   with more than 10,000 pairs.
    /// - Also check [`is_upgrade`](RequestInfo::is_upgrade): an aggregated API may answer a write with a connection.
    /// - It runs for every such request, so it should not block or allocate.
    #[must_use]
    pub fn allow_if(mut self, permits: impl Fn(&RequestInfo<'_>) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.exemptions).push(Exemption(Kind::Closure(Arc::new(permits))));
        self
    }

    /// Checks each rule. An election calls it when it is built.
    ///
    /// A rule is invalid if a part is empty (except for the core group), or if no request can match it. An invalid
    /// rule permits nothing, even if this method is never called, and a gate that receives it logs an error.
    ///
    /// This method does not know which resources the API server has. It finds neither a misspelt resource nor a
    /// namespace on a resource without namespaces.
    ///
    /// ```
    /// # use kube_leader_gate::policy::Policy;
    /// let error = Policy::strict().allow_status("apps/v1", "deployments").validate().unwrap_err();
    /// assert!(error.to_string().contains(r#"the group is "apps/v1", allowed: a group without its version"#));
    /// ```
    ///
    /// # Errors
    /// [`ErrInvalidRule`] for the first invalid rule.
    pub fn validate(&self) -> Result<(), ErrInvalidRule> {
        self.exemptions.iter().try_for_each(|exemption| match &exemption.0 {
            Kind::Invalid(_, invalid) => Err(invalid.clone()),
            Kind::Rule(_) | Kind::Preset(_) | Kind::Closure(_) => Ok(()),
        })
    }

    /// What the policy permits, one exemption after the other, for a translation. An invalid rule permits nothing.
    #[cfg(feature = "fence")]
    pub(crate) fn permitted(&self) -> impl Iterator<Item = Permitted<'_>> {
        self.exemptions.iter().filter_map(|exemption| match &exemption.0 {
            Kind::Rule(rule) => Some(Permitted::Rule(rule)),
            Kind::Preset(preset) => Some(Permitted::Preset(*preset)),
            Kind::Closure(_) => Some(Permitted::Closure),
            Kind::Invalid(..) => None,
        })
    }

    /// Whether a follower may send this write. Allocates nothing, unless a closure does.
    #[must_use]
    pub fn permits(&self, info: &RequestInfo<'_>) -> bool {
        if self.exemptions.is_empty() {
            return false;
        }
        let request = info.on_resource();
        self.exemptions.iter().any(|exemption| match (&exemption.0, &request) {
            (Kind::Rule(rule), Some(request)) => rule.matches(request),
            (Kind::Preset(preset), Some(request)) => preset.matches(request),
            (Kind::Rule(_) | Kind::Preset(_), None) | (Kind::Invalid(..), _) => false,
            (Kind::Closure(permits), _) => permits(info),
        })
    }
}

/// An exemption, as it was given.
#[cfg(feature = "fence")]
pub(crate) enum Permitted<'a> {
    Rule(&'a Rule),
    Preset(Preset),
    /// Only this process can ask it.
    Closure,
}

/// One piece of a [`Policy`]: a [`Rule`] or a [`Preset`].
#[derive(Clone)]
pub struct Exemption(Kind);

#[derive(Clone)]
enum Kind {
    Rule(Rule),
    /// An invalid rule. It permits nothing.
    Invalid(Rule, ErrInvalidRule),
    Preset(Preset),
    Closure(Arc<dyn Fn(&RequestInfo<'_>) -> bool + Send + Sync>),
}

impl From<Rule> for Exemption {
    fn from(rule: Rule) -> Self {
        Self(match rule.validate() {
            Ok(()) => Kind::Rule(rule),
            Err(invalid) => Kind::Invalid(rule, invalid),
        })
    }
}

impl From<Preset> for Exemption {
    fn from(preset: Preset) -> Self {
        Self(Kind::Preset(preset))
    }
}

impl fmt::Debug for Exemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Rule(rule) => fmt::Debug::fmt(rule, f),
            Kind::Invalid(rule, _) => f.debug_tuple("Invalid").field(rule).finish(),
            Kind::Preset(preset) => fmt::Debug::fmt(preset, f),
            Kind::Closure(_) => f.write_str("Closure"),
        }
    }
}
