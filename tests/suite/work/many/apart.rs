//! Trouble with one lease affects only that lease: no other one loses its term or is renewed late.

use super::replica::{Fate, MANY, Network, Replica, contains, over, path, shard};
use crate::support::pass;
use bytes::Bytes;
use kube_leader_gate::testing::{ApiServer, Fault};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

/// The leases that are in trouble.
const FEW: [usize; 3] = [7, 42, 99];

struct Scene {
    server: ApiServer,
    a: Replica,
}

impl Scene {
    async fn new(shared: bool) -> Self {
        let server = ApiServer::new();
        let a = Replica::leading(&server, "a", shared).await;
        Self { server, a }
    }

    /// Lets time pass. Only the `victims` may be renewed more than some tenths of a second late.
    async fn watch_over(&mut self, time: Duration, victims: &[usize]) {
        self.watch_over_with(time, victims, Duration::from_millis(7500)).await;
    }

    /// The others must have this time left.
    async fn watch_over_with(&mut self, time: Duration, victims: &[usize], least: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            pass(Duration::from_millis(100)).await;
            let left = self.a.least_time_left(victims);
            assert!(left >= least, "{left:?} left of 10 s at a retry period of 2 s");
        }
        let mut lost = self.a.losses();
        lost.retain(|number| !victims.contains(number));
        assert_eq!(lost, [0; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn forbidden_lease_does_not_affect_others() {
    for shared in [true, false] {
        let mut scene = Scene::new(shared).await;
        let _forbidden = FEW.map(|number| scene.server.inject(Fault::forbidden().name(shard(number))));
        scene.watch_over(Duration::from_secs(20), &FEW).await;
        assert!(FEW.iter().all(|number| !scene.a.elections[*number].candidate().can_write()));
    }
}

#[tokio::test(start_paused = true)]
async fn s9_hanging_leases_do_not_affect_others() {
    for shared in [true, false] {
        let mut scene = Scene::new(shared).await;
        let _hang = FEW.map(|number| scene.server.inject(Fault::hang_before().name(shard(number))));
        scene.watch_over(Duration::from_secs(30), &FEW).await;
        assert!(FEW.iter().all(|number| !scene.a.elections[*number].candidate().can_write()));
    }
}

/// More calls hang than may run at once. The others wait for their places once, for a call timeout. From then on, the calls of
/// those that hang have places apart.
#[tokio::test(start_paused = true)]
async fn s9_half_hanging_leases_do_not_affect_the_rest() {
    let mut scene = Scene::new(true).await;
    let half: Vec<usize> = (0..MANY / 2).collect();
    let _hang: Vec<_> =
        half.iter().map(|number| scene.server.inject(Fault::hang_before().name(shard(*number)))).collect();
    scene.watch_over_with(Duration::from_secs(4), &half, Duration::from_secs(6)).await;
    scene.watch_over(Duration::from_secs(20), &half).await;
}

/// An object that is not a valid lease reaches every election that shares the watch.
#[tokio::test(start_paused = true)]
async fn invalid_lease_does_not_affect_others() {
    for shared in [true, false] {
        let server = ApiServer::new();
        let garbles = Arc::new(AtomicBool::new(false));
        let (met, bad) = (Arc::new(AtomicU32::new(0)), garbles.clone());
        let count = met.clone();
        let garble = move |data: Bytes| {
            if !bad.load(Ordering::SeqCst) || !contains(&data, r#""shard-7""#) {
                return data;
            }
            count.fetch_add(1, Ordering::SeqCst);
            String::from_utf8_lossy(&data).replace(r#""uid":"#, r#""diu":"#).into()
        };
        let garble = Fate::Flawed(Arc::new(garble));
        let network = Network::new(&server, "a", move |_, _| garble.clone());
        let a = Replica::start(&over(network, shared), "a", MANY);
        a.leads(Duration::from_secs(1)).await;
        pass(Duration::from_secs(1)).await;
        let mut scene = Scene { server, a };
        let watches = scene.server.reads("a", "watch", "leases");
        garbles.store(true, Ordering::SeqCst);
        scene.watch_over(Duration::from_secs(20), &[7]).await;
        assert!(met.load(Ordering::SeqCst) > 3);
        assert!(!scene.a.elections[7].candidate().can_write());
        if shared {
            assert_eq!(scene.server.reads("a", "watch", "leases"), watches, "the watch goes on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s7_s8_only_deleted_or_stolen_leases_are_lost() {
    for shared in [true, false] {
        let mut scene = Scene::new(shared).await;
        let [deleted, stolen, both] = FEW;
        let steal = |lease: &mut serde_json::Value| {
            lease["spec"]["holderIdentity"] = "outsider".into();
            lease["spec"]["leaseTransitions"] = 7.into();
        };
        scene.server.delete("outsider", &path(deleted)).unwrap();
        scene.server.edit("outsider", &path(stolen), steal).unwrap();
        // The object is created again before any election looks. The watch still reports the deletion.
        let lease = scene.server.object(&path(both)).unwrap();
        scene.server.delete("outsider", &path(both)).unwrap();
        scene.server.put("outsider", &path(both), lease).unwrap();
        pass(Duration::from_millis(1)).await;
        assert_eq!(scene.a.losses(), FEW, "shared: {shared}");
        scene.watch_over(Duration::from_secs(20), &FEW).await;
        scene.a.leads(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ending_some_elections_does_not_affect_others() {
    for shared in [true, false] {
        let mut scene = Scene::new(shared).await;
        let last = scene.a.elections.split_off(MANY - 3);
        let mut last = last.into_iter();
        last.next().unwrap().stop().await;
        drop(last.next());
        drop(last);
        pass(Duration::from_millis(1)).await;
        scene.a.losses();
        scene.watch_over(Duration::from_secs(20), &[97, 98, 99]).await;
        assert_eq!(scene.server.open_watches(), if shared { 1 } else { MANY - 3 });
    }
}

/// Elections ignore foreign leases in the namespace.
#[tokio::test(start_paused = true)]
async fn foreign_leases_are_skipped() {
    let mut scene = Scene::new(true).await;
    for number in 0..2_000 {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/node-{number}");
        let metadata = json!({ "name": format!("node-{number}"), "namespace": "default" });
        let foreign = json!({ "metadata": metadata, "spec": { "holderIdentity": "outsider" } });
        scene.server.put("outsider", &path, foreign).unwrap();
        if number % 100 == 0 {
            pass(Duration::from_millis(1)).await;
        }
    }
    scene.watch_over(Duration::from_secs(10), &[]).await;
    assert_eq!(scene.server.reads("a", "watch", "leases"), 1);
}
