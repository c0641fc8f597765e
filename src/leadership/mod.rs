//! The one word that says whether this process leads, and until when.
//!
//! [`Grantor`] is the owner: an elector grants, extends and ends terms with it. [`Leadership`] is the reader: gates and
//! observers hold clones, and can only ask. Neither knows the election of this crate: any elector may hold the grantor.
//!
//! 1. Leadership is a deadline, not a flag (rule S1): once it has passed, no write is admitted, even if no task has
//!    noticed. The clock counts suspend (rule S13).
//! 2. An admitted write keeps asking [`Admission::is_valid`], and is woken when its term ends (rule S2).
//! 3. [`close`](Grantor::close) admits nothing more, [`drain`](Leadership::drain) waits for what was admitted (rule S4),
//!    [`revoke`](Grantor::revoke) ends everything at once.
//! 4. Dropping the [`Grant`] ends its term, dropping the [`Grantor`] closes the gate for good (rule S10).
//!
//! Nothing here spawns a task. Deadlines hold by themselves; only the *wake-up* of waiting writes at a deadline needs
//! [`watch_deadline`](Grantor::watch_deadline) to be running. The election of this crate does that.
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

#![cfg_attr(
    not(feature = "election"),
    allow(dead_code, unused_imports, reason = "some of it is for the election alone")
)]

mod admission;
mod changes;
mod clock;
mod closer;
mod grant;
mod grantor;
mod inner;
mod lapse;
mod reader;
mod sync;
mod tenure;
mod term;
mod terms;
mod word;

pub use self::{
    admission::Admission,
    changes::Changes,
    clock::{BootClock, Clock, Moment},
    grant::{ErrTooLate, Grant},
    grantor::Grantor,
    reader::{ErrStillWriting, Leadership},
    term::{LeadershipState, Loss, Term},
};

pub(crate) use self::{
    closer::Closer, grantor::ENDED, lapse::Lapse, reader::Bystander, tenure::Tenure, terms::Terms,
};
