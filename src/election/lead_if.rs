//! Whether the program lets this candidate lead.

use super::panics::message;
use crate::{
    leadership::{Leadership, Moment},
    one_line::one_line,
};
use std::{
    fmt,
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{sync::watch, time::sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

/// How often the checks are asked.
const EVERY: Duration = Duration::from_millis(250);

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of a program: it lets its candidate lead only while all of them say yes.
#[derive(Clone, Default)]
pub(super) struct Checks {
    all: Vec<Check>,
    /// For how long a holder leads on while a check says no.
    pub(super) tolerance: Option<Duration>,
}

/// What the checks say. A task of its own asks them, so that the election does not wait for them.
#[derive(Debug)]
pub(super) struct LeadIf {
    tolerance: Duration,
    /// None without a check.
    asks: Option<(watch::Receiver<Answer>, AbortOnDropHandle<()>)>,
}

/// Why the program does not let its candidate lead.
pub(super) struct Refusal {
    /// In words for a person. None before the first answer.
    pub(super) why: Option<Arc<str>>,
    since: Moment,
}

#[derive(Clone, Debug, Default)]
struct Answer {
    says: Says,
    /// Since when it is yes, or no.
    since: Moment,
    /// When the question was asked whose answer is still due.
    asked: Option<Moment>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Says {
    #[default]
    Nothing,
    Yes,
    No(Arc<str>),
}

// === impl Checks ===

impl Checks {
    pub(super) fn add<E: fmt::Display>(&mut self, check: impl Fn() -> Result<(), E> + Send + Sync + 'static) {
        self.all.push(Arc::new(move || check().map_err(|error| one_line(&error.to_string()))));
    }

    /// Begins to ask, in the present span. A holder leads on for a `retry_period`, if the program sets no other time.
    pub(super) fn begin(self, leadership: Leadership, retry_period: Duration) -> LeadIf {
        let tolerance = self.tolerance.unwrap_or(retry_period);
        let asks = (!self.all.is_empty()).then(|| {
            let (answers, answer) = watch::channel(Answer::default());
            let task = tokio::spawn(self.ask(leadership, answers).in_current_span());
            (answer, AbortOnDropHandle::new(task))
        });
        LeadIf { tolerance, asks }
    }

    /// Asks until it is dropped.
    async fn ask(self, leadership: Leadership, answers: watch::Sender<Answer>) {
        loop {
            let asked = leadership.now();
            answers.send_if_modified(|answer| {
                answer.asked = Some(asked);
                false
            });
            let says = self.says();
            let now = leadership.now();
            answers.send_if_modified(|answer| {
                let turns = (answer.says == Says::Yes) != (says == Says::Yes) || answer.says == Says::Nothing;
                let is_news = answer.says != says;
                answer.since = if turns { now } else { answer.since };
                (answer.says, answer.asked) = (says, None);
                is_news
            });
            sleep(EVERY).await;
        }
    }

    /// What the first check says that says no, or yes. A panic says no.
    fn says(&self) -> Says {
        let refusal = self.all.iter().find_map(|check| {
            let outcome = catch_unwind(AssertUnwindSafe(|| check()));
            outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", message(&*panic)))).err()
        });
        refusal.map_or(Says::Yes, |why| Says::No(why.into()))
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checks").field(&self.all.len()).finish()
    }
}

// === impl LeadIf ===

impl LeadIf {
    /// Why the candidate may not lead now. None if it may. A check that has not returned within the tolerance says no.
    pub(super) fn refusal(&self, now: Moment) -> Option<Refusal> {
        static BLOCKS: LazyLock<Arc<str>> = LazyLock::new(|| "it does not return, and must not block".into());
        let answer = self.asks.as_ref()?.0.borrow();
        if let Some(since) = answer.asked.filter(|asked| asked.saturating_add(self.tolerance) < now) {
            return Some(Refusal { why: Some(BLOCKS.clone()), since });
        }
        let why = match &answer.says {
            Says::Yes => return None,
            Says::No(why) => Some(why.clone()),
            Says::Nothing => None,
        };
        Some(Refusal { why, since: answer.since })
    }

    /// From when on a holder gives the lease up for this refusal.
    pub(super) fn ends_term_from(&self, refusal: &Refusal) -> Moment {
        refusal.since.saturating_add(self.tolerance)
    }

    /// Waits until a check says something else. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        let changed = match &mut self.asks {
            Some((answers, _)) => answers.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            pending::<()>().await; // there is no check, or the runtime ends
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn check_that_does_not_return_says_no() {
        let at = |seconds: u32| Moment::from_nanos(1).saturating_add(seconds * SECOND);
        let asked_at_5 = Answer { says: Says::Yes, since: at(1), asked: Some(at(5)) };
        let (_answers, answer) = watch::channel(asked_at_5);
        let asks = Some((answer, AbortOnDropHandle::new(tokio::spawn(async {}))));
        let lead_if = LeadIf { tolerance: 2 * SECOND, asks };
        assert!(lead_if.refusal(at(7)).is_none());
        let refusal = lead_if.refusal(at(8)).unwrap();
        assert_eq!(refusal.why.as_deref(), Some("it does not return, and must not block"));
        assert_eq!(lead_if.ends_term_from(&refusal), at(7));
    }
}
