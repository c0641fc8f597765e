//! What a leading-only consumer receives, and when.

use crate::{
    support::{FIRST, SOON, pass, steal, until, within},
    work::runtime::things::{depose, looks, path, want},
    work::runtime::viewer::{Model, Seen, View, Viewer, truth, unlisted, viewer},
};
use futures_util::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use kube_leader_gate::{
    runtime::replay,
    testing::{ApiServer, Fault, WatchBreak},
};
use std::{future, sync::Arc, time::Duration};
use tokio_util::task::AbortOnDropHandle;

type Told = Event<Arc<ConfigMap>>;

fn describe(event: &Told) -> String {
    match event {
        Event::Init => "init".into(),
        Event::InitApply(object) => format!("has {}", object.name_any()),
        Event::InitDone => "done".into(),
        Event::Apply(object) => format!("apply {}", object.name_any()),
        Event::Delete(object) => format!("delete {}", object.name_any()),
    }
}

/// The items that are ready now, without waiting.
fn told_now(events: &mut (impl Stream<Item = Told> + Unpin)) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = events.next().now_or_never() {
        told.push(event.as_ref().map_or_else(|| "end".into(), describe));
        if event.is_none() {
            break;
        }
    }
    told
}

fn delete(server: &ApiServer, name: &str) {
    server.delete("outsider", &path(name)).expect("it is there");
}

/// Waits until the cache shows what the server holds.
async fn cached(server: &ApiServer, viewer: &Viewer) {
    let store = viewer.replay.store();
    let cached = || -> Model {
        store.state().iter().map(|it| (it.name_any(), it.resource_version().unwrap())).collect()
    };
    until(Duration::from_secs(60), "the cache is up to date", || cached() == truth(server)).await;
}

#[tokio::test(start_paused = true)]
async fn replay_yields_snapshot_then_changes_then_end() {
    let server = ApiServer::new();
    for name in ["x", "y"] {
        want(&server, name, "1");
    }
    let a = viewer(&server, "a").await;
    let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let looked = looks(&server, "a");
    let mut events = a.replay.during(a.candidate(), &term);
    let mut snapshot = told_now(&mut events);
    snapshot[1..3].sort();
    assert_eq!(snapshot, ["init", "has x", "has y", "done"]);
    want(&server, "y", "2");
    want(&server, "z", "1");
    delete(&server, "x");
    let mut changes = Vec::new();
    for _ in 0..3 {
        changes.push(describe(&within(SOON, "a change", events.next()).await.unwrap()));
    }
    assert_eq!(changes, ["apply y", "apply z", "delete x"]);
    assert_eq!(told_now(&mut events), [""; 0]);
    assert_eq!(looks(&server, "a"), looked, "no list, no watch for it");
    steal(&server);
    assert_eq!(within(SOON, "the end", events.next()).await.map(|it| describe(&it)), None);
}

/// A follower's stream is empty. So is the stream of a term that is over.
#[tokio::test(start_paused = true)]
async fn replay_yields_nothing_outside_a_term() {
    let server = ApiServer::new();
    want(&server, "x", "1");
    let a = viewer(&server, "a").await;
    let first = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut idle = a.replay.during(a.candidate(), &first);
    depose(&server);
    until(SOON, "the candidate loses the lease", || !a.candidate().can_write()).await;
    assert_eq!(told_now(&mut a.replay.during(a.candidate(), &first)), ["end"], "as a follower");
    let second = within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
    assert_eq!(told_now(&mut a.replay.during(a.candidate(), &first)), ["end"], "another term");
    assert_eq!(told_now(&mut idle), ["end"], "one that slept over it");
    assert_eq!(told_now(&mut a.replay.during(a.candidate(), &second)), ["init", "has x", "done"]);
}

