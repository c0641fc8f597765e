//! Kubernetes Events about gains and losses of leadership: `kubectl get events` shows who led when.
//!
//! [`ElectionBuilder::events`] has the election report to `events.k8s.io/v1`, in the lease's namespace and regarding the
//! Lease, in client-go's words and with its reason, so that what looks for those finds these:
//!
//! ```text
//! LAST SEEN   TYPE     REASON           OBJECT                MESSAGE
//! 4s          Normal   LeaderElection   lease/my-controller   my-controller-x2x7q became leader
//! 2s          Normal   LeaderElection   lease/my-controller   my-controller-x2x7q stopped leading
//! ```
//!
//! 1. The election never waits for an event. They are written beside it, one after the other, each within the election's
//!    call timeout; a stop waits for the last ones for one call timeout at most. An election that is dropped, or a process
//!    that is killed, reports nothing.
//! 2. An event that meets an outage is tried five times, a retry period apart; one that is refused (401, 403, 404) is not
//!    tried again. At most 16 wait; then the oldest ones are dropped, and the log says how many.
//! 3. Trouble is logged once per change, as a warning.
//!
//! It needs `create` on `events`, which cannot be limited to names:
//!
//! ```yaml
//! - apiGroups: [events.k8s.io]
//!   resources: [events]
//!   verbs: [create]
//! ```

mod event;
mod post;

use self::event::{Change, Transition};
use crate::election::{Candidate, ElectionBuilder};
use futures_util::StreamExt;
use kube_client::Client;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Events that may wait to be written.
const WAITING: usize = 16;

impl ElectionBuilder {
    /// Has gains and losses reported as Kubernetes Events, through `client`; see the [module](crate::events).
    ///
    /// The client must be one of its own without a gate, which would stop the report of a loss (rule S14):
    ///
    /// ```no_run
    /// use kube_client::{Client, Config};
    /// use kube_leader_gate::Election;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Config::infer().await?;
    /// let election = Election::builder("my-namespace", "my-controller")
    ///     .events(Client::try_from(config.clone())?)
    ///     .build(&config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self, client: Client) -> Self {
        self.attend(|candidate, stopped| report(client, candidate, stopped))
    }
}

async fn report(client: Client, candidate: Candidate, stopped: CancellationToken) {
    let (tell, told) = broadcast::channel(WAITING);
    tokio::join!(follow(&candidate, stopped, tell), post::each(&client, &candidate, told));
}

/// Tells each transition, until the election has stopped.
async fn follow(candidate: &Candidate, stopped: CancellationToken, tell: broadcast::Sender<Transition>) {
    let mut states = candidate.changes();
    let mut led = None;
    loop {
        let state = stopped.run_until_cancelled(states.next()).await.flatten();
        let stopped = state.is_none();
        // A token that was cancelled meanwhile wins over a last state that this task has not looked at.
        let term = state.unwrap_or_else(|| candidate.state()).term;
        if term != led {
            // From one term to the next, where this task was too slow to see what was between them.
            let lost = led.take().map(|term| Transition::now(Change::Lost, term));
            let gained = term.clone().map(|term| Transition::now(Change::Gained, term));
            for transition in lost.into_iter().chain(gained) {
                // No error: the receiver lives until this has ended.
                let _ = tell.send(transition);
            }
            led = term;
        }
        if stopped {
            return;
        }
    }
}
