//! What the gate of a new term waits for, beside the lease (rule S16).

use super::panics::message;
use crate::{
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

type Condition = Box<dyn Fn(Term) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// What the gate of each term waits for.
#[derive(Clone)]
pub(super) struct Conditions {
    all: Vec<Arc<Condition>>,
    pub(super) timeout: Duration,
}

/// The wait of the gate of the present term.
#[derive(Debug)]
pub(super) struct Opening {
    conditions: Conditions,
    wait: Option<Wait>,
}

/// Whether the gate may open.
pub(super) enum Opens {
    Now,
    Later,
    /// What it waits for has failed, or has not come in time.
    Never(String),
}

#[derive(Debug)]
struct Wait {
    term: Term,
    since: Moment,
    missing: Missing,
    /// A task of its own, so that what it does delays no renewal. It ends with this value.
    task: AbortOnDropHandle<Result<(), String>>,
    outcome: Option<Result<(), String>>,
}

/// What a wait lacks, in words for a person.
#[derive(Clone, Debug, Default)]
struct Missing(Arc<Mutex<Option<String>>>);

tokio::task_local! {
    static MISSING: Missing;
}

/// Says what the wait lacks whose task calls this. Elsewhere it does nothing.
#[cfg(feature = "runtime")]
pub(crate) fn note_missing(what: String) {
    let _ = MISSING
        .try_with(|Missing(missing)| *missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(what));
}

// === impl Conditions ===

impl Default for Conditions {
    fn default() -> Self {
        Self { all: Vec::new(), timeout: DEFAULT_TIMEOUT }
    }
}

impl Conditions {
    pub(super) fn add<F, E>(&mut self, condition: impl Fn(Term) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let condition: Condition = Box::new(move |term| {
            condition(term).map(|met| met.map_err(|error| one_line(&error.to_string()))).boxed()
        });
        self.all.push(Arc::new(condition));
    }

    pub(super) fn validate(&self) -> Result<(), ErrInvalid> {
        if self.timeout.is_zero() {
            return Err(ErrInvalid::new("the open timeout is", self.timeout, "any time longer than zero"));
        }
        Ok(())
    }

    /// Begins to wait, in the present span.
    fn begin(&self, term: &Term, leadership: &Leadership) -> Wait {
        let (since, missing, timeout) = (leadership.now(), Missing::default(), self.timeout);
        let (all, of, clock, lacks) = (self.all.clone(), term.clone(), leadership.clone(), missing.clone());
        let waits = async move {
            // A condition may panic when it is called.
            let met =
                async { try_join_all(all.iter().map(|condition| condition(of.clone()))).await.map(drop) };
            tokio::select! {
                biased;
                met = MISSING.scope(lacks.clone(), met) => met,
                () = clock.sleep_until(since.saturating_add(timeout)) => Err(format!("it has not come within {timeout:?}{lacks}")),
            }
        };
        let task = AbortOnDropHandle::new(tokio::spawn(waits.in_current_span()));
        Wait { term: term.clone(), since, missing, task, outcome: None }
    }
}

impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Conditions").field(&self.all.len()).finish()
    }
}

// === impl Opening ===

impl Opening {
    pub(super) const fn new(conditions: Conditions) -> Self {
        Self { conditions, wait: None }
    }

    /// Whether the gate of `term` may open. The first question begins the wait.
    pub(super) fn of(&mut self, term: &Term, leadership: &Leadership) -> Opens {
        if self.conditions.all.is_empty() {
            return Opens::Now;
        }
        let wait = self.wait.take().filter(|wait| wait.term.is_same(term));
        let wait = self.wait.insert(wait.unwrap_or_else(|| self.conditions.begin(term, leadership)));
        match &wait.outcome {
            None => Opens::Later,
            Some(Ok(())) => Opens::Now,
            Some(Err(why)) => Opens::Never(why.clone()),
        }
    }

    /// Ends the wait. Returns how long it has lasted, if there was one.
    pub(super) fn end(&mut self, now: Moment) -> Option<Duration> {
        self.wait.take().map(|wait| now.saturating_since(wait.since))
    }

    /// Completes when the wait has an outcome. Cancel-safe.
    pub(super) async fn decided(&mut self) {
        match &mut self.wait {
            Some(Wait { outcome: outcome @ None, task, .. }) => {
                let ended = task.await.map_err(|error| match error.try_into_panic() {
                    Ok(panic) => format!("it panicked: {}", message(&*panic)),
                    Err(error) => error.to_string(),
                });
                *outcome = Some(ended.and_then(|met| met));
            }
            _ => pending().await,
        }
    }

    /// When a wait becomes worth a warning.
    pub(super) fn warns_from(&self) -> Option<Moment> {
        self.wait.as_ref().map(|wait| wait.since.saturating_add(WORTH_A_WARNING))
    }

    /// What a wait that is worth a warning lacks, in words for a person.
    pub(super) fn warning(&self, now: Moment) -> Option<String> {
        self.warns_from().filter(|from| *from <= now)?;
        let missing = &self.wait.as_ref()?.missing;
        Some(format!("this process holds the lease, and what `open_when` names has not come yet{missing}"))
    }
}

// === impl Missing ===

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        missing.as_ref().map_or(Ok(()), |missing| write!(f, ": {missing}"))
    }
}
