//! What kube-runtime's `debounce` delays.

use crate::{
    support::{FIRST, SOON, candidate, gated as gated_client, leading, pass, until},
    work::runtime::things::{Context, is_done, reconcile, want},
};
use futures_util::StreamExt;
use kube::{
    Api,
    runtime::{
        Controller,
        controller::{Action, Config},
        watcher,
    },
};
use kube_leader_gate::{runtime::gated, testing::ApiServer};
use std::{future::ready, sync::Arc, time::Duration};
use tokio::time::Instant;

const DEBOUNCE: Duration = Duration::from_secs(3);

/// Each reconciliation waits for the whole debounce: after a gain, after a change, and after the last of many changes.
#[tokio::test(start_paused = true)]
async fn debounce_delays_gains_and_changes_alike() {
    let server = ApiServer::new();
    let (b, _) = leading(&server, "b").await;
    let election = candidate(&server, "a");
    let context = Arc::new(Context::new(Api::namespaced(gated_client(&server, &election, "a"), "default")));
    let controller = Controller::new(context.things.clone(), watcher::Config::default())
        .with_config(Config::default().debounce(DEBOUNCE))
        .reconcile_all_on(election.candidate().gains())
        .run(gated(reconcile), |_, _: &kube::Error, _| Action::await_change(), context.clone())
        .for_each(|_| ready(()));
    let leader = election.candidate();
    let script = async {
        want(&server, "x", "1");
        until(DEBOUNCE + SOON, "the follower skips it", || context.begun("x") == 1).await;

        b.stop().await;
        until(FIRST, "a leads", || leader.can_write()).await;
        done_after(&server, DEBOUNCE).await;

        want(&server, "x", "2");
        done_after(&server, DEBOUNCE).await;

        pass(2 * DEBOUNCE).await; // its own write is a change too
        let begun = context.begun("x");
        for what in 3..8 {
            want(&server, "x", &what.to_string());
            pass(DEBOUNCE / 2).await;
        }
        assert_eq!(context.begun("x"), begun, "each change begins the wait anew");
        done_after(&server, DEBOUNCE / 2).await;
    };
    tokio::select! {
        () = controller => panic!("it goes on"),
        run = election.run(script) => drop(run.unwrap()),
    }
}

async fn done_after(server: &ApiServer, time: Duration) {
    let begun = Instant::now();
    until(time + SOON, "it is reconciled", || is_done(server, "x")).await;
    assert!(begun.elapsed() + SOON >= time, "{:?}", begun.elapsed());
}