#[tokio::test(start_paused = true)]
async fn loss_during_snapshot_ends_replay() {
    for expire in [true, false] {
        let server = ApiServer::new();
        for number in 0..20 {
            want(&server, &format!("x{number}"), "1");
        }
        let a = viewer(&server, "a").await;
        let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
        let mut events = a.replay.during(a.candidate(), &term);
        for _ in 0..5 {
            events.next().now_or_never().expect("the snapshot").expect("the term goes on");
        }
        if expire {
            // No task notices: the elector's own call hangs. The deadline counts (rule S1).
            let _hang = server.inject(Fault::hang_before());
            until(Duration::from_secs(11), "the gate closes", || !a.candidate().can_write()).await;
        } else {
            steal(&server);
            until(SOON, "the gate closes", || !a.candidate().can_write()).await;
        }
        assert_eq!(told_now(&mut events), ["end"]);
        assert_eq!(told_now(&mut events), ["end"], "and stays ended");
    }
}

/// The loss itself wakes a waiting consumer, at the deadline and at a stop.
#[tokio::test(start_paused = true)]
async fn waiting_consumer_is_woken_when_term_ends() {
    for stop in [true, false] {
        let server = ApiServer::new();
        let a = viewer(&server, "a").await;
        let leader = a.candidate().clone();
        let term = within(FIRST, "the candidate leads", leader.elected()).await;
        let mut events = a.replay.during(&leader, &term);
        assert_eq!(told_now(&mut events), ["init", "done"]);
        let waiting = tokio::spawn(async move { events.next().await.map(|it| describe(&it)) });
        tokio::task::yield_now().await;
        let Viewer { running, watching: _watching, .. } = a;
        let _running = if stop {
            running.stop().await;
            None
        } else {
            let _hang = server.inject(Fault::hang_before());
            until(Duration::from_secs(11), "the gate closes", || !leader.can_write()).await;
            Some(running)
        };
        assert_eq!(within(Duration::from_millis(5), "it ends", waiting).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn replay_waits_for_first_list() {
    let server = ApiServer::new();
    want(&server, "x", "1");
    let slow = server.inject(Fault::status(503).verb("list").resource("configmaps"));
    let a = unlisted(&server, "a");
    let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut events = a.replay.during(a.candidate(), &term);
    pass(Duration::from_secs(3)).await;
    assert_eq!(
        told_now(&mut events),
        [""; 0],
        "nothing is known, which is not the same as nothing being there"
    );
    want(&server, "y", "1");
    drop(slow);
    let first = within(Duration::from_secs(10), "the list", events.next()).await;
    assert_eq!(first.map(|it| describe(&it)).as_deref(), Some("init"));
    let mut rest = told_now(&mut events);
    rest[..2].sort();
    assert_eq!(rest, ["has x", "has y", "done"]);
}

/// A leader's view of three objects that it has already received.
async fn after_the_snapshot(server: &ApiServer) -> (Viewer, impl Stream<Item = Told> + Unpin + use<>, Seen) {
    for name in ["gone", "kept", "changed"] {
        want(server, name, "1");
    }
    let a = viewer(server, "a").await;
    let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut events = a.replay.during(a.candidate(), &term);
    let mut seen = Seen::default();
    for _ in 0..5 {
        seen.take(events.next().now_or_never().flatten().expect("the snapshot"));
    }
    assert!(seen.complete);
    (a, events, seen)
}

/// The buffer is bounded. A consumer that lags behind it misses no deletion and no last state.
#[tokio::test(start_paused = true)]
async fn lagging_consumer_gets_missed_changes() {
    let server = ApiServer::new();
    let (a, mut events, mut seen) = after_the_snapshot(&server).await;
    delete(&server, "gone");
    for number in 0..2_000 {
        want(&server, &format!("x{}", number % 10), &number.to_string());
        want(&server, "changed", &number.to_string());
        delete(&server, &format!("x{}", number % 10));
        // The watch itself must not lag.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    want(&server, "x3", "last");
    // The same name, another object.
    delete(&server, "changed");
    want(&server, "changed", "again");
    cached(&server, &a).await;
    let told = told_now_into(&mut events, &mut seen);
    assert_eq!(seen.model, truth(&server));
    assert_eq!(told, ["delete changed", "delete gone", "apply changed", "apply x3"]);
    want(&server, "kept", "2");
    let next = within(SOON, "live again", events.next()).await.unwrap();
    assert_eq!(describe(&next), "apply kept");
}

fn told_now_into(events: &mut (impl Stream<Item = Told> + Unpin), seen: &mut Seen) -> Vec<String> {
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().now_or_never().flatten() {
        match &event {
            Event::Delete(_) => {
                assert!(there.is_empty(), "deletions first");
                gone.push(describe(&event));
            }
            _ => there.push(describe(&event)),
        }
        seen.take(event);
    }
    gone.sort();
    there.sort();
    [gone, there].concat()
}

/// The watch breaks, and its version is too old to continue. The following list no longer has the deleted objects.
#[tokio::test(start_paused = true)]
async fn relist_yields_deletions_and_repeats_nothing() {
    let server = ApiServer::new();
    let (a, mut events, mut seen) = after_the_snapshot(&server).await;
    let down = server.inject(Fault::drop_before().resource("configmaps"));
    server.break_watches(|user| user == "a", WatchBreak::End);
    pass(Duration::from_secs(1)).await;
    delete(&server, "gone");
    want(&server, "changed", "2");
    want(&server, "new", "1");
    want(&server, "never seen", "1");
    delete(&server, "never seen");
    server.compact();
    let (lists, _) = looks(&server, "a");
    drop(down);
    cached(&server, &a).await;
    assert!(looks(&server, "a").0 > lists, "it has listed again");
    assert_eq!(told_now_into(&mut events, &mut seen), ["delete gone", "apply changed", "apply new"]);
    assert_eq!(seen.model, truth(&server));
}

/// A cache without a running watch is no cache.
#[tokio::test(start_paused = true)]
async fn replay_ends_when_its_watch_ends() {
    let server = ApiServer::new();
    let a = viewer(&server, "a").await;
    let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut events = a.replay.during(a.candidate(), &term);
    assert_eq!(told_now(&mut events), ["init", "done"]);
    a.watch_no_more();
    assert!(within(SOON, "the end", events.next()).await.is_none());
    assert_eq!(told_now(&mut a.replay.during(a.candidate(), &term)), ["end"]);
}

/// One of two consumers is never polled. The other one and the cache go on.
#[tokio::test(start_paused = true)]
async fn sleeping_consumer_does_not_delay_others() {
    let server = ApiServer::new();
    let a = viewer(&server, "a").await;
    let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut asleep = a.replay.during(a.candidate(), &term);
    assert_eq!(told_now(&mut asleep), ["init", "done"]);
    let view = View::default();
    let follow = a.follow(view.clone());
    let script = async {
        for number in 0..1_000 {
            want(&server, "x", &number.to_string());
            tokio::task::yield_now().await;
        }
        until(Duration::from_secs(30), "it has seen the last", || view.seen().model == truth(&server)).await;
    };
    tokio::select! { () = follow => {}, () = script => {} }
    assert_eq!(told_now(&mut asleep), ["apply x"], "the last state alone");
}

/// Objects whose kind is known only at run time.
#[tokio::test(start_paused = true)]
async fn replay_works_for_dynamic_objects() {
    let server = ApiServer::new();
    want(&server, "x", "1");
    let a = viewer(&server, "a").await;
    let kind = ApiResource::erase::<ConfigMap>(&());
    let things: Api<DynamicObject> = Api::namespaced_with(a.things.clone().into_client(), "default", &kind);
    let (replay, watched) = replay(watcher(things, watcher::Config::default()).default_backoff(), kind);
    let _watching = AbortOnDropHandle::new(tokio::spawn(watched.for_each(|_| future::ready(()))));
    let term = within(FIRST, "the candidate leads", a.candidate().elected()).await;
    let mut events = replay.during(a.candidate(), &term);
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(within(SOON, "the snapshot", events.next()).await.expect("the term goes on"));
    }
    assert!(
        matches!(&told[..], [Event::Init, Event::InitApply(x), Event::InitDone] if x.data["data"]["want"] == "1")
    );
}
