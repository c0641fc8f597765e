//! The task that keeps this candidate's `LeaseCandidate` object: it makes the calls that `register` decides.

use super::{
    record::{CandidateRecord, Card},
    register::{Next, Register},
    watch::{News, follow},
};
use crate::{
    api::{CallError, Complaint, Failure, call},
    leadership::{Leadership, Moment},
    lease::LeaseTiming,
};
use futures_util::StreamExt;
use http::{Method, StatusCode};
use jiff::Timestamp;
use kube_client::Client;
use serde_json::Value;
use std::{mem, sync::Arc};
use tokio::{sync::watch, time::timeout};

/// What the elector learns from the task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) trouble: Option<Arc<str>>,
    /// Whether the coordinator may choose this candidate.
    pub(super) listed: bool,
}

pub(super) struct Keeper {
    client: Client,
    timing: LeaseTiming,
    leadership: Leadership,
    register: Register,
    /// Whether this candidate may be chosen now.
    stands: watch::Receiver<bool>,
    told: watch::Sender<Told>,
    /// The last call to withdraw has failed.
    futile: bool,
    calls: Complaint,
    watch: Complaint,
}

// === impl Keeper ===

impl Keeper {
    pub(super) fn new(
        client: Client,
        card: Card,
        timing: LeaseTiming,
        leadership: Leadership,
        stands: watch::Receiver<bool>,
        told: watch::Sender<Told>,
    ) -> Self {
        Self {
            client,
            timing,
            leadership,
            register: Register::new(card),
            stands,
            told,
            futile: false,
            calls: Complaint::new("the LeaseCandidate cannot be kept"),
            watch: Complaint::new("the LeaseCandidate cannot be watched; it is polled"),
        }
    }

    /// Runs until the elector is gone.
    pub(super) async fn run(mut self) {
        // Nothing is asked before this candidate stands for the first time.
        if self.stands.wait_for(|stands| *stands).await.is_err() {
            return;
        }
        let mut watch = follow(self.client.clone(), self.register.card.clone(), self.timing);
        loop {
            let stands = *self.stands.borrow_and_update();
            let next = self.register.next(stands, self.leadership.now(), Timestamp::now());
            self.tell(stands, &next);
            let Next::Wait(until) = next else {
                // A stop that came before this was told does not wait for the call.
                if !self.stands.has_changed().unwrap_or(false) {
                    self.make(next, stands).await;
                }
                continue;
            };
            tokio::select! {
                biased;
                changed = self.stands.changed() => if changed.is_err() { return },
                Some(news) = watch.next() => self.hear(news),
                () = self.leadership.sleep_until(until) => {}
            }
        }
    }

    fn hear(&mut self, news: News) {
        let now = self.leadership.now();
        match news {
            News::Up => {
                self.register.watches(true);
                self.watch.settle(now);
            }
            News::Present(record) => self.register.hear(record),
            News::Deleted(last) => self.register.hear_deletion(&last),
            News::Down(error) => {
                self.register.watches(false);
                if let Some(error) = error {
                    self.watch.raise(error.failure.as_str(), &error, now);
                }
            }
        }
    }

    async fn make(&mut self, next: Next, stands: bool) {
        let sent = self.leadership.now();
        let object = self.register.card.object();
        let (method, path, body) = match &next {
            Next::Read => (Method::GET, object, None),
            Next::Create(body) => (Method::POST, self.register.card.collection(), Some(body)),
            Next::Update(body) => (Method::PUT, object, Some(body)),
            Next::Delete(options) => (Method::DELETE, object, Some(options)),
            Next::Wait(_) => return,
        };
        let patience = self.timing.call_timeout();
        let answer = timeout(patience, call(&self.client, method, path, body)).await;
        let answer = answer.unwrap_or_else(|_| Err(CallError::timeout(patience)));
        let gone = matches!(&answer, Err(error) if error.failure == Failure::Status(StatusCode::NOT_FOUND));
        match (next, answer) {
            (Next::Read, _) if gone => self.register.read(None, stands, sent),
            (Next::Delete(_), answer) if gone || answer.is_ok() => {
                self.register.deleted();
                tracing::info!(
                    "the LeaseCandidate was deleted; the coordinator no longer chooses this process"
                );
            }
            (next, answer) => match answer.and_then(record) {
                Ok(record) => self.take_in(&next, record, stands, sent),
                Err(error) => return self.fail(&next, &error, stands),
            },
        }
        self.futile = false;
        if !self.register.is_failing() && self.register.other_lease().is_none() {
            self.calls.settle(self.leadership.now());
        }
    }

