//! The Lease: who contends, when, and how the object is read and written.
//!
//! [`LeaseTiming`] and [`Identity`] refuse what cannot work when they are made. A [`Lock`] reads and writes one lease by
//! compare-and-swap (rule S6); [`KubeLock`] does it over a kube client of its own (rule S14), or over those that many locks
//! share in a [`LeasePool`]. [`ReleaseLock`] wraps any lock and closes the gate before the lease is given up (rule S3).

mod error;
mod identity;
mod kube_lock;
mod lock;
mod name;
mod pool;
mod record;
mod release;
mod timing;
mod timing_text;
mod vetted;
mod watch_line;

pub use self::{
    error::{ErrLock, ErrLockKind},
    identity::{ErrInvalidIdentity, Identity},
    kube_lock::KubeLock,
    lock::{LeaseEvent, Lock},
    name::{ErrInvalidLeaseName, LeaseName},
    pool::LeasePool,
    record::{Claim, ErrNotALease, LeaseRecord},
    release::ReleaseLock,
    timing::{ErrInvalidTiming, LeaseTiming},
};
pub(crate) use self::{timing::JITTER, vetted::VettedLock};
