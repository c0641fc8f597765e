//! The task that keeps this candidate's `LeaseCandidate` object: it makes the calls that `register` decides.

use crate::{
    api::{call, garbage},
    pauses::Pauses,
    record::{CandidateRecord, CandidateSpec},
    register::{Next, Register},
    status::LockStatus,
    watch::{News, STEADY, follow},
};
use futures_util::StreamExt;
use http::Method;
use jiff::Timestamp;
use kube_client::Client;
use kube_leader_gate::{
    CancellationToken, LeaseTiming,
    election::{LockContext, Trouble},
    leadership::Moment,
    lease::{ErrLock, ErrLockKind},
};
use serde_json::Value;
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

/// How long the coordinator may take to choose, beyond the lease duration. It waits 5 s for the answers to its pings,
/// and looks every 5 s.
const CHOOSING: Duration = Duration::from_secs(30);

/// The register's clock does not begin at its origin: nothing has been read or written yet.
const ORIGIN: Duration = Duration::from_secs(60 * 60);

/// What the Role of a candidate has to grant.
const ROLE: &str =
    "grant it get, create, update, delete and watch on leasecandidates in coordination.k8s.io, by a Role";

/// What the API server needs.
const API: &str = "a coordinated election needs Kubernetes 1.33 to 1.38, the feature gate CoordinatedLeaderElection of the \
                   API server and its runtime config coordination.k8s.io/v1beta1=true";

pub(crate) struct Keeper {
    client: Client,
    pauses: Pauses,
    patience: Duration,
    register: Register,
    begun: Instant,
    contends: watch::Receiver<bool>,
    status: watch::Receiver<LockStatus>,
    /// Whether the coordinator may choose this candidate.
    listed: watch::Sender<bool>,
    /// The last call to withdraw has failed.
    futile: bool,
    calls: Trouble,
    vacancy: Trouble,
    unwatched: Trouble,
    /// When the present watch began.
    watched: Option<Instant>,
}

// === impl Keeper ===

impl Keeper {
    pub(crate) fn new(
        client: Client,
        card: CandidateSpec,
        timing: &LeaseTiming,
        context: &LockContext,
        status: watch::Receiver<LockStatus>,
        listed: watch::Sender<bool>,
    ) -> Self {
        Self {
            client,
            pauses: Pauses::of(timing),
            patience: timing.lease_duration() + CHOOSING,
            register: Register::new(card),
            begun: Instant::now(),
            contends: context.contends(),
            status,
            listed,
            futile: false,
            calls: context.trouble("the LeaseCandidate cannot be kept"),
            vacancy: context.trouble("no coordinator names a holder"),
            unwatched: context.remark("the LeaseCandidate cannot be watched; it is polled"),
            watched: None,
        }
    }

    /// Runs until the election is over and the coordinator no longer chooses this candidate.
    pub(crate) async fn run(mut self, over: CancellationToken) {
        // Nothing is asked before this candidate stands for the first time.
        while !self.stands() {
            tokio::select! {
                () = over.cancelled() => return,
                () = changed(&mut self.contends, &mut self.status) => {}
            }
        }
        let mut watch = follow(self.client.clone(), self.register.card.clone(), self.pauses);
        loop {
            let vacant = self.judge_vacancy();
            if self.watched.is_some_and(|since| since.elapsed() >= STEADY) {
                self.unwatched.settle();
            }
            let (stands, now) = (self.stands(), self.now());
            let next = self.register.next(stands, now, Timestamp::now());
            self.tell(stands, &next);
            if over.is_cancelled() && !*self.listed.borrow() {
                return;
            }
            let Next::Wait(until) = next else {
                // A stop that came before this was told does not wait for the call.
                if stands == self.stands() {
                    self.make(next, stands).await;
                }
                continue;
            };
            let until = Instant::now() + until.saturating_since(now);
            tokio::select! {
                biased;
                () = over.cancelled(), if !over.is_cancelled() => {}
                () = changed(&mut self.contends, &mut self.status) => {}
                Some(news) = watch.next() => self.hear(news),
                () = sleep_until(vacant.map_or(until, |at| at.min(until))) => {}
            }
        }
    }

    /// Whether the coordinator may choose this candidate now. One that has seen the lease knows the holder that it would
    /// replace.
    fn stands(&self) -> bool {
        *self.contends.borrow() && self.status.borrow().seen
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(0).saturating_add(ORIGIN + self.begun.elapsed())
    }

