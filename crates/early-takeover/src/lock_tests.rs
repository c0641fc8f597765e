//! What the lock shows of the lease, and what it writes. Each defect that the package could have fails one of these.

use crate::{
    EarlyTakeover, EarlyTakeoverLock, ErrInvalidEarlyTakeover,
    holder::{HOLDER_POD, HolderPod, WAITS_FOR},
};
use futures_util::StreamExt;
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    extension::{LockContext, LockLayer},
    kube_client::Client,
    lease::{BoxLock, LeaseEvent, LeasePool, LeaseRecord, Lock},
    testing::{ApiServer, Fault, TokioClock, WatchBreak},
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use test_support::wait::{until, within};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator";
const CLAIM: &str = "kube-leader-gate/claim";
const POD: &str = "/api/v1/namespaces/default/pods/a";
const RENEWED: &str = "2026-01-02T03:04:05.000000Z";
const ENDED: &str = "2026-01-02T03:04:09";
const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(100);
const SETTLE: Duration = Duration::from_secs(2);

/// Hands the lock of an election out.
#[derive(Clone)]
struct HandsOut(EarlyTakeover, Arc<Mutex<Option<BoxLock>>>);

impl LockLayer for HandsOut {
    type Lock = BoxLock;
    type Error = ErrInvalidEarlyTakeover;

    fn layer(self, inner: BoxLock, context: &LockContext) -> Result<BoxLock, ErrInvalidEarlyTakeover> {
        let lock = BoxLock::new(self.0.layer(inner, context)?);
        *self.1.lock().unwrap() = Some(lock.clone());
        Ok(lock)
    }
}

/// The lock of the candidate `me`. The candidate `a` holds the lease, in the pod `a`.
struct Scene {
    server: ApiServer,
    lock: BoxLock,
    /// It has not begun.
    election: Election,
}

impl Scene {
    fn new() -> Self {
        let server = ApiServer::new();
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "default" },
                          "spec": { "containers": [{ "name": "manager" }] } });
        let pod = server.put("kubelet", POD, pod).unwrap();
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let holder = HolderPod { name: "a".into(), container: None }.annotation("a", 4);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "operator", "namespace": "default", "labels": { "team": "blue" },
                          "annotations": { HOLDER_POD: holder, WAITS_FOR: "{}",
                          CLAIM: format!("0000000000000007 {RENEWED} - 15s {uid} a"), "leader.istio.io/holder-key": "high", "seen": "yes" } },
            "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 4,
                      "acquireTime": RENEWED, "renewTime": RENEWED, "strategy": "OldestEmulationVersion" },
        });
        server.put("a", LEASE, lease).unwrap();
        let client = Client::new(server.service().user("me"), "default");
        let (out, early) = (Arc::default(), EarlyTakeover::of_pod(client, "me"));
        let service = server.service().user("me");
        let election = Election::builder("default", "operator")
            .identity(Identity::new("me").unwrap())
            .pod_uid("uid-of-me")
            .timing(LeaseTiming::fast())
            .clock(Arc::new(TokioClock::new()))
            .layer_lock(HandsOut(early, Arc::clone(&out)))
            .build_in(
                &LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).expect("a client"),
            )
            .unwrap();
        let lock = out.lock().unwrap().take().unwrap();
        Self { server, lock, election }
    }

    /// The kubelet reports the end of the pod's container.
    fn report_the_end(&self) {
        let end = json!([{ "name": "manager", "state": { "terminated": {
            "exitCode": 1, "reason": "Error", "finishedAt": format!("{ENDED}Z") } } }]);
        let report = |pod: &mut Value| pod["status"]["containerStatuses"] = end;
        self.server.edit("kubelet", POD, report).unwrap();
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        self.server.edit("a", LEASE, edit).unwrap();
    }

    fn lease(&self) -> Value {
        self.server.object(LEASE).unwrap()
    }

    async fn read(&self) -> LeaseRecord {
        self.lock.get().await.unwrap().unwrap()
    }

    fn watches(&self) -> u64 {
        self.server.reads("me", "watch", "pods")
    }

    /// Watches the lease until it is shown as free.
    async fn freed(&self) -> LeaseRecord {
        let mut events = self.lock.watch().await.unwrap();
        within(SETTLE + SECOND, "the lease is shown as free", async {
            loop {
                let LeaseEvent::Seen(record) = events.next().await.unwrap().unwrap() else {
                    panic!("deleted")
                };
                if record.holder().is_none() {
                    return record;
                }
            }
        })
        .await
    }
}

