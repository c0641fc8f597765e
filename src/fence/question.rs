//! The question that the fence always answers: may this client write, and who holds the Lease?

use super::{
    conditions::PROBE,
    definition::{Fence, PASSES},
    server::send,
};
use crate::refusal::{Denial, MARKER};
use http::Method;
use kube_client::{Client, Error};
use serde_json::{Value, json};

/// A write that the fence always refuses: the dry-run creation of a Lease with a name of its own.
///
/// Admission comes after authorization, so it needs a permission. It asks for `create` on `leases`, which the Role of an
/// election grants already.
pub(super) struct Question {
    path: String,
    lease: Value,
    denial: Denial,
}

/// The fence's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// This client may write, in this term.
    Passes(&'a str),
    /// It may not.
    Refuses {
        /// The holder of the Lease. None if no candidate holds it.
        holder: Option<&'a str>,
        /// The client's token names no pod.
        podless: bool,
    },
    /// The fence could not judge.
    Fails,
}

impl Question {
    pub(super) fn of(fence: &Fence) -> Self {
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
    pub(super) async fn ask(&self, client: &Client) -> Result<Value, Error> {
        send(client, Method::POST, &self.path, Some(&self.lease)).await
    }

    /// What the fence says in the message of an error. None if it was not asked.
    pub(super) fn said<'a>(&self, message: &'a str) -> Option<Said<'a>> {
        let reason = self.denial.reason(message)?;
        if let Some(term) = reason.strip_prefix(PASSES) {
            return Some(Said::Passes(term));
        }
        if !reason.starts_with(MARKER) {
            return Some(Said::Fails);
        }
        let holder = reason.strip_prefix(MARKER).and_then(|rest| rest.strip_prefix(": \""));
        let holder = holder.and_then(|rest| Some(rest.rsplit_once("\" holds the lease ")?.0));
        Some(Said::Refuses { holder, podless: reason.ends_with("no pod") })
    }
}
