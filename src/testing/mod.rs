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
//! [The guide](crate::guide::testing) has whole tests: a follower that writes nothing, a lost term, a handover of two replicas,
//! and a double for [`Candidate`](crate::Candidate), which needs no server.

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