#[tokio::test(start_paused = true)]
async fn ended_holders_lease_is_shown_as_released() {
    let scene = Scene::new();
    scene.report_the_end();
    let shown = scene.freed().await;
    assert_eq!(scene.read().await, shown, "a read shows the same");
    assert_eq!(scene.freed().await, shown, "so does a later watch");
    let mut expected = scene.lease();
    assert_eq!(expected["spec"]["holderIdentity"], "a", "nothing was written");
    let time = format!("{ENDED}.000000Z");
    for (field, value) in [("holderIdentity", json!("")), ("leaseDurationSeconds", json!(1))] {
        expected["spec"][field] = value;
    }
    for field in ["acquireTime", "renewTime"] {
        expected["spec"][field] = time.as_str().into();
    }
    let claim = expected["metadata"]["annotations"][CLAIM].as_str().unwrap().replace(RENEWED, &time);
    expected["metadata"]["annotations"][CLAIM] = claim.into();
    assert_eq!(shown.into_json(), expected, "it has the real version");
}

/// The holder has started again, and leads.
#[tokio::test(start_paused = true)]
async fn later_version_is_shown_as_it_is() {
    let scene = Scene::new();
    scene.report_the_end();
    scene.freed().await;
    scene.edit(|lease| lease["spec"]["renewTime"] = "2026-01-02T03:04:10.000000Z".into());
    assert_eq!(scene.read().await.into_json(), scene.lease());
    let mut events = scene.lock.watch().await.unwrap();
    for _ in 0..2 {
        let shown = timeout(60 * SECOND, events.next()).await;
        let Ok(shown) = shown else { return };
        let LeaseEvent::Seen(shown) = shown.unwrap().unwrap() else { panic!("deleted") };
        assert_eq!(shown.into_json(), scene.lease());
    }
}

