//! Only the leader writes: a tower layer for Kubernetes clients, and the election that drives it.
//!
//! - [`gate`]: the tower middleware. Reads pass, writes are admitted while this process leads.
//! - [`request`] and [`policy`]: what a request asks, and which mutations a follower may send nevertheless.
//! - [`leadership`]: the one word that says who leads and until when, usable with any elector.
//! - `lease` and `election` (feature `election`, on by default): the Lease, and the side task that contends for it.
//! - `runtime` (feature `runtime`): what a kube-runtime controller wants, gated or leading only.
//! - `health` (feature `election`): a liveness probe for any HTTP server, and a page that says who leads.
//! - `events` (feature `events`): Kubernetes Events about gains and losses.
//! - `metrics` (feature `metrics`): what becomes of writes, lease calls and terms, for any exporter.
//! - `testing` (feature `test-util`): an in-process API server with faults, a judge of its write log, and clocks that tests
//!   drive.
//!
//! kube-client needs one version of Kubernetes to be chosen: depend on `k8s-openapi` with a version feature, or build with
//! `--features k8s-openapi/latest`.
//!
//! # The rules
//! The documentation names these by number, and each has tests of its name.
//!
//! | | |
//! | --- | --- |
//! | S1 | Leading is a deadline, not a flag: the instant before the last successful acquisition or renewal was sent, plus the renew deadline. |
//! | S2 | An admitted write asks again before each poll, and is cut off when its term ends. |
//! | S3 | The gate closes before a release is sent, even if that call then fails. |
//! | S4 | A clean stop: the workload ends, the gate closes, admitted writes finish while the lease is renewed, the lease is released. A write that ended without an answer holds the lease until it can land no more. |
//! | S5 | Only what is its own is released: holder and term. |
//! | S6 | Compare and swap only; the lease is taken when nobody holds it, or when it was seen unchanged for its recorded duration; a priority may take it earlier, and then the gate waits. No wall clock is ever compared. |
//! | S7 | A theft closes the gate at once. |
//! | S8 | A deletion closes the gate at once, until a new term. |
//! | S9 | A hung call cannot eat the lease: each has its own timeout, three more attempts fit before the deadline, over a fresh connection. |
//! | S10 | A dead election closes the gate, and is unhealthy. |
//! | S11 | Terms of one process never overlap. |
//! | S12 | Foreign fields of the lease survive. |
//! | S13 | Deadlines are kept on a clock that counts suspend. |
//! | S14 | The election has a client of its own: no gate, no retries, nothing shared with the workload. |
//! | S15 | Writes are rejected in `call`, never in `poll_ready`. |
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "election")]
pub mod election;
#[cfg(feature = "events")]
pub mod events;
pub mod gate;
#[cfg(feature = "election")]
pub mod health;
pub mod leadership;
#[cfg(feature = "election")]
pub mod lease;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod policy;
pub mod request;
#[cfg(feature = "runtime")]
pub mod runtime;
#[cfg(feature = "test-util")]
pub mod testing;
#[cfg(feature = "election")]
mod work;

#[cfg(all(doctest, feature = "election"))]
mod guides;

#[cfg(feature = "election")]
pub use crate::{
    election::{Election, Leader},
    lease::{Identity, LeaseTiming},
};
pub use crate::{
    gate::{ErrLeadershipLost, ErrNotLeader, GateError, WriteGate, WriteGateLayer},
    leadership::Leadership,
    policy::Policy,
};
#[cfg(feature = "election")]
pub use kube_client;
#[cfg(feature = "election")]
pub use tokio_util::sync::CancellationToken;

/// The README's code compiles.
#[cfg(all(doctest, feature = "election"))]
#[doc = include_str!("../README.md")]
struct Readme;
