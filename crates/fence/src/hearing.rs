//! Whether an API server judges by the present Lease.

use crate::{
    definition::Fence,
    drift::Drift,
    error::ErrFence,
    question::{ProbeReply, Question},
    server,
};
use kube_leader_gate::kube_client::{Client, Error};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

/// How often it asks again, since an API server hears of a change some milliseconds later.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

impl Fence {
    /// Asks the API server, with the credentials of a replica, whom it takes for the holder, and compares that with the
    /// Lease, and whether the replica may impersonate. An empty list means that the fence is in force and judges by the
    /// present holder. It changes nothing.
    ///
    /// It asks as the [layer of an election's lock](Self::layer) does, and needs `get` and `create` on `leases`
    /// in the namespace of the Lease. If there are several API servers, one of them answers. It takes two seconds at
    /// most beside its requests. Cancel-safe.
    ///
    /// # Errors
    /// [`ErrFence`] says why that was not possible.
    pub async fn check_as(&self, replica: &Client) -> Result<Vec<Drift>, ErrFence> {
        let question = Question::of(self);
        let mut findings = Vec::new();
        for _ in 0..TRIES {
            let lease = server::lease(replica, &self.lease).await?;
            findings = match question.ask(replica).await {
                Ok(_) => vec![Drift::new(
                    "the API server",
                    "lets the question of the replica pass",
                    "no fence judges this replica there, or this API server has not heard of the Lease; if it stays \
                     so, restart the API server",
                )],
                Err(Error::Api(status)) => {
                    compare(question.said(&status.message).as_ref(), lease.as_ref(), &status.message)
                }
                Err(source) => {
                    return Err(ErrFence::Request { what: "ask the fence".to_owned(), source });
                }
            };
            if findings.is_empty() {
                break;
            }
            sleep(PAUSE).await;
        }
        findings.extend(self.is_impersonator(replica).await?);
        Ok(findings)
    }
}

fn compare(said: Option<&ProbeReply<'_>>, lease: Option<&Value>, message: &str) -> Vec<Drift> {
    let known = match said {
        Some(ProbeReply::Passes(term)) => format!("the term {term}"),
        Some(ProbeReply::Refuses { holder, .. }) => holder_in_words(*holder),
        Some(ProbeReply::Fails) | None => {
            let meaning = "the fence was not asked, could not judge, or could not name the holder";
            return vec![Drift::new("the API server", format!("answers {message}"), meaning)];
        }
    };
    let spec = lease.map(|lease| &lease["spec"]);
    let is = if matches!(said, Some(ProbeReply::Passes(_))) {
        let uid = lease.and_then(|lease| lease["metadata"]["uid"].as_str()).unwrap_or_default();
        let transitions = spec.and_then(|spec| spec["leaseTransitions"].as_u64()).unwrap_or_default();
        format!("the term {uid}/{transitions}")
    } else {
        let holder = spec.and_then(|spec| spec["holderIdentity"].as_str());
        holder_in_words(holder.filter(|holder| !holder.is_empty()))
    };
    if known == is {
        return Vec::new();
    }
    let meaning = "unless check names another cause, this API server no longer reads the Lease, so a former holder may \
                   write and the present one may not; restart the API server (kubernetes/kubernetes#130887)";
    vec![Drift::new("the API server", format!("judges by {known}, and the Lease names {is}"), meaning)]
}

fn holder_in_words(holder: Option<&str>) -> String {
    holder.map_or_else(|| "no holder".to_owned(), |holder| format!("the holder {holder:?}"))
}
