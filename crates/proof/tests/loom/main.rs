//! Model-checks the shipped [`Grantor`], [`Grant`], [`WritePermit`] and [`Leadership`] with loom: threads that grant,
//! extend, end, admit and drain in every order.
//!
//! The atomics and the lock of the state come from loom. The wake-ups are tokio's own: loom does not switch threads
//! within them, but before and after.
//!
//! The shipped files are among the files of this program: `build.rs` copies them, with `sync.rs` of this folder.

mod terms;
mod word;
mod writes;

#[allow(dead_code, unused_imports, unreachable_pub, reason = "the models use a part of it")]
mod shipped {
    include!(concat!(env!("OUT_DIR"), "/shipped.rs"));
}

use loom::{
    model::Builder,
    sync::atomic::{AtomicU64, Ordering},
};
use shipped::{
    leadership::{self, Clock, Grant, Grantor, Leadership, Loss, Moment, Term, WritePermit},
    one_line, rate_limited_log,
};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
    task::{Context, Wake, Waker},
};

/// The deadline of the first term. The clock begins at [`START`].
const DEADLINE: u64 = 100;
const START: u64 = 10;

/// Runs `test` in all orders but those in which threads are interrupted more than `preemptions` times. Use it where
/// [`loom::model`], which tries every order, takes too long.
fn most_orders(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut orders = Builder::new();
    orders.preemption_bound = Some(preemptions);
    orders.check(test);
}

/// A clock that a test sets. Each reading is the newest time, but orders nothing else, as with the machine's clock.
#[derive(Debug)]
struct Hand(AtomicU64);

impl Hand {
    fn set(&self, nanos: u64) {
        self.0.swap(nanos, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.0.fetch_add(0, Ordering::Relaxed))
    }
}

/// A clock that stands still. It adds no step to a model.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Moment {
        Moment::from_nanos(START)
    }
}

/// A clock of which no two readings are equal. It adds no step to a model.
#[derive(Debug)]
struct Ticking(std::sync::atomic::AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn ticking() -> Arc<Ticking> {
    Arc::new(Ticking(START.into()))
}

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn term(transitions: u64) -> Term {
    Term::new("u", transitions)
}

/// A leader in its first term.
fn leading(clock: Arc<dyn Clock>) -> (Grantor, Leadership, Grant) {
    let grantor = Grantor::with_clock(clock);
    let grant = grantor.grant(term(1), at(DEADLINE)).unwrap();
    let leadership = grantor.leadership();
    (grantor, leadership, grant)
}

/// Whether a task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Woken {
    fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Polls `future` once. Returns whether it is ready.
    fn poll(self: &Arc<Self>, future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(&Waker::from(self.clone()))).is_ready()
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
