//! The clock that deadlines are kept on.

use std::{fmt, time::Duration};

/// The longest that a timer is trusted to sleep. Timers do not count suspend: after a resume, a task that waits looks at
/// the real clock within this time.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// An instant on a [`Clock`]: nanoseconds since an origin that only that clock knows.
///
/// Moments of different clocks must not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

/// A monotonic clock that counts the time a machine was suspended (rule S13).
///
/// Implement it to drive leadership from a simulation. `now` must never go backwards, and is called on the path of
/// every write: keep it cheap.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Moment;
}

/// The machine's own clock: `CLOCK_BOOTTIME` on Linux and Android, which goes on while the machine is suspended.
///
/// What a hypervisor does to the clock of a virtual machine that it pauses is the hypervisor's affair.
///
/// Elsewhere it is [`std::time::Instant`], whose behaviour over a suspend is the platform's.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock(());

// === impl Moment ===

impl Moment {
    /// The moment `nanos` nanoseconds after the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment, zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment moved on by `by`; the last moment there is if that is past it (584 years).
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

// === impl BootClock ===

impl BootClock {
    /// The machine's clock.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Clock for BootClock {
    fn now(&self) -> Moment {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        // Neither part is ever negative on this clock.
        Moment(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Clock for BootClock {
    fn now(&self) -> Moment {
        use std::{sync::OnceLock, time::Instant};
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let since = ORIGIN.get_or_init(Instant::now).elapsed();
        // Never zero: the word reads a zero deadline as "not leading".
        Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1))
    }
}
