//! The recipes of `docs/METRICS.md`, word for word.

pub mod prometheus;
pub mod prometheus_client;
