//! Asks whether the gate may open, in a task of its own, while the elector renews the lease and hears news of it.

use super::Elector;
use crate::{
    api::backoff,
    election::hooks::{Obstacle, Opening},
    leadership::Term,
    lease::{LeaseRecord, LeaseTiming, Lock},
};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// The pause after the first refusal. It doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// From this refusal on, it is trouble if the API server has not heard of the term: after about half a second.
const PATIENCE: u32 = 8;

/// The question for one term. Dropping it ends its task.
pub(super) struct Asking {
    term: Term,
    answers: mpsc::Receiver<Result<(), Obstacle>>,
    refused: u32,
    _task: AbortOnDropHandle<()>,
}

impl Asking {
    fn begin(opening: Arc<dyn Opening>, term: Term, timing: LeaseTiming) -> Self {
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

impl<L: Lock> Elector<L> {
    /// Begins to ask if this candidate waits for its gate to open, and stops asking if it does not.
    pub(super) fn ask_before_opening(&mut self) {
        let Some(fenced) = &self.profile.hooks.fenced else { return };
        let waits = self.contends() && self.candidacy.awaits_opening();
        let term = self.candidacy.record().filter(|_| waits).map(LeaseRecord::term);
        if self.asking.as_ref().map(|asking| &asking.term) != term.as_ref() {
            let begin = |term| Asking::begin(fenced.opening.clone(), term, self.profile.timing);
            self.asking = term.map(begin);
        }
    }

    /// Takes in the answer for the term that is asked about.
    pub(super) fn on_answer(&mut self, answer: Result<(), Obstacle>) {
        match answer {
            Ok(()) => {
                self.candidacy.opening.agree();
                self.asking = None;
                self.shut.settle();
            }
            Err(Obstacle { kind, message, passes }) => {
                let refused = self.asking.as_mut().map_or(0, |asking| {
                    asking.refused += 1;
                    asking.refused
                });
                if passes && refused < PATIENCE {
                    tracing::debug!(error = kind, "the API server has not heard of this term yet: {message}");
                } else {
                    self.shut.raise(kind, &message);
                }
            }
        }
        self.note_trouble();
    }
}
