//! Only the leader writes: a tower layer for Kubernetes clients, and the leader election that drives it.
//!
//! Run your controller in several replicas. Reads pass on every replica: `get`, `list`, `watch`, and requests such as a
//! `HEAD` or a `GET` of `/version`. The gate rejects every [other request](request) with [`ErrNotLeader`], unless this
//! replica leads or a [`Policy`] permits the request.
//!
//! ```no_run
//! # #[cfg(feature = "election")]
//! # mod example {
//! use kube_leader_gate::{
//!     Election,
//!     kube_client::{Client, Config},
//!     shutdown_signal,
//! };
//!
//! async fn example() -> Result<(), Box<dyn std::error::Error>> {
//!     let config = Config::infer().await?;
//!     let election = Election::builder("my-namespace", "my-controller").build(&config)?; // the Lease
//!     let client = election.client(&config)?; // a kube client, behind the gate
//!     let work = controllers(client, shutdown_signal()?); // ends on SIGTERM and Ctrl-C
//!     election.run_until(shutdown_signal()?, work).await?.into_output(); // then the lease is released
//!     Ok(())
//! }
//! # async fn controllers(_: Client, _: impl Future<Output = ()>) {}
//! # }
//! ```
//!
//! - Take [`Election::run_until`] if only the writes to Kubernetes need a leader: the work runs on every replica, with
//!   warm caches, and the gate judges its writes.
//! - Take [`Election::run_while_leading`] if a follower must not work at all, for example because the work calls
//!   another API: it starts the work anew in each term, and ends it with the term.
//!
//! # What to read
//!
//! 1. [Getting started](guide::getting_started): from an empty folder to two replicas.
//! 2. [The guarantees](guide::guarantees): the rules S1 to S16, and what does not hold. Each rule has tests that carry
//!    its number.
//! 3. [Production](guide::production), before the first rollout: manifests, permissions and a checklist.
//! 4. [Troubleshooting](guide::troubleshooting), when something is wrong: from an error or a line of the log to its
//!    cause.
//!
//! The [`guide`] has more pages.
//!
//! # Modules
//!
//! | module | feature | what is in it |
//! | --- | --- | --- |
//! | [`gate`] | | the tower layer: reads pass, and writes are admitted while this process leads |
//! | [`request`] | | what a request asks, and which requests are reads |
//! | [`policy`] | | which writes a follower may send |
//! | [`leadership`] | | who leads and until when, in one atomic word; works with any elector |
//! | [`election`] | `election` (default) | the task that contends for the Lease, and the [`Candidate`] handle |
//! | [`lease`] | `election` (default) | the Lease, its times, the identity of a candidate |
//! | [`health`] | `election` (default) | probes for any web server, and a page that says who leads |
//! | [`extension`] | | what a package needs that extends an election |
//! | [`runtime`] | `runtime` | gated reconcilers and replays, for kube-runtime |
//! | [`events`] | `runtime` | Kubernetes Events about gains and losses |
//! | [`metrics`] | `metrics` | metrics of terms, writes and lease calls, for any exporter |
//! | [`testing`] | `test-util` | the package `fake-kube-apiserver`, clocks that tests drive, a check of your own lock |
//!
//! Packages of their own extend an election:
//! [`kube-leader-gate-fence`](https://docs.rs/kube-leader-gate-fence), with which the API server itself refuses the
//! writes of each replica that does not lead, and
//! [`kube-leader-gate-early-takeover`](https://docs.rs/kube-leader-gate-early-takeover).
//!
//! # Features
//!
//! | feature | what it brings |
//! | --- | --- |
//! | `election` (default) | the election on a Lease, through kube-client |
//! | `runtime` | what a controller of kube-runtime needs, and Kubernetes Events; brings `election` |
//! | `metrics` | metrics through the facade `metrics`; brings `election` |
//! | `test-util` | a fake API server and clocks, for your tests |
//!
//! Without `election`, the crate is the gate, the policy and the leadership word, for [another elector](leadership). It
//! does not need kube-client then.
//!
//! kube-client needs one version of Kubernetes. Depend on `k8s-openapi` with a version feature.
#![cfg_attr(docsrs, feature(doc_cfg))]
// What only `internal` shows is `pub` for that.
#![cfg_attr(not(feature = "internal"), allow(unreachable_pub))]
// If a feature is off, its module has no page, so links to it are broken.
#![cfg_attr(
    not(all(feature = "metrics", feature = "runtime", feature = "test-util")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(feature = "election")]
mod api;
#[cfg(feature = "election")]
pub mod election;
#[cfg(feature = "runtime")]
pub mod events;
pub mod extension;
pub mod gate;
#[cfg(feature = "election")]
mod growing_pause;
#[cfg(all(doc, any(not(doctest), feature = "election")))]
pub mod guide;
#[cfg(feature = "election")]
pub mod health;
#[cfg(feature = "internal")]
#[doc(hidden)]
pub mod internal;
mod invalid;
pub mod leadership;
#[cfg(feature = "election")]
pub mod lease;
#[cfg(feature = "metrics")]
pub mod metrics;
mod object_names;
#[cfg_attr(not(feature = "election"), allow(dead_code))]
mod one_line;
pub mod policy;
#[cfg_attr(not(feature = "election"), allow(dead_code))]
mod rate_limited_log;
pub mod request;
#[cfg(feature = "runtime")]
pub mod runtime;
#[cfg(feature = "election")]
mod shutdown;
#[cfg(feature = "test-util")]
pub mod testing;

#[cfg(feature = "election")]
pub use crate::{
    election::{Candidate, Election},
    lease::{Identity, LeaseTiming},
    shutdown::shutdown_signal,
};
pub use crate::{
    gate::{ErrLeadershipLost, ErrNotLeader, WriteGate, WriteGateLayer},
    invalid::ErrInvalid,
    leadership::Leadership,
    policy::Policy,
};
#[cfg(feature = "election")]
pub use kube_client;
#[cfg(feature = "election")]
pub use tokio_util::sync::CancellationToken;

/// Compiles the code of the README.
#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../README.md")]
struct Readme;
