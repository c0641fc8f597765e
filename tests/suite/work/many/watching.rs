//! The shared watch is cut, refused, silent or garbled.

use super::replica::{
    Fate, MANY, Network, Replica, builder, is_shared_watch, is_watch, over, path, pool, shard, without,
};
use crate::support::{pass, until, within};
use bytes::Bytes;
use futures_util::FutureExt;
use kube_leader_gate::{
    lease::Lock,
    testing::{ApiServer, Fault, WatchBreak},
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const BREAKS: [WatchBreak; 3] = [WatchBreak::End, WatchBreak::Cut, WatchBreak::Garbage];

#[tokio::test(start_paused = true)]
async fn broken_shared_watch_is_restarted_once() {
    for how in BREAKS {
        let server = ApiServer::new();
        let mut a = Replica::leading(&server, "a", true).await;
        pass(Duration::from_secs(11)).await;
        let reads = server.reads("a", "get", "leases");
        for _ in 0..3 {
            assert_eq!(server.break_watches(|_| true, how), 1);
            pass(Duration::from_secs(11)).await;
            assert_eq!(server.open_watches(), 1, "{how:?}");
        }
        assert_eq!(a.losses(), [0; 0], "{how:?}");
        assert_eq!(server.reads("a", "watch", "leases"), 4, "{how:?}");
        let reads = server.reads("a", "get", "leases") - reads;
        assert!(reads <= 3 * MANY as u64, "{reads} reads after three cuts");
    }
}

/// Without the shared watch all elections poll, and a handover still happens. Later all share a watch again.
#[tokio::test(start_paused = true)]
async fn elections_poll_without_shared_watch_and_recover() {
    let server = ApiServer::new();
    let a = Replica::leading(&server, "a", true).await;
    let mut b = Replica::start(&pool(&server, "b", true), "b", MANY);
    b.knows("a").await;
    let no_watch = server.inject(Fault::status(500).verb("watch").user("b"));
    server.break_watches(|user| user == "b", WatchBreak::Cut);
    pass(Duration::from_secs(30)).await;
    let refused = no_watch.hits();
    assert!(refused < 12 * MANY as u64, "{refused} watches asked for in half a minute");
    a.stop().await;
    b.leads(Duration::from_secs(3)).await;
    b.losses();
    drop(no_watch);
    pass(Duration::from_secs(60)).await;
    assert_eq!(server.open_watches(), 1);
    assert_eq!(b.losses(), [0; 0]);
    let reads = server.reads("b", "get", "leases");
    pass(Duration::from_secs(10)).await;
    assert_eq!(server.reads("b", "get", "leases"), reads);
}

/// A Role with `resourceNames` allows watching each lease, but not all of them together.
#[tokio::test(start_paused = true)]
async fn forbidden_namespace_watch_falls_back_to_single_watches() {
    let server = ApiServer::new();
    let may = Arc::new(AtomicBool::new(false));
    let allowed = may.clone();
    let network = Network::new(&server, "a", move |request, _| {
        let refused = is_shared_watch(request) && !allowed.load(Ordering::SeqCst);
        if refused { Fate::Forbidden } else { Fate::Passes }
    });
    let mut a = Replica::start(&over(network.clone(), true), "a", 10);
    a.leads(Duration::from_secs(1)).await;
    pass(Duration::from_secs(60)).await;
    server.break_watches(|_| true, WatchBreak::End);
    pass(Duration::from_secs(60)).await;
    assert_eq!(server.open_watches(), 10);
    let asked = network.shared.load(Ordering::SeqCst);
    assert!((3..=15).contains(&asked), "{asked} times in ten seconds, and then not in vain");
    // The shared watch is allowed again: as the single watches end, it replaces them.
    may.store(true, Ordering::SeqCst);
    pass(Duration::from_secs(1300)).await;
    assert_eq!(server.open_watches(), 1);
    assert_eq!(a.losses(), [0; 0]);
}

/// An API server that has just started knows no Role yet. A thousand single watches would be the last thing that it needs.
#[tokio::test(start_paused = true)]
async fn moment_without_a_role_begins_no_single_watches() {
    let server = ApiServer::new();
    let network = Network::new(&server, "a", |_, _| Fate::Passes);
    let mut a = Replica::start(&over(network.clone(), true), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    let starts = server.inject(Fault::forbidden().resource("leases"));
    server.break_watches(|_| true, WatchBreak::Cut);
    pass(Duration::from_secs(4)).await;
    drop(starts);
    pass(Duration::from_secs(20)).await;
    assert_eq!((server.open_watches(), network.single.load(Ordering::SeqCst)), (1, 0));
    assert!(network.shared.load(Ordering::SeqCst) < 15);
    assert_eq!(a.losses(), [0; 0]);
}

/// The watch is open but sends nothing, for example over a half-open connection. The elections notice, and restart it
/// once for all.
#[tokio::test(start_paused = true)]
async fn silent_shared_watch_is_restarted_once() {
    let server = ApiServer::new();
    let mute = Arc::new(AtomicBool::new(false));
    let silent = mute.clone();
    let network = Network::new(&server, "a", move |request, _| {
        if is_watch(request) && silent.swap(false, Ordering::SeqCst) { without("") } else { Fate::Passes }
    });
    let mut a = Replica::start(&over(network.clone(), true), "a", MANY);
    a.leads(Duration::from_secs(1)).await;
    mute.store(true, Ordering::SeqCst);
    pass(Duration::from_secs(10)).await;
    server.break_watches(|_| true, WatchBreak::End);
    pass(Duration::from_secs(20)).await;
    // The first watch, the silent one, and its replacement.
    assert_eq!(network.shared.load(Ordering::SeqCst), 3);
    assert_eq!(network.single.load(Ordering::SeqCst), 0);
    assert_eq!(a.losses(), [0; 0]);
    server.delete("outsider", &path(5)).unwrap();
    pass(Duration::from_millis(1)).await;
    assert_eq!(a.losses(), [5]);
}

/// The shared watch leaves one lease out. That lease gets a watch of its own, and the others keep the shared one. Its events
/// bear another name, so the watch has always shown a version that is as new: otherwise the watch would count as silent.
#[tokio::test(start_paused = true)]
async fn lease_missing_from_shared_watch_is_watched_alone() {
    let server = ApiServer::new();
    let a = Replica::leading(&server, "a", true).await;
    let renamed = Arc::new(|data: Bytes| {
        String::from_utf8_lossy(&data).replace(r#""name":"shard-7""#, r#""name":"another""#).into()
    });
    let network = Network::new(&server, "b", move |request, _| {
        if is_shared_watch(request) { Fate::Flawed(renamed.clone()) } else { Fate::Passes }
    });
    let b = Replica::start(&over(network.clone(), true), "b", MANY);
    b.knows("a").await;
    pass(Duration::from_secs(15)).await;
    assert_eq!(network.shared.load(Ordering::SeqCst), 1);
    assert_eq!(network.single.load(Ordering::SeqCst), 1);
    a.stop().await;
    b.leads(Duration::from_millis(100)).await;
}

/// A request for the watch that is never answered delays no election. It is given up although some election always
/// waits for it.
#[tokio::test(start_paused = true)]
async fn unanswered_shared_watch_is_requested_again() {
    let server = ApiServer::new();
    let mut hang = Some(server.inject(Fault::hang_before().verb("watch")));
    let a_pool = pool(&server, "a", true);
    let mut all = Vec::new();
    for second in 0..30 {
        let a = builder(second, "a").build_in(&a_pool).unwrap().start();
        within(Duration::from_secs(1), "the candidate leads", a.candidate().elected()).await;
        all.push(a);
        pass(Duration::from_millis(900)).await;
        if second == 10 {
            hang.take();
        }
    }
    assert_eq!(server.open_watches(), 1);
}

/// An election joins late and reads what the watch reported before. It has missed nothing, so it does not take the
/// watch for silent.
#[tokio::test(start_paused = true)]
async fn late_election_trusts_a_quiet_watch() {
    let server = ApiServer::new();
    for number in 0..10 {
        let metadata = json!({ "name": shard(number), "namespace": "default" });
        let spec = json!({ "holderIdentity": "outsider", "leaseDurationSeconds": 600 });
        server.put("outsider", &path(number), json!({ "metadata": metadata, "spec": spec })).unwrap();
    }
    let network = Network::new(&server, "b", |_, _| Fate::Passes);
    let b_pool = over(network.clone(), true);
    let early = Replica::start(&b_pool, "early", 1);
    early.knows("outsider").await;
    let late = Replica::start(&b_pool, "late", 10);
    late.knows("outsider").await;
    pass(Duration::from_secs(60)).await;
    assert_eq!((network.shared.load(Ordering::SeqCst), network.single.load(Ordering::SeqCst)), (1, 0));
}

/// Two candidates contend for each lease. The loser reads the winner's name just before the watch reports it.
#[tokio::test(start_paused = true)]
async fn lost_race_does_not_mark_watch_silent() {
    let server = ApiServer::new();
    let a = Replica::leading(&server, "a", true).await;
    let late = |user| {
        Network::new(&server, user, |request, _| {
            if is_watch(request) { Fate::Late(Duration::from_millis(5)) } else { Fate::Passes }
        })
    };
    let networks = [late("b"), late("c")];
    let rivals = ["b", "c"].map(|it| {
        let network = &networks[usize::from(it == "c")];
        Replica::start(&over(network.clone(), true), it, MANY)
    });
    for rival in &rivals {
        rival.knows("a").await;
    }
    pass(Duration::from_secs(15)).await;
    a.stop().await;
    pass(Duration::from_secs(15)).await;
    let leads = |it: &Replica| it.elections.iter().filter(|it| it.candidate().can_write()).count();
    assert_eq!(rivals.iter().map(leads).sum::<usize>(), MANY);
    let lost = server.write_log().iter().filter(|write| write.status == 409).count();
    assert!(lost > MANY / 2, "{lost} lost races");
    for network in networks {
        assert_eq!(network.shared.load(Ordering::SeqCst), 1, "watches of all");
        assert_eq!(network.single.load(Ordering::SeqCst), 0, "watches of one lease");
    }
}

/// An outsider annotates a lease just before a renewal. The candidate reads, and renews again, just before the watch
/// reports the change.
#[tokio::test(start_paused = true)]
async fn conflict_does_not_mark_watch_silent() {
    let server = ApiServer::new();
    let meddles = Arc::new(AtomicBool::new(false));
    let (due, other) = (meddles.clone(), server.clone());
    let network = Network::new(&server, "a", move |request, _| {
        if is_watch(request) {
            return Fate::Late(Duration::from_millis(5));
        }
        if request.method() == "PUT" && due.swap(false, Ordering::SeqCst) {
            let annotate = |lease: &mut serde_json::Value| lease["metadata"]["annotations"]["a"] = "b".into();
            other.edit("outsider", request.uri().path(), annotate).unwrap();
        }
        Fate::Passes
    });
    let mut a = Replica::start(&over(network.clone(), true), "a", 10);
    a.leads(Duration::from_secs(1)).await;
    for _ in 0..5 {
        pass(Duration::from_secs(10)).await;
        meddles.store(true, Ordering::SeqCst);
    }
    pass(Duration::from_secs(10)).await;
    assert!(!meddles.load(Ordering::SeqCst));
    assert_eq!((network.shared.load(Ordering::SeqCst), network.single.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(a.losses(), [0; 0]);
}

/// The runtime of the first election is blocked before the shared watch has begun.
#[tokio::test(start_paused = true)]
async fn watch_of_a_blocked_runtime_is_replaced() {
    let server = ApiServer::new();
    let network = Network::new(&server, "a", |_, _| Fate::Passes);
    let shared = over(network.clone(), true);
    let blocked = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lock = shared.lock("default/shard-0".parse().unwrap());
    let mut first = Box::pin(lock.watch());
    {
        // It is never driven after this.
        let _in = blocked.enter();
        assert!(first.as_mut().now_or_never().is_none());
    }
    let a = Replica::start(&shared, "a", 10);
    a.leads(Duration::from_secs(1)).await;
    assert_eq!(server.open_watches(), 0);
    until(Duration::from_secs(30), "they share a watch", || server.open_watches() == 1).await;
    pass(Duration::from_secs(30)).await;
    let reads = server.reads("a", "get", "leases");
    pass(Duration::from_secs(10)).await;
    assert_eq!(server.reads("a", "get", "leases"), reads, "none polls");
    assert!(within(Duration::from_secs(1), "the first learns of it", first).await.is_err());
    assert_eq!(network.shared.load(Ordering::SeqCst), 1);
    blocked.shutdown_background();
}
