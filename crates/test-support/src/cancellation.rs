//! Drops a future at each of its polls, each time in a world of its own.
//!
//! ```
//! use test_support::cancellation::dropped_at_each_poll;
//! use tokio::sync::mpsc;
//!
//! let worlds = dropped_at_each_poll(async |cut| {
//!     let (sender, mut receiver) = mpsc::channel(1);
//!     tokio::spawn(async move { sender.send("news").await });
//!     // Whether or not it was dropped: the message is not lost.
//!     let news = cut.off(receiver.recv()).await;
//!     assert_eq!(if cut.completed() { news.unwrap() } else { receiver.recv().await }, Some("news"));
//! });
//! assert!(worlds > 2);
//! ```

use std::{
    cell::Cell,
    env,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::Poll,
};
use tokio::runtime::{Builder, Handle};

/// Up to so many polls, a future is dropped at each of them. After that, the steps grow.
const EACH: u64 = 96;

/// The variable of `make -C tests cancellation`: another number than [`EACH`].
const VARIABLE: &str = "CANCELLATION_EACH";

/// Says at which poll the future of one world is dropped.
#[derive(Debug)]
pub struct Cut {
    polls: u64,
    /// Whether the future is dropped in place of its next poll, when it has been woken for that.
    woken: bool,
    /// None until a future was given.
    completed: Cell<Option<bool>>,
}

/// Runs `scene` again and again, until the future that it gives to [`Cut::off`] completes.
///
/// Each run has a runtime of its own, with one thread and paused time. In the first run, the future is dropped before
/// its first poll. In later runs, it is dropped right after its first poll, after its second, and so on. There is also a
/// run for each in which it is dropped a little later: when it has been woken and would be polled again. So the
/// future must complete, or be woken again and again.
///
/// The first 96 polls are tried one by one, or as many as the variable `CANCELLATION_EACH` says. After that, each step
/// is a quarter of what came before.
///
/// Returns how many worlds there were. If a scene panics, the output says at which poll the future was dropped.
pub fn dropped_at_each_poll(scene: impl AsyncFn(&Cut)) -> u64 {
    dropped_at_polls(u64::MAX, scene)
}

/// As [`dropped_at_each_poll`], for a future that never completes: at most after `most` polls.
#[expect(clippy::needless_pass_by_value, reason = "a scene is written where it is passed")]
pub fn dropped_at_polls(most: u64, scene: impl AsyncFn(&Cut)) -> u64 {
    let each = env::var(VARIABLE).map_or(EACH, |each| each.parse().expect("a number of polls"));
    let (mut polls, mut worlds) = (0, 0);
    while polls <= most {
        for woken in [false, true] {
            // A future that was not polled is not woken.
            if woken && polls == 0 {
                continue;
            }
            let cut = Cut { polls, woken, completed: Cell::new(None) };
            worlds += 1;
            cut.play(&scene);
            if cut.completed.get().expect("the scene gives a future to the cut") {
                println!("{worlds} worlds; the future completes after at most {polls} polls");
                return worlds;
            }
        }
        polls += if polls < each { 1 } else { (polls / 4).max(1) };
    }
    worlds
}

/// How many tasks of this runtime have not ended.
pub fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

// === impl Cut ===

impl Cut {
    /// Polls `future` as often as this world says, and drops it. Returns its output if it completed before that.
    pub async fn off<F: Future>(&self, future: F) -> Option<F::Output> {
        self.off_in_place(Box::pin(future).as_mut()).await
    }

    /// As [`off`](Self::off), but the caller drops the future.
    pub async fn off_in_place<F: Future>(&self, mut future: Pin<&mut F>) -> Option<F::Output> {
        let (mut left, mut waits) = (self.polls, self.woken);
        let output = poll_fn(|cx| {
            if left > 0 {
                left -= 1;
                if let Poll::Ready(output) = future.as_mut().poll(cx) {
                    return Poll::Ready(Some(output));
                }
                if left > 0 {
                    return Poll::Pending;
                }
            }
            // The last poll has left its waker. This one comes when the future is woken.
            if std::mem::take(&mut waits) { Poll::Pending } else { Poll::Ready(None) }
        });
        let output = output.await;
        self.completed.set(Some(output.is_some()));
        output
    }

    /// Whether the future has completed.
    pub fn completed(&self) -> bool {
        self.completed.get() == Some(true)
    }

    /// Whether the future was polled.
    pub fn polled(&self) -> bool {
        self.polls > 0
    }

    fn play(&self, scene: &impl AsyncFn(&Cut)) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let play = AssertUnwindSafe(|| runtime.block_on(scene(self)));
        if let Err(panic) = catch_unwind(play) {
            let when = if self.woken { "when it was woken after" } else { "right after" };
            eprintln!("the future was dropped {when} {} polls", self.polls);
            resume_unwind(panic);
        }
    }
}
