//! An election that was built and is not driven: each observer says so.

use crate::support::{
    FIRST, SOON, build, builder, candidate, free, gated, is_not_leader, leads_by, until, within, write,
};
use futures_util::FutureExt;
use kube_client::Client;
use kube_leader_gate::{
    Candidate, ErrNotLeader,
    election::ErrUnhealthy,
    health::Health,
    lease::LeasePool,
    testing::{ApiServer, ManualClock},
};
use serde_json::Value;
use std::{future::pending, sync::Arc, time::Duration};

const SAID: &str = "the election of this process has not begun: its code must call `run`, `run_until`, \
                    `run_while_leading` or `start`";

/// Whether the candidate's readiness and trouble say that the election has not begun.
fn says_so(candidate: &Candidate) -> bool {
    let unready = candidate.check_ready() == Err(ErrUnhealthy::NotBegun);
    assert_eq!(candidate.trouble().is_some_and(|trouble| &*trouble == SAID), unready);
    unready
}

#[tokio::test(start_paused = true)]
async fn undriven_election_says_so_at_once() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    assert!(says_so(&election.candidate()));
    let health = Health::new(election.candidate(), Duration::from_secs(20));
    assert_eq!(
        (health.answer("/readyz").status, &*health.answer("/readyz").body),
        (503, &*format!("{SAID}\n"))
    );
    let page: Value = serde_json::from_str(&health.answer("/leader").body).unwrap();
    assert_eq!((&page["trouble"], &page["holder"]), (&SAID.into(), &Value::Null));
    let rejected = write(&gated(&server, &election, "a")).await.unwrap_err();
    assert_eq!(
        rejected.to_string().split_once("; ").unwrap().1,
        format!("nothing was sent; no holder of the lease is known; {SAID}")
    );
    assert!(ErrNotLeader::find(&rejected).is_some());
}

/// Some programs do other things before they drive their election.
#[tokio::test(start_paused = true)]
async fn undriven_election_is_unhealthy_after_tolerated_time() {
    let server = ApiServer::new();
    free(&server);
    let clock = ManualClock::new();
    let election = build(&server, "a", builder("a").clock(Arc::new(clock.clone()))).unwrap();
    let (candidate, more) = (election.candidate(), Duration::from_secs(20));
    clock.advance(Duration::from_secs(15 + 20));
    assert_eq!(candidate.check(more), Ok(()));
    clock.advance(Duration::from_secs(1));
    let sick = candidate.check(more).unwrap_err();
    assert_eq!((sick.to_string().as_str(), sick), (SAID, ErrUnhealthy::NotBegun));
    assert_eq!(candidate.check(Duration::MAX), Ok(()));
    let running = election.start();
    assert_eq!(candidate.check(more), Ok(()), "better late than never");
    leads_by(&clock, FIRST, running.candidate()).await;
    write(&Client::new(server.service().user("a"), "default")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_way_to_drive_an_election_begins_it() {
    let server = ApiServer::new();
    let election = || {
        let election = candidate(&server, "a");
        let candidate = election.candidate();
        assert!(says_so(&candidate));
        (election, candidate)
    };
    let begun = |candidate: &Candidate| !says_so(candidate) && candidate.trouble().is_none();

    let (it, handle) = election();
    let running = it.start();
    assert!(begun(&handle));
    drop(running);

    let (it, handle) = election();
    let mut run = Box::pin(it.run(pending::<()>()));
    assert!(says_so(&handle), "a future that is not polled drives nothing");
    assert!((&mut run).now_or_never().is_none());
    assert!(begun(&handle));

    let (it, handle) = election();
    let mut run = Box::pin(it.run_until(pending(), pending::<()>()));
    assert!(says_so(&handle) && (&mut run).now_or_never().is_none() && begun(&handle));

    let (it, handle) = election();
    let mut run = Box::pin(it.run_while_leading(pending(), |_, _| pending()));
    assert!(says_so(&handle) && (&mut run).now_or_never().is_none() && begun(&handle));
}

/// It says so in place of the advice to drive it.
#[tokio::test(start_paused = true)]
async fn s10_election_dropped_undriven_has_ended() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (handle, client) = (election.candidate(), gated(&server, &election, "a"));
    handle.check(Duration::ZERO).expect("it may still be driven");
    drop(election.run(pending::<()>()));
    assert!(!says_so(&handle));
    assert_eq!(handle.check(Duration::MAX), Err(ErrUnhealthy::Ended));
    assert_eq!(handle.check_ready(), Err(ErrUnhealthy::Ended));
    assert_eq!(
        handle.trouble().as_deref(),
        Some("the leader election has ended; restart the process to contend again")
    );
    let rejected = write(&client).await;
    assert!(is_not_leader(&rejected));
    let message = rejected.unwrap_err().to_string();
    assert!(message.ends_with("the election of this process has stopped, and it will not lead again"));
}

/// One process may drive some of its elections, and have forgotten one.
#[tokio::test(start_paused = true)]
async fn elections_of_one_pool_begin_one_by_one() {
    let server = ApiServer::new();
    let service = server.service().user("a");
    let pool = LeasePool::over(move || Ok(Client::new(service.clone(), "default"))).unwrap();
    let [driven, forgotten] = [(), ()].map(|()| builder("a").build_in(&pool).unwrap());
    let running = driven.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    until(SOON, "it is ready", || running.candidate().check_ready().is_ok()).await;
    let other = forgotten.candidate();
    assert!(says_so(&other));
    let both = Health::new(running.candidate().clone(), Duration::ZERO).ready_if(move || other.check_ready());
    assert_eq!(both.answer("/readyz").body, format!("{SAID}\n"));
}
