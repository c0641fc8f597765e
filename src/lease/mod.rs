//! The Lease: its name, its times, its candidates, and how it is read and written.
//!
//! ```
//! use kube_leader_gate::{Election, Identity, LeaseTiming};
//! use std::time::Duration;
//!
//! let [lease, renew, retry] = [30, 20, 5].map(Duration::from_secs);
//! let timing = LeaseTiming::new(lease, renew, retry)?;
//! assert_eq!(timing.safety_margin(), Duration::from_secs(10));
//!
//! let refused = LeaseTiming::new(lease, renew, renew).unwrap_err().to_string(); // it would renew too late
//! assert!(refused.contains("the retry period is 20s, allowed: less than the renew deadline / 1.2"));
//!
//! let identity = Identity::new("my-controller-x2x7q")?;
//! assert!(Identity::new("").is_err()); // a lease with this holder is free
//! let builder = Election::builder("my-namespace", "my-controller").identity(identity).timing(timing);
//! # Ok::<(), kube_leader_gate::ErrInvalid>(())
//! ```
//!
//! [`LeaseTiming`] and [`Identity`] refuse values that cannot work. A [`Lock`] reads and writes one lease by
//! compare-and-swap ([rule S6](crate::guide::guarantees#s6-compare-and-swap-only)). The locks of a [`LeasePool`] do this
//! over kube clients of their own
//! ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)). [`ReleaseLock`] wraps any lock and
//! closes the gate before a release ([rule S3](crate::guide::guarantees#s3-the-gate-closes-before-a-release)).

pub(crate) mod advice;
mod alone;
pub(crate) mod error;
mod kube_lock;
mod lock;
pub(crate) mod marks;
mod name;
mod news;
pub(crate) mod pool;
mod record;
mod timing;
mod update;
mod wrapped;

pub(crate) use self::{
    alone::Alone,
    name::pod_uid,
    pool::places::{Place, Places},
    record::LONGEST_SANE,
    timing::JITTER,
    update::micro_time,
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
