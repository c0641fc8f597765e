//! What the next leader knows of the last one's writes: a handover takes milliseconds, and a watch may be later than that.

mod operator;
mod scene;

use operator::{Adapt, as_it_is, knowing};
use scene::{Outcome, Scene};
use std::time::Duration;

/// How late the watch of the children is.
const PROMPT: Duration = Duration::ZERO;
const LATE: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(200)];

/// Plays the scene, prints what came of it, and checks that each parent has a child.
async fn play(late: Duration, gives_way: bool, adapt: Adapt) -> Outcome {
    let rounds = if gives_way { 8 } else { 4 };
    let outcome = Scene { late, rounds, gives_way, adapt }.play().await;
    println!("{outcome}");
    assert_eq!(outcome.without, 0, "parents without a child");
    outcome
}

/// Each handover is seen by the watch of the children before it is over.
#[tokio::test(start_paused = true)]
async fn handovers_make_no_doubles_while_the_watch_is_prompt() {
    assert_eq!(play(PROMPT, true, as_it_is).await.doubles, 0);
}

/// A process remembers what it has created itself until it sees this in its cache.
#[tokio::test(start_paused = true)]
async fn late_watch_makes_no_doubles_without_handovers() {
    for late in LATE {
        assert_eq!(play(late, false, as_it_is).await.doubles, 0, "{late:?}");
    }
}

/// The next leader does not know what the last one has just created, and creates it again.
#[tokio::test(start_paused = true)]
async fn late_watch_makes_doubles_at_handovers() {
    let [some, more] = [play(LATE[0], true, as_it_is).await, play(LATE[1], true, as_it_is).await];
    assert!(0 < some.doubles && some.doubles < more.doubles, "{some}; {more}");
}

#[tokio::test(start_paused = true)]
async fn s16_late_watch_makes_no_doubles_if_the_gate_waits_for_the_cache() {
    for late in [PROMPT, LATE[0], LATE[1]] {
        assert_eq!(play(late, true, knowing).await.doubles, 0, "{late:?}");
    }
}
