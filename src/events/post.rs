//! Writes one event after the other.

use super::event::Transition;
use crate::{
    api::{CallError, Complaint, Failure, call},
    election::Candidate,
};
use http::{Method, StatusCode};
use kube_client::Client;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{sleep, timeout},
};

/// How many times one event is tried in an outage.
const ATTEMPTS: u32 = 5;

/// Writes each transition that it receives, until the sender is gone.
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
    let now = || candidate.leadership.now();
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", candidate.lease().namespace());
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(timing.retry_period()).await;
        }
        let created = call(client, Method::POST, path.clone(), Some(&event));
        let error = match timeout(timing.call_timeout(), created).await {
            Ok(Ok(_)) => return complaint.settle(now()),
            Ok(Err(error)) => error,
            Err(_) => CallError::timeout(timing.call_timeout()),
        };
        let kind = error.failure.as_str();
        match error.failure {
            // An earlier attempt created it, but its answer was lost.
            Failure::Status(StatusCode::CONFLICT) => return complaint.settle(now()),
            Failure::Status(StatusCode::FORBIDDEN) => {
                let advice = "grant it create on events in events.k8s.io, by a Role in the lease's namespace";
                return complaint.raise(kind, &format_args!("{error}; {advice}"), now());
            }
            Failure::Status(StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND) => {
                return complaint.raise(kind, &error, now());
            }
            _ => complaint.raise(kind, &error, now()),
        }
    }
}
