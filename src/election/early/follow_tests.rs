//! When a candidate asks for the pod of a holder.

use super::{
    follow::HolderWatch,
    holder_pod::{HOLDER_POD, HolderPod},
    settings::EarlyTakeover,
    succession::Ended,
};
use crate::{
    leadership::Grantor,
    lease::{LeaseName, LeaseRecord, LeaseTiming},
    testing::{ApiServer, Fault, TokioClock, WatchBreak},
};
use kube_client::Client;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use test_support::wait::{until, within};
use tokio::time::{sleep, timeout};

const POD: &str = "/api/v1/namespaces/default/pods/a";
const SECOND: Duration = Duration::from_secs(1);

/// A candidate that follows the pod `a` of the holder.
struct Scene {
    server: ApiServer,
    watch: HolderWatch,
    record: LeaseRecord,
    _grantor: Grantor,
}

impl Scene {
    fn new() -> Self {
        let server = ApiServer::new();
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "default" },
                          "spec": { "containers": [{ "name": "manager" }] } });
        let pod = server.put("kubelet", POD, pod).unwrap();
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let holder = HolderPod { name: "a".into(), uid, container: None }.annotation("a", 4);
        let record = LeaseRecord::from_json(json!({
            "metadata": { "uid": "u", "resourceVersion": "7", "annotations": { HOLDER_POD: holder } },
            "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 4,
                      "acquireTime": "2026-01-02T03:04:05.000000Z", "renewTime": "2026-01-02T03:04:05.000000Z" },
        }))
        .unwrap();
        let client = Client::new(server.service().user("me"), "default");
        let early = EarlyTakeover::of_pod(client, "me", "uid-1");
        let lease = LeaseName::new("default", "operator").unwrap();
        let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
        let watch = HolderWatch::new(Some(&early), &lease, LeaseTiming::fast(), grantor.leadership());
        watch.follow(Some(&record));
        Self { server, watch, record, _grantor: grantor }
    }

    fn report_the_end(&self) {
        let end = json!([{ "name": "manager", "state": { "terminated": {
            "exitCode": 1, "reason": "Error", "finishedAt": "2026-01-02T03:04:09Z" } } }]);
        let report = |pod: &mut Value| pod["status"]["containerStatuses"] = end;
        self.server.edit("kubelet", POD, report).unwrap();
    }

    fn watches(&self) -> u64 {
        self.server.reads("me", "watch", "pods")
    }
}

/// That a pod is gone proves nothing, and it is no failure: the same watch goes on.
#[tokio::test(start_paused = true)]
async fn pod_gone_at_the_second_look_is_followed_on() {
    let mut scene = Scene::new();
    scene.report_the_end();
    let gone = scene.server.inject(Fault::status(404).resource("pods").verb("get"));
    timeout(60 * SECOND, scene.watch.next()).await.expect_err("nothing is proven");
    assert_eq!((gone.hits(), scene.watches()), (1, 1));
    drop(gone);
    scene.server.edit("kubelet", POD, |pod| pod["metadata"]["labels"] = json!({ "seen": "again" })).unwrap();
    let ended = within(SECOND, "the pod is shown again", scene.watch.next()).await;
    assert_eq!((ended, scene.watches()), (Some(Ended::of(&scene.record)), 1));
}

#[tokio::test(start_paused = true)]
async fn watch_that_ends_begins_again_after_a_pause() {
    let Scene { server, mut watch, .. } = Scene::new();
    let following = tokio::spawn(async move { watch.next().await });
    let watches = || server.reads("me", "watch", "pods");
    until(SECOND, "the watch begins", || watches() == 1).await;
    sleep(SECOND).await;
    assert_eq!(server.break_watches(|user| user == "me", WatchBreak::End), 1);
    let pause = LeaseTiming::fast().pause();
    sleep(pause.saturating_sub(Duration::from_millis(10))).await;
    assert_eq!(watches(), 1);
    sleep(Duration::from_millis(20)).await;
    assert_eq!(watches(), 2);
    following.abort();
}
