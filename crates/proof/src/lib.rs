//! What checks kube-leader-gate beyond examples. It sees the inside of the crate by its feature `internal`.
//!
//! - `fuzz`: what must hold for any bytes that come from outside.
//! - `world`: the shipped machine of a candidate in a process of its own, and an API server with one lease.
//! - `model`: all that may happen to three candidates on one lease. A checker tries every order of it.
//! - `histories`: candidates that are moved on by chance.
//!
//! `tests/loom` has the models of the leadership's threads, and `defects` the defects that these checks must find.

pub mod fuzz;

#[cfg(test)]
mod histories;
#[cfg(test)]
mod model;
#[cfg(test)]
mod world;
