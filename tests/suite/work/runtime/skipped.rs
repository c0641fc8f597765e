//! What a controller with `Skipped` reconciles at a gain, in which order, and how fast.

use crate::{
    support::{FIRST, LEASE, SOON, pass, steal, until, within},
    work::runtime::things::{
        AtGain, Replica, depose, is_done, looks, path, reconcile, start_with, until_seen, want,
    },
};
use fastrand::Rng;
use kube_leader_gate::testing::{ApiServer, Fault};
use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};
use tokio::time::Instant;

const THINGS: usize = 100;

/// From one object to the next, as documented.
const PAUSE: Duration = Duration::from_millis(3);

fn name(number: usize) -> String {
    format!("thing-{number:03}")
}

fn start(server: &ApiServer, identity: &str) -> Replica {
    start_with(server, identity, AtGain::SkippedFirst, reconcile)
}

/// A leader that has nothing left to do.
async fn settled(server: &ApiServer) -> Replica {
    let a = start(server, "a");
    until(FIRST, "a leads", || a.leads()).await;
    for number in 0..THINGS {
        want(server, &name(number), "1");
    }
    until(SOON, "all is done", || (0..THINGS).all(|it| is_done(server, &name(it)))).await;
    pass(Duration::from_secs(2)).await;
    a
}

/// The reconciliations that began since then, in their order.
fn begun_since(replica: &Replica, since: Instant) -> Vec<(Instant, String)> {
    let order = replica.context.order.lock().unwrap();
    order.iter().filter(|(at, _)| *at >= since).cloned().collect()
}

/// Waits until the replica leads, and returns when that was.
async fn gained(replica: &Replica) -> Instant {
    within(Duration::from_secs(60), "it leads", replica.running.candidate().elected()).await;
    Instant::now()
}

/// Deposes the replica, and returns when that was. Waits until it leads in the next term.
async fn gained_anew(server: &ApiServer, replica: &Replica) -> Instant {
    let (term, began) = (replica.running.candidate().term(), Instant::now());
    depose(server);
    let next = || replica.leads() && replica.running.candidate().term() != term;
    until(Duration::from_secs(3), "it leads again", next).await;
    began
}

