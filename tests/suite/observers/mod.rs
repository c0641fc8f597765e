//! What people and machines see of an election: probes, log lines, metrics, Events, troubles.

#[cfg(feature = "runtime")]
mod events;
#[cfg(all(feature = "metrics", feature = "runtime"))]
mod foreign_text;
mod health;
#[cfg(all(feature = "metrics", feature = "runtime"))]
pub mod listening;
#[cfg(all(feature = "metrics", feature = "runtime"))]
pub mod logging;
#[cfg(feature = "metrics")]
pub mod metrics;
mod readiness;
#[cfg(all(feature = "metrics", feature = "runtime"))]
mod secrets;
mod tasks;
mod text;
mod trouble;
mod undriven;