    fn take_in(&mut self, next: &Next, record: CandidateRecord, stands: bool, sent: Moment) {
        match next {
            Next::Read => self.register.read(Some(record), stands, sent),
            Next::Create(_) => {
                self.register.written(record, sent);
                let own = &self.register.card.coordination;
                let (binary_version, emulation_version) = (own.binary_version(), own.emulation_version());
                let strategy = own.strategy_name();
                tracing::info!(
                    binary_version,
                    emulation_version,
                    strategy,
                    "the LeaseCandidate was created; the coordinator may choose this process"
                );
            }
            _ => {
                self.register.written(record, sent);
                tracing::debug!("the LeaseCandidate was renewed");
            }
        }
        let Some(lease) = self.register.other_lease() else { return };
        let details = format_args!(
            "another lease: it stands for the lease {lease}; give each election of a namespace an identity of its own"
        );
        self.calls.raise("another lease", &details, self.leadership.now());
    }

    fn fail(&mut self, next: &Next, error: &CallError, stands: bool) {
        let now = self.leadership.now();
        let conflict = error.failure == Failure::Status(StatusCode::CONFLICT);
        self.futile = !stands && !conflict;
        if !conflict {
            let details = format_args!("{}: {error}{}", purpose(next), advice(error.failure));
            self.calls.raise(error.failure.as_str(), &details, now);
        }
        self.register.failed(conflict, self.timing.pause(), self.timing.retry_period(), now);
    }

    /// `next` begins now. It may create the object, or show one that an earlier process has left.
    fn tell(&self, stands: bool, next: &Next) {
        let trouble = self.calls.text().cloned();
        // After a failed deletion the coordinator may still choose this process, but there is nothing to wait for.
        let listed = !matches!(next, Next::Wait(_)) || self.register.is_listed() && (stands || !self.futile);
        let now = Told { trouble, listed };
        self.told.send_if_modified(|told| mem::replace(told, now.clone()) != now);
    }
}

fn record(answer: Value) -> Result<CandidateRecord, CallError> {
    let error = || CallError::new(Failure::Garbage, "the answer is not a LeaseCandidate");
    CandidateRecord::from_json(answer).ok_or_else(error)
}

/// The word for a call in log messages.
fn purpose(next: &Next) -> &'static str {
    match next {
        Next::Read | Next::Wait(_) => "read",
        Next::Create(_) => "create",
        Next::Update(_) => "renew",
        Next::Delete(_) => "delete",
    }
}

fn advice(failure: Failure) -> &'static str {
    match failure {
        Failure::Status(StatusCode::NOT_FOUND) => {
            "; create the lease's namespace, and start the API server (Kubernetes 1.33 or newer) with the feature gate \
             CoordinatedLeaderElection and the runtime config coordination.k8s.io/v1beta1=true"
        }
        Failure::Status(StatusCode::FORBIDDEN) => {
            "; grant it get, create, update, delete and watch on leasecandidates in coordination.k8s.io, by a Role"
        }
        Failure::Status(StatusCode::UNAUTHORIZED) => "; check this candidate's token or certificate",
        Failure::Timeout | Failure::Unreachable | Failure::Dead => {
            "; check the API server and the network to it"
        }
        Failure::Status(_) | Failure::Garbage | Failure::Unsendable => "",
    }
}
