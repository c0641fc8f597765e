#![doc = include_str!("../README.md")]
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
