//! A trouble that many requests meet. Its lines do not follow the number of requests.

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How often a lasting trouble is a warning.
const REMINDER: Duration = Duration::from_secs(5 * 60);

/// The most characters of a line.
const LONGEST: usize = 1_500;

pub(crate) struct Recurring {
    what: &'static str,
    lasts: AtomicBool,
    present: Mutex<Option<Present>>,
}

struct Present {
    warned: Instant,
    times: u64,
}

// === impl Recurring ===

impl Recurring {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, lasts: AtomicBool::new(false), present: Mutex::new(None) }
    }

    /// Warns if the trouble is new, or if the last warning is five minutes old.
    pub(crate) fn raise(&self, details: impl fmt::Display) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = present.as_ref().is_none_or(|it| it.warned.elapsed() >= REMINDER);
        let times = present.as_ref().map_or(1, |it| it.times + 1);
        let warned = present.as_ref().filter(|_| !is_new).map_or_else(Instant::now, |it| it.warned);
        *present = Some(Present { warned, times });
        self.lasts.store(true, Ordering::Relaxed);
        drop(present);
        let text: String = format!("{}: {details}", self.what).chars().take(LONGEST).collect();
        if is_new {
            tracing::warn!(times, "{text}");
        } else {
            tracing::debug!(times, "{text}");
        }
    }

    /// The trouble is over, if there was any.
    pub(crate) fn settle(&self) {
        if !self.lasts.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(Present { times, .. }) =
            self.present.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            tracing::info!(times, "no longer: {}", self.what);
        }
    }
}
