//! Work that ends early: a follower takes over, and this process stays away for a while.

use super::support::{Journal, Present, Runs, lead, lead_with};
use crate::support::{FIRST, SKEW, SOON, builder, lease_writes, pass, releases, spec, until, within, write};
use futures_util::future::BoxFuture;
use kube_leader_gate::{
    CancellationToken,
    election::LeaseEnd,
    leadership::Term,
    testing::{ApiServer, Fault},
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Ways in which work ends early.
const WAYS: [&str; 4] = ["ends early", "panics", "panics in the factory", "panics in the drop"];

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in the drop");
    }
}

/// Work that ends in one of these ways, after a while.
fn brittle(
    way: &'static str,
    after: Duration,
    journal: &Journal,
) -> impl FnMut(CancellationToken, Term) -> BoxFuture<'static, ()> + Send + use<> {
    let journal = journal.clone();
    move |_, term| {
        let present: Present = journal.begin(&term);
        assert!(way != "panics in the factory", "in the factory");
        Box::pin(async move {
            let _present = present;
            let _bomb = (way == "panics in the drop").then_some(Bomb);
            sleep(after).await;
            assert!(way != "panics", "in the work");
        })
    }
}

/// kcp #3196, cilium #48385: the workload was dead, but its process still held the lease.
#[tokio::test(start_paused = true)]
async fn work_that_ends_early_lets_another_candidate_lead() {
    for way in WAYS {
        let server = ApiServer::new();
        let (brief, sound) = (Journal::default(), Journal::default());
        let a = lead(&server, "a", brittle(way, SOON, &brief));
        until(FIRST, "a works", || !brief.begun().is_empty()).await;
        let _b = lead(&server, "b", sound.obedient(Duration::ZERO));
        until(3 * SOON, "a's work ends", || !brief.ended().is_empty()).await;
        until(SOON, "b works", || sound.present() == 1).await;
        let handover = sound.begun()[0].1.duration_since(brief.ended()[0]);
        assert!(
            handover < Duration::from_millis(20) || way == "panics in the factory",
            "{way}: {handover:?}"
        );
        let released = lease_writes(&server, "a").pop().unwrap();
        assert_eq!(released.lease.unwrap().holder_identity, "", "{way}");
        pass(Duration::from_secs(120)).await;
        assert_eq!((brief.begun().len(), sound.begun().len()), (1, 1), "{way}: b keeps it");
        a.leader.check(Duration::ZERO).expect("a is healthy");
        a.shutdown.cancel();
        assert_eq!(within(SOON, "the candidate stops", a.run).await.unwrap(), Ok(LeaseEnd::Released));
    }
}

/// Without another candidate, it tries again and again, with growing pauses.
#[tokio::test(start_paused = true)]
async fn pauses_grow_while_work_ends_early() {
    for way in WAYS {
        let server = ApiServer::new();
        let journal = Journal::default();
        let _a = lead(&server, "a", brittle(way, Duration::ZERO, &journal));
        let start = Instant::now();
        pass(Duration::from_secs(900)).await;
        let begun = journal.begun();
        assert!((15..=40).contains(&begun.len()), "{way}: {} times in 900 s", begun.len());
        let pauses: Vec<_> = begun.windows(2).map(|pair| pair[1].1.duration_since(pair[0].1)).collect();
        let slack = Duration::from_millis(50);
        for (round, pause) in pauses.iter().enumerate() {
            let full = Duration::from_secs(1 << round.min(6)).min(Duration::from_secs(60));
            assert!(*pause >= full / 2 && *pause <= full + slack, "{way}: pause {round} is {pause:?}");
        }
        assert_eq!(journal.most(), 1);
        assert!(begun[0].1.duration_since(start) < FIRST);
    }
}

