//! How long a lease lasts, the times that depend on it, and their text.

use super::record::LONGEST_SANE;
use crate::invalid::ErrInvalid;
use std::{fmt, str::FromStr, time::Duration};

/// client-go's jitter: a polling candidate waits up to this many times the retry period.
pub(crate) const JITTER: f64 = 1.2;
/// The shortest retry period. A shorter one would flood the API server.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
/// The shortest call timeout.
const SHORTEST_CALL: Duration = Duration::from_millis(20);
/// The longest call timeout, unless the user sets one.
const DEFAULT_CALL: Duration = Duration::from_secs(5);
/// The longest pause between attempts to renew.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How many attempts must fit between a failed renewal and the deadline (rule S9).
const ATTEMPTS: u32 = 3;

/// The times of an election, always valid.
///
/// | | default | [`fast`](Self::fast) | |
/// | --- | --- | --- | --- |
/// | lease duration | 137 s | 15 s | how long the other candidates wait for a silent holder; the lease contains this time |
/// | renew deadline | 107 s | 10 s | how long this process may write after it sent its last successful renewal ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)) |
/// | retry period | 26 s | 2 s | how often the holder renews; how often a candidate without a watch polls |
/// | call timeout | 5 s | 1.6 s | how long one lease call may take ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)) |
///
/// The default times are those of `OpenShift`. The `fast` times are those of the core Kubernetes controllers.
///
/// Its text form is `lease duration/renew deadline/retry period` in seconds, and the call timeout if the other times do
/// not imply it. [`FromStr`] reads this form, `default`, `fast`, and a lease duration alone. For a lease duration alone, the
/// other times have the same proportions as in `fast`.
///
/// ```
/// use kube_leader_gate::lease::LeaseTiming;
///
/// let timing: LeaseTiming = "15/10/2".parse()?;
/// assert_eq!(timing, LeaseTiming::fast());
/// assert_eq!("30".parse::<LeaseTiming>()?.to_string(), "30/20/4");
/// assert_eq!("default".parse::<LeaseTiming>()?.to_string(), "137/107/26");
/// assert!("15/10".parse::<LeaseTiming>().unwrap_err().to_string().contains("15/10/2"));
/// # Ok::<(), kube_leader_gate::ErrInvalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseTiming {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    call_timeout: Duration,
}

// === impl LeaseTiming ===

impl Default for LeaseTiming {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(137),
            renew_deadline: Duration::from_secs(107),
            retry_period: Duration::from_secs(26),
            call_timeout: DEFAULT_CALL,
        }
    }
}

impl LeaseTiming {
    /// 15/10/2 s, the times of the core Kubernetes controllers.
    #[must_use]
    pub fn fast() -> Self {
        let timing = Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            call_timeout: Duration::ZERO,
        };
        Self { call_timeout: timing.default_call(), ..timing }
    }

    /// Makes a timing from your own times. The call timeout is computed from them.
    ///
    /// # Errors
    /// [`ErrInvalid`] names the first value that breaks a rule, and the allowed range. The rules are:
    ///
    /// - client-go's: `lease duration > renew deadline > retry period x 1.2`, all positive;
    /// - the lease duration is in whole seconds, since the API has no fractions of a second, and at most a day, since
    ///   candidates take a longer duration for a typing error;
    /// - three attempts fit between a failed renewal and the deadline
    ///   ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)).
    ///
    /// If a client-go candidate contends for the same lease, choose times with which the holder renews at most once a second.
    /// client-go compares renew times in whole seconds, so it misses faster renewals and takes over up to a second early.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, ErrInvalid> {
        let refuse = |what, given: Duration, allowed: String| Err(refused(what, given, allowed));
        let longest = LONGEST_SANE;
        if lease_duration.subsec_nanos() != 0 || lease_duration.is_zero() || lease_duration > longest {
            return refuse("lease duration", lease_duration, format!("whole seconds from 1s to {longest:?}"));
        }
        if retry_period < SHORTEST_RETRY {
            return refuse("retry period", retry_period, format!("at least {SHORTEST_RETRY:?}"));
        }
        if renew_deadline >= lease_duration {
            let allowed = format!("less than the lease duration, {lease_duration:?}");
            return refuse("renew deadline", renew_deadline, allowed);
        }
        let longest_retry = renew_deadline.div_f64(JITTER);
        if retry_period >= longest_retry {
            let allowed = format!("less than the renew deadline / {JITTER}, {longest_retry:?}");
            return refuse("retry period", retry_period, allowed);
        }
        let mut timing = Self { lease_duration, renew_deadline, retry_period, call_timeout: Duration::ZERO };
        timing.call_timeout = timing.default_call();
        if timing.call_timeout < SHORTEST_CALL {
            let shortest = retry_period + timing.pause() * ATTEMPTS + SHORTEST_CALL * (ATTEMPTS + 1);
            let allowed = format!(
                "at least {shortest:?} with this retry period, so that a failed renewal and {ATTEMPTS} more \
                 attempts fit before it"
            );
            return refuse("renew deadline", renew_deadline, allowed);
        }
        Ok(timing)
    }

    /// Sets the time limit of each lease call.
    ///
    /// # Errors
    /// [`ErrInvalid`] if a failed renewal and three more attempts do not fit before the deadline
    /// ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)).
    pub fn with_call_timeout(self, call_timeout: Duration) -> Result<Self, ErrInvalid> {
        let longest = self.longest_call();
        if !(SHORTEST_CALL..=longest).contains(&call_timeout) {
            let allowed = format!(
                "{SHORTEST_CALL:?} to {longest:?}, so that a failed renewal and {ATTEMPTS} more attempts fit before \
                 the renew deadline"
            );
            return Err(refused("call timeout", call_timeout, allowed));
        }
        Ok(Self { call_timeout, ..self })
    }

    /// How long the other candidates wait for a silent holder.
    #[must_use]
    pub const fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long this process may write after it sent its last successful renewal.
    #[must_use]
    pub const fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How often the holder renews.
    #[must_use]
    pub const fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// How long one lease call may take.
    #[must_use]
    pub const fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// The lease duration minus the renew deadline. If clocks drift apart by more than this during one lease duration, or if
    /// a write is delayed by more than this, two replicas can write at the same time.
    #[must_use]
    pub fn safety_margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    /// The longest outage of the API server that never costs a leader its term. This assumes the worst case: the outage
    /// begins just before a renewal, each call hangs, and the first attempt after the outage takes the whole call timeout.
    #[must_use]
    pub fn tolerated_outage(&self) -> Duration {
        self.renew_deadline.saturating_sub(self.retry_period + self.pause() + self.call_timeout * 2)
    }

    /// The pause after a failed attempt.
    pub(crate) fn pause(&self) -> Duration {
        LONGEST_PAUSE.min(self.retry_period / 4)
    }

    /// The lease duration in whole seconds, as in the API.
    pub(crate) fn lease_seconds(&self) -> u64 {
        self.lease_duration.as_secs()
    }

    /// The call timeout that the other times imply.
    fn default_call(&self) -> Duration {
        self.longest_call().min(DEFAULT_CALL)
    }

    /// The longest call timeout that leaves room for a failed renewal and three attempts with their pauses.
    fn longest_call(&self) -> Duration {
        let room = self.renew_deadline.saturating_sub(self.retry_period + self.pause() * ATTEMPTS);
        room / (ATTEMPTS + 1)
    }
}

