//! The Lease: its name, its times, its candidates, and how it is read and written.
//!
//! [`LeaseTiming`] and [`Identity`] refuse values that cannot work. A [`Lock`] reads and writes one lease by
//! compare-and-swap ([rule S6](crate::guide::guarantees#s6-compare-and-swap-only)). Those of a [`LeasePool`] do this over
//! kube clients of their own ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)). [`ReleaseLock`] wraps any lock and closes the gate before a release
//! ([rule S3](crate::guide::guarantees#s3-the-gate-closes-before-a-release)).

mod advice;
mod alone;
pub(crate) mod error;
mod kube_lock;
mod lock;
mod name;
mod news;
mod pool;
mod record;
mod timing;
mod update;
#[allow(missing_docs, reason = "only `internal` shows some of it")]
pub(crate) mod wrapped;

pub(crate) use self::{
    alone::Alone, record::LONGEST_SANE, timing::JITTER, update::micro_time, wrapped::VettedLock,
};
pub use self::{
    error::{ErrLock, ErrLockKind},
    lock::{BoxLock, LeaseEvent, Lock},
    name::{Identity, LeaseName},
    pool::LeasePool,
    record::LeaseRecord,
    timing::LeaseTiming,
    update::LeaseUpdate,
    wrapped::ReleaseLock,
};
