//! What the gate of a new term waits for, beside the lease (rule S16).

use crate::{
    election::panics::message,
    invalid::ErrInvalid,
    leadership::{Leadership, Moment, Term},
    one_line::one_line,
};
use futures_util::future::{BoxFuture, FutureExt, pending, try_join_all};
use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

/// How long the gate of a new term waits at most.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A wait of this length is worth a warning.
const WORTH_A_WARNING: Duration = Duration::from_secs(1);

type Outcome = Result<(), String>;
type Condition = Arc<dyn Fn(Term) -> BoxFuture<'static, Outcome> + Send + Sync>;
/// What a condition lacks, in words for a person.
type Missing = Arc<Mutex<String>>;

/// What the gate of each term waits for, and the wait of the present term.
pub(crate) struct Opening {
    conditions: Vec<Condition>,
    pub(crate) timeout: Duration,
    wait: Option<Wait>,
}

struct Wait {
    term: Term,
    since: Moment,
    /// When the conditions are asked, unless a write of an earlier term ends later.
    asks_at: Moment,
    /// The end of its time limit.
    until: Moment,
    /// For each condition.
    missing: Vec<Missing>,
    /// A task of its own, so that what it does delays no renewal. It ends with this value.
    task: Option<AbortOnDropHandle<Outcome>>,
    outcome: Option<Outcome>,
}

tokio::task_local! {
    static MISSING: Missing;
}

/// Says what the condition lacks that calls this; an empty text says that it lacks nothing. Elsewhere it does nothing.
#[cfg(feature = "runtime")]
pub(crate) fn note_missing(what: &impl fmt::Display) {
    let _ = MISSING.try_with(|missing| set(missing, what));
}

fn set(missing: &Missing, what: &impl fmt::Display) {
    *missing.lock().unwrap_or_else(PoisonError::into_inner) = what.to_string();
}

// === impl Opening ===

impl Opening {
    pub(super) const fn new() -> Self {
        Self { conditions: Vec::new(), timeout: DEFAULT_TIMEOUT, wait: None }
    }

    pub(crate) fn add<F, E>(&mut self, condition: impl Fn(Term) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.conditions.push(Arc::new(move |term| {
            condition(term).map(|met| met.map_err(|error| one_line(&error.to_string()))).boxed()
        }));
    }

    pub(crate) fn validate(&self) -> Result<(), ErrInvalid> {
        if self.timeout.is_zero() {
            return Err(ErrInvalid::new("the open timeout is", self.timeout, "any time longer than zero"));
        }
        Ok(())
    }

    /// How the wait of this term has ended, if it has. The first question begins it. The conditions are asked once all that an
    /// earlier term or process has sent counts as stored, and have their time limit from then on.
    pub(super) fn of(&mut self, term: &Term, leadership: &Leadership, margin: Duration) -> Option<Outcome> {
        if self.conditions.is_empty() {
            return Some(Ok(()));
        }
        let now = leadership.now();
        if self.term().is_none_or(|waits| !waits.is_same(term)) {
            self.wait = Some(Wait::new(term, &self.conditions, self.timeout, now));
        }
        let wait = self.wait.as_mut()?;
        let settled = leadership.settles_at(margin);
        match &wait.task {
            None if leadership.is_quiet() && settled <= now => {
                wait.ask(&self.conditions);
                wait.until = now.saturating_add(self.timeout);
            }
            None => {
                let sent = "a write of this process that ended without an answer, or has not ended, may still take effect";
                wait.missing.first().into_iter().for_each(|first| set(first, &sent));
                // A write that does not end is waited for no longer than a condition.
                (wait.asks_at, wait.until) = (settled, settled.saturating_add(self.timeout).max(wait.until));
            }
            Some(_) => {}
        }
        if wait.outcome.is_none() && wait.until <= now {
            return Some(Err(format!("it has not come within {:?}{}", self.timeout, wait.missing())));
        }
        wait.outcome.clone()
    }

    /// Ends the wait. Returns how long it has lasted, if there was one.
    pub(crate) fn end(&mut self, now: Moment) -> Option<Duration> {
        self.wait.take().map(|wait| now.saturating_since(wait.since))
    }

    /// Completes when the wait has an outcome. Cancel-safe.
    pub(crate) async fn decided(&mut self) {
        let Some(Wait { task: Some(task), outcome: outcome @ None, .. }) = &mut self.wait else {
            return pending().await;
        };
        let ended = task.await;
        *outcome = Some(ended.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(format!("it panicked: {}", message(&*panic))),
            Err(error) => Err(error.to_string()),
        }));
    }

    /// The term whose gate waits.
    pub(super) fn term(&self) -> Option<&Term> {
        self.wait.as_ref().map(|wait| &wait.term)
    }

    /// When to look at the wait again: what it lacks may have changed, or its time may be over.
    pub(super) fn looks_at(&self, now: Moment) -> Option<Moment> {
        let wait = self.wait.as_ref()?;
        let moments = [now.saturating_add(WORTH_A_WARNING), wait.asks_at, wait.until];
        moments.into_iter().filter(|at| now < *at).min()
    }

    /// What a wait lacks, in words for a person, if it is long, or if the one before has failed.
    pub(super) fn warning(&self, has_failed: bool, now: Moment) -> Option<String> {
        let is_long = |wait: &&Wait| {
            let is_worth_it = has_failed || WORTH_A_WARNING <= now.saturating_since(wait.since);
            wait.outcome.is_none() && is_worth_it
        };
        let missing = self.wait.as_ref().filter(is_long)?.missing();
        Some(format!("this process holds the lease, and a condition of `open_when` is not met yet{missing}"))
    }
}

// === impl Wait ===

impl Wait {
    fn new(term: &Term, conditions: &[Condition], timeout: Duration, now: Moment) -> Self {
        let missing = conditions.iter().map(|_| Missing::default()).collect();
        let until = now.saturating_add(timeout);
        Self { term: term.clone(), since: now, asks_at: now, until, missing, task: None, outcome: None }
    }

    /// Begins to ask the conditions, in the present span.
    fn ask(&mut self, conditions: &[Condition]) {
        self.missing.iter().for_each(|missing| set(missing, &""));
        let (all, of, missing) = (conditions.to_vec(), self.term.clone(), self.missing.clone());
        let waits = async move {
            let met = all.iter().zip(missing).map(|(condition, missing)| {
                // A condition may panic when it is called.
                MISSING.scope(missing, async { condition(of.clone()).await })
            });
            try_join_all(met).await.map(drop)
        };
        self.task = Some(AbortOnDropHandle::new(tokio::spawn(waits.in_current_span())));
    }

    /// What it lacks first, in words for a person.
    fn missing(&self) -> String {
        let texts =
            self.missing.iter().map(|text| text.lock().unwrap_or_else(PoisonError::into_inner).clone());
        texts.into_iter().find(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default()
    }
}
