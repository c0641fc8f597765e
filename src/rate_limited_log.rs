//! Logs trouble when it begins, again every five minutes while it lasts, and when it is over. If it comes and goes, only the
//! first times within five minutes are logged.

use crate::{leadership::clock::Moment, one_line::bounded};
use std::{fmt, sync::Arc, time::Duration};

/// The log target for the trouble of an election.
const TARGET: &str = "kube_leader_gate::election";

/// How often a lasting trouble is a warning.
const REMINDER: Duration = Duration::from_secs(5 * 60);

/// How many warnings of a trouble that begins anew are logged within this time.
const MOST_OFTEN: u32 = 3;

/// The most characters of a trouble: those of a text from outside, and what this crate says of it.
const LONGEST: usize = 1_500;

/// One sort of trouble, and whether it exists now.
#[derive(Debug)]
pub(crate) struct RateLimitedLog {
    what: &'static str,
    /// The kinds of the present trouble. The one that was raised last is last.
    raised: Vec<Raised>,
    /// How often the trouble has begun within the present five minutes, and when these began.
    begun: (u32, Moment),
}

/// One kind of a trouble that lasts.
#[derive(Debug)]
struct Raised {
    kind: &'static str,
    /// Its newest message.
    text: Arc<str>,
    began: Moment,
    warned: Moment,
    /// Whether there was a warning.
    is_told: bool,
    times: u64,
}

/// A line that is to be logged.
#[derive(Debug)]
#[must_use = "nothing has logged it yet"]
pub(crate) struct Line {
    says: Says,
    kind: &'static str,
    times: u64,
    lasts: Duration,
}

#[derive(Debug)]
enum Says {
    Warning(String),
    /// Since the last warning.
    Again(String),
    Over(&'static str),
    /// No warning has told of it.
    OverUntold(&'static str),
}

// === impl RateLimitedLog ===

impl RateLimitedLog {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, raised: Vec::new(), begun: (0, Moment::from_nanos(0)) }
    }

    /// Logs trouble of this `kind`: as a warning if it is new, or if the last warning of this kind is five minutes
    /// old. Otherwise at `debug`. The details become one line.
    pub(crate) fn raise(&mut self, kind: &'static str, details: &dyn fmt::Display, now: Moment) {
        self.note(Some((kind, details)), now).into_iter().for_each(Line::log);
    }

    /// Logs that the trouble is over, if there was any: its last kind, and the count and the time of all kinds.
    pub(crate) fn settle(&mut self, now: Moment) {
        self.note(None, now).into_iter().for_each(Line::log);
    }

    /// Does what [`raise`](Self::raise) and [`settle`](Self::settle) do, but leaves the line to the caller, who may hold a lock.
    pub(crate) fn note(
        &mut self,
        trouble: Option<(&'static str, &dyn fmt::Display)>,
        now: Moment,
    ) -> Option<Line> {
        match trouble {
            Some((kind, details)) => Some(self.raised(kind, details, now)),
            None => self.settled(now),
        }
    }

    fn raised(&mut self, kind: &'static str, details: &dyn fmt::Display, now: Moment) -> Line {
        let text = bounded(&format!("{}: {details}", self.what), LONGEST);
        let known = self.raised.iter().position(|raised| raised.kind == kind);
        let mut raised = if let Some(at) = known {
            self.raised.remove(at)
        } else {
            Raised { kind, text: (&*text).into(), began: now, warned: now, is_told: false, times: 0 }
        };
        if *raised.text != *text {
            raised.text = (&*text).into();
        }
        raised.times += 1;
        let (times, lasts) = (raised.times, now.saturating_since(raised.began));
        let is_due = known.is_none() && self.may_warn(now) || now.saturating_since(raised.warned) >= REMINDER;
        if is_due {
            (raised.warned, raised.is_told) = (now, true);
        }
        let says = if is_due { Says::Warning(text) } else { Says::Again(text) };
        self.raised.push(raised);
        Line { says, kind, times, lasts }
    }

    /// Whether a trouble that begins now is worth a warning.
    fn may_warn(&mut self, now: Moment) -> bool {
        let (times, since) = self.begun;
        let is_over = now.saturating_since(since) >= REMINDER;
        self.begun = if times == 0 || is_over { (1, now) } else { (times.saturating_add(1), since) };
        self.begun.0 <= MOST_OFTEN
    }

    fn settled(&mut self, now: Moment) -> Option<Line> {
        let kind = self.raised.last()?.kind;
        let times: u64 = self.raised.iter().map(|raised| raised.times).sum();
        let began = self.raised.iter().map(|raised| raised.began).min().unwrap_or(now);
        let lasts = now.saturating_since(began);
        let is_told = self.raised.drain(..).any(|raised| raised.is_told);
        let says = if is_told { Says::Over(self.what) } else { Says::OverUntold(self.what) };
        Some(Line { says, kind, times, lasts })
    }

    pub(crate) const fn what(&self) -> &'static str {
        self.what
    }

    /// The newest message of the kind that was raised last, while the trouble lasts.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        self.raised.last().map(|raised| &raised.text)
    }
}

// === impl Line ===