#[tokio::test(start_paused = true)]
async fn lease_is_shown_as_free_once_the_writes_have_settled() {
    let scene = Scene::new();
    scene.read().await;
    until(SOON, "the pod is watched", || scene.watches() == 1).await;
    scene.report_the_end();
    let began = Instant::now();
    scene.freed().await;
    assert!((SETTLE..SETTLE + SOON).contains(&began.elapsed()), "{:?}", began.elapsed());
    // Another program edits the lease. That is another version of the same holder.
    scene.edit(|lease| lease["metadata"]["annotations"]["seen"] = "again".into());
    let began = Instant::now();
    scene.freed().await;
    assert!(began.elapsed() < SOON, "the end is the same: {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn s12_takeover_keeps_foreign_fields() {
    let scene = Scene::new();
    let before = scene.lease();
    scene.report_the_end();
    let me = scene.election.start();
    within(2 * SETTLE, "it leads", me.candidate().elected()).await;
    let after = scene.server.object(LEASE).unwrap();
    assert_eq!(after["spec"]["holderIdentity"], "me");
    assert_eq!(after["spec"]["strategy"], before["spec"]["strategy"]);
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    let mut annotations = after["metadata"]["annotations"].clone();
    let own = annotations.as_object_mut().unwrap().remove(HOLDER_POD).unwrap();
    assert!(own.as_str().unwrap().contains(r#""pod":"me""#), "{own}");
    let claim = annotations.as_object_mut().unwrap().remove(CLAIM).expect("the claim of the successor");
    assert!(claim.as_str().unwrap().ends_with(" uid-of-me me"), "{claim}");
    assert_eq!(
        annotations,
        json!({ "seen": "yes", WAITS_FOR: "{}" }),
        "the key belonged to the former holder"
    );
}

#[tokio::test(start_paused = true)]
async fn holder_says_where_it_runs_until_it_releases() {
    let scene = Scene::new();
    scene.server.delete("user", LEASE).unwrap();
    let said = || scene.server.object(LEASE).unwrap()["metadata"]["annotations"][HOLDER_POD].take();
    let me = scene.election.start();
    within(2 * SECOND, "it leads", me.candidate().elected()).await;
    let created = r#"{"holder":"me","pod":"me","term":0}"#;
    assert_eq!(said(), created);
    sleep(10 * SECOND).await;
    assert_eq!(said(), created, "it has renewed");
    me.stop().await;
    assert_eq!(said(), Value::Null);
}

/// The one before it may live, and write.
#[tokio::test(start_paused = true)]
async fn s6_waiting_holders_lease_is_never_shown_as_free() {
    let scene = Scene::new();
    scene.edit(|lease| lease["metadata"]["annotations"][WAITS_FOR] = r#"{"z":9000}"#.into());
    scene.report_the_end();
    let mut events = scene.lock.watch().await.unwrap();
    let LeaseEvent::Seen(shown) = events.next().await.unwrap().unwrap() else { panic!("deleted") };
    assert_eq!(shown.into_json(), scene.lease());
    timeout(60 * SECOND, events.next()).await.expect_err("nothing is shown anew");
    assert_eq!(scene.watches(), 0);
    scene.edit(|lease| lease["metadata"]["annotations"][WAITS_FOR] = "{}".into());
    scene.freed().await;
}

/// That a pod is gone proves nothing, and it is no failure: the same watch goes on.
#[tokio::test(start_paused = true)]
async fn pod_gone_at_the_second_look_is_followed_on() {
    let scene = Scene::new();
    scene.report_the_end();
    let gone = scene.server.inject(Fault::status(404).resource("pods").verb("get"));
    scene.read().await;
    sleep(10 * SECOND).await;
    assert_eq!(scene.read().await.holder(), Some("a"));
    assert_eq!((gone.hits(), scene.watches()), (1, 1));
    drop(gone);
    scene.server.edit("kubelet", POD, |pod| pod["metadata"]["labels"] = json!({ "seen": "again" })).unwrap();
    scene.freed().await;
    assert_eq!(scene.watches(), 1);
    let trouble = scene.election.candidate().trouble();
    assert!(trouble.as_deref().is_none_or(|it| !it.contains("pod")), "{trouble:?}");
}

/// The watch lags: the container runs again.
#[tokio::test(start_paused = true)]
async fn end_that_a_second_look_denies_is_none() {
    let scene = Scene::new();
    scene.report_the_end();
    let slow = scene.server.inject(Fault::delay_before(SECOND).resource("pods").verb("get"));
    scene.read().await;
    until(2 * SETTLE, "the second look has begun", || slow.hits() == 1).await;
    let again = json!([{ "name": "manager", "state": { "running": {} } }]);
    scene.server.edit("kubelet", POD, |pod| pod["status"]["containerStatuses"] = again).unwrap();
    sleep(60 * SECOND).await;
    assert_eq!(scene.read().await.holder(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn watch_that_ends_begins_again_after_a_pause() {
    let scene = Scene::new();
    scene.read().await;
    until(SECOND, "the watch begins", || scene.watches() == 1).await;
    sleep(SECOND).await;
    assert_eq!(scene.server.break_watches(|user| user == "me", WatchBreak::End), 1);
    sleep(Duration::from_millis(490)).await;
    assert_eq!(scene.watches(), 1);
    sleep(Duration::from_millis(20)).await;
    assert_eq!(scene.watches(), 2);
}

#[tokio::test(start_paused = true)]
async fn pod_watch_ends_with_its_lock() {
    let Scene { server, lock, election } = Scene::new();
    lock.get().await.unwrap();
    until(SECOND, "the watch begins", || server.open_watches() == 1).await;
    drop((lock, election));
    until(SECOND, "it ends", || server.open_watches() == 0).await;
}

#[tokio::test]
async fn older_news_changes_nothing() {
    let record = |version: &str, uid: &str| {
        let metadata = json!({ "uid": uid, "resourceVersion": version });
        LeaseRecord::from_json(json!({ "metadata": metadata, "spec": { "holderIdentity": "a" } })).unwrap()
    };
    let (newest, known) = watch::channel(None);
    let after = |news: Option<LeaseRecord>| {
        EarlyTakeoverLock::note(&newest, news.as_ref());
        known.borrow().as_ref().map(|it| it.resource_version().to_owned())
    };
    assert_eq!(after(Some(record("9", "u"))).as_deref(), Some("9"));
    assert_eq!(after(Some(record("8", "u"))).as_deref(), Some("9"));
    assert_eq!(after(Some(record("10", "u"))).as_deref(), Some("10"), "versions are no texts");
    assert_eq!(after(Some(record("3", "another"))).as_deref(), Some("3"));
    assert_eq!(after(None), None);
}