#[tokio::test(start_paused = true)]
async fn pause_resets_after_long_lasting_work() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let _a = lead_with(&server, "a", builder("a"), |_, _| {
        let journal = journal.clone();
        move |_, term| {
            let present = journal.begin(&term);
            let lasts = if journal.begun().len() == 6 { Duration::from_secs(130) } else { Duration::ZERO };
            async move {
                sleep(lasts).await;
                drop(present);
            }
        }
    });
    until(Duration::from_secs(300), "it works once more", || journal.begun().len() == 7).await;
    let pause = |round: usize| journal.begun()[round].1.duration_since(journal.ended()[round - 1]);
    assert!(pause(5) >= Duration::from_secs(8), "the fifth in a row: {:?}", pause(5));
    assert!(pause(6) <= Duration::from_millis(1050), "after work that lasted: {:?}", pause(6));
}

/// A candidate whose work ends while a write that the work spawned is open.
fn leaving_a_write_behind(server: &ApiServer, journal: &Journal) -> Runs {
    lead_with(server, "a", builder("a"), |client, leader| {
        let journal = journal.clone();
        move |_, term| {
            let (present, client, leader) = (journal.begin(&term), client.clone(), leader.clone());
            async move {
                tokio::spawn(async move { write(&client).await });
                until(SOON, "the write is under way", || leader.leadership().writes_under_way() == 1).await;
                drop(present);
            }
        }
    })
}

/// Rule S4: writes that the work left behind finish while the lease is renewed, before another candidate can take it.
#[tokio::test(start_paused = true)]
async fn s4_spawned_write_finishes_before_release() {
    let server = ApiServer::new();
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(7)).resource("tokenreviews"));
    let journal = Journal::default();
    let a = leaving_a_write_behind(&server, &journal);
    until(FIRST, "the work has ended", || journal.ended().len() == 1).await;
    pass(Duration::from_secs(6)).await;
    assert!(a.leader.is_leader() && !a.leader.can_write(), "the candidate drains");
    until(Duration::from_secs(2), "it is released", || spec(&server)["holderIdentity"] == "").await;
    let written = server.write_log().into_iter().find(|write| write.resource == "tokenreviews").unwrap();
    let released = lease_writes(&server, "a").pop().unwrap();
    assert!(written.took_effect() && written.completed.unwrap() < released.received);
}

/// Rule S4: writes that do not finish are cut off. The lease is not released while they may still take effect.
#[tokio::test(start_paused = true)]
async fn s4_writes_that_do_not_finish_delay_the_release() {
    let server = ApiServer::new();
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let journal = Journal::default();
    let a = leaving_a_write_behind(&server, &journal);
    until(FIRST, "the work has ended", || journal.ended().len() == 1).await;
    pass(Duration::from_millis(10_050)).await;
    assert!(!a.leader.is_leader() && a.leader.leadership().writes_under_way() == 0, "the writes are cut off");
    let last = lease_writes(&server, "a").pop().unwrap();
    assert_eq!(last.lease.unwrap().holder_identity, "a", "not released");
    until(SKEW + Duration::from_secs(2), "the work runs again", || journal.begun().len() == 2).await;
    let released = releases(&server, "a")[0].received.at.duration_since(journal.ended()[0]);
    assert!(
        released >= Duration::from_secs(15),
        "drained for 10 s, and 5 s until it cannot land: {released:?}"
    );
    let away = journal.begun()[1].1.duration_since(journal.ended()[0]);
    assert!(away >= Duration::from_millis(15_500), "and half a second away: {away:?}");
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_the_pause() {
    let server = ApiServer::new();
    let journal = Journal::default();
    let a = lead(&server, "a", brittle("panics", Duration::ZERO, &journal));
    until(Duration::from_secs(120), "its pauses are long", || journal.begun().len() == 7).await;
    pass(Duration::from_secs(2)).await;
    a.shutdown.cancel();
    assert_eq!(within(SOON, "the candidate stops", a.run).await.unwrap(), Ok(LeaseEnd::Released));
    assert_eq!(journal.begun().len(), 7);
}
