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
//! The election knows no coordinator. It sees the lease through this layer:
//!
//! - A lease that no candidate holds is shown as held by `(coordinator)`, so the election waits.
//! - A lease that the coordinator has named for this candidate is shown as held by the former holder until that holder's
//!   time is over. It is then shown as free. Only then, and only over the version that names it, may the election write.
//! - When the coordinator prefers another candidate, the layer asks the election to give way.
//!
//! The layer never says that a real holder has released the lease. Only `(coordinator)` does, before it goes. So what the
//! election knows of former writers stays true.

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
mod seen;
mod settings;
mod shown;
mod spec;
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
