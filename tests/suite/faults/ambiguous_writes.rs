//! Writes after which the lease differs from the answer or from the claim.

use crate::locks::flawed::{Flaw, flawed};
use crate::support::{FIRST, lease_writes, pass, spec, until};
use kube_leader_gate::{
    election::LeaseEnd,
    testing::{ApiServer, Fault},
};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn s5_lease_created_despite_error_is_released() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let a = flawed(&server, "a", Flaw::Denies).start();
    until(FIRST, "it is created", || !lease_writes(&server, "a").is_empty()).await;
    assert_eq!(spec(&server)["holderIdentity"], "a");
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert_eq!(spec(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn webhook_that_shortens_duration_causes_no_flood() {
    let server = ApiServer::new();
    let a = flawed(&server, "a", Flaw::Shortens).start();
    pass(Duration::from_secs(60)).await;
    assert!(!a.candidate().can_write(), "the others would take it after a second");
    let writes = lease_writes(&server, "a").len();
    assert!((10..=90).contains(&writes), "{writes} writes in 60 s");
}
