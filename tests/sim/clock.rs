//! The clock of a machine. Like `CLOCK_BOOTTIME`, it goes on while the process is frozen and while the machine sleeps.

use kube_leader_gate::leadership::{Clock, Moment};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// An hour, so that no moment is near the origin.
const ORIGIN: u64 = 3_600_000_000_000;

/// The clock of one process.
#[derive(Debug)]
pub struct MachineClock {
    /// When the process began, on the clock of its runtime.
    began: Instant,
    /// True while the machine runs: only then the clock of its runtime can be read.
    runs: AtomicBool,
    /// The time of the machine, in nanoseconds since the process began, as the simulation has set it last.
    floor: AtomicU64,
    /// For how long the machine has slept. The clock of the runtime has not counted that.
    slept: AtomicU64,
}

impl MachineClock {
    /// Call it in the runtime of the process.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            runs: AtomicBool::new(true),
            floor: AtomicU64::new(0),
            slept: AtomicU64::new(0),
        }
    }

    pub fn set_running(&self, runs: bool) {
        self.runs.store(runs, Ordering::Relaxed);
    }

    /// It is at least this long since the process began.
    pub fn reach(&self, since: Duration) {
        self.floor.fetch_max(nanos(since), Ordering::Relaxed);
    }

    pub fn sleep(&self, time: Duration) {
        self.slept.fetch_add(nanos(time), Ordering::Relaxed);
    }

    /// The instant on the runtime's clock at which the process will have run for this long.
    pub fn instant(&self, since: Duration) -> Instant {
        self.began + since.saturating_sub(Duration::from_nanos(self.slept.load(Ordering::Relaxed)))
    }

    /// How long the process has run.
    pub fn since(&self) -> Duration {
        let floor = self.floor.load(Ordering::Relaxed);
        let here = if self.runs.load(Ordering::Relaxed) {
            nanos(self.began.elapsed()) + self.slept.load(Ordering::Relaxed)
        } else {
            0
        };
        Duration::from_nanos(here.max(floor))
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(ORIGIN).saturating_add(self.since())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a run is short")
}
