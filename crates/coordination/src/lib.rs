//! EXPERIMENTAL: the API server chooses the leader of a [`kube_leader_gate`] election, by version.
//!
//! In an ordinary election, the first candidate that finds the lease free takes it. In a coordinated election
//! ([KEP-4355](https://github.com/kubernetes/enhancements/issues/4355), beta in Kubernetes), each candidate describes itself
//! in a `LeaseCandidate` object. The coordinator, a controller in the API server, chooses one of them and writes its name
//! into the Lease. If a better candidate comes, the coordinator asks the holder to give the lease up.
//!
//! [`Coordinated`] adds a [`Coordination`] to an election: a [layer](kube_leader_gate::election::LockLayer) of its lock, and
//! a task beside it. The README says what it needs and what it costs.
//!
//! # How it works
//!
//! The election knows no coordinator. This layer
//!
//! - lets it acquire the lease only while the lease names this candidate,
//! - shows a lease in which the coordinator has named a candidate as the last holder has left it, at the version that names
//!   the candidate: held until that holder's time is over, or released. So the election waits for former writers as ever,
//! - shows the candidate that the coordinator prefers as one that has asked for the lease.

mod api;
#[cfg(any(test, feature = "internal"))]
#[doc(hidden)]
pub mod fuzz;
mod keeper;
mod layer;
mod lock;
mod pauses;
mod record;
mod register;
mod settings;
mod status;
mod view;
mod watch;

pub use self::{
    layer::Coordinated,
    settings::{Coordination, ErrInvalidCoordination},
};

/// Compiles the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
