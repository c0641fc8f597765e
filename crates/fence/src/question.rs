//! The question that the fence always answers: may this client write, and who holds the Lease?

use crate::{
    conditions::PROBE,
    definition::{Fence, PASSES},
    denial::{Denial, MARKER},
    server::send,
};
use http::Method;
use kube_leader_gate::kube_client::{Client, Error};
use serde_json::{Value, json};

/// A write that the fence always refuses: the dry-run creation of a Lease with a name of its own.
///
/// Admission comes after authorization, so it needs a permission. It asks for `create` on `leases`, which the Role of an
/// election grants already.
pub(crate) struct Question {
    path: String,
    lease: Value,
    denial: Denial,
}

/// The fence's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProbeReply<'a> {
    /// This client may write, in this term.
    Passes(&'a str),
    /// It may not.
    Refuses {
        /// The holder of the Lease. None if no candidate holds it.
        holder: Option<&'a str>,
        /// The client's token names no pod.
        podless: bool,
    },
    /// The fence could not judge, or could not say the holder's name.
    Fails,
}

impl Question {
    pub(crate) fn of(fence: &Fence) -> Self {
        let namespace = fence.lease().namespace();
        Self {
            path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?dryRun=All"),
            lease: json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": PROBE, "namespace": namespace },
                "spec": {},
            }),
            denial: Denial::by(fence.name()),
        }
    }

    /// The API server's answer. If it is no error, no fence judges this client.
    pub(crate) async fn ask(&self, client: &Client) -> Result<Value, Error> {
        send(client, Method::POST, &self.path, Some(&self.lease)).await
    }

    /// What the fence says in the message of an error. None if it was not asked.
    pub(crate) fn said<'a>(&self, message: &'a str) -> Option<ProbeReply<'a>> {
        let reason = self.denial.reason(message)?;
        if let Some(term) = reason.strip_prefix(PASSES) {
            return Some(ProbeReply::Passes(term));
        }
        // Without more words, the holder's name is too long for a message, or has a line break.
        let Some(words) = reason.strip_prefix(MARKER).and_then(|rest| rest.strip_prefix(": ")) else {
            return Some(ProbeReply::Fails);
        };
        let holder = words.strip_prefix('"').and_then(|rest| rest.rsplit_once("\" holds the lease "));
        Some(ProbeReply::Refuses { holder: holder.map(|it| it.0), podless: reason.ends_with("no pod") })
    }
}
