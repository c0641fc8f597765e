//! A timing as text, in an option or in words.

use super::timing::{ErrInvalidTiming, LeaseTiming};
use std::{fmt, str::FromStr, time::Duration};

const ALLOWED: &str = "default, fast, or three numbers of seconds, as 15/10/2: lease duration, renew deadline, retry \
                       period; a fourth one is the call timeout";

/// A time as a decimal number of seconds.
struct Seconds(Duration);

struct Summary(LeaseTiming);

// === impl LeaseTiming ===

impl LeaseTiming {
    /// Says what the times mean, in words for the log.
    ///
    /// ```
    /// use kube_leader_gate::lease::LeaseTiming;
    ///
    /// assert_eq!(
    ///     LeaseTiming::default().summary().to_string(),
    ///     "lease 137s, renew deadline 107s, retry 26s, call timeout 2.5s: \
    ///      a released lease changes hands in milliseconds (31.2s without watch), \
    ///      a crashed leader's after 137s (168.2s without watch); \
    ///      tolerates 75.5s of API server outage and 30s of clock drift or delay"
    /// );
    /// ```
    #[must_use]
    pub fn summary(&self) -> impl fmt::Display + use<> {
        Summary(*self)
    }
}

impl fmt::Display for LeaseTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lease, renew, retry] =
            [self.lease_duration(), self.renew_deadline(), self.retry_period()].map(Seconds);
        write!(f, "{lease}/{renew}/{retry}")?;
        if self.call_timeout() == self.default_call() {
            return Ok(());
        }
        write!(f, "/{}", Seconds(self.call_timeout()))
    }
}

impl FromStr for LeaseTiming {
    type Err = ErrInvalidTiming;

    fn from_str(text: &str) -> Result<Self, ErrInvalidTiming> {
        match text {
            "default" => return Ok(Self::default()),
            "fast" => return Ok(Self::fast()),
            _ => {}
        }
        let times: Vec<Duration> = text
            .split('/')
            .map(|time| Ok(time.parse::<Seconds>()?.0))
            .collect::<Result<_, ErrInvalidTiming>>()?;
        match times[..] {
            [lease, renew, retry] => Self::new(lease, renew, retry),
            [lease, renew, retry, call] => Self::new(lease, renew, retry)?.with_call_timeout(call),
            _ => Err(ErrInvalidTiming::new("text", format!("{text:?}"), ALLOWED)),
        }
    }
}

// === impl Seconds ===

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_secs())?;
        if self.0.subsec_nanos() == 0 {
            return Ok(());
        }
        let nanos = format!("{:09}", self.0.subsec_nanos());
        write!(f, ".{}", nanos.trim_end_matches('0'))
    }
}

impl FromStr for Seconds {
    type Err = ErrInvalidTiming;

    /// Accepts only decimal digits, so that no value is rounded.
    fn from_str(text: &str) -> Result<Self, ErrInvalidTiming> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let nanos = (digits(fraction) && fraction.len() <= 9).then(|| format!("{fraction:0<9}"));
        let time = digits(whole)
            .then_some(whole)
            .and_then(|whole| Some(Duration::new(whole.parse().ok()?, nanos?.parse().ok()?)));
        time.map(Self).ok_or_else(|| ErrInvalidTiming::new("number of seconds", format!("{text:?}"), ALLOWED))
    }
}

// === impl Summary ===

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(timing) = self;
        write!(
            f,
            "lease {:?}, renew deadline {:?}, retry {:?}, call timeout {:?}: a released lease changes hands in \
             milliseconds ({:?} without watch), a crashed leader's after {:?} ({:?} without watch); tolerates {:?} of \
             API server outage and {:?} of clock drift or delay",
            timing.lease_duration(),
            timing.renew_deadline(),
            timing.retry_period(),
            timing.call_timeout(),
            timing.polled_handover(),
            timing.crash_failover(),
            timing.polled_crash_failover(),
            timing.tolerated_outage(),
            timing.tolerated_skew(),
        )
    }
}
