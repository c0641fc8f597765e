//! Which writes a follower may send.
//!
//! The gate asks a [`Policy`] only if [`RequestInfo::is_read`](crate::request::RequestInfo::is_read) returns false. The
//! default policy is strict: it permits nothing. Add what a follower needs. A request passes if one of these permits it:
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
//! just lost leadership. Exempt only what several replicas may safely do twice or at once.
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

mod exemptions;
mod preset;
mod rule;
mod validate;

#[cfg(feature = "fence")]
pub(crate) use self::{exemptions::Permitted, preset::Grant};
pub use self::{
    exemptions::{Exemption, Policy},
    preset::{ErrInvalidPreset, Preset},
    rule::Rule,
    validate::ErrInvalidRule,
};
