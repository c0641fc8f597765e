//! The gate and the leadership word, rule by rule. Each test's name begins with the rule that it is about.
#![cfg(feature = "test-util")]

mod abandoned;
mod clock;
mod closing;
mod deadline;
mod errors;
mod layers;
mod limits;
mod model;
mod observed;
mod polls;
mod readiness;
mod support;
mod terms;
mod threads;
mod untouched;
