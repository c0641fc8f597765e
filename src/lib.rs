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
//! | [`runtime`] | `runtime` | gated reconcilers and replays, for kube-runtime |
//! | [`events`] | `election` | Kubernetes Events about gains and losses |
//! | [`metrics`] | `metrics` | metrics of terms, writes and lease calls, for any exporter |
//! | [`testing`] | `test-util` | the package `fake-kube-apiserver`, clocks that tests drive, and a check of your own lock |
//!
//! Packages of their own extend an election:
//! [`kube-leader-gate-fence`](https://docs.rs/kube-leader-gate-fence), with which the API server itself refuses the writes of
//! each replica that does not lead,
//! [`kube-leader-gate-early-takeover`](https://docs.rs/kube-leader-gate-early-takeover), and
//! [`kube-leader-gate-coordination`](https://docs.rs/kube-leader-gate-coordination) (experimental).
//!
//! kube-client needs one version of Kubernetes. Depend on `k8s-openapi` with a version feature.
//!
//! [The guarantees](guide::guarantees) explain the rules S1 to S15 and list what does not hold. Each rule has tests that
//! carry its number.
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
#[cfg(feature = "election")]
pub mod events;
pub mod gate;
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
#[cfg_attr(not(feature = "election"), allow(dead_code))]
mod one_line;
pub mod policy;
pub mod request;
#[cfg(feature = "runtime")]
pub mod runtime;
#[cfg(feature = "election")]
mod shutdown;
#[cfg(feature = "test-util")]
pub mod testing;

#[cfg(feature = "election")]
pub use crate::{
    api::without_secrets,
    election::{Candidate, Election},
    lease::{Identity, LeaseTiming},
    shutdown::shutdown_signal,
};
pub use crate::{
    gate::{ErrLeadershipLost, ErrNotLeader, WriteGate, WriteGateLayer},
    invalid::ErrInvalid,
    leadership::Leadership,
    one_line::one_line,
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
