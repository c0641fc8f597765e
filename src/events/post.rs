//! Writes one event after the other.

use super::event::Transition;
use crate::{
    election::{Candidate, complaint::Complaint},
    lease::{LockError, LockErrorKind, call::call},
};
use http::Method;
use kube_client::Client;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{sleep, timeout},
};

/// Attempts at one event that meets an outage.
const ATTEMPTS: u32 = 5;

/// Writes what is told until nobody tells any more.
pub(super) async fn each(client: &Client, candidate: &Candidate, mut told: Receiver<Transition>) {
    let mut complaint = Complaint::new("events cannot be written");
    loop {
        match told.recv().await {
            Ok(transition) => write(client, candidate, &transition, &mut complaint).await,
            Err(RecvError::Lagged(dropped)) => {
                tracing::warn!(dropped, "events were dropped: too many wait to be written");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn write(client: &Client, candidate: &Candidate, transition: &Transition, complaint: &mut Complaint) {
    let (event, timing) = (transition.event(candidate), candidate.timing());
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", candidate.lease().namespace());
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(timing.retry_period()).await;
        }
        let created = call(client, Method::POST, path.clone(), Some(&event));
        let error = match timeout(timing.call_timeout(), created).await {
            Ok(Ok(_)) => return complaint.settle(),
            Ok(Err(error)) => error,
            Err(_) => LockError::timeout(timing.call_timeout()),
        };
        match error.kind() {
            // An attempt before has made it, though its answer was lost.
            LockErrorKind::Conflict => return complaint.settle(),
            LockErrorKind::Forbidden => {
                let advice = "grant it create on events in events.k8s.io, by a Role in the lease's namespace";
                return complaint.raise(error.kind().as_str(), &format_args!("{error}; {advice}"));
            }
            LockErrorKind::Unauthorized | LockErrorKind::NotFound => {
                return complaint.raise(error.kind().as_str(), &error);
            }
            _ => complaint.raise(error.kind().as_str(), &error),
        }
    }
}
