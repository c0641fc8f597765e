//! The Lease: who contends, when, and how the object is read and written.
//!
//! [`LeaseTiming`] and [`Identity`] refuse what cannot work when they are made. A [`Lock`] reads and writes one lease by
//! compare-and-swap (rule S6); [`KubeLock`] does it over a kube client of its own (rule S14), or over those that many locks
//! share in a [`LeasePool`]. [`ReleaseLock`] wraps any lock and closes the gate before the lease is given up (rule S3).

pub(crate) mod call;
mod clients;
mod error;
mod handover;
mod identity;
mod kube_lock;
mod lines;
mod lock;
mod name;
mod pool;
mod record;
mod release;
mod shared;
mod timing;
mod watching;

pub use self::{
    error::{LockError, LockErrorKind},
    identity::{Identity, InvalidIdentity},
    kube_lock::KubeLock,
    lock::{LeaseEvent, Lock},
    name::{InvalidLeaseName, LeaseName},
    pool::LeasePool,
    record::{Claim, LeaseRecord, NotALease},
    release::ReleaseLock,
    timing::{InvalidTiming, LeaseTiming},
};
pub(crate) use self::{
    handover::{HANDOVER, HOLDER_KEY, Handover},
    timing::JITTER,
};
