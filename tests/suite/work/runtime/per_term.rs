//! A kube-runtime reconciler that runs for the leader alone, fed by a replay.

use crate::{
    support::{FIRST, SOON, pass, steal, until},
    work::runtime::things::{Context, is_done, looks, reconcile, want},
    work::runtime::viewer::{Viewer, viewer},
};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{
    applier,
    controller::{Action, Config},
    reflector::ObjectRef,
    watcher::Event,
};
use kube_leader_gate::{leadership::Loss, runtime::gated, testing::ApiServer};
use std::{convert::Infallible, future, sync::Arc, time::Duration};

/// What each term does, as in the documentation of `Replay::during`.
async fn lead(viewer: &Viewer, context: Arc<Context>) {
    let leader = viewer.candidate();
    loop {
        let term = leader.elected().await;
        let queue = viewer.replay.during(leader, &term).filter_map(|event| {
            future::ready(match event {
                Event::InitApply(it) | Event::Apply(it) => {
                    Some(Ok::<_, Infallible>(ObjectRef::from_obj(&*it)))
                }
                Event::Init | Event::InitDone | Event::Delete(_) => None,
            })
        });
        applier(
            gated(reconcile),
            |_: Arc<ConfigMap>, _: &kube::Error, _| Action::requeue(Duration::from_secs(1)),
            context.clone(),
            viewer.replay.store(),
            queue,
            Config::default(),
        )
        .for_each(|_| future::ready(()))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn reconciler_runs_only_in_term_and_misses_nothing() {
    let server = ApiServer::new();
    want(&server, "x", "1");
    let a = viewer(&server, "a").await;
    let context = Arc::new(Context::new(a.things.clone()));
    let script = async {
        until(FIRST, "x is reconciled", || is_done(&server, "x")).await;
        let looked = looks(&server, "a");
        for round in 0..3 {
            steal(&server);
            until(SOON, "the candidate loses the lease", || {
                a.candidate().leadership().state().lost == Some(Loss::Taken)
            })
            .await;
            let begun = context.begun("x");
            want(&server, "x", &round.to_string());
            pass(Duration::from_secs(5)).await;
            assert_eq!(context.begun("x"), begun, "nothing runs on a follower");
            until(Duration::from_secs(40), "the candidate leads again", || a.candidate().can_write()).await;
            until(Duration::from_secs(1), "x is reconciled", || is_done(&server, "x")).await;
        }
        assert_eq!(looks(&server, "a"), looked, "no list, no watch");
    };
    tokio::select! { () = lead(&a, context.clone()) => {}, () = script => {} }
}
