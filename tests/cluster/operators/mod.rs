//! The operator of the examples: as processes before a real API server, and in paused time over the in-process one.

pub mod changes;
pub mod crash;
pub mod fenced;
pub mod process;
pub mod rbac;
pub mod rollouts;
pub mod show;
mod world;
