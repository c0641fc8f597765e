//! Asks the API server whether its fence lets this process write.

use super::{
    conditions::PROBE,
    definition::{Fence, PASSES},
    server::send,
};
use crate::{
    election::{Obstacle, Opening},
    leadership::Term,
    refusal::{Denial, MARKER},
};
use futures_util::{FutureExt, future::BoxFuture};
use http::Method;
use kube_client::{Client, Error};
use serde_json::{Value, json};
use std::fmt;

/// Sends a write that the fence always refuses: the dry-run creation of a Lease with a name of its own. The refusal
/// says whether the fence would let another write pass, and in which term of the Lease. So one answer shows that
/// the fence is in force on the API server that answers, that it judges this client, and that this API server has heard
/// of this very term. A write that is admitted shows that there is no fence.
///
/// Admission comes after authorization, so the probe needs a permission. It asks for `create` on `leases`, which the
/// Role of an election grants already.
pub(super) struct Probe {
    client: Client,
    path: String,
    lease: Value,
    denial: Denial,
    fence: String,
}

impl Probe {
    pub(super) fn new(fence: &Fence, client: Client) -> Self {
        let namespace = fence.lease().namespace();
        Self {
            client,
            path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?dryRun=All"),
            lease: json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": PROBE, "namespace": namespace },
                "spec": {},
            }),
            denial: Denial::by(fence.name()),
            fence: fence.name().to_owned(),
        }
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
        match self.denial.reason(&status.message) {
            Some(reason) => match reason.strip_prefix(PASSES) {
                Some(passes) if passes == term.to_string() => Ok(()),
                None if !reason.starts_with(MARKER) => obstacle("refused", message),
                None if reason.ends_with("no pod") => obstacle("no pod in the token", message),
                Some(_) | None => for_now("not yet", message),
            },
            None if status.code == 403 => {
                let message = format!(
                    "the fence was not asked; grant create on leases, and look for other policies: {message}"
                );
                obstacle("forbidden", message)
            }
            None => obstacle("refused", message),
        }
    }
}

impl Opening for Probe {
    fn ask<'a>(&'a self, term: &'a Term) -> BoxFuture<'a, Result<(), Obstacle>> {
        async move {
            let answer = send(&self.client, Method::POST, &self.path, Some(&self.lease)).await;
            self.judge(answer, term)
        }
        .boxed()
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("fence", &self.fence).finish_non_exhaustive()
    }
}
