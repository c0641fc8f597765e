//! How a leader stops: first the gate closes, then the writes finish, then the lease is released.

use crate::{
    candidate::{builder, following, leading, renews, start, timing, write},
    outsider::Outsider,
    support::{PATIENCE, is_cut_off, is_not_leader, judged, release, until, within},
    world::World,
};
use kube_leader_gate::{election::LeaseEnd, testing::SuccessionKind};
use serde_json::json;
use std::time::Duration;
use test_support::assert_safety;
use tokio::time::Instant;

/// Pinniped's order, by the server's own log: no request of the old leader arrives after its release.
pub async fn s3_stopping_leader_closes_gate_before_handover(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    let _writers = [a.writing(), a.writing(), a.writing(), b.writing()];
    a.renews(2).await;
    let (client, leader) = (a.client.clone(), a.candidate().clone());
    assert_eq!(a.running.stop().await, LeaseEnd::Released);
    assert!(!leader.is_leader());
    let refused = write(&client).await;
    assert!(is_not_leader(&refused));
    assert!(refused.unwrap_err().to_string().ends_with("it will not lead again"), "and says so");
    b.elected().await;
    b.write().await.expect("the leader writes");
    let released = release(world, "candidate-0").await.expect("a release");
    let of_a = |write: &&_| is_work_of(write, "candidate-0");
    let log = world.writes().await;
    assert_ne!(log.iter().filter(of_a).count(), 0);
    for write in log.iter().filter(of_a) {
        assert_safety!(write.received < released.received, "{write:?} after {released:?}");
    }
    let verdict = judged(world, &["candidate-0", "candidate-1"]).await;
    assert_safety!(verdict.strays.is_empty(), "writes by a non-holder: {:?}", verdict.strays);
    let [handover] = &verdict.successions()[..] else { panic!("{:?}", verdict.terms) };
    assert_eq!(handover.kind, SuccessionKind::Graceful);
    assert_eq!(verdict.terms[1].transitions, 1);
}

fn is_work_of(write: &kube_leader_gate::testing::WriteRecord, user: &str) -> bool {
    write.user == user && write.resource == "configmaps" && write.took_effect()
}

/// The workload ends, the gate closes, open writes finish while the lease is renewed, and then the lease is released.
pub async fn s4_clean_stop_drains_writes_before_release(world: &impl World) {
    let a = start(world, "candidate-0", builder(world, "candidate-0").drain_timeout(PATIENCE * 2)).await;
    a.elected().await;
    a.work.hold();
    let client = a.client.clone();
    let slow = tokio::spawn(async move { write(&client).await });
    until("the write is under way", async || a.candidate().leadership().writes_under_way() == 1).await;
    let leader = a.candidate().clone();
    let stop = tokio::spawn(a.running.stop());
    until("the candidate drains", async || !leader.can_write()).await;
    assert!(leader.is_leader(), "and still renews");
    assert!(is_not_leader(&write(&a.client).await));
    renews(&leader, 4).await;
    // Longer than its deadline, so it goes on renewing.
    tokio::time::sleep(timing().renew_deadline() + timing().retry_period()).await;
    assert!(leader.is_leader() && !stop.is_finished());
    a.work.mend();
    within(PATIENCE, "the write finishes", slow).await.unwrap().expect("it is carried out");
    assert_eq!(within(PATIENCE, "the candidate stops", stop).await.unwrap(), LeaseEnd::Released);
    let log = world.writes().await;
    let written = log.iter().find(|write| is_work_of(write, "candidate-0")).expect("the write");
    let released = release(world, "candidate-0").await.expect("a release");
    assert_safety!(written.received < released.received, "released before the write");
}

/// The writes are cut off. They may take effect for as long as a lease tolerates.
pub async fn s4_writes_that_do_not_finish_delay_the_release(world: &impl World) {
    let patience = Duration::from_millis(700);
    let a = start(world, "candidate-0", builder(world, "candidate-0").drain_timeout(patience)).await;
    a.elected().await;
    let b = following(world, "candidate-1").await;
    a.work.hold();
    let client = a.client.clone();
    let slow = tokio::spawn(async move { write(&client).await });
    until("the write is under way", async || a.candidate().leadership().writes_under_way() == 1).await;
    let began = Instant::now();
    let stop = tokio::spawn(a.running.stop());
    let result = within(PATIENCE, "the write is cut off", slow).await.unwrap();
    assert!(is_cut_off(&result), "{result:?}");
    assert_eq!(within(PATIENCE, "the candidate stops", stop).await.unwrap(), LeaseEnd::Released);
    b.elected().await;
    let released = release(world, "candidate-0").await.expect("a release").received.at;
    let earliest = began + patience + timing().safety_margin();
    assert_safety!(released >= earliest, "released {:?} early", earliest - released);
    judged(world, &["candidate-0", "candidate-1"]).await;
}

