//! Over real HTTP on a loopback port, in real time: what needs a fault. The rest is in `tests/cluster/conformance`.

use crate::support::until;
use kube_leader_gate::{
    Election, Identity,
    testing::{ApiServer, Fault},
};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

/// S14: the election's own pause between two attempts is a quarter of a second at least; a retry below it is faster.
#[tokio::test]
async fn s14_its_own_client_does_not_retry() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let unavailable = server.inject(Fault::status(503).verb("get").resource("leases"));
    let builder = Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let election = builder.build(&endpoint.config("a")).unwrap();
    let began = Instant::now();
    let _a = election.start();
    until(PATIENCE, "it reads again", || unavailable.hits() >= 2).await;
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
}