fn refused(what: &str, given: impl fmt::Debug, allowed: impl fmt::Display) -> ErrInvalid {
    ErrInvalid::new(format_args!("invalid lease timing: the {what} is"), given, allowed)
}

// --- as text, in an option or in words ---

const ALLOWED: &str = "default, fast, a lease duration in seconds, or three numbers of seconds, as 15/10/2: lease \
                       duration, renew deadline, retry period; a fourth one is the call timeout";

/// A time as a decimal number of seconds.
struct Seconds(Duration);

impl LeaseTiming {
    /// Says what the times mean, in words for the log.
    pub(crate) fn summary(&self) -> String {
        let Self { lease_duration: lease, renew_deadline: renew, retry_period: retry, call_timeout: call } =
            self;
        // A candidate without a watch sees the lease up to one poll late.
        let poll = retry.mul_f64(JITTER);
        format!(
            "lease {lease:?}, renew deadline {renew:?}, retry {retry:?}, call timeout {call:?}: a released lease changes \
             hands in milliseconds ({poll:?} without watch), a crashed leader's after {lease:?} ({:?} without watch); \
             tolerates {:?} of API server outage and {:?} of clock drift or delay",
            *lease + poll,
            self.tolerated_outage(),
            self.safety_margin(),
        )
    }
}

impl fmt::Display for LeaseTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lease, renew, retry] =
            [self.lease_duration, self.renew_deadline, self.retry_period].map(Seconds);
        write!(f, "{lease}/{renew}/{retry}")?;
        if self.call_timeout == self.default_call() {
            return Ok(());
        }
        write!(f, "/{}", Seconds(self.call_timeout))
    }
}

impl FromStr for LeaseTiming {
    type Err = ErrInvalid;

    fn from_str(text: &str) -> Result<Self, ErrInvalid> {
        match text {
            "default" => return Ok(Self::default()),
            "fast" => return Ok(Self::fast()),
            _ => {}
        }
        let times: Vec<Duration> =
            text.split('/').map(|time| Ok(time.parse::<Seconds>()?.0)).collect::<Result<_, ErrInvalid>>()?;
        match times[..] {
            [lease] => Self::new(lease, lease / 3 * 2, lease / 15 * 2),
            [lease, renew, retry] => Self::new(lease, renew, retry),
            [lease, renew, retry, call] => Self::new(lease, renew, retry)?.with_call_timeout(call),
            _ => Err(refused("text", text, ALLOWED)),
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
    type Err = ErrInvalid;

    /// Accepts only decimal digits, so that no value is rounded.
    fn from_str(text: &str) -> Result<Self, ErrInvalid> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let exact = digits(whole) && digits(fraction) && fraction.len() <= 9;
        let time = || Some(Duration::new(whole.parse().ok()?, format!("{fraction:0<9}").parse().ok()?));
        exact.then(time).flatten().map(Self).ok_or_else(|| refused("number of seconds", text, ALLOWED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_says_what_the_default_times_mean() {
        let meant = "lease 137s, renew deadline 107s, retry 26s, call timeout 5s: a released lease changes hands in \
                     milliseconds (31.2s without watch), a crashed leader's after 137s (168.2s without watch); tolerates \
                     70.5s of API server outage and 30s of clock drift or delay";
        assert_eq!(LeaseTiming::default().summary(), meant);
    }
}
