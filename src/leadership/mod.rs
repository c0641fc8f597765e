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

/// The longest that a timer is trusted to sleep. Timers do not count suspend: after a resume, a task that waits looks at
/// the real clock within this time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Reads the leadership of this process, and admits writes by it; it cannot change it.
///
/// From [`Grantor::leadership`]. Clones are cheap, and read the same leadership.
#[derive(Clone, Debug)]
pub struct Leadership {
    inner: Arc<Inner>,
}

/// A drain that ran out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrStillWriting {
    /// How many admitted writes had not finished.
    pub writes: usize,
}

/// What a follower knows.
pub(crate) struct Bystander {
    pub(crate) holder: Option<Arc<str>>,
    pub(crate) trouble: Option<Arc<str>>,
    /// No grant is made any more.
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

    /// Lets a write in, if this process leads now. Takes no lock and allocates nothing.
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

    /// Whether this process leads now, a leader that is closing included.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.inner.word.is_leading(|| self.inner.now())
    }

    /// Whether a write would be admitted now.
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

    /// What the error of a rejected write says.
    pub(crate) fn bystander(&self) -> Bystander {
        let state = self.inner.state.borrow();
        Bystander {
            holder: state.holder.clone(),
            trouble: state.trouble.clone(),
            over: state.grants >= Grants::Sealed,
        }
    }

    /// What keeps the election from making progress, in words for a person, if something does.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.inner.state.borrow().trouble.clone()
    }

    /// How many admitted writes have not finished.
    #[must_use]
    pub fn writes_under_way(&self) -> usize {
        self.inner.word.admitted()
    }

    /// What observers see now.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.inner.state.borrow().view()
    }

    /// Follows leadership: the present state, then each change of it.
    pub fn changes(&self) -> Changes {
        Changes::new(self.inner.state.subscribe())
    }

    /// Waits until writes are admitted, and returns the term. It never returns a term that has ended, and waits for ever
    /// once the [`Grantor`] is gone. Cancel-safe.
    pub async fn elected(&self) -> Term {
        match Terms::new(self.clone()).next().await {
            Some(tenure) => tenure.term().clone(),
            None => pending().await,
        }
    }

    /// When an admitted write last ended without an answer, in this term or an earlier one; none if each was answered.
    ///
    /// Such a write was dropped, was cut off, or failed. The API server may still carry it out, so an elector must not give
    /// the lease up before that instant plus the time by which a request may be late (rule S4). A write that is under way
    /// now may become one: [`drain`](Self::drain) first.
    #[must_use]
    pub fn unanswered(&self) -> Option<Moment> {
        self.inner.unanswered()
    }

    /// Waits until no admitted write is under way, at most `bound`. Call it after [`close`](Grantor::close) or
    /// [`revoke`](Grantor::revoke): an open gate may let writes in for ever. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrStillWriting`] when the time is up first.
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
        write!(f, "{} admitted writes had not finished when the time for draining was up", self.writes)
    }
}

impl std::error::Error for ErrStillWriting {}
