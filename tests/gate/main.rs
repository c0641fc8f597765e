//! The gate and the leadership word, rule by rule, on what a request is classified as and what a policy permits, alone and
//! among other layers. A test's name begins with the rule that it is about, if there is one.
#![cfg(feature = "test-util")]

mod abandoned;
mod allocations;
mod classification;
mod clock;
mod closing;
mod deadline;
mod errors;
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
