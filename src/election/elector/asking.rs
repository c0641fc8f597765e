//! Asks whether the gate may open, in a task of its own, while the elector renews the lease and hears news of it.

use crate::{
    api::backoff,
    election::hooks::{Obstacle, Opening},
    leadership::Term,
    lease::LeaseTiming,
};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// The pause after the first refusal. It doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// The question for one term. Dropping it ends its task.
pub(super) struct Asking {
    pub(super) term: Term,
    answers: mpsc::Receiver<Result<(), Obstacle>>,
    /// How many answers were refusals.
    pub(super) refused: u32,
    _task: AbortOnDropHandle<()>,
}

impl Asking {
    pub(super) fn begin(opening: Arc<dyn Opening>, term: Term, timing: LeaseTiming) -> Self {
        let (tell, answers) = mpsc::channel(1);
        let asked = term.clone();
        let ask = async move {
            for refused in 0.. {
                let patience = timing.call_timeout();
                let answer = timeout(patience, opening.ask(&asked)).await.unwrap_or_else(|_| {
                    let message = format!("no answer within {patience:?}");
                    Err(Obstacle { kind: "timeout", message, passes: false })
                });
                let agreed = answer.is_ok();
                if tell.send(answer).await.is_err() || agreed {
                    return;
                }
                sleep(backoff(FIRST_PAUSE, refused, timing.pause())).await;
            }
        };
        Self { term, answers, refused: 0, _task: AbortOnDropHandle::new(tokio::spawn(ask)) }
    }

    /// The next answer. Waits for ever if there is no question. Cancel-safe.
    pub(super) async fn answer(asking: &mut Option<Self>) -> Result<(), Obstacle> {
        match asking {
            Some(asking) => match asking.answers.recv().await {
                Some(answer) => answer,
                None => pending().await,
            },
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::BoxFuture;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Refuses this often, then agrees. Counts the questions.
    #[derive(Debug, Default)]
    struct Doors {
        refusals: u32,
        asked: AtomicU32,
    }

    impl Opening for Doors {
        fn ask<'a>(&'a self, _: &'a Term) -> BoxFuture<'a, Result<(), Obstacle>> {
            let refused = self.asked.fetch_add(1, Ordering::Relaxed) < self.refusals;
            let obstacle = Obstacle { kind: "shut", message: String::new(), passes: true };
            Box::pin(async move { if refused { Err(obstacle) } else { Ok(()) } })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn question_is_asked_until_the_answer_is_yes() {
        let doors = Arc::new(Doors { refusals: 3, ..Doors::default() });
        let mut asking = Some(Asking::begin(doors.clone(), Term::new("uid", 1), LeaseTiming::fast()));
        for _ in 0..3 {
            Asking::answer(&mut asking).await.unwrap_err();
        }
        Asking::answer(&mut asking).await.unwrap();
        let later = timeout(Duration::from_secs(60), Asking::answer(&mut asking)).await;
        assert!(later.is_err(), "there is no second yes");
        assert_eq!(doors.asked.load(Ordering::Relaxed), 4);
    }
}
