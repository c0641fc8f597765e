//! Asks the API server whether its fence lets this process write.

use super::{
    definition::Fence,
    question::{Question, Said},
};
use crate::{
    election::{Obstacle, Opening},
    leadership::Term,
    lease::Identity,
};
use futures_util::{FutureExt, future::BoxFuture};
use kube_client::{Client, Error};
use serde_json::Value;
use std::fmt;

/// Asks the [`Question`] for one replica. One answer shows that the fence is in force on the API server that answers, that
/// it judges this client, and that this API server has heard of this very term. A question that is admitted shows that
/// there is no fence.
pub(super) struct Probe {
    client: Client,
    question: Question,
    fence: String,
    identity: Identity,
}

impl Probe {
    /// `client` is the replica with this identity.
    pub(super) fn new(fence: &Fence, client: Client, identity: Identity) -> Self {
        Self { client, question: Question::of(fence), fence: fence.name().to_owned(), identity }
    }

    /// What the answer says about `term`.
    fn judge(&self, answer: Result<Value, Error>, term: &Term) -> Result<(), Obstacle> {
        let obstacle = |kind, message| Err(Obstacle { kind, message, passes: false });
        let for_now = |kind, message| Err(Obstacle { kind, message, passes: true });
        let status = match answer {
            Err(Error::Api(status)) => status,
            Err(error) => return obstacle("unreachable", error.to_string()),
            Ok(_) => {
                let message = format!(
                    "no fence {:?} judges this client; apply the policy and its binding, and check that they name this \
                     client's user",
                    self.fence
                );
                // A fence whose Lease is missing, as far as this API server has heard, lets the probe pass too.
                return for_now("no fence", message);
            }
        };
        let message = format!("{}: {}", status.code, status.message);
        match self.question.said(&status.message) {
            Some(Said::Passes(known)) if known == term.to_string() => Ok(()),
            Some(Said::Refuses { podless: true, .. }) => obstacle("no pod in the token", message),
            // It has heard of this term, and takes this client for another replica.
            Some(Said::Refuses { holder, .. }) if holder == Some(self.identity.as_str()) => {
                let message = format!("the identity of a replica must be its own name: {message}");
                obstacle("another identity", message)
            }
            Some(Said::Passes(_) | Said::Refuses { .. }) => for_now("not yet", message),
            None if status.code == 403 => {
                let message = format!(
                    "the fence was not asked; grant create on leases, and look for other policies: {message}"
                );
                obstacle("forbidden", message)
            }
            Some(Said::Fails) | None => obstacle("refused", message),
        }
    }
}

impl Opening for Probe {
    fn ask<'a>(&'a self, term: &'a Term) -> BoxFuture<'a, Result<(), Obstacle>> {
        async move { self.judge(self.question.ask(&self.client).await, term) }.boxed()
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("fence", &self.fence).finish_non_exhaustive()
    }
}
