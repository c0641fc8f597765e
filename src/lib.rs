//! Only the leader writes: a tower layer for Kubernetes clients, and the leader election that drives it.
//!
//! Run your controller in several replicas. `get`, `list` and `watch` pass on every replica. Any other request is
//! rejected with [`ErrNotLeader`], unless this replica leads.
//!
//! ```no_run
//! # #[cfg(feature = "election")]
//! # mod example {
//! use kube_leader_gate::{
//!     Election,
//!     kube_client::{Client, Config},
//! };
//!
//! async fn example() -> Result<(), Box<dyn std::error::Error>> {
//!     let config = Config::infer().await?;
//!     let election = Election::builder("my-namespace", "my-controller").build(&config)?; // the Lease
//!     let client = election.client(&config)?; // a kube client, behind the gate
//!     election.run(controllers(client)).await?.into_output(); // runs until they return, then releases the lease
//!     Ok(())
//! }
//! # async fn controllers(_: Client) {}
//! # }
//! ```
//!
//! Read next: [getting started](guide::getting_started), and [what you can rely on](guide::guarantees). The [`guide`] has
//! a page for each task.
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
//! | [`fence`] | `fence` | the API server itself refuses the writes of each replica that does not lead |
//! | [`refusal`] | `election` (default) | makes the gate's error of what a fence refuses |
//! | [`runtime`] | `runtime` | gated reconcilers and replays, for kube-runtime |
//! | [`server_time`] | `election` (default) | the layer that limits how long the API server works on a write |
//! | [`events`] | `election` | Kubernetes Events about gains and losses |
//! | [`metrics`] | `metrics` | metrics of terms, writes and lease calls, for any exporter |
//! | [`testing`] | `test-util` | the package `fake-kube-apiserver`: an in-process API server with faults and a judge of its write log; and clocks that tests drive |
//!
//! kube-client needs one version of Kubernetes. Depend on `k8s-openapi` with a version feature, or build with
//! `--features k8s-openapi/latest`.
//!
//! # The rules
//!
//! [The guarantees](guide::guarantees) explain each rule, and list what does not hold. Each rule has tests that carry its
//! number.
//!
//! - [S1](guide::guarantees#s1-leading-is-a-deadline): leading is a deadline, not a flag.
//! - [S2](guide::guarantees#s2-a-lost-term-cuts-off-its-writes): when its term ends, an admitted write is cut off.
//! - [S3](guide::guarantees#s3-the-gate-closes-before-a-release): the gate closes before a release is sent.
//! - [S4](guide::guarantees#s4-a-clean-stop-has-an-order): a clean stop has an order, and a write without an answer holds
//!   the lease.
//! - [S5](guide::guarantees#s5-only-its-own-term-is-released): a process releases only its own term.
//! - [S6](guide::guarantees#s6-compare-and-swap-only): the lease changes by compare-and-swap only, and no wall clock is
//!   compared.
//! - [S7](guide::guarantees#s7-another-holder-closes-the-gate): another holder in the lease closes the gate.
//! - [S8](guide::guarantees#s8-a-deleted-lease-closes-the-gate): a deleted lease closes the gate, until a new term.
//! - [S9](guide::guarantees#s9-a-hung-call-does-not-cost-the-term): a hung lease call does not cost the term.
//! - [S10](guide::guarantees#s10-a-dead-election-closes-the-gate): a dead election closes the gate, and is unhealthy.
//! - [S11](guide::guarantees#s11-terms-of-one-process-never-overlap): the terms of one process never overlap.
//! - [S12](guide::guarantees#s12-foreign-fields-survive): foreign fields of the lease survive.
//! - [S13](guide::guarantees#s13-the-clock-counts-suspend): deadlines are kept on a clock that counts suspend.
//! - [S14](guide::guarantees#s14-the-election-has-its-own-client): the election has its own client.
//! - [S15](guide::guarantees#s15-a-rejection-leaves-the-client-usable): a rejected write leaves the client usable.
#![cfg_attr(docsrs, feature(doc_cfg))]
// If a feature is off, its module has no page, so links to it are broken.
#![cfg_attr(
    not(all(feature = "fence", feature = "metrics", feature = "runtime", feature = "test-util")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(feature = "election")]
mod api;
mod defect;
#[cfg(feature = "election")]
pub mod election;
#[cfg(feature = "election")]
pub mod events;
#[cfg(feature = "fence")]
pub mod fence;
#[cfg(all(feature = "election", any(test, fuzzing)))]
#[doc(hidden)]
pub mod fuzz;
pub mod gate;
#[cfg(all(doc, any(not(doctest), feature = "election")))]
pub mod guide;
#[cfg(feature = "election")]
pub mod health;
pub mod leadership;
#[cfg(feature = "election")]
pub mod lease;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod policy;
#[cfg(feature = "election")]
pub mod refusal;
pub mod request;
#[cfg(feature = "runtime")]
pub mod runtime;
#[cfg(feature = "election")]
pub mod server_time;
#[cfg(feature = "test-util")]
pub mod testing;

#[cfg(feature = "election")]
pub use crate::{
    election::{Candidate, Election},
    lease::{Identity, LeaseTiming},
};
pub use crate::{
    gate::{ErrLeadershipLost, ErrNotLeader, WriteGate, WriteGateLayer},
    leadership::Leadership,
    policy::Policy,
};
#[cfg(feature = "election")]
pub use kube_client;
#[cfg(feature = "election")]
pub use tokio_util::sync::CancellationToken;

/// Compiles the code of the README.
#[cfg(all(doctest, feature = "election"))]
#[doc = include_str!("../README.md")]
struct Readme;
