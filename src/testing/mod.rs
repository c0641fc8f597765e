//! Support for tests of an operator: a fake API server with faults, a judge of its write log, clocks that tests
//! drive, and a check of your own lock.
//!
//! ```
//! # #[cfg(feature = "election")] {
//! use kube_leader_gate::{Election, Identity, testing::ApiServer};
//! use std::time::Duration;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let server = ApiServer::new();
//! let endpoint = server.serve().await?;
//! let election = Election::builder("default", "operator")
//!     .identity(Identity::new("replica-a")?)
//!     .build(&endpoint.config("replica-a"))?
//!     .start();
//! tokio::time::timeout(Duration::from_secs(5), election.candidate().elected()).await?;
//! assert_eq!(server.write_log()[0].user, "replica-a");
//! election.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?; }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The server is the crate [`fake_kube_apiserver`], which documents it. This module passes it on. Give a clock to
//! [`ElectionBuilder::clock`](crate::election::ElectionBuilder::clock), to drive the deadlines of an election.
//!
//! # A double for `Candidate`
//! [`build_alone`](crate::election::ElectionBuilder::build_alone) needs no server. Its candidate leads, loses its term and
//! leads again when the test says so, here in no time:
//!
//! ```
//! # #[cfg(feature = "election")] {
//! use kube_leader_gate::{Candidate, Election, Identity, testing::TokioClock};
//! use std::{sync::Arc, time::Duration};
//!
//! /// What is tested.
//! fn status(candidate: &Candidate) -> &'static str {
//!     if candidate.can_write() { "leads" } else { "follows" }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
//! // #[tokio::test(start_paused = true)]
//! let election = Election::builder("default", "operator")
//!     .identity(Identity::new("replica-a")?)
//!     .clock(Arc::new(TokioClock::new()))
//!     .build_alone()?;
//! let candidate = election.candidate();
//! assert_eq!(status(&candidate), "follows");
//!
//! let running = election.start();
//! let first = candidate.elected().await;
//! assert_eq!(status(&candidate), "leads");
//!
//! candidate.give_way(); // for 2 s
//! tokio::time::sleep(Duration::from_secs(1)).await;
//! assert_eq!(status(&candidate), "follows");
//! assert_ne!(candidate.elected().await, first); // a new term
//!
//! running.stop().await;
//! assert_eq!(status(&candidate), "follows");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?; }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A loss to another holder needs the server: [`ApiServer::edit`] writes one into the Lease.

mod clock;
#[cfg(feature = "election")]
mod conformance_watch;
#[cfg(feature = "election")]
mod lock_conformance;

pub use self::clock::{ManualClock, TokioClock};
#[cfg(feature = "election")]
pub use self::{conformance_watch::ErrLockConformance, lock_conformance::lock_conformance};
#[doc(no_inline)]
pub use fake_kube_apiserver::*;
