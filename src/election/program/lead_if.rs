//! Whether the program lets this candidate lead.

use crate::{
    election::panics::message,
    leadership::{Leadership, Moment},
    one_line::one_line,
};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// How often the checks are asked.
const EVERY: Duration = Duration::from_millis(250);

type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of a program: it lets its candidate lead only while all of them say yes.
pub(crate) struct LeadIf {
    checks: Vec<Check>,
    /// For how long a holder leads on while a check says no.
    pub(crate) tolerance: Option<Duration>,
    /// What the first check says that says no, and since when one does.
    refusal: Option<(String, Moment)>,
    /// Whether all checks have ever said yes.
    has_agreed: bool,
    asks_at: Moment,
}

// === impl LeadIf ===

impl LeadIf {
    pub(super) const fn new() -> Self {
        Self {
            checks: Vec::new(),
            tolerance: None,
            refusal: None,
            has_agreed: false,
            asks_at: Moment::from_nanos(0),
        }
    }

    pub(crate) fn add<E: fmt::Display>(&mut self, check: impl Fn() -> Result<(), E> + Send + Sync + 'static) {
        self.checks.push(Box::new(move || check().map_err(|error| one_line(&error.to_string()))));
    }

    /// Asks the checks, if it is time. A panic says no. Returns whether they say yes again, after a no that was no longer
    /// tolerated.
    pub(super) fn ask(&mut self, leadership: &Leadership) -> bool {
        if self.asks_at().is_none_or(|at| leadership.now() < at) {
            return false;
        }
        let refusal = self.checks.iter().find_map(|check| {
            let said = catch_unwind(AssertUnwindSafe(check));
            said.unwrap_or_else(|panic| Err(format!("it panicked: {}", message(&*panic)))).err()
        });
        let now = leadership.now(); // a check may take its time
        let agrees = refusal.is_none();
        let agrees_again = self.has_agreed && agrees && self.ends_term_from().is_some_and(|from| from <= now);
        let since = self.refusal.take().map_or(now, |(_, since)| since);
        (self.refusal, self.asks_at) = (refusal.map(|why| (why, since)), now.saturating_add(EVERY));
        self.has_agreed |= agrees;
        agrees_again
    }

    /// Why the candidate may not lead now, in words for a person. None if it may.
    pub(super) fn refusal(&self) -> Option<&String> {
        self.refusal.as_ref().map(|(why, _)| why)
    }

    /// From when on a holder gives the lease up.
    pub(super) fn ends_term_from(&self) -> Option<Moment> {
        let (_, since) = self.refusal.as_ref()?;
        Some(since.saturating_add(self.tolerance.unwrap_or_default()))
    }

    /// When to ask the checks next. None without a check.
    pub(super) fn asks_at(&self) -> Option<Moment> {
        (!self.checks.is_empty()).then_some(self.asks_at)
    }
}
