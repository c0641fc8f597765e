//! The clock for deadlines.

use std::{fmt, time::Duration};

/// The longest time for which a task sleeps on a timer. Timers do not count suspend. After a resume, a task that waits
/// looks at the real clock within this time.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// An instant on a [`Clock`]: nanoseconds since an origin that only that clock knows.
///
/// Do not compare moments of different clocks. The default is the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

/// A monotonic clock that also counts time while the machine is suspended
/// ([rule S13](crate::guide::guarantees#s13-the-clock-counts-suspend)).
///
/// Implement it to drive leadership from a simulation. `now` must never go backwards. Each write calls it, so keep it
/// cheap. If it panics in a task of the election, the election ends
/// ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). If it panics at the end of a write
/// that has no answer, this write counts as under way for ever. `now` must not call the leadership that uses this clock:
/// a grant reads the clock while it holds the lock of the leadership.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Moment;
}

/// The machine's own clock.
///
/// | platform | the clock | counts suspend |
/// | --- | --- | --- |
/// | Linux, Android | `CLOCK_BOOTTIME` | yes |
/// | macOS, iOS | `CLOCK_MONOTONIC` (on Linux, this name means another clock) | yes |
/// | Windows, OpenBSD | [`std::time::Instant`] | yes |
/// | FreeBSD | [`std::time::Instant`] | no: the platform has no such clock |
/// | others | [`std::time::Instant`] | the platform decides |
///
/// If a hypervisor pauses a virtual machine, the hypervisor decides whether this clock continues.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

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

    /// The time from `earlier` to this moment. Zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment plus `by`. If the sum is too large (584 years), returns the last possible moment.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

// === impl BootClock ===

impl Clock for BootClock {
    fn now(&self) -> Moment {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        return of_kernel();
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        return of_std();
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn of_kernel() -> Moment {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_vendor = "apple")]
    let now = clock_gettime(ClockId::Monotonic);
    #[cfg(not(target_vendor = "apple"))]
    let now = clock_gettime(ClockId::Boottime);
    // This clock never returns a negative part.
    Moment(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

#[cfg(any(test, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
fn of_std() -> Moment {
    use std::{sync::OnceLock, time::Instant};
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let since = ORIGIN.get_or_init(Instant::now).elapsed();
    // Never zero: a zero deadline means "not leading".
    Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    //! Both clocks, on any platform.

    use super::*;
    use std::time::Instant;

    type Now = fn() -> Moment;

    const CLOCKS: [(&str, Now); 2] = [("the platform's", || BootClock.now()), ("std's", of_std)];

    #[test]
    fn s13_machine_clock_never_moves_back() {
        for (whose, clock) in CLOCKS {
            // Read this first: if this thread pauses between the two readings, the clock must not seem to run ahead.
            let begin = Instant::now();
            let first = clock();
            assert!(first > Moment::default(), "{whose}: a deadline of zero means not leading");
            let mut last = first;
            while last.saturating_since(first) < Duration::from_millis(20) {
                let now = clock();
                assert!(now >= last, "{whose}");
                last = now;
                assert!(begin.elapsed() < Duration::from_secs(10), "{whose}: it stands still");
            }
            let took = begin.elapsed();
            assert!(took >= Duration::from_millis(19), "{whose}: it runs ahead: {took:?}");
        }
    }
}
