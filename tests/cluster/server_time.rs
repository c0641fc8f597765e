//! How long a real API server works on a write whose sender has fallen silent.

use crate::{
    candidate::{Contender, builder, prepare, start, timing},
    real::Real,
    support::{PATIENCE, lease_writes, until, within},
    world::World,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, api::ListParams};
use kube_leader_gate::testing::WriteRecord;
use std::time::Duration;
use test_support::apiserver::{Cluster, SlowWebhook};

/// Longer than the lease of 4 s, so that the next leader leads before.
const TAKES: Duration = Duration::from_secs(7);

const FROZEN: &str = "candidate-0";
const NEXT: &str = "candidate-1";

/// A write waits for the webhook, and the leader falls silent with the connection open, as a frozen process does.
/// Returns the leader and its successor once the webhook has long answered.
async fn frozen_while_the_server_works(bounded: bool) -> Real<&'static Cluster> {
    let world = Real::shared().await;
    prepare(&world).await;
    let webhook = SlowWebhook::register(world.cluster, world.namespace(), TAKES).await;
    let leader = start(&world, FROZEN, builder(&world, FROZEN).server_time(bounded)).await;
    leader.elected().await;
    let successor: Contender = start(&world, NEXT, builder(&world, NEXT)).await;
    let client = leader.client.clone();
    let writing = tokio::spawn(async move { crate::candidate::write(&client).await });
    until("the webhook is asked", async || webhook.asked() == 1).await;
    leader.line.hold();
    leader.work.hold();
    successor.elected().await;
    let ended =
        async || world.writes().await.iter().any(|it| it.user == FROZEN && it.resource == "configmaps");
    until("the server has answered the write", ended).await;
    leader.work.mend();
    within(PATIENCE, "the writer learns of it", writing).await.expect("no panic").unwrap_err();
    world
}

/// The write of the frozen leader.
async fn write_of_frozen(world: &Real<&'static Cluster>) -> WriteRecord {
    let mut log = world.writes().await;
    let at =
        log.iter().position(|it| it.user == FROZEN && it.resource == "configmaps").expect("it was logged");
    log.remove(at)
}

/// Whether the write took effect after the takeover. The webhook has admitted it so long after it came, and nothing
/// is committed before that.
async fn landed_late(world: &Real<&'static Cluster>, write: &WriteRecord) -> bool {
    let taken = lease_writes(world, NEXT).await.first().and_then(|it| it.completed).expect("a takeover");
    write.took_effect() && write.received.at + TAKES > taken.at
}

/// Without a limit, the server carries the write out when the next leader leads already.
pub async fn write_without_bound_lands_after_takeover() {
    let world = frozen_while_the_server_works(false).await;
    let write = write_of_frozen(&world).await;
    assert!(landed_late(&world, &write).await, "{write:?}");
}

/// Rule S2, beyond the process: with the limit, the server gives the write up by itself.
pub async fn s2_bounded_write_never_lands_after_takeover() {
    let world = frozen_while_the_server_works(true).await;
    let write = write_of_frozen(&world).await;
    assert_eq!(write.status, 504);
    assert!(!landed_late(&world, &write).await);
    let maps = Api::<ConfigMap>::namespaced(world.cluster.client("admin"), world.namespace());
    let map = maps
        .list(&ListParams::default())
        .await
        .expect("a list")
        .items
        .into_iter()
        .find(|it| it.metadata.name.as_deref() == Some("work"));
    assert!(map.expect("the map").data.is_none_or(|data| !data.contains_key("n")), "nothing was committed");
    assert!(timing().renew_deadline() < TAKES);
}
