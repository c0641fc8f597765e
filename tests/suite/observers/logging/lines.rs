//! Which line is logged when it matters, and which one is not.

use super::heard::{Event, Heard};
use crate::support::{LEASE, SKEW, SOON, begin_write, candidate, leading, pass, steal, until};
use kube_leader_gate::{
    election::LeaseEnd,
    testing::{ApiServer, Fault},
};

const HELD_BY_A_WRITE: &str = "a write ended without an answer";

/// What was logged at `info` and above after the first `before` events.
fn since(heard: &Heard, before: usize) -> Vec<Event> {
    let mut events = heard.events().split_off(before);
    events.retain(|it| it.level != "debug");
    events
}

/// Where the first message that begins with `words` stands.
fn place(events: &[Event], words: &str) -> Option<usize> {
    events.iter().position(|it| it.message.starts_with(words))
}

#[tokio::test(start_paused = true)]
async fn clean_stop_logs_three_lines() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let before = heard.events().len();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    let lines: Vec<_> =
        since(&heard, before).iter().map(|it| format!("{} {}", it.level, it.message)).collect();
    assert_eq!(
        lines,
        [
            "info leadership given up: the lease is released next",
            "info the lease was released",
            "info no candidate holds the lease",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn theft_is_a_loss_and_no_release() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let before = heard.events().len();
    steal(&server);
    until(SOON, "the gate closes", || !a.candidate().is_leader()).await;
    let events = since(&heard, before);
    let lost = &events[place(&events, "leadership lost: ").expect("the loss is logged")];
    assert_eq!((&*lost.level, &*lost.values["loss"]), ("warn", "\"taken\""));
    assert_eq!(place(&events, "leadership given up"), None);
}

/// A candidate that leaves a lease without a holder as it is for a while says for how long.
#[tokio::test(start_paused = true)]
async fn lease_without_holder_names_a_long_wait() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    drop(leading(&server, "a").await);
    let b = candidate(&server, "b").start();
    until(SOON, "b knows the holder", || b.candidate().holder().as_deref() == Some("a")).await;
    server.edit("outsider", LEASE, |lease| lease["spec"]["holderIdentity"] = "".into()).unwrap();
    until(SOON, "b knows of the edit", || b.candidate().holder().is_none()).await;
    let events = heard.events();
    let free_in =
        &events[place(&events, "no candidate holds the lease").expect("it is logged")].values["free_in"];
    assert_eq!(free_in, "15s");
}

/// A stop that takes longer than usual says why, and for how long.
#[tokio::test(start_paused = true)]
async fn stop_names_a_write_that_keeps_the_lease() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    a.stop().await;
    writing.await.unwrap().unwrap_err();
    let events = heard.events();
    let at_most = &events[place(&events, HELD_BY_A_WRITE).expect("it is logged")].values["at_most"];
    assert_eq!(*at_most, format!("{SKEW:?}"));
}

#[tokio::test(start_paused = true)]
async fn giving_way_is_logged() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    a.candidate().give_way();
    pass(SOON).await;
    assert!(place(&heard.events(), "giving the lease up for another candidate").is_some());
}

/// The release finds no lease.
#[tokio::test(start_paused = true)]
async fn release_of_a_lease_that_is_gone_is_not_said_to_have_worked() {
    let heard = Heard::listen();
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let gone = server.inject(Fault::status(404).verb("update").resource("leases"));
    a.stop().await;
    assert_eq!((gone.hits(), place(&heard.events(), "the lease was released")), (1, None));
}
