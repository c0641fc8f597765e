//! The gate and the leadership word, rule by rule: how requests are classified and what a policy permits, alone and
//! among other layers. The name of a test begins with its rule, if it has one.
#![cfg(feature = "test-util")]

mod abandoned;
mod allocations;
mod bodies;
mod classification;
mod clock;
mod closing;
mod deadline;
mod errors;
mod guarded;
mod layers;
mod limits;
mod model;
mod observed;
mod policy;
mod polls;
mod readiness;
#[cfg(feature = "election")]
mod stacking;
mod support;
mod terms;
mod threads;
mod untouched;
