//! Says whether this process leads, and until when.
//!
//! ```
//! use kube_leader_gate::leadership::{Grantor, Loss, Term};
//! use std::time::Duration;
//!
//! let grantor = Grantor::new();
//! let leadership = grantor.leadership();
//! assert!(leadership.admit().is_none(), "no term was granted yet");
//!
//! let sent = grantor.now(); // before the call that acquired the lease
//! let grant = grantor.grant(Term::new("lease-uid", 1), sent.saturating_add(Duration::from_secs(107)))?;
//! let write = leadership.admit().expect("leading");
//! assert!(write.is_valid());
//!
//! grant.end(Loss::Taken);
//! assert!(!write.is_valid(), "an admitted write is cut off with its term");
//! assert!(leadership.admit().is_none());
//! # Ok::<(), kube_leader_gate::leadership::ErrTooLate>(())
//! ```
//!
//! [`Grantor`] is the owner: an elector uses it to grant, extend and end terms. [`Leadership`] is the reader: gates
//! and observers hold clones of it and cannot change it. Neither depends on the election of this crate, so any
//! elector can hold the grantor.
//!
//! 1. Leadership is a deadline, not a flag ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)). After the
//!    deadline the gate admits no write, even if no task has noticed that the deadline has passed. The clock counts suspend
//!    ([rule S13](crate::guide::guarantees#s13-the-clock-counts-suspend)).
//! 2. The code that sends an admitted write calls [`WritePermit::is_valid`] before each step. When the term ends, the
//!    leadership wakes the writes that wait ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)).
//! 3. [`close`](Grantor::close) stops admitting writes, and [`drain`](Leadership::drain) waits for the admitted ones
//!    ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)). [`revoke`](Grantor::revoke) ends everything
//!    at once.
//! 4. Dropping the [`Grant`] ends its term. Dropping the [`Grantor`] closes the gate for good
//!    ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)).
//!
//! # With an elector of your own
//! `grantor.watch_deadline()` wakes writes that hang, so that the gate cuts them off:
//!
//! ```
//! use kube_leader_gate::{
//!     WriteGateLayer,
//!     leadership::{ErrTooLate, Grantor, Loss, Term},
//! };
//! use std::time::Duration;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), ErrTooLate> {
//!     let grantor = Grantor::new();
//!     let gate = WriteGateLayer::new(grantor.leadership()); // for ClientBuilder::with_layer
//!     let _gate = gate.with_request_deadline(true); // the API server gives up a write at the deadline too
//!     tokio::spawn(grantor.watch_deadline());
//!     let valid_for = Duration::from_secs(20); // shorter than the lease, by the safety margin
//!
//!     let sent = grantor.now(); // before the call
//!     // .. your elector acquires the lease, with success ..
//!     let grant = grantor.grant(Term::new("uid of the lease", 1), sent.saturating_add(valid_for))?;
//!
//!     let sent = grantor.now();
//!     // .. and renews it ..
//!     grant.extend(sent.saturating_add(valid_for))?;
//!
//!     grant.end(Loss::Released); // before your elector releases the lease; call `end` at a loss too
//!     Ok(()) // a dropped `Grantor` closes the gate for good
//! }
//! ```
//!
//! This module spawns no task, and a deadline needs no task. Only the *wake-up* of waiting writes at a deadline needs a
//! running [`watch_deadline`](Grantor::watch_deadline). The election of this crate runs it.

#![cfg_attr(
    not(feature = "election"),
    allow(dead_code, unused_imports, reason = "some of it is for the election alone")
)]

pub(crate) mod clock;
#[cfg(test)]
mod ending_tests;
mod follow;
mod grant;
mod grantor;
mod inner;
pub(crate) mod intent;
mod permit;
mod reader;
mod sync;
mod term;
mod troubles;
mod word;

pub use self::{
    clock::{BootClock, Clock, Moment},
    follow::Changes,
    grant::{ErrTooLate, Grant},
    grantor::Grantor,
    permit::WritePermit,
    reader::{ErrStillWriting, Leadership},
    term::{LeadershipState, Loss, Term},
};

pub(crate) use self::{
    follow::{GrantedTerm, GrantedTerms, Orders, TermLoss},
    grantor::Closer,
    inner::{ENDED, NOT_BEGUN, Stage},
    intent::Intent,
    reader::FollowerView,
};
