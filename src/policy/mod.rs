//! Which writes a follower may send.
//!
//! ```
//! use http::Request;
//! use kube_leader_gate::policy::{Policy, Preset, Rule};
//! use kube_leader_gate::request::{RequestInfo, Verb};
//!
//! let policy = Policy::strict()
//!     .allow(Preset::Events)
//!     .allow_status("example.com", "probes")
//!     .allow(Rule::new("", "configmaps").verbs([Verb::Patch]).namespace("agents").name("node-a"));
//!
//! let own = Request::patch("/api/v1/namespaces/agents/configmaps/node-a").body(())?;
//! assert!(policy.permits(&RequestInfo::of(&own)));
//!
//! let other = Request::patch("/api/v1/namespaces/agents/configmaps/node-b").body(())?;
//! assert!(!policy.permits(&RequestInfo::of(&other)));
//! # Ok::<(), http::Error>(())
//! ```
//!
//! The gate asks a [`Policy`] only if [`RequestInfo::is_read`](crate::request::RequestInfo::is_read) returns false. The
//! default policy is strict: it permits nothing. Add what a follower needs. A request passes if one of these permits
//! it:
//!
//! 1. [`Policy::allow_status`]: for a follower that reports its own status;
//! 2. a [`Preset`]: access reviews, token reviews, token requests, events, dry runs, exec;
//! 3. a [`Rule`]: verbs on one resource, optionally in one namespace or on one name;
//! 4. [`Policy::allow_if`]: a closure, if nothing else fits.
//!
//! Only the closure can permit three kinds of requests, because the API server may understand them differently: a
//! request that does not parse (odd spellings are parsed in reads only), a request below a legacy `/watch/` or
//! `/proxy/` prefix, and a write that asks an aggregated API for a protocol upgrade.
//!
//! A rule permits exactly what it says. An empty string in it is an error, not a wildcard: see [`Policy::validate`].
//!
//! **An exempted request is not protected.** Every replica may send it at any time, and so may a replica that has
//! just lost leadership. Exempt only what several replicas may safely do twice or at once. A rule on `leases` also
//! covers the election's own Lease: give it a name.

mod preset;
mod rule;

pub use self::{
    preset::{Preset, PresetRule},
    rule::Rule,
};

use crate::{
    invalid::ErrInvalid,
    request::{RequestInfo, Verb},
};
use std::{fmt, sync::Arc};

/// Which writes a follower may send. By default none. Clones are cheap and share their rules.
///
/// The [module](self) lists the ways to permit a write, in the order to try them.
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
    /// - It runs for every such request, so it should not block or allocate. A panic in the buffer of a kube client ends that
    ///   client.
    #[must_use]
    pub fn allow_if(mut self, permits: impl Fn(&RequestInfo<'_>) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.exemptions).push(Exemption(Kind::Closure(Arc::new(permits))));
        self
    }

    /// Checks each rule. If a rule is invalid, an election that gets the policy is not built, and fails with this error. A
    /// gate that gets the policy by [`with_policy`](crate::WriteGateLayer::with_policy) logs the error, and the rule permits
    /// nothing.
    ///
    /// A rule is invalid if a part is empty (except for the core group), or if no request can match it. This method does
    /// not know which resources the API server has: it finds neither a misspelt resource nor a namespace on a resource
    /// without namespaces.
    ///
    /// # Errors
    /// [`ErrInvalid`] for the first invalid rule.
    pub fn validate(&self) -> Result<(), ErrInvalid> {
        self.exemptions.iter().try_for_each(|exemption| match &exemption.0 {
            Kind::Invalid(_, invalid) => Err(invalid.clone()),
            Kind::Rule(_) | Kind::Preset(_) | Kind::Closure(_) => Ok(()),
        })
    }

    /// What the policy permits, one exemption after the other: for a program that tells others what followers may send, such
    /// as an admission policy. An invalid rule permits nothing, and is left out.
    pub fn permitted(&self) -> impl Iterator<Item = Permitted<'_>> {
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
        !self.exemptions.is_empty() && self.exempts(info)
    }

    #[inline(never)]
    fn exempts(&self, info: &RequestInfo<'_>) -> bool {
        let request = info.on_resource();
        self.exemptions.iter().any(|exemption| match (&exemption.0, &request) {
            (Kind::Rule(rule), Some(request)) => rule.matches(request),
            (Kind::Preset(preset), Some(request)) => preset.matches(request),
            (Kind::Rule(_) | Kind::Preset(_), None) | (Kind::Invalid(..), _) => false,
            (Kind::Closure(permits), _) => permits(info),
        })
    }
}

/// An exemption of a [`Policy`], as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permitted<'a> {
    /// Given by [`Policy::allow`] or [`Policy::allow_status`].
    Rule(&'a Rule),
    /// Given by [`Policy::allow`]. [`Preset::rules`] says what it permits.
    Preset(Preset),
    /// Given by [`Policy::allow_if`]. Only this process can ask it.
    Closure,
}

/// One piece of a [`Policy`]: a [`Rule`] or a [`Preset`].
#[derive(Clone)]
pub struct Exemption(Kind);

#[derive(Clone)]
enum Kind {
    Rule(Rule),
    /// An invalid rule. It permits nothing.
    Invalid(Rule, ErrInvalid),
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
