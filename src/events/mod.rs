//! Kubernetes Events about gains and losses of leadership: `kubectl get events` shows who led when.
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

mod event;
mod post;

use self::event::{Change, Transition};
use crate::election::{Candidate, ElectionBuilder};
use futures_util::StreamExt;
use kube_client::Client;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many events may wait to be written.
const WAITING: usize = 16;

impl ElectionBuilder {
    /// Reports gains and losses as Kubernetes Events, through `client`; see the [module](crate::events).
    ///
    /// Use a separate client without a gate. A gate would reject the report of a loss
    /// ([rule S14](crate::guide::guarantees#s14-the-election-has-its-own-client)):
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

/// Sends each transition until the election has stopped.
async fn follow(candidate: &Candidate, stopped: CancellationToken, tell: broadcast::Sender<Transition>) {
    let mut states = candidate.changes();
    let mut led = None;
    loop {
        let state = stopped.run_until_cancelled(states.next()).await.flatten();
        let stopped = state.is_none();
        // If the token was cancelled meanwhile, there may be a last state that this task has not seen.
        let term = state.unwrap_or_else(|| candidate.state()).term;
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
