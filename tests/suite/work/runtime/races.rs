//! A write that fails just before a gain, and the shapes in which its error arrives.

use crate::{
    support::{FIRST, SOON, pass, until},
    work::runtime::logs::Logs,
    work::runtime::things::{Context, depose, is_done, path, reconcile, start, until_seen, want},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{
    controller::Action,
    finalizer::{self, finalizer},
};
use kube_leader_gate::testing::{ApiServer, Fault};
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// The gate rejects the write before the gain. The gain fires. Only then does the reconciler return the rejection.
#[tokio::test(start_paused = true)]
async fn refusal_that_arrives_after_gain_is_retried() {
    let server = ApiServer::new();
    let a = start(&server, "a", reconcile);
    until(FIRST, "a leads", || a.leads()).await;
    let may_return = Arc::new(Semaphore::new(0));
    let wait = may_return.clone();
    let b = start(&server, "b", move |thing, context| {
        let wait = wait.clone();
        async move {
            let outcome = reconcile(thing, context).await;
            if outcome.is_err() {
                wait.acquire().await.expect("open").forget();
            }
            outcome
        }
    });
    until(SOON, "b follows", || b.running.candidate().holder().is_some()).await;
    drop(a);
    want(&server, "x", "1");
    until_seen(&b, "x", 1).await;
    until(Duration::from_secs(16), "b leads", || b.leads()).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(b.context.begun("x"), 1, "it is still at it");
    assert!(!is_done(&server, "x"));
    may_return.add_permits(1);
    until(SOON, "x is reconciled", || is_done(&server, "x")).await;
    // The second attempt, and perhaps one for the object that it changed.
    pass(Duration::from_secs(1)).await;
    assert!((2..=3).contains(&b.context.begun("x")), "{}", b.context.begun("x"));
}

/// The outcome of the write is unknown. The next leader, which may be this process, checks it.
#[tokio::test(start_paused = true)]
async fn cut_off_write_is_reconciled_at_next_gain() {
    let server = ApiServer::new();
    let (logs, _guard) = Logs::capture();
    let a = start(&server, "a", reconcile);
    until(FIRST, "a leads", || a.leads()).await;
    let hang = server.inject(Fault::hang_before().verb("patch").resource("configmaps"));
    want(&server, "x", "1");
    until(SOON, "the call hangs", || hang.hits() == 1).await;
    depose(&server);
    until(SOON, "the write is cut off", || a.running.candidate().leadership().writes_under_way() == 0).await;
    drop(hang);
    until(Duration::from_secs(4), "x is reconciled", || is_done(&server, "x")).await;
    assert_eq!(a.errors(), [""; 0]);
    let lines = logs.containing("a write was cut off");
    assert!(
        lines.len() == 1 && lines[0].contains("INFO") && lines[0].contains("loss=\"deleted\""),
        "{lines:?}"
    );
}

/// The error policy handles any other failure.
#[tokio::test(start_paused = true)]
async fn other_errors_reach_the_error_policy() {
    let server = ApiServer::new();
    let a = start(&server, "a", reconcile);
    until(FIRST, "a leads", || a.leads()).await;
    let _broken = server.inject(Fault::status(422).verb("patch").resource("configmaps").times(2));
    want(&server, "x", "1");
    until(Duration::from_secs(3), "x is reconciled", || is_done(&server, "x")).await;
    assert_eq!(a.errors().len(), 2, "{:?}", a.errors());
}

async fn with_finalizer(
    thing: Arc<ConfigMap>,
    context: Arc<Context>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let things = context.things.clone();
    finalizer(&things, "example.com/cleanup", thing, |event| async {
        match event {
            finalizer::Event::Apply(thing) => reconcile(thing, context).await,
            finalizer::Event::Cleanup(thing) => {
                context.begin(&thing);
                Ok(Action::await_change())
            }
        }
    })
    .await
}

/// kube-runtime's helper wraps each error: on adding, applying and removing.
#[tokio::test(start_paused = true)]
async fn refusals_are_recognized_through_finalizer_helper() {
    let server = ApiServer::new();
    let (logs, _guard) = Logs::capture();
    let a = start(&server, "a", with_finalizer);
    until(FIRST, "a leads", || a.leads()).await;
    let b = start(&server, "b", with_finalizer);
    want(&server, "x", "1");
    until(SOON, "x is reconciled", || is_done(&server, "x")).await;
    let refused = || logs.containing("write attempt rejected").len();
    assert!(refused() > 0, "b tried to add the finalizer");
    drop(a);
    pass(Duration::from_secs(1)).await;

    let before = refused();
    want(&server, "x", "2");
    until(SOON, "b tries to apply", || refused() > before).await;
    let before = refused();
    server
        .edit("outsider", &path("x"), |it| {
            it["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        })
        .expect("marked");
    until(SOON, "b tries to remove the finalizer", || refused() > before).await;
    let cleaned = server.object(&path("x")).expect("it is kept");
    assert_eq!(cleaned["metadata"]["finalizers"][0], "example.com/cleanup");

    until(Duration::from_secs(16), "b leads", || b.leads()).await;
    let is_gone = || {
        server
            .object(&path("x"))
            .is_none_or(|it| it["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty))
    };
    until(Duration::from_secs(1), "the finalizer is gone", is_gone).await;
    assert_eq!(b.errors(), [""; 0]);
    let loud = [logs.containing(" WARN "), logs.containing(" ERROR ")].concat();
    assert!(loud.iter().all(|line| line.contains("leadership lost")), "{loud:?}");
}