impl Line {
    pub(crate) fn log(self) {
        let Self { says, kind, times, lasts } = self;
        match says {
            Says::Warning(text) => tracing::warn!(target: TARGET, error = kind, times, ?lasts, "{text}"),
            Says::Again(text) => tracing::debug!(target: TARGET, error = kind, times, ?lasts, "{text}"),
            Says::Over(what) => {
                tracing::info!(target: TARGET, error = kind, times, ?lasts, "no longer: {what}");
            }
            Says::OverUntold(what) => {
                tracing::debug!(target: TARGET, error = kind, times, ?lasts, "no longer: {what}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io,
        sync::{Arc, LazyLock, Mutex},
    };
    use tracing::{Dispatch, subscriber::NoSubscriber};
    use tracing_subscriber::fmt::MakeWriter;

    /// While there is one dispatcher, tracing decides for all threads by the thread that first meets a message. Another
    /// test may run on that thread, without a subscriber.
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// The level and the fields of each line at `info` or above. The message is left out.
    fn logged(scene: impl FnOnce(&mut RateLimitedLog)) -> Vec<String> {
        LazyLock::force(&SECOND);
        let lines = Lines::default();
        let format = tracing_subscriber::fmt::format().without_time().with_target(false).with_ansi(false);
        let subscriber = tracing_subscriber::fmt().event_format(format).with_writer(lines.clone()).finish();
        tracing::subscriber::with_default(subscriber, || scene(&mut RateLimitedLog::new("lease calls fail")));
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| {
            let (level, rest) = line.trim_start().split_once(' ').unwrap();
            assert!(rest.contains("lease calls fail"), "{line}");
            format!("{level} {}", rest.split_once("error=").unwrap().1)
        });
        lines.collect()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn trouble_is_logged_once_per_change() {
        let lines = logged(|rate_limited_log| {
            rate_limited_log.settle(at(9));
            for _ in 0..100 {
                rate_limited_log.raise("forbidden", &"403", at(10));
            }
            rate_limited_log.raise("timeout", &"no answer", at(11));
            rate_limited_log.settle(at(12));
            rate_limited_log.settle(at(13));
        });
        assert_eq!(
            lines,
            [
                r#"WARN "forbidden" times=1 lasts=0ns"#,
                r#"WARN "timeout" times=1 lasts=0ns"#,
                r#"INFO "timeout" times=101 lasts=2s"#,
            ]
        );
    }

    #[test]
    fn lasting_trouble_is_warned_every_five_minutes() {
        let lines = logged(|rate_limited_log| {
            // As of an API server that is away for eleven minutes.
            for second in (0..=660).step_by(20) {
                rate_limited_log.raise("timeout", &"no answer", at(second));
            }
            rate_limited_log.settle(at(661));
            rate_limited_log.raise("timeout", &"no answer", at(662));
        });
        assert_eq!(
            lines,
            [
                r#"WARN "timeout" times=1 lasts=0ns"#,
                r#"WARN "timeout" times=16 lasts=300s"#,
                r#"WARN "timeout" times=31 lasts=600s"#,
                r#"INFO "timeout" times=34 lasts=661s"#,
                r#"WARN "timeout" times=1 lasts=0ns"#,
            ]
        );
    }

    #[test]
    fn alternating_kinds_are_counted_apart() {
        let lines = logged(|rate_limited_log| {
            for second in (0..=310).step_by(10) {
                let kind = if second % 20 == 0 { "timeout" } else { "unreachable" };
                rate_limited_log.raise(kind, &"no answer", at(second));
            }
        });
        assert_eq!(
            lines,
            [
                r#"WARN "timeout" times=1 lasts=0ns"#,
                r#"WARN "unreachable" times=1 lasts=0ns"#,
                r#"WARN "timeout" times=16 lasts=300s"#,
                r#"WARN "unreachable" times=16 lasts=300s"#,
            ]
        );
    }

    #[test]
    fn trouble_that_comes_and_goes_is_logged_three_times_in_five_minutes() {
        let lines = logged(|rate_limited_log| {
            for second in (0..=400).step_by(2) {
                rate_limited_log.raise("timeout", &"no answer", at(second));
                rate_limited_log.settle(at(second + 1));
            }
        });
        let told = [r#"WARN "timeout" times=1 lasts=0ns"#, r#"INFO "timeout" times=1 lasts=1s"#];
        assert_eq!(lines, [told, told, told, told, told, told].concat());
    }

    #[test]
    fn text_is_newest_message() {
        let mut rate_limited_log = RateLimitedLog::new("lease calls fail");
        let raise = |rate_limited_log: &mut RateLimitedLog, kind, details: &str| {
            rate_limited_log.raise(kind, &details, at(1));
            rate_limited_log.text().map(ToString::to_string)
        };
        let said = |text: &str| Some(format!("lease calls fail: {text}"));
        assert_eq!(raise(&mut rate_limited_log, "timeout", "first"), said("first"));
        assert_eq!(raise(&mut rate_limited_log, "forbidden", "second"), said("second"));
        assert_eq!(raise(&mut rate_limited_log, "timeout", "third"), said("third"));
        rate_limited_log.settle(at(2));
        assert_eq!(rate_limited_log.text(), None);
    }
}
