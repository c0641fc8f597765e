//! Candidates over the in-process API server.

use kube_client::Client;
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::{BuildError, ElectionBuilder},
    lease::KubeLock,
    testing::{ApiServer, TokioClock},
};
use std::{future::Future, sync::Arc, time::Duration};

pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";

/// The builder of a candidate on the lease `default/operator`, on tokio's clock.
pub fn builder(identity: &str) -> ElectionBuilder {
    Election::builder("default", "operator")
        .identity(Identity::new(identity).expect("an identity"))
        .timing(LeaseTiming::fast())
        .clock(Arc::new(TokioClock::new()))
}

/// A candidate whose lease calls go straight to the server, so that paused time drives everything.
pub fn candidate(server: &ApiServer, identity: &str) -> Election {
    build(server, identity, builder(identity)).expect("a valid election")
}

pub fn build(server: &ApiServer, user: &str, builder: ElectionBuilder) -> Result<Election, BuildError> {
    let service = server.service().user(user);
    builder.build_with(|lease| {
        KubeLock::over(lease, move || Ok(Client::new(service.clone(), "default"))).map_err(BuildError::Client)
    })
}

/// A workload's client straight to the server, behind the election's gate.
pub fn gated(server: &ApiServer, election: &Election, user: &str) -> Client {
    election.wrap(Client::new(server.service().user(user), "default"))
}

/// Waits for what must come within `bound`.
pub async fn within<T>(bound: Duration, what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(bound, future).await.unwrap_or_else(|_| panic!("not within {bound:?}: {what}"))
}

/// Waits until `condition` holds, looking every millisecond of tokio's time.
pub async fn until(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    within(bound, what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
