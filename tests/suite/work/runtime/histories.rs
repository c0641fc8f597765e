//! `caught_up` beside a watch of kube-runtime that is late, ends, and lists anew, while objects come, change, go and come again.

use crate::{
    support::pass,
    work::runtime::{
        things::{path, want},
        viewer::truth,
    },
};
use fastrand::Rng;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        reflector::{self, reflector},
        watcher::{Config, watcher},
    },
};
use kube_leader_gate::{
    runtime::caught_up,
    testing::{ApiServer, Fault, WatchBreak},
};
use std::{collections::BTreeSet, time::Duration};
use tokio_util::task::AbortOnDropHandle;

const SEEDS: u64 = 500;

/// Names with versions.
type States = BTreeSet<(String, String)>;

fn stored(server: &ApiServer) -> States {
    truth(server).into_iter().collect()
}

/// What happens is one of `kinds`: changes, deletions, and from 7 on what breaks a watch, and a list of many pages.
async fn step(rng: &mut Rng, server: &ApiServer, names: u8, kinds: u8) {
    let name = format!("o{}", rng.u8(..names));
    match rng.u8(..kinds) {
        0..=3 => want(server, &name, &rng.u16(..1000).to_string()),
        4..=6 => drop(server.delete("outsider", &path(&name))),
        way => {
            if way == 7 {
                server.compact();
            }
            server.break_watches(|_| true, WatchBreak::End);
        }
    }
    pass(Duration::from_millis(rng.u64(..60))).await;
}

/// What is wrong with the cache at the moment when it has caught up.
async fn play(seed: u64) -> Vec<String> {
    let mut rng = Rng::with_seed(seed);
    let server = ApiServer::new();
    let names = rng.u8(4..12);
    let late = Duration::from_millis(rng.u64(..2) * rng.u64(..400));
    let slow = Duration::from_millis(rng.u64(..2) * rng.u64(..300));
    let _late = server.inject(Fault::late_watch(late).resource("configmaps"));
    let _slow = server.inject(Fault::delay_after(slow).verb("list").resource("configmaps"));
    let config = if rng.bool() { Config::default() } else { Config::default().page_size(rng.u32(1..4)) };
    for number in 0..names - 2 {
        want(&server, &format!("o{number}"), "0");
    }
    let api: Api<ConfigMap> = Api::all(Client::new(server.service().user("a"), "default"));
    let (store, writer) = reflector::store::<ConfigMap>();
    let watched = reflector(writer, watcher(api.clone(), config.clone()).default_backoff());
    let _watch = AbortOnDropHandle::new(tokio::spawn(watched.for_each(async |_| ())));
    let mut earlier = stored(&server);
    for _ in 0..rng.u8(..40) {
        step(&mut rng, &server, names, 9).await;
        earlier.append(&mut stored(&server));
    }
    let at_call = stored(&server);
    let caught_up = caught_up(&api, &config, &store, &());
    let waits = tokio::spawn(async move { caught_up.await.map(|()| store.state()) });
    for steps in 0..1000 {
        if waits.is_finished() {
            break;
        }
        step(&mut rng, &server, names, if steps < 50 { 9 } else { 7 }).await;
    }
    assert!(waits.is_finished(), "seed {seed}: it never ends");
    let cached = waits.await.unwrap().unwrap();
    let cached: States = cached.iter().map(|it| (it.name_any(), it.resource_version().unwrap())).collect();
    let stale = cached.intersection(&earlier).filter(|it| !at_call.contains(it));
    let stale = stale.map(|it| format!("seed {seed}: {it:?} is older than {at_call:?}"));
    let kept = stored(&server).intersection(&at_call).cloned().collect::<States>();
    let lacking = kept.difference(&cached).map(|it| format!("seed {seed}: {it:?} is lacking"));
    stale.chain(lacking).collect()
}

#[tokio::test(start_paused = true)]
async fn s16_cache_that_has_caught_up_shows_nothing_older_than_what_was_stored() {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        wrong.extend(play(seed).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
