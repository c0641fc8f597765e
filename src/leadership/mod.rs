//! The one word that says whether this process leads, and until when.
//!
//! An election grants, extends and ends leadership; a gate asks for each write. Neither knows the other:
//! [`Leadership`] is usable with any elector, and without a gate.
//!
//! 1. Leadership is a deadline, not a flag (rule S1): once it has passed, no write is admitted, whether or not anybody
//!    was there to notice. The clock counts suspend (rule S13).
//! 2. An admitted write keeps asking [`Admission::is_valid`], and is woken when its term ends (rule S2).
//! 3. [`close`](Leadership::close) admits nothing more, [`drain`](Leadership::drain) waits for what was admitted
//!    (rule S4), [`revoke`](Leadership::revoke) ends everything at once.
//! 4. Dropping the [`Grant`] ends leadership (rule S10).
//!
//! Nothing here spawns a task. Deadlines hold by themselves; only the *wake-up* of waiting writes at a deadline needs
//! [`watch_deadline`](Leadership::watch_deadline) to be running. The election of this crate does that.
//!
//! ```
//! use kube_leader_gate::leadership::{Leadership, Loss, Term};
//! use std::time::Duration;
//!
//! let leadership = Leadership::new();
//! assert!(leadership.admit().is_none(), "nobody has granted anything yet");
//!
//! let sent = leadership.now(); // before the call that acquired the lease
//! let grant = leadership.grant(Term::new("lease-uid", 1), sent.saturating_add(Duration::from_secs(107)))?;
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
mod grant;
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
    term::{LeadershipState, Loss, Term},
};

pub(crate) use self::{
    lapse::Lapse,
    terms::{Tenure, Terms},
};

use self::inner::{Grants, Inner};
use std::{convert::Infallible, fmt, future::pending, pin::pin, sync::Arc, time::Duration};
use tokio::time::timeout;

/// The longest that a timer is trusted to sleep. Timers do not count suspend: after a resume, whoever waits looks at
/// the real clock within this time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The leadership of this process; a cheap handle, each clone speaks of the same leadership.
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

impl Default for Leadership {
    fn default() -> Self {
        Self::new()
    }
}

impl Leadership {
    /// A follower, on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(BootClock::new()))
    }

    /// A follower, on a clock of your own.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner::new(clock)) }
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

    /// Whoever holds the lease, as far as this process knows.
    #[must_use]
    pub fn holder(&self) -> Option<Arc<str>> {
        self.inner.state.borrow().holder.clone()
    }

    /// What a write is told that is not let in.
    pub(crate) fn bystander(&self) -> Bystander {
        let state = self.inner.state.borrow();
        Bystander {
            holder: state.holder.clone(),
            trouble: state.trouble.clone(),
            over: state.grants == Grants::Sealed,
        }
    }

    /// Notes who holds the lease, for messages and observers; it opens and closes nothing.
    pub fn note_holder(&self, holder: Option<&str>) {
        self.inner.state.send_if_modified(|state| {
            let changed = state.holder.as_deref() != holder;
            if changed {
                state.holder = holder.map(Arc::from);
            }
            changed
        });
    }

    /// What keeps the election from making progress, in words for a person, if something does.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.inner.state.borrow().trouble.clone()
    }

    /// Notes what keeps the election from making progress, for messages; it opens and closes nothing, and
    /// [`changes`](Self::changes) do not tell of it.
    pub fn note_trouble(&self, trouble: Option<Arc<str>>) {
        self.inner.state.send_if_modified(|state| {
            state.trouble = trouble;
            false
        });
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
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes::new(self.inner.state.subscribe())
    }

    /// Waits until writes are admitted, and returns the term; for as long as nobody grants leadership. Cancel-safe.
    pub async fn elected(&self) -> Term {
        match Terms::new(self.clone()).next().await {
            Some(tenure) => tenure.term().clone(),
            None => pending().await,
        }
    }

    /// When an admitted write last ended without an answer, in this term or an earlier one; none if each was answered.
    ///
    /// Such a write was dropped, was cut off, or failed. The API server may still carry it out, so an elector must give
    /// nothing up before that instant plus the time by which a request may be late (rule S4). A write that is under way
    /// now may become one: [`drain`](Self::drain) first.
    #[must_use]
    pub fn unanswered(&self) -> Option<Moment> {
        self.inner.unanswered()
    }

    /// Waits until no admitted write is under way, at most `bound`. Call it after [`close`](Self::close) or
    /// [`revoke`](Self::revoke): an open gate may let writes in for ever. Cancel-safe.
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

    /// Ends leadership when its deadline has passed, which wakes the writes that wait and tells the observers.
    ///
    /// The gate needs nobody for closing on time; without this running, a write that hangs is cut off only when
    /// something else wakes it. Runs until it is dropped. Needs a tokio runtime with its timer. Cancel-safe.
    pub async fn watch_deadline(&self) -> Infallible {
        let mut state = self.inner.state.subscribe();
        loop {
            state.borrow_and_update();
            let Some(deadline) = self.deadline() else {
                let _ = state.changed().await;
                continue;
            };
            let left = deadline.saturating_since(self.now());
            if left.is_zero() {
                self.inner.expire();
                continue;
            }
            let _ = timeout(left.min(LONGEST_SLEEP), state.changed()).await;
        }
    }
}

// === impl ErrStillWriting ===

impl fmt::Display for ErrStillWriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} admitted writes had not finished when the time for draining was up", self.writes)
    }
}

impl std::error::Error for ErrStillWriting {}
