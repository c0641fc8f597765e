//! Says whether this process leads, and until when.
//!
//! [`Grantor`] is the owner: an elector uses it to grant, extend and end terms. [`Leadership`] is the reader: gates
//! and observers hold clones of it and cannot change it. Neither depends on the election of this crate, so any
//! elector can hold the grantor.
//!
//! 1. Leadership is a deadline, not a flag ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)). After the
//!    deadline the gate admits no write, even if no task has noticed it. The clock counts suspend
//!    ([rule S13](crate::guide::guarantees#s13-the-clock-counts-suspend)).
//! 2. An admitted write calls [`Admission::is_valid`] again and again, and is woken when its term ends
//!    ([rule S2](crate::guide::guarantees#s2-a-lost-term-cuts-off-its-writes)).
//! 3. [`close`](Grantor::close) stops admitting writes, and [`drain`](Leadership::drain) waits for the admitted ones
//!    ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)). [`revoke`](Grantor::revoke) ends everything
//!    at once.
//! 4. Dropping the [`Grant`] ends its term. Dropping the [`Grantor`] closes the gate for good
//!    ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)).
//!
//! This module spawns no task. A deadline needs none. Only the *wake-up* of waiting writes at a deadline needs a
//! running [`watch_deadline`](Grantor::watch_deadline). The election of this crate runs it.
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
    term::{LeadershipState, Loss, Term},
};

pub(crate) use self::{
    closer::Closer,
    grantor::ENDED,
    lapse::Lapse,
    terms::{Tenure, Terms},
};

use self::inner::{Grants, Inner};
use std::{fmt, future::pending, pin::pin, sync::Arc, time::Duration};
use tokio::time::timeout;

/// The longest sleep between two looks at the clock. Timers do not count suspend, so after a resume a waiting task
/// looks at the clock within this time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Reads the leadership of this process, and admits writes. It cannot change the leadership.
///
/// [`Grantor::leadership`] returns it. Clones are cheap and read the same leadership.
#[derive(Clone, Debug)]
pub struct Leadership {
    inner: Arc<Inner>,
}

/// The drain timeout ended before all admitted writes had finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrStillWriting {
    /// How many admitted writes had not finished.
    pub writes: usize,
}

/// What a follower knows about the election.
pub(crate) struct Bystander {
    pub(crate) holder: Option<Arc<str>>,
    pub(crate) trouble: Option<Arc<str>>,
    /// True if no more grants can come.
    pub(crate) over: bool,
}

// === impl Leadership ===

impl Leadership {
    fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// The present instant of this leadership's clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.inner.clock.now()
    }

    /// Admits a write if this process leads now. Takes no lock and allocates nothing.
    #[must_use]
    pub fn admit(&self) -> Option<Admission> {
        match self.inner.word.enter(|| self.inner.now()) {
            Ok(grant) => Some(Admission::new(self.inner.clone(), grant)),
            Err(refused) => {
                if refused.was_last {
                    self.inner.idle.notify_waiters();
                }
                None
            }
        }
    }

    /// Whether this process leads now. A leader that is closing still leads.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.inner.word.is_leading(|| self.inner.now())
    }

    /// Whether the gate would admit a write now.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.inner.word.is_open(|| self.inner.now())
    }

    /// The term in which this process leads now.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        if self.is_leader() { self.state().term } else { None }
    }

    /// The validity deadline of the current grant; it may have passed.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.inner.word.deadline().map(Moment::from_nanos)
    }

    /// The last known holder of the lease.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.inner.state.borrow().holder.clone()
    }

    /// The details for the error of a rejected write.
    pub(crate) fn bystander(&self) -> Bystander {
        let state = self.inner.state.borrow();
        Bystander {
            holder: state.holder.clone(),
            trouble: state.trouble.clone(),
            over: state.grants >= Grants::Sealed,
        }
    }

    /// Why the election makes no progress, in words for a person. None if all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.inner.state.borrow().trouble.clone()
    }

    /// How many admitted writes have not finished.
    #[must_use]
    pub fn writes_under_way(&self) -> usize {
        self.inner.word.admitted()
    }

    /// The present state, as observers see it.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.inner.state.borrow().view()
    }

    /// Follows leadership: first the present state, then each change.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes::new(self.inner.state.subscribe())
    }

    /// Waits until the gate admits writes, and returns the term. It never returns a term that has ended. If the
    /// [`Grantor`] is gone, it waits for ever. Cancel-safe.
    pub async fn elected(&self) -> Term {
        match Terms::new(self.clone()).next().await {
            Some(tenure) => tenure.term().clone(),
            None => pending().await,
        }
    }

    /// When an admitted write last ended without an answer, in this term or an earlier one. None if every write was
    /// answered.
    ///
    /// Such a write was dropped, was cut off, or failed. The API server may still carry it out. So an elector must
    /// wait before it gives up the lease: until this instant plus the longest delay of a request
    /// ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
    ///
    /// A write that is still under way may also end without an answer, so call [`drain`](Self::drain) first.
    #[must_use]
    pub fn unanswered(&self) -> Option<Moment> {
        self.inner.unanswered()
    }

    /// Waits until no admitted write is under way, but at most `bound`. Call [`close`](Grantor::close) or
    /// [`revoke`](Grantor::revoke) first: an open gate may keep admitting writes. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrStillWriting`] if the time ends first.
    pub async fn drain(&self, bound: Duration) -> Result<(), ErrStillWriting> {
        let idle = async {
            loop {
                let mut woken = pin!(self.inner.idle.notified());
                woken.as_mut().enable();
                if self.writes_under_way() == 0 {
                    return;
                }
                woken.await;
            }
        };
        timeout(bound, idle).await.map_err(|_| ErrStillWriting { writes: self.writes_under_way() })
    }
}

// === impl ErrStillWriting ===

impl fmt::Display for ErrStillWriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} admitted writes did not finish within the drain timeout", self.writes)
    }
}

impl std::error::Error for ErrStillWriting {}