/// A crash: no replica leads for 15 s, and the follower's write is refused meanwhile.
#[tokio::test(start_paused = true)]
async fn skipped_objects_go_first() {
    let server = ApiServer::new();
    let a = settled(&server).await;
    let b = start(&server, "b");
    until(SOON, "b has seen all", || (0..THINGS).all(|it| b.context.begun(&name(it)) > 0)).await;
    let looked = looks(&server, "b");
    drop(a);
    for number in [70, 20, 50] {
        let before = b.context.begun(&name(number));
        want(&server, &name(number), "2");
        until_seen(&b, &name(number), before + 1).await;
    }
    assert!(!b.leads(), "the gap");
    let gain = gained(&b).await;
    until(SOON, "they are done", || [70, 20, 50].iter().all(|it| is_done(&server, &name(*it)))).await;
    pass(Duration::from_secs(2)).await;
    let mut first = Vec::new();
    for (_, name) in begun_since(&b, gain) {
        if !first.contains(&name) {
            first.push(name);
        }
    }
    assert_eq!(first[..3], [50, 20, 70].map(name), "the last one first: {first:?}");
    assert_eq!(first.len(), THINGS, "the others follow");
    for number in [50, 20, 70] {
        let times = begun_since(&b, gain).iter().filter(|(_, it)| *it == name(number)).count();
        assert_eq!(times, 2, "as it was skipped, and after its own change");
    }
    assert_eq!(looks(&server, "b"), looked, "from the cache: no list, no watch");
    assert_eq!(b.errors(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn gain_reconciles_all_one_by_one() {
    let server = ApiServer::new();
    let a = settled(&server).await;
    let gain = gained_anew(&server, &a).await;
    pass(Duration::from_secs(2)).await;
    let begun = begun_since(&a, gain);
    assert_eq!(begun.len(), THINGS, "each of them once: {begun:?}");
    assert_eq!(begun.iter().map(|(_, name)| name).collect::<BTreeSet<_>>().len(), THINGS);
    assert!(begun[0].0 - gain < Duration::from_millis(5), "the first one does not wait");
    for pair in begun.windows(2) {
        // The timers of tokio and kube-runtime are a millisecond wide.
        let apart = pair[1].0 - pair[0].0;
        assert!(apart + Duration::from_millis(1) >= PAUSE, "{apart:?} from one to the next");
    }
}

#[tokio::test(start_paused = true)]
async fn loss_stops_the_sweep() {
    let server = ApiServer::new();
    let a = settled(&server).await;
    let gain = gained_anew(&server, &a).await;
    pass(PAUSE * 20).await;
    steal(&server);
    until(SOON, "a is deposed", || !a.leads()).await;
    let lost = Instant::now();
    let begun = begun_since(&a, gain).len();
    assert!((2..THINGS).contains(&begun), "in the middle of it: {begun}");
    pass(Duration::from_secs(5)).await;
    assert!(!a.leads(), "the outsider leads");
    assert_eq!(begun_since(&a, lost).len(), 0);
}

/// The loss comes in the middle of the first sweep. What a follower skips between the two goes first in the second.
#[tokio::test(start_paused = true)]
async fn second_gain_begins_the_sweep_anew() {
    let server = ApiServer::new();
    let a = settled(&server).await;
    let first = gained_anew(&server, &a).await;
    pass(PAUSE * 20).await;
    let begun = begun_since(&a, first);
    assert!((2..THINGS).contains(&begun.len()), "in the middle of it: {}", begun.len());
    steal(&server);
    until(SOON, "a is deposed", || !a.leads()).await;
    // One that the first sweep has handed out already.
    let again = &begun[0].1;
    let before = a.context.begun(again);
    want(&server, again, "2");
    until_seen(&a, again, before + 1).await;
    let second = gained(&a).await;
    until(SOON, "it is done", || is_done(&server, again)).await;
    pass(Duration::from_secs(2)).await;
    let begun = begun_since(&a, second);
    assert_eq!(&begun[0].1, again, "it was skipped");
    assert_eq!(begun.iter().map(|(_, name)| name).collect::<BTreeSet<_>>().len(), THINGS, "all of them");
}

/// An object that is gone is not handed out: its reconciliation would fail.
#[tokio::test(start_paused = true)]
async fn object_that_is_gone_is_not_handed_out() {
    let server = ApiServer::new();
    let a = settled(&server).await;
    steal(&server);
    until(SOON, "a is deposed", || !a.leads()).await;
    let before = a.context.begun(&name(7));
    want(&server, &name(7), "2");
    until_seen(&a, &name(7), before + 1).await;
    server.delete("outsider", &path(&name(7))).expect("it is there");
    let gain = gained(&a).await;
    pass(Duration::from_secs(2)).await;
    let begun: BTreeSet<_> = begun_since(&a, gain).into_iter().map(|(_, name)| name).collect();
    assert_eq!(begun.len(), THINGS - 1);
    assert_eq!(a.context.gone.load(Ordering::SeqCst), 0, "a controller reports such an object as an error");
}

/// What another leader has done meanwhile comes with the others, whose order is by chance.
#[tokio::test(start_paused = true)]
async fn object_that_another_leader_reconciled_is_not_first() {
    let server = ApiServer::new();
    let a = settled(&server).await;
    steal(&server);
    until(SOON, "a is deposed", || !a.leads()).await;
    let done = [1, 2, 3, 4, 5, 6];
    for number in done.into_iter().chain([8]) {
        let before = a.context.begun(&name(number));
        want(&server, &name(number), "2");
        until_seen(&a, &name(number), before + 1).await;
    }
    for number in done {
        let before = a.context.begun(&name(number));
        server.edit("outsider", &path(&name(number)), |it| it["data"]["have"] = "2".into()).expect("written");
        until_seen(&a, &name(number), before + 1).await;
    }
    let gain = gained(&a).await;
    pass(Duration::from_secs(2)).await;
    let begun: Vec<_> = begun_since(&a, gain).into_iter().map(|(_, name)| name).collect();
    assert_eq!(begun[0], name(8));
    // Its own change brings it back, too.
    let next: Vec<_> = begun.iter().filter(|it| **it != name(8)).take(done.len()).cloned().collect();
    assert!(!done.map(name).iter().all(|it| next.contains(it)), "{begun:?}");
}

/// Changes, gains, losses and failed writes by chance: in the end everything is right.
#[tokio::test(start_paused = true)]
async fn random_gains_lose_no_object() {
    let (mut terms, mut changes) = (BTreeSet::new(), 0);
    for seed in 0..6 {
        let server = ApiServer::new();
        let mut rng = Rng::with_seed(seed);
        let replicas = [settled(&server).await, start(&server, "b")];
        let mut failing = None;
        for step in 0..150 {
            match rng.u8(..12) {
                0..6 => {
                    want(&server, &name(rng.usize(..THINGS)), &format!("step {step}"));
                    changes += 1;
                }
                6 if server.object(LEASE).is_some() => depose(&server),
                7 if server.object(LEASE).is_some() => steal(&server),
                8 => failing = Some(server.inject(Fault::status(503).verb("patch").resource("configmaps"))),
                9 => failing = None,
                10 => pass(Duration::from_millis(rng.u64(..20_000))).await,
                _ => pass(Duration::from_millis(rng.u64(..100))).await,
            }
            let leader = replicas.iter().find_map(|it| it.running.candidate().term());
            terms.extend(leader.map(|term| (seed, term.to_string())));
        }
        drop(failing);
        let right = || (0..THINGS).all(|it| is_done(&server, &name(it)));
        until(Duration::from_secs(60), &format!("seed {seed}: all is right"), right).await;
    }
    let terms = terms.len();
    assert!(terms > 30 && changes > 300, "the seeds do too little: {terms} terms, {changes} changes");
}
