//! A machine: a runtime of its own, with a clock that the simulation moves.
//!
//! The simulation lets each machine run for a step, one after the other. In a step the runtime goes from timer to timer by
//! itself. A machine that gets no processor is not run; when it runs again, its clock jumps.

use crate::{clock::MachineClock, net::Shared};
use fastrand::Rng;
use std::{
    cell::Cell,
    future::Future,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time::{Instant, advance, sleep_until},
};

/// How many turns the tasks have whose timers have passed, before the others.
const TURNS: u32 = 4;

thread_local! {
    /// The machine that runs now.
    static RUNNING: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The machine that runs now, on this thread.
pub fn running() -> Option<usize> {
    RUNNING.get()
}

/// A process: it ends with this.
#[derive(Debug)]
pub struct Process {
    runtime: Runtime,
    pub clock: Arc<MachineClock>,
    pub idle: Idle,
    /// The machine that it runs on. None for the API server.
    machine: Option<usize>,
    /// When it began, in milliseconds of the simulation.
    born: u64,
    /// How much faster its clock runs, in parts of a million.
    drift: i64,
    chance: Rng,
    /// It has missed steps.
    behind: bool,
}

/// Whether the runtime has nothing to do. A fresh client is made on a thread of its own; that thread waits for this, so
/// that it makes no difference how fast it is.
#[derive(Clone, Debug)]
pub struct Idle {
    home: ThreadId,
    is: Arc<(Mutex<bool>, Condvar)>,
}

/// How a process spends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Run,
    /// No processor.
    Wait,
    /// The machine sleeps.
    Sleep,
}

// === impl Process ===

impl Process {
    pub fn new(machine: Option<usize>, born: u64, drift: i64, chance: Rng) -> Self {
        let idle = Idle { home: thread::current().id(), is: Arc::default() };
        let (parks, unparks) = (idle.clone(), idle.clone());
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            // tokio wakes those who wait for one `watch` channel in any order. If messages from outside came between
            // their turns, that order would matter.
            .global_queue_interval(u32::MAX)
            .on_thread_park(move || parks.set(true))
            .on_thread_unpark(move || unparks.set(false))
            .build()
            .expect("a runtime");
        let clock = Arc::new(runtime.block_on(async { MachineClock::new() }));
        clock.set_running(false);
        Self { runtime, clock, idle, machine, born, drift, chance, behind: false }
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// How many tasks it has.
    pub fn tasks(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    /// When it began, in milliseconds of the simulation.
    pub fn born(&self) -> u64 {
        self.born
    }

    /// Lets the process run, or not, from one millisecond of the simulation to another.
    pub fn step(&mut self, net: &Shared, from: u64, to: u64, how: Step) {
        let (from, to) = (self.local(from), self.local(to));
        match how {
            Step::Run => {
                self.clock.reach(from);
                if self.behind {
                    self.wake(net, from);
                }
                self.take_in(net);
                let end = self.clock.instant(to);
                self.run(net, async move { sleep_until(end).await });
            }
            Step::Wait => {
                self.behind = true;
                self.keep(net);
            }
            Step::Sleep => {
                self.keep(net);
                self.clock.sleep(to.saturating_sub(from));
            }
        }
        self.clock.reach(to);
    }

    /// Lets the clock jump. Tasks whose timers have passed run before those that learn something from the network, or
    /// after them.
    fn wake(&mut self, net: &Shared, now: Duration) {
        self.behind = false;
        if self.chance.bool() {
            self.take_in(net);
        }
        let now = self.clock.instant(now);
        self.run(net, async move {
            advance(now.saturating_duration_since(Instant::now())).await;
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
    }

    /// Lets the network keep what arrives for this machine.
    fn keep(&self, net: &Shared) {
        if let Some(machine) = self.machine {
            net.get().keep(machine);
        }
    }

    /// Takes in what the network has kept for this machine.
    fn take_in(&self, net: &Shared) {
        if let Some(machine) = self.machine {
            net.get().take_in(machine);
        }
    }

    /// Runs tasks until `until` is ready.
    pub fn run<T>(&mut self, net: &Shared, until: impl Future<Output = T>) -> T {
        fastrand::seed(self.chance.u64(..));
        RUNNING.set(self.machine);
        self.clock.set_running(true);
        let clock = self.clock.clone();
        let output = self.runtime.block_on(async {
            net.get().run(Some(clock));
            until.await
        });
        net.get().run(None);
        self.clock.set_running(false);
        RUNNING.set(None);
        output
    }

    /// The time of this process at a millisecond of the simulation.
    fn local(&self, at: u64) -> Duration {
        let nanos = i64::try_from((at - self.born) * 1_000_000).expect("a run is short");
        Duration::from_nanos((nanos + nanos / 1_000_000 * self.drift).unsigned_abs())
    }
}

// === impl Idle ===

impl Idle {
    fn set(&self, idle: bool) {
        let (is, changed) = &*self.is;
        *is.lock().unwrap_or_else(PoisonError::into_inner) = idle;
        if idle {
            changed.notify_all();
        }
    }

    /// Waits until the runtime has nothing to do, unless its own thread asks.
    pub fn wait(&self) {
        if thread::current().id() == self.home {
            return;
        }
        let (is, changed) = &*self.is;
        let is = is.lock().unwrap_or_else(PoisonError::into_inner);
        drop(changed.wait_while(is, |idle| !*idle).unwrap_or_else(PoisonError::into_inner));
    }
}
