//! What checks kube-leader-gate beyond examples. It sees the inside of the crate by its feature `internal`.
//!
//! - `fuzz`: what must hold for any bytes that come from outside.
//! - `model`: all that may happen to three candidates on one lease. A checker tries every order of it.
//!
//! `tests/loom` has the models of the leadership's threads, and `defects` the defects that these checks must find.

pub mod fuzz;

#[cfg(test)]
mod model;
