//! Futures and streams for kube-runtime: a drop loses no object and no event.

use crate::{
    stopping::cancelled::orphan::pass_ms,
    support::{FIRST, SOON, candidate, gated as gated_client, pass, until, within, write},
};
use futures_util::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    runtime::{
        controller::Action,
        reflector,
        watcher::{self, Event},
    },
};
use kube_leader_gate::{
    Candidate,
    election::Running,
    runtime::{Replay, caught_up, gated, keep_open, replay},
    testing::{ApiServer, Fault},
};
use serde_json::json;
use std::{collections::BTreeSet, future::pending, num::NonZeroU8, sync::Arc, time::Duration};
use test_support::cancellation::{Cut, dropped_at_each_poll, dropped_at_polls, tasks};

/// So many objects.
const THINGS: usize = 4;

fn thing(name: &str) -> ConfigMap {
    let mut thing = ConfigMap::default();
    (thing.metadata.name, thing.metadata.namespace) = (Some(name.into()), Some("default".into()));
    thing
}

/// A list of all objects, one every millisecond, and then a change of each.
fn events() -> impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin {
    let names = || (0..THINGS).map(|number| thing(&format!("thing-{number}")));
    let list = names().map(Event::InitApply);
    let events =
        [Event::Init].into_iter().chain(list).chain([Event::InitDone]).chain(names().map(Event::Apply));
    let paced = stream::iter(events).then(async |event| {
        pass_ms(1).await;
        Ok(event)
    });
    Box::pin(paced)
}

fn filled() -> (Replay<ConfigMap>, impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin) {
    replay(events(), ())
}

/// A leader.
async fn leads(server: &ApiServer) -> (Running, Candidate) {
    let a = candidate(server, "a").start();
    within(FIRST, "a leads", a.candidate().elected()).await;
    let leader = a.candidate().clone();
    (a, leader)
}

/// Reads a stream, is left at some poll, and reads on, until `enough`.
async fn read_on<S: Stream + Unpin>(
    cut: &Cut,
    mut items: S,
    enough: impl Fn(&[S::Item]) -> bool,
) -> Vec<S::Item> {
    let mut read = Vec::new();
    let reading = async {
        while !enough(&read) {
            read.push(items.next().await.expect("an item"));
        }
    };
    cut.off(reading).await;
    while !enough(&read) {
        read.push(within(SOON, "the next item", items.next()).await.expect("an item"));
    }
    read
}

#[test]
fn watched_stream_dropped_at_each_poll_loses_no_event() {
    let worlds = dropped_at_each_poll(async |cut| {
        let (replay, watched) = filled();
        let events = read_on(cut, watched, |events| events.len() == 2 * THINGS + 2).await;
        assert!(events.iter().all(Result::is_ok));
        assert_eq!(replay.store().state().len(), THINGS);
    });
    assert!(worlds > 15, "{worlds}");
}

#[test]
fn replay_dropped_at_each_poll_loses_no_event() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let (a, leader) = leads(&server).await;
        let (replay, watched) = filled();
        let events = replay.during(&leader, &leader.term().expect("it leads"));
        let watching = tokio::spawn(watched.collect::<Vec<_>>());
        let events = read_on(cut, events, |events| events.len() == 2 * THINGS + 2).await;
        let named = |event: &Event<Arc<ConfigMap>>| match event {
            Event::InitApply(it) => Some((false, it.name_any())),
            Event::Apply(it) => Some((true, it.name_any())),
            _ => None,
        };
        let named: BTreeSet<_> = events.iter().filter_map(named).collect();
        assert_eq!(named.len(), 2 * THINGS, "{events:?}");
        watching.await.expect("no panic");
        drop((a, replay));
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 6, "{worlds}");
}

/// A reconciler of a follower, whose write the gate refuses after two pauses.
#[test]
fn reconciliation_dropped_at_each_poll_leaves_nothing() {
    let worlds = dropped_at_each_poll(async |cut| {
        let server = ApiServer::new();
        let election = candidate(&server, "a");
        let client = Arc::new(gated_client(&server, &election, "a"));
        let reconcile = |_: Arc<ConfigMap>, client: Arc<kube_client::Client>| async move {
            pass_ms(1).await;
            pass_ms(1).await;
            write(&client).await.map(|()| Action::await_change())
        };
        let outcome = cut.off(gated(reconcile)(Arc::new(thing("thing-0")), client.clone())).await;
        assert!(outcome.is_none_or(|outcome| outcome.is_ok()), "it is skipped");
        assert_eq!(Arc::strong_count(&client), 1, "the reconciliation is dropped");
        drop((election, client));
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 6, "{worlds}");
}

/// The cache lacks an object for a while.
#[test]
fn caught_up_dropped_at_each_poll_leaves_no_task() {
    let worlds = dropped_at_polls(40, async |cut| {
        let server = ApiServer::new();
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        server.put("outsider", "/api/v1/namespaces/default/configmaps/a", object).expect("created");
        let client = kube_client::Client::new(server.service(), "default");
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let (store, mut writer) = reflector::store::<ConfigMap>();
        let seen = maps.get("a").await.expect("it is there");
        let caught_up = caught_up(&maps, &watcher::Config::default(), &store, &());
        let shows_it = async {
            pass(Duration::from_millis(9)).await;
            writer.apply_watcher_event(&watcher::Event::Apply(seen));
            pending::<()>().await;
        };
        cut.off(async {
            tokio::select! {
                caught_up = caught_up => caught_up.expect("it is caught up"),
                () = shows_it => {}
            }
        })
        .await;
        within(SOON, "the client works", client.apiserver_version()).await.expect("a version");
        drop((client, maps));
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 10, "{worlds}");
}

/// It never completes. Each look hangs for a while.
#[test]
fn keep_open_dropped_at_each_poll_leaves_no_task() {
    let worlds = dropped_at_polls(40, async |cut| {
        let server = ApiServer::new();
        let client = kube_client::Client::new(server.service(), "default");
        let _slow =
            server.inject(Fault::delay_before(Duration::from_millis(3)).path(|path| path == "/version"));
        cut.off(keep_open(client.clone(), NonZeroU8::new(3).expect("three"))).await;
        within(SOON, "the client works", client.apiserver_version()).await.expect("a version");
        drop(client);
        until(SOON, "no task is left", || tasks() == 0).await;
    });
    assert!(worlds > 70, "{worlds}");
}
