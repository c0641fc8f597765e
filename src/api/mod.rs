//! Calls to the API server, shared by the lease and the events: one call, its errors, the pause after failures, and
//! the log of trouble.

mod backoff;
mod call;
mod complaint;
mod error;
mod lines;

#[cfg(all(test, feature = "test-util"))]
pub(crate) use self::lines::LONGEST;
pub(crate) use self::{
    backoff::backoff,
    call::{call, open},
    complaint::Complaint,
    error::{CallError, Failure},
    lines::lines,
};
