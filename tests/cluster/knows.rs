//! What the next leader knows of the last one's writes. A real watch is late while the API server that serves it stands still.
//! This delays neither the lease nor a list, if another API server answers them.

#[path = "../suite/work/runtime/knows/operator.rs"]
mod operator;

use self::operator::{Adapt, PARENT, as_it_is, knowing, start};
use crate::{
    apiserver::{Lasting, Sibling, assets},
    candidate::builder,
    real::Real,
    support::{PATIENCE, until, within},
    world::World as _,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
    runtime::{
        reflector::{self, reflector},
        watcher::{self, watcher},
    },
};
use kube_client::Client;
use kube_leader_gate::runtime::caught_up;
use std::{collections::BTreeMap, time::Duration};
use test_support::{apiserver::Cluster, harness::say, wait::timed};
use tokio::time::{interval, sleep, timeout};

const HANDOVERS: usize = 3;
/// How many parents come before each handover.
const PARENTS: usize = 10;
/// How long the watch stands still after a handover, unless a child is created twice before.
const PAUSE: Duration = Duration::from_secs(1);

/// The lease, the parents, the writes and the lists are at one API server, and the watch of the children at another one.
pub async fn s16_late_watch_makes_doubles_unless_the_gate_waits_for_the_cache() {
    let own = Lasting::start(assets()).await;
    let sibling = own.cluster().sibling().await;
    let ignorant = play(&Real::on(own.cluster()).await, &sibling, as_it_is).await;
    let knows = play(&Real::on(own.cluster()).await, &sibling, knowing).await;
    say(format_args!(
        "{HANDOVERS} handovers, {PARENTS} parents each: {ignorant} with more than one child, and {knows} if the gate waits"
    ));
    assert!(ignorant > 0, "the watch is late");
    assert_eq!(knows, 0, "parents with more than one child, although the gate waits");
}

/// Moves the leadership while the watch of the children stands still. Returns how many parents have more than one child.
async fn play(world: &Real<&'static Cluster>, sibling: &Sibling, adapt: Adapt) -> usize {
    let replicas = ["candidate-0", "candidate-1"].map(|user| {
        let (config, mut watching) = (world.config(user), sibling.config(user));
        watching.default_namespace.clone_from(&config.default_namespace);
        let election = builder(world, user).build(&config).expect("a valid election");
        let client = election.client(&config).expect("a client");
        start(election, client, Client::try_from(watching).expect("a client"), adapt)
    });
    let leader = || replicas.iter().position(|it| it.candidate().can_write());
    until("a replica leads", async || leader().is_some()).await;
    let admin = world.client("admin");
    for handover in 1..=HANDOVERS {
        let before = doubles(&admin).await;
        sibling.freeze();
        create_maps(&admin, PARENTS).await;
        until("each parent has a child", async || children(&admin).await.len() == handover * PARENTS).await;
        let former = leader().expect("a leader that no candidate challenges");
        replicas[former].candidate().give_way();
        let next = replicas[1 - former].candidate();
        until("the other one holds the lease", async || next.can_write() || next.opening().is_some()).await;
        let harm = async {
            while doubles(&admin).await == before {
                sleep(Duration::from_millis(5)).await;
            }
        };
        // Without harm, the pause lasts its whole time.
        let _ = timeout(PAUSE, harm).await;
        sibling.thaw();
        until("it may write", async || next.can_write()).await;
        let complete = async || {
            let count: usize = children(&admin).await.into_iter().sum();
            replicas.iter().all(|it| it.cached() == count)
        };
        until("each cache is complete", complete).await;
    }
    doubles(&admin).await
}

/// How many children each parent has that has any.
async fn children(admin: &Client) -> Vec<usize> {
    let secrets = Api::<Secret>::default_namespaced(admin.clone());
    let mut counts = BTreeMap::<String, usize>::new();
    for child in secrets.list(&ListParams::default()).await.expect("a list") {
        *counts.entry(child.labels()[PARENT].clone()).or_default() += 1;
    }
    counts.into_values().collect()
}

async fn doubles(admin: &Client) -> usize {
    children(admin).await.into_iter().filter(|count| *count > 1).count()
}

fn map() -> ConfigMap {
    let metadata = ObjectMeta { generate_name: Some("map-".into()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

async fn create_maps(client: &Client, count: usize) {
    let (maps, params) = (Api::<ConfigMap>::default_namespaced(client.clone()), PostParams::default());
    let creates = stream::iter(0..count).map(|_| async { maps.create(&params, &map()).await });
    creates.buffer_unordered(16).try_collect::<Vec<_>>().await.expect("created");
}

/// There is always an object in the list that is gone before the cache is compared with the list.
pub async fn s16_short_lived_objects_do_not_hold_the_gate_shut() {
    const TRIES: usize = 20;
    for lasting in [20, 2_000] {
        let world = Real::shared().await;
        let client = world.client("admin");
        create_maps(&client, lasting).await;
        let (maps, config) = (Api::<ConfigMap>::default_namespaced(client), watcher::Config::default());
        let (store, writer) = reflector::store();
        let watch = reflector(writer, watcher(maps.clone(), config.clone())).for_each(|_| async {});
        // 50 a second, and each of them is there until the next one is.
        let come_and_go = async {
            let (mut pauses, mut last) = (interval(Duration::from_millis(20)), None);
            loop {
                pauses.tick().await;
                let new = maps.create(&PostParams::default(), &map()).await.expect("created").name_any();
                if let Some(last) = last.replace(new) {
                    maps.delete(&last, &DeleteParams::default()).await.expect("deleted");
                }
            }
        };
        let compare = async {
            until("the cache is filled", async || store.len() > lasting).await;
            let mut times = Vec::new();
            for _ in 0..TRIES {
                let caught_up = caught_up(&maps, &config, &store, &());
                let (time, outcome) = timed(within(PATIENCE, "the cache has caught up", caught_up)).await;
                outcome.expect("a comparable cache");
                times.push(time);
            }
            times.sort();
            times
        };
        let times: Vec<Duration> = tokio::select! {
            () = watch => unreachable!("a watch goes on for ever"),
            never = come_and_go => never,
            times = compare => times,
        };
        say(format_args!(
            "{lasting} lasting objects: median {:?}, most {:?}",
            times[TRIES / 2],
            times[TRIES - 1]
        ));
    }
}