    /// It is trouble if no candidate is named for long. Returns when to look again.
    fn judge_vacancy(&mut self) -> Option<Instant> {
        let contends = *self.contends.borrow_and_update();
        let since = self.status.borrow_and_update().vacant_from.filter(|_| contends);
        let patient_until = since.map(|since| since + self.patience);
        match patient_until {
            Some(at) if Instant::now() >= at => {
                let details = "enable the feature gate CoordinatedLeaderElection of the API server; a strategy of your \
                               own needs a coordinator of your own";
                self.vacancy.raise("vacant", &details);
                None
            }
            at => {
                self.vacancy.settle();
                at
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Up => {
                self.register.watches(true);
                self.watched = Some(Instant::now());
            }
            News::Present(record) => self.register.hear(record),
            News::Deleted(last) => self.register.hear_deletion(&last),
            News::Down(error) => {
                self.register.watches(false);
                self.watched = None;
                let Some(error) = error else { return };
                self.unwatched.raise(error.kind().as_str(), &explain(&error));
            }
        }
    }

    async fn make(&mut self, next: Next, stands: bool) {
        let sent = self.now();
        let object = self.register.card.object();
        let (method, path, body) = match &next {
            Next::Read => (Method::GET, object, None),
            Next::Create(body) => (Method::POST, self.register.card.collection(), Some(body)),
            Next::Update(body) => (Method::PUT, object, Some(body)),
            Next::Delete(options) => (Method::DELETE, object, Some(options)),
            Next::Wait(_) => return,
        };
        let patience = self.pauses.call_timeout;
        let mut contends = self.contends.clone();
        let hurried = async {
            if !stands || contends.wait_for(|contends| !contends).await.is_err() {
                std::future::pending::<()>().await;
            }
            // A stop has the call timeout for this call and for the deletion.
            sleep(patience / 2).await;
        };
        let answer = tokio::select! {
            biased;
            answer = call(&self.client, method, path, body, patience) => answer,
            () = hurried => Err(ErrLock::timeout(patience / 2)),
        };
        let gone = matches!(&answer, Err(error) if error.kind() == ErrLockKind::NotFound);
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
            self.calls.settle();
        }
    }

    fn take_in(&mut self, next: &Next, record: CandidateRecord, stands: bool, sent: Moment) {
        match next {
            Next::Read => self.register.read(Some(record), stands, sent),
            Next::Create(_) => {
                self.register.written(record, sent);
                let own = &self.register.card.versions;
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
        self.calls.raise("another lease", &details);
    }

    fn fail(&mut self, next: &Next, error: &ErrLock, stands: bool) {
        let conflict = error.kind() == ErrLockKind::Conflict;
        self.futile = !stands && !conflict;
        if !conflict {
            let details = format_args!("{}: {}", purpose(next), explain(error));
            self.calls.raise(error.kind().as_str(), &details);
        }
        self.register.failed(conflict, self.pauses.first, self.pauses.longest, self.now());
    }

    /// `next` begins now. It may create the object, or show one that an earlier process has left.
    fn tell(&self, stands: bool, next: &Next) {
        // After a failed deletion the coordinator may still choose this process, but there is nothing to wait for.
        let listed = !matches!(next, Next::Wait(_)) || self.register.is_listed() && (stands || !self.futile);
        self.listed.send_if_modified(|told| std::mem::replace(told, listed) != listed);
    }
}

/// Waits until one of the two has changed. They outlive the task.
async fn changed(contends: &mut watch::Receiver<bool>, status: &mut watch::Receiver<LockStatus>) {
    tokio::select! {
        Ok(()) = contends.changed() => {}
        Ok(()) = status.changed() => {}
        else => std::future::pending().await,
    }
}

fn record(answer: Value) -> Result<CandidateRecord, ErrLock> {
    CandidateRecord::from_json(answer).ok_or_else(|| garbage("the answer is not a LeaseCandidate"))
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

/// The error, and what to do. A server that does not know the kind does not know the API either.
fn explain(error: &ErrLock) -> String {
    let text = error.explain(ROLE);
    if error.kind() == ErrLockKind::NotFound { format!("{text}; {API}") } else { text }
}
