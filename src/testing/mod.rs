//! What tests of an operator need: a fake API server with faults, a judge of its write log, and clocks that tests
//! drive.
//!
//! The server is the crate [`fake_kube_apiserver`], all of which is here. The clocks stand for the one that an election
//! measures its deadlines with.
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

mod clock;

pub use self::clock::{ManualClock, TokioClock};
#[doc(inline)]
pub use fake_kube_apiserver::*;
