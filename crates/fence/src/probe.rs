//! Asks the API server whether its fence lets this process write.

use crate::{
    definition::Fence,
    question::{ProbeReply, Question},
};
use kube_leader_gate::{
    Identity,
    extension::one_line,
    kube_client::{Client, Error},
    leadership::Term,
    lease::ErrLock,
};
use serde_json::Value;
use std::{fmt, time::Duration};

/// Asks the [`Question`] for one replica. One answer shows that the fence is in force on the API server that answers, that
/// it judges this client, and that this API server has heard of this very term. A question that is admitted shows that
/// there is no fence.
pub(crate) struct Probe {
    client: Client,
    question: Question,
    fence: String,
    identity: Identity,
}

impl Probe {
    /// `client` is the replica with this identity.
    pub(crate) fn new(fence: &Fence, client: Client, identity: Identity) -> Self {
        Self { client, question: Question::of(fence), fence: fence.name().to_owned(), identity }
    }

    /// Asks about `term`.
    pub(crate) async fn ask(&self, term: &Term) -> Result<(), ProbeFailure> {
        self.judge(self.question.ask(&self.client).await, term)
    }

    /// What the answer says about `term`.
    fn judge(&self, answer: Result<Value, Error>, term: &Term) -> Result<(), ProbeFailure> {
        let obstacle = |kind, message: String| Err(ProbeFailure::new(kind, &message));
        let status = match answer {
            Err(Error::Api(status)) => status,
            Err(error) => return Err(ProbeFailure::unanswered(&ErrLock::from(error))),
            Ok(_) => {
                let message = format!(
                    "no fence {:?} judges this client; apply the policy and its binding, and check that they name this \
                     client's user",
                    self.fence
                );
                // A fence whose Lease is missing, as far as this API server has heard, lets the probe pass too.
                return obstacle("no fence", message);
            }
        };
        let message = format!("{}: {}", status.code, status.message);
        match self.question.said(&status.message) {
            Some(ProbeReply::Passes(known)) if known == term.to_string() => Ok(()),
            Some(ProbeReply::Refuses { podless: true, .. }) => obstacle("no pod in the token", message),
            // It has heard of this term, and takes this client for another replica.
            Some(ProbeReply::Refuses { holder, .. }) if holder == Some(self.identity.as_str()) => {
                let message = format!("the identity of a replica must be its own name: {message}");
                obstacle("another identity", message)
            }
            Some(ProbeReply::Passes(_) | ProbeReply::Refuses { .. }) => obstacle("not yet", message),
            None if status.code == 403 => {
                let message = format!(
                    "the fence was not asked; grant create on leases, and look for other policies: {message}"
                );
                obstacle("forbidden", message)
            }
            Some(ProbeReply::Fails) => obstacle("refused", message),
            None if status.code == 422 => obstacle("refused", message),
            // It was not the fence that spoke, and perhaps it was not asked.
            None => Err(ProbeFailure::unanswered(&ErrLock::from(Error::Api(status)))),
        }
    }
}

/// Why the fence lets no write pass.
#[derive(Clone, Debug)]
pub(crate) struct ProbeFailure {
    /// The word for it in log fields.
    pub(crate) kind: &'static str,
    /// One line.
    pub(crate) message: String,
    /// Whether the API server has answered. If not, this says nothing about the fence.
    pub(crate) is_answered: bool,
}

impl ProbeFailure {
    fn new(kind: &'static str, message: &str) -> Self {
        Self { kind, message: one_line(message), is_answered: true }
    }

    fn unanswered(error: &ErrLock) -> Self {
        Self { is_answered: false, ..Self::new(error.kind().as_str(), &error.explain("")) }
    }

    /// There was no answer within this time.
    pub(crate) fn silent(patience: Duration) -> Self {
        Self::unanswered(&ErrLock::timeout(patience))
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("fence", &self.fence).finish_non_exhaustive()
    }
}
