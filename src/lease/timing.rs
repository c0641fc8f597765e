//! How long a lease lasts, and the times that depend on it.

#[cfg(doc)]
use std::str::FromStr;
use std::{error::Error, fmt, time::Duration};

/// client-go's jitter: a polling candidate waits up to this many times the retry period.
pub(crate) const JITTER: f64 = 1.2;
/// The shortest retry period. A shorter one would flood the API server.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
/// The shortest call timeout.
const SHORTEST_CALL: Duration = Duration::from_millis(20);
/// The longest call timeout, unless the user sets one.
const DEFAULT_CALL: Duration = Duration::from_millis(2500);
/// The longest pause between attempts to renew.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How many attempts must fit between a failed renewal and the deadline (rule S9).
const ATTEMPTS: u32 = 3;

/// The times of an election, always valid.
///
/// | | default | [`fast`](Self::fast) | |
/// | --- | --- | --- | --- |
/// | lease duration | 137 s | 15 s | how long the other candidates wait for a silent holder; the lease holds it |
/// | renew deadline | 107 s | 10 s | how long this process may write after it sent its last successful renewal ([rule S1](crate::guide::guarantees#s1-leading-is-a-deadline)) |
/// | retry period | 26 s | 2 s | how often the holder renews; how often a candidate without a watch polls |
/// | call timeout | 2.5 s | 1.6 s | how long one lease call may take ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)) |
///
/// The default times are those of `OpenShift`. The `fast` times are those of the core Kubernetes controllers.
///
/// Its text form is `lease duration/renew deadline/retry period` in seconds. The call timeout follows if it differs
/// from the one that the other times imply. [`FromStr`] reads this, `default` and `fast`. [`summary`](Self::summary)
/// says what the times mean.
///
/// ```
/// use kube_leader_gate::lease::LeaseTiming;
///
/// let timing: LeaseTiming = "15/10/2".parse()?;
/// assert_eq!(timing, LeaseTiming::fast());
/// assert_eq!("default".parse::<LeaseTiming>()?.to_string(), "137/107/26");
/// assert!("15/10".parse::<LeaseTiming>().unwrap_err().to_string().contains("15/10/2"));
/// # Ok::<(), kube_leader_gate::lease::ErrInvalidTiming>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseTiming {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    call_timeout: Duration,
}

/// The times cannot work. The error says what was given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrInvalidTiming {
    what: &'static str,
    given: String,
    allowed: String,
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
    /// [`ErrInvalidTiming`] names the first value that breaks a rule, and the allowed range. The rules are:
    ///
    /// - client-go's: `lease duration > renew deadline > retry period x 1.2`, all positive;
    /// - whole seconds for the lease duration, since the API has no fractions;
    /// - three attempts fit between a failed renewal and the deadline
    ///   ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)).
    ///
    /// If client-go candidates use the same lease, renew at most once a second. They compare renewals by whole
    /// seconds, so they miss faster renewals and take over up to a second early.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, ErrInvalidTiming> {
        let refuse =
            |what, given: Duration, allowed| Err(ErrInvalidTiming::new(what, format!("{given:?}"), allowed));
        let longest = Duration::from_secs(i32::MAX as u64);
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
    /// [`ErrInvalidTiming`] if a failed renewal and three more attempts do not fit before the deadline
    /// ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)).
    pub fn with_call_timeout(self, call_timeout: Duration) -> Result<Self, ErrInvalidTiming> {
        let longest = self.longest_call();
        if !(SHORTEST_CALL..=longest).contains(&call_timeout) {
            let allowed = format!(
                "{SHORTEST_CALL:?} to {longest:?}, so that a failed renewal and {ATTEMPTS} more attempts fit before \
                 the renew deadline"
            );
            return Err(ErrInvalidTiming::new("call timeout", format!("{call_timeout:?}"), allowed));
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

    /// The lease duration less the renew deadline. If clocks drift apart by more than this over one lease, or a write
    /// is delayed by more, two replicas can write at once.
    #[must_use]
    pub fn tolerated_skew(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    /// The longest outage of the API server that never costs a leader its term. This assumes the worst case: it
    /// begins just before a renewal, each call hangs, and the first attempt after it takes the whole call timeout.
    #[must_use]
    pub fn tolerated_outage(&self) -> Duration {
        self.renew_deadline.saturating_sub(self.retry_period + self.pause() + self.call_timeout * 2)
    }

    /// How long a released lease can have no holder if candidates cannot watch it. With a watch it is milliseconds.
    #[must_use]
    pub fn polled_handover(&self) -> Duration {
        self.retry_period.mul_f64(JITTER)
    }

    /// How long a crashed leader's lease has no successor, counted from its last renewal.
    #[must_use]
    pub const fn crash_failover(&self) -> Duration {
        self.lease_duration
    }

    /// The same if candidates cannot watch the lease: they see a renewal up to one poll late.
    #[must_use]
    pub fn polled_crash_failover(&self) -> Duration {
        self.lease_duration + self.polled_handover()
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
    pub(super) fn default_call(&self) -> Duration {
        self.longest_call().min(DEFAULT_CALL)
    }

    /// The longest call timeout that leaves room for a failed renewal and three attempts with their pauses.
    fn longest_call(&self) -> Duration {
        let room = self.renew_deadline.saturating_sub(self.retry_period + self.pause() * ATTEMPTS);
        room / (ATTEMPTS + 1)
    }
}

// === impl ErrInvalidTiming ===

impl ErrInvalidTiming {
    pub(super) fn new(what: &'static str, given: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { what, given: given.into(), allowed: allowed.into() }
    }

    /// Which value was refused: `renew deadline`, for example.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The value, as given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The values that are allowed, in words.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ErrInvalidTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid lease timing: the {} is {}, allowed: {}", self.what, self.given, self.allowed)
    }
}

impl Error for ErrInvalidTiming {}
