//! The requests and services by which the gate's cost is measured: in nanoseconds by
//! `cargo bench --package gate-cost --bench gate`, in instructions by this package's program.

mod requests;
mod services;

pub use requests::{Body, metric, read, reads, write};
pub use services::{Answer, Bare, BoxError, NoOp, NoOpFuture, call_only, send};
