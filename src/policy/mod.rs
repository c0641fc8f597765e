//! Which mutations a follower may still send.
//!
//! A [`Policy`] is asked only about requests that [`RequestInfo::is_read`](crate::request::RequestInfo::is_read) says no to.
//! It is strict by default: it permits nothing. What a follower needs is added piece by piece, and one piece that permits a
//! request suffices:
//!
//! 1. [`Policy::allow_status`]: a follower that must report its own status, in one line;
//! 2. a [`Preset`]: access reviews, token reviews, token requests, events, dry runs, exec;
//! 3. a [`Rule`]: verbs on one resource, perhaps of one namespace or one name;
//! 4. [`Policy::allow_if`]: a closure, when nothing else fits.
//!
//! Three kinds of requests are permitted by nothing but the closure, since the API server may take them for something else
//! than they look like: one that does not parse (an odd spelling is understood in reads alone), one below a legacy
//! `/watch/` or `/proxy/` prefix, and a write that asks an aggregated API for a protocol upgrade.
//!
//! A rule permits what it says and nothing else. An empty string in it is an error, not a wildcard: see
//! [`Policy::validate`].
//!
//! **What is exempted is not protected.** Every replica may send it at any time, the leader and those that were the
//! leader a moment ago included. Exempt what may be done twice, or by several at once.
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

pub use self::{
    exemptions::{Exemption, Policy},
    preset::{ErrInvalidPreset, Preset},
    rule::Rule,
    validate::ErrInvalidRule,
};
