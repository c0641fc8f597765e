//! The Lease: its name, its times, its candidates, and how it is read and written.
//!
//! [`LeaseTiming`] and [`Identity`] refuse values that cannot work. A [`Lock`] reads and writes one lease by
//! compare-and-swap ([rule S6](crate::guide::guarantees#s6-compare-and-swap-only)). [`KubeLock`] does this over its
//! own kube client ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)), or over clients that
//! many locks share in a [`LeasePool`]. [`ReleaseLock`] wraps any lock and closes the gate before a release
//! ([rule S3](crate::guide::guarantees#s3-the-gate-closes-before-a-release)).

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
pub(crate) use self::{
    name::{is_label, is_subdomain},
    record::LONGEST_SANE,
    timing::JITTER,
    vetted::VettedLock,
};
