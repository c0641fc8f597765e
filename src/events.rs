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
//! the Lease. The words and the reason are client-go's, so tools that look for those events find these:
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
//! 2. In an outage, each event is tried five times, one retry period apart. If the API server refuses an event (401,
//!    403, 404), it is not tried again. At most 16 events wait. After that the oldest are dropped, and the log says
//!    how many.
//! 3. Trouble is logged as a warning: when it changes, and every five minutes while it lasts.
//!
//! It needs `create` on `events`. A Role cannot limit this to names:
//!
//! ```yaml
//! - apiGroups: [events.k8s.io]
//!   resources: [events]
//!   verbs: [create]
//! ```

use crate::{
    api::{Authorized, RateLimitedLog, call},
    election::{Candidate, ElectionBuilder},
    leadership::Term,
    lease::{ErrLock, ErrLockKind},
};
use futures_util::StreamExt;
use http::Method;
use jiff::Timestamp;
use kube_client::Client;
use serde_json::{Value, json};
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
const ROLE: &str = "grant it create on events in events.k8s.io, by a Role in the lease's namespace";

const LONGEST_NAME: usize = 253;
/// The limit of a qualified name.
const LONGEST_CONTROLLER: usize = 63;
const LONGEST_INSTANCE: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Gained,
    Lost,
}

/// The beginning or the end of a term.
#[derive(Clone, Debug)]
struct Transition {
    change: Change,
    term: Term,
    at: Timestamp,
}

impl ElectionBuilder {
    /// Reports gains and losses as Kubernetes Events, through `client`; the [module](crate::events) has an example.
    ///
    /// Use a separate client without a gate. A gate would reject the report of a loss
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)).
    pub fn events(self, client: Client) -> Self {
        self.attend(|candidate, stopped| report(client.into(), candidate, stopped))
    }
}

async fn report(client: Authorized, candidate: Candidate, stopped: CancellationToken) {
    let (tell, told) = broadcast::channel(WAITING);
    tokio::join!(follow(&candidate, stopped, tell), write_each(&client, &candidate, told));
}

/// Sends each transition until the election has stopped.
async fn follow(candidate: &Candidate, stopped: CancellationToken, tell: broadcast::Sender<Transition>) {
    let mut states = candidate.changes();
    let mut led = None;
    loop {
        let state = stopped.run_until_cancelled(states.next()).await.flatten();
        let stopped = state.is_none();
        // If the token was cancelled meanwhile, there may be a last state that this task has not seen.
        let term = state.unwrap_or_else(|| candidate.leadership().state()).term;
        if term != led {
            // This task may have missed the states between two terms.
            let lost = led.take().map(|term| Transition::now(Change::Lost, term));
            let gained = term.clone().map(|term| Transition::now(Change::Gained, term));
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

/// Writes each transition that it receives, until the sender is gone.
async fn write_each(client: &Authorized, candidate: &Candidate, mut told: Receiver<Transition>) {
    let mut rate_limited_log = RateLimitedLog::new("events cannot be written");
    loop {
        match told.recv().await {
            Ok(transition) => write(client, candidate, &transition, &mut rate_limited_log).await,
            Err(RecvError::Lagged(dropped)) => {
                tracing::warn!(dropped, "events were dropped: too many wait to be written");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn write(
    client: &Authorized,
    candidate: &Candidate,
    transition: &Transition,
    rate_limited_log: &mut RateLimitedLog,
) {
    let (event, timing) = (transition.event(candidate), candidate.timing());
    let now = || candidate.leadership().now();
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", candidate.lease().namespace());
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(timing.retry_period()).await;
        }
        let created = call(client, Method::POST, path.clone(), Some(&event));
        let error = match timeout(timing.call_timeout(), created).await {
            Ok(Ok(_)) => return rate_limited_log.settle(now()),
            Ok(Err(error)) => error,
            Err(_) => ErrLock::timeout(timing.call_timeout()),
        };
        // An earlier attempt created it, but its answer was lost.
        if error.kind() == ErrLockKind::Conflict {
            return rate_limited_log.settle(now());
        }
        rate_limited_log.raise(error.kind().as_str(), &error.explain(ROLE), now());
        let refused = [ErrLockKind::Unauthorized, ErrLockKind::Forbidden, ErrLockKind::NotFound];
        if refused.contains(&error.kind()) {
            return;
        }
    }
}

impl Transition {
    fn now(change: Change, term: Term) -> Self {
        Self { change, term, at: Timestamp::now() }
    }

    /// The Event. It has a unique name, so sending it twice creates it once.
    fn event(&self, candidate: &Candidate) -> Value {
        let (lease, identity) = (candidate.lease(), candidate.identity().as_str());
        let (action, words) = match self.change {
            Change::Gained => ("BecameLeader", "became leader"),
            Change::Lost => ("StoppedLeading", "stopped leading"),
        };
        let mut regarding = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": lease.namespace(),
            "name": lease.name(),
        });
        if !self.term.lease_uid().is_empty() {
            regarding["uid"] = self.term.lease_uid().into();
        }
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "namespace": lease.namespace(), "name": name(lease.name(), self.at) },
            "eventTime": self.at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            "type": "Normal",
            "reason": "LeaderElection",
            "action": action,
            "note": format!("{identity} {words}"),
            "regarding": regarding,
            // A lease usually has the name of its controller.
            "reportingController": head(lease.name(), LONGEST_CONTROLLER).trim_end_matches(['-', '.']),
            "reportingInstance": head(identity, LONGEST_INSTANCE),
        })
    }
}

/// A unique name: the lease's name, the time and a random part. A list by name is also sorted by time.
fn name(lease: &str, at: Timestamp) -> String {
    let unique = format!("{:016x}{:04x}", at.as_nanosecond(), fastrand::u16(..));
    let lease = head(lease, LONGEST_NAME - 1 - unique.len()).trim_end_matches(['-', '.']);
    format!("{lease}.{unique}")
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
    fn names_fit_and_sort_by_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let long = format!("{}.{}", "a".repeat(231), "b".repeat(21));
        for lease in ["operator", &long] {
            let names = [1, 2_000_000_000, 4_000_000_000].map(|second| name(lease, at(second)));
            assert!(names.is_sorted(), "{names:?}");
            assert!(names.iter().all(|name| name.len() <= LONGEST_NAME && !name.contains("..")), "{names:?}");
        }
    }

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(head("abc", 5), "abc");
        assert_eq!(head("aé", 2), "a");
    }
}
