//! Trouble that lasts is a warning again and again.

use super::heard::{Event, Heard};
use crate::{
    locks::flawed::{Flaw, flawed},
    support::{builder, candidate, leading, pass, within},
};
use kube_client::Client;
use kube_leader_gate::{
    lease::LeasePool,
    testing::{ApiServer, Fault, WatchBreak},
};
use std::{
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

/// What was logged at `info` and above about this trouble.
fn about(heard: &Heard, trouble: &str) -> Vec<Event> {
    let mut events = heard.events();
    events.retain(|it| {
        it.level != "debug" && it.message.trim_start_matches("no longer: ").starts_with(trouble)
    });
    events
}

/// Whole seconds.
fn lasts(event: &Event) -> u64 {
    let lasts = event.values["lasts"].trim_end_matches("ns").trim_end_matches('s');
    lasts.split('.').next().unwrap().parse().unwrap_or_else(|_| panic!("{event:?}"))
}

#[tokio::test(start_paused = true)]
async fn outage_is_warned_every_five_minutes() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let outage = server.inject(Fault::status(503).verb("update").resource("leases"));
    let polls = server.inject(Fault::status(503).verb("get").resource("leases"));
    pass(Duration::from_secs(11 * 60)).await;
    let failed = outage.hits() + polls.hits();
    drop((outage, polls));
    within(Duration::from_secs(5), "the candidate leads", a.candidate().elected()).await;

    let events = about(&heard, "lease calls fail");
    let levels: Vec<_> = events.iter().map(|it| &*it.level).collect();
    assert_eq!(levels, ["warn", "warn", "warn", "info"], "{events:#?}");
    let seconds: Vec<_> = events.iter().map(lasts).collect();
    assert_eq!(seconds[0], 0);
    // A call fails every two seconds at least.
    assert!((300..=302).contains(&seconds[1]) && (600..=604).contains(&seconds[2]), "{seconds:?}");
    let times = events.iter().map(|it| it.values["times"].parse::<u64>().unwrap()).collect::<Vec<_>>();
    assert!(times[0] == 1 && 100 < times[1] && times[1] < times[2], "{times:?}");
    assert_eq!(times[3], failed, "each failed call counts");
    let texts: Vec<_> = events.iter().map(|it| it.message.split(": 503").next().unwrap()).collect();
    assert!(texts[1].starts_with("lease calls fail: read: refused"), "{texts:?}");
    assert_eq!(texts[1], texts[2], "the message is the same");
}

/// A watch opens, and then fails: that it has opened is no success.
#[tokio::test(start_paused = true)]
async fn watch_that_opens_and_fails_is_warned_every_five_minutes() {
    for (how, kind) in [
        (WatchBreak::Expired, "refused"),
        (WatchBreak::Garbage, "bad answer"),
        (WatchBreak::Cut, "bad answer"),
        (WatchBreak::End, "bad answer"),
    ] {
        let heard = Heard::listen();
        let server = ApiServer::new();
        let broken = server.inject(Fault::break_watch(how));
        let a = candidate(&server, "a").start();
        pass(Duration::from_secs(3600)).await;
        let events = about(&heard, "the lease cannot be watched");
        assert!(
            events.iter().all(|it| it.level == "warn" && it.values["error"].contains(kind)),
            "{events:#?}"
        );
        assert!((11..=12).contains(&events.len()), "{how:?}: {} times in an hour", events.len());
        assert!(events[1].values["times"].parse::<u64>().unwrap() > 5, "{events:#?}");
        drop(broken);
        pass(Duration::from_secs(150)).await;
        let over = about(&heard, "the lease cannot be watched").split_off(events.len());
        assert_eq!(over.iter().map(|it| &*it.level).collect::<Vec<_>>(), ["info"], "{how:?}: {over:#?}");
        a.stop().await;
    }
}

/// A proxy on the way holds the answers back. The lease is polled then, which costs up to 52 s at a handover.
#[tokio::test(start_paused = true)]
async fn watch_that_stays_mute_is_warned_every_five_minutes() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (_a, _) = leading(&server, "a").await;
    let _b = flawed(&server, "b", Flaw::Mute(Arc::new(AtomicU32::new(0)))).start();
    pass(Duration::from_secs(3600)).await;
    let events = about(&heard, "the lease cannot be watched");
    let of_mute = |it: &Event| it.level == "warn" && it.values["error"].contains("mute");
    assert!(events.iter().all(of_mute) && (11..=12).contains(&events.len()), "{events:#?}");
}

/// A watch has nothing to show while there is no lease.
#[tokio::test(start_paused = true)]
async fn watch_of_no_lease_may_be_mute() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let _refused = server.inject(Fault::status(403).verb("create"));
    let _a = candidate(&server, "a").start();
    pass(Duration::from_secs(3600)).await;
    assert_eq!(about(&heard, "the lease cannot be watched").len(), 0);
}

/// The lease of one process has a watch, too, which shows each renewal.
#[tokio::test(start_paused = true)]
async fn watch_of_an_election_without_a_lease_is_no_trouble() {
    let heard = Heard::listen();
    let running = builder("a").build_alone().unwrap().start();
    within(Duration::from_secs(10), "the candidate leads", running.candidate().elected()).await;
    pass(Duration::from_secs(3600)).await;
    let events = about(&heard, "the lease cannot be watched");
    assert_eq!(events.len(), 0, "{events:#?}");
    let mut restarts = heard.events();
    restarts.retain(|it| it.message.contains("the watch of the lease is silent"));
    assert_eq!(restarts.len(), 0, "{:#?}", restarts.first());
}

/// As `TIMING.md` has it for slow API servers. The advice of the warning is to set a longer call timeout.
#[tokio::test(start_paused = true)]
async fn watch_of_a_slow_server_begins_within_the_call_timeout() {
    for is_shared in [false, true] {
        let heard = Heard::listen();
        let server = ApiServer::new();
        let _slow = server.inject(Fault::delay_before(Duration::from_secs(6)).verb("watch"));
        let service = server.service().user("a");
        let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).unwrap();
        let pool = if is_shared { pool.share_watches() } else { pool };
        let timing = "137/107/26/15".parse().unwrap();
        let running = builder("a").timing(timing).build_in(&pool).unwrap().start();
        within(Duration::from_secs(10), "the candidate leads", running.candidate().elected()).await;
        pass(Duration::from_secs(600)).await;
        let events = about(&heard, "the lease cannot be watched");
        assert_eq!(events.len(), 0, "shared: {is_shared}: {events:#?}");
    }
}

/// A candidate that works without a permission all its life.
#[tokio::test(start_paused = true)]
async fn missing_watch_is_warned_every_five_minutes() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let _refused = server.inject(Fault::forbidden().verb("watch"));
    let a = candidate(&server, "a").start();
    pass(Duration::from_secs(3600)).await;
    assert!(a.candidate().is_leader());
    let warned = about(&heard, "the lease cannot be watched").len();
    assert!((11..=12).contains(&warned), "{warned} times in an hour");
}
