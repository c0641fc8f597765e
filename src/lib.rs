//! Only the leader writes: a tower layer for Kubernetes clients, and the election that drives it.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "election")]
pub mod election;
pub mod gate;
pub mod leadership;
#[cfg(feature = "election")]
pub mod lease;
pub mod policy;
pub mod request;
#[cfg(feature = "test-util")]
pub mod testing;
#[cfg(feature = "election")]
mod work;

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
