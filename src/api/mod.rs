//! Calls to the API server, shared by the lease and the events: one call, its errors, a watch, the pause after
//! failures, and the log of trouble.

mod backoff;
mod call;
mod complaint;
mod error;
mod lines;
mod watch;

#[cfg(any(test, fuzzing))]
pub(crate) use self::lines::LONGEST;
pub(crate) use self::{
    backoff::backoff,
    call::{call, open},
    complaint::Complaint,
    error::{CallError, Failure, without_secrets},
    lines::lines,
    watch::{Change, LONGEST_PAUSE, Lines, change, watch_of_all, watch_of_one, watch_one},
};