/// A leader that loses the lease while it drains must neither take it back nor release another candidate's lease.
pub async fn s5_stop_does_not_release_stolen_lease(world: &impl World) {
    for deleted in [false, true] {
        let a = leading(world, "candidate-0").await;
        a.work.hold();
        let client = a.client.clone();
        let slow = tokio::spawn(async move { write(&client).await });
        until("the write is under way", async || a.candidate().leadership().writes_under_way() == 1).await;
        let leader = a.candidate().clone();
        let stop = tokio::spawn(a.running.stop());
        until("the candidate drains", async || !leader.can_write()).await;
        let outsider = Outsider::of(world);
        if deleted {
            outsider.delete().await;
        } else {
            outsider.steal().await;
        }
        let result = within(PATIENCE, "the write is cut off", slow).await.unwrap();
        assert!(is_cut_off(&result), "{result:?}");
        assert_eq!(within(PATIENCE, "the candidate stops", stop).await.unwrap(), LeaseEnd::Released);
        assert!(is_not_leader(&write(&a.client).await));
        if deleted {
            assert!(outsider.get().await.is_none());
        } else {
            assert_eq!(outsider.holder().await, "outsider");
            outsider.delete().await;
        }
    }
    assert!(release(world, "candidate-0").await.is_none());
}

/// Stops a leader whose line is held while an outsider changes the lease. So the leader sends its release before it
/// can learn of the change.
async fn stopped_too_late(world: &impl World, change: impl AsyncFnOnce(&Outsider)) -> (LeaseEnd, Outsider) {
    let a = leading(world, "candidate-0").await;
    let outsider = Outsider::of(world);
    // Its connection is open then, so that the line is held only for a short time.
    outsider.get().await.expect("the lease");
    a.renews(1).await;
    a.line.hold();
    change(&outsider).await;
    let leader = a.candidate().clone();
    let stop = tokio::spawn(a.running.stop());
    until("its gate is closed", async || !leader.is_leader()).await;
    a.line.mend();
    (within(PATIENCE, "the candidate stops", stop).await.unwrap(), outsider)
}

/// kubernetes #131867: a late release erased a successor.
pub async fn s5_late_release_does_not_change_successors_lease(world: &impl World) {
    let (_, outsider) = stopped_too_late(world, async |outsider| outsider.steal().await).await;
    assert_eq!(outsider.holder().await, "outsider");
    assert!(release(world, "candidate-0").await.is_none());
}

pub async fn s5_foreign_label_does_not_prevent_release(world: &impl World) {
    let label = json!({ "metadata": { "labels": { "x": "y" } } });
    let (stopped, outsider) =
        stopped_too_late(world, async |outsider| drop(outsider.patch(label).await)).await;
    assert_eq!(stopped, LeaseEnd::Released);
    assert_eq!(outsider.holder().await, "");
    assert_eq!(outsider.get().await.expect("the lease")["metadata"]["labels"]["x"], "y");
}

/// No lease is left to release.
pub async fn s5_release_of_deleted_lease_creates_nothing(world: &impl World) {
    let (stopped, outsider) = stopped_too_late(world, async |outsider| outsider.delete().await).await;
    assert_eq!(stopped, LeaseEnd::Released);
    assert!(outsider.get().await.is_none());
}

pub async fn follower_stops_without_writing_the_lease(world: &impl World) {
    let a = leading(world, "candidate-0").await;
    let b = following(world, "candidate-1").await;
    assert_eq!(within(PATIENCE, "the candidate stops", b.running.stop()).await, LeaseEnd::Released);
    assert!(world.writes().await.iter().all(|write| write.user != "candidate-1"));
    assert!(a.candidate().is_leader());
}
