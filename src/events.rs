//! Kubernetes Events about gains and losses of leadership: `kubectl get events` shows who led when.
//!
//! ```no_run
//! use kube_leader_gate::{
//!     Election,
//!     kube_client::{Client, Config},
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::infer().await?;
//! let election = Election::builder("my-namespace", "my-controller")
//!     .events(Client::try_from(config.clone())?) // a client without a gate
//!     .build(&config)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`ElectionBuilder::events`] makes the election report to `events.k8s.io/v1`, in the lease's namespace and about
//! the Lease, through kube-runtime's [`Recorder`]. The words and the reason are client-go's, so tools that look for
//! those events find these:
//!
//! ```text
//! LAST SEEN   TYPE     REASON           OBJECT                MESSAGE
//! 4s          Normal   LeaderElection   lease/my-controller   my-controller-x2x7q became leader
//! 2s          Normal   LeaderElection   lease/my-controller   my-controller-x2x7q stopped leading
//! ```
//!
//! 1. The election never waits for an event. A separate task writes the events one after the other, each within the
//!    election's call timeout. A stop waits for the last ones, but at most for one call timeout. If the election is
//!    dropped or the process is killed, it reports nothing.
//! 2. If a replica gains or loses the lease again within six minutes, the recorder does not create another Event. It
//!    counts the repetition in the `series` of the first one.
//! 3. In an outage, each event is tried five times, one retry period apart. Its time is that of the attempt that
//!    succeeds, and not of the gain. If the answer to an attempt is lost, the event may appear twice. At most 16 events wait. After that the
//!    oldest are dropped, and the log says how many.
//! 4. If the API server refuses an event (401, 403, 404), it is not tried again, and only this event is lost. So a Role
//!    that grants `create` without `patch` loses the repetitions.
//! 5. The log warns when an event fails, and again at a failure five minutes later.
//! 6. The recorder makes the Event's name from the name of the Lease. If that has more than 236 bytes, the API server
//!    refuses the events.
//!
//! It needs `create` and `patch` on `events`. A Role cannot limit this to names:
//!
//! ```yaml
//! - apiGroups: [events.k8s.io]
//!   resources: [events]
//!   verbs: [create, patch]
//! ```

use crate::{
    election::{Candidate, ElectionBuilder},
    leadership::Term,
    lease::ErrLock,
    rate_limited_log::RateLimitedLog,
};
use futures_util::StreamExt;
use http::StatusCode;
use k8s_openapi::api::core::v1::ObjectReference;
use kube_client::Client;
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::{
    sync::broadcast::{self, Receiver, error::RecvError},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// How many events may wait to be written.
const WAITING: usize = 16;

/// How many times one event is tried in an outage.
const ATTEMPTS: u32 = 5;

/// What the Role of a candidate has to grant.
const ROLE: &str = "grant it create and patch on events in events.k8s.io, by a Role in the lease's namespace";

/// The limit of a qualified name.
const LONGEST_CONTROLLER: usize = 63;
const LONGEST_INSTANCE: usize = 128;

#[derive(Clone, Copy, Debug)]
enum Change {
    Gained,
    Lost,
}

impl ElectionBuilder {
    /// Reports gains and losses as Kubernetes Events, through `client`; the [module](crate::events) has an example.
    ///
    /// Use a separate client without a gate. A gate would reject the report of a loss
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    pub fn events(self, client: Client) -> Self {
        self.attend(|candidate, stopped| report(client, candidate, stopped))
    }
}

async fn report(client: Client, candidate: Candidate, stopped: CancellationToken) {
    let (tell, told) = broadcast::channel(WAITING);
    tokio::join!(follow(&candidate, stopped, tell), write_each(client, &candidate, told));
}

/// Sends each beginning and each end of a term until the election has stopped.
async fn follow(candidate: &Candidate, stopped: CancellationToken, tell: broadcast::Sender<(Change, Term)>) {
    let mut states = candidate.changes();
    let mut led = None;
    loop {
        let state = stopped.run_until_cancelled(states.next()).await.flatten();
        let stopped = state.is_none();
        // If the token was cancelled meanwhile, there may be a last state that this task has not seen.
        let term = state.unwrap_or_else(|| candidate.leadership().state()).term;
        if term != led {
            // This task may have missed the states between two terms.
            let lost = led.take().map(|term| (Change::Lost, term));
            let gained = term.clone().map(|term| (Change::Gained, term));
            for transition in lost.into_iter().chain(gained) {
                // Cannot fail: the receiver lives until this has ended.
                let _ = tell.send(transition);
            }
            led = term;
        }
        if stopped {
            return;
        }
    }
}

/// Writes each event that it receives, until the sender is gone.
async fn write_each(client: Client, candidate: &Candidate, mut told: Receiver<(Change, Term)>) {
    let recorder = Recorder::new(client, reporter(candidate));
    let mut rate_limited_log = RateLimitedLog::new("events cannot be written");
    loop {
        match told.recv().await {
            Ok((change, term)) => write(&recorder, candidate, change, &term, &mut rate_limited_log).await,
            Err(RecvError::Lagged(dropped)) => {
                tracing::warn!(dropped, "events were dropped: too many wait to be written");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn write(
    recorder: &Recorder,
    candidate: &Candidate,
    change: Change,
    term: &Term,
    rate_limited_log: &mut RateLimitedLog,
) {
    let (event, regarding, timing) =
        (event(change, candidate), regarding(candidate, term), candidate.timing());
    let now = || candidate.leadership().now();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(timing.retry_period()).await;
        }
        let error = match timeout(timing.call_timeout(), recorder.publish(&event, &regarding)).await {
            Ok(Ok(())) => return rate_limited_log.settle(now()),
            Ok(Err(error)) => ErrLock::from(error),
            Err(_) => ErrLock::timeout(timing.call_timeout()),
        };
        rate_limited_log.raise(error.kind().as_str(), &error.explain(ROLE), now());
        let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND];
        if error.status().is_some_and(|status| refused.contains(&status)) {
            return;
        }
    }
}

/// Who reports. A lease usually has the name of its controller.
fn reporter(candidate: &Candidate) -> Reporter {
    let controller = head(candidate.lease().name(), LONGEST_CONTROLLER).trim_end_matches(['-', '.']);
    let instance = head(candidate.identity().as_str(), LONGEST_INSTANCE);
    Reporter { controller: controller.to_owned(), instance: Some(instance.to_owned()) }
}

fn event(change: Change, candidate: &Candidate) -> Event {
    let (action, words) = match change {
        Change::Gained => ("BecameLeader", "became leader"),
        Change::Lost => ("StoppedLeading", "stopped leading"),
    };
    Event {
        type_: EventType::Normal,
        reason: "LeaderElection".to_owned(),
        note: Some(format!("{} {words}", candidate.identity())),
        action: action.to_owned(),
        secondary: None,
    }
}

fn regarding(candidate: &Candidate, term: &Term) -> ObjectReference {
    let (lease, uid) = (candidate.lease(), term.lease_uid());
    ObjectReference {
        api_version: Some("coordination.k8s.io/v1".to_owned()),
        kind: Some("Lease".to_owned()),
        namespace: Some(lease.namespace().to_owned()),
        name: Some(lease.name().to_owned()),
        uid: (!uid.is_empty()).then(|| uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// The first bytes of `text`, up to a whole character.
fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(head("abc", 5), "abc");
        assert_eq!(head("aé", 2), "a");
    }
}
