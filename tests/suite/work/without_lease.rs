//! An election without a lease: one replica, with the same code.

use crate::support::{until, within};
use futures_util::FutureExt;
use kube_leader_gate::{
    Candidate, Election, ErrNotLeader, Identity, LeaseTiming,
    election::{LeaseEnd, Running},
    health::Health,
    lease::LeaseName,
    testing::TokioClock,
};
use std::{io, sync::Arc, time::Duration};
use tokio::time::{advance, sleep};

/// Longer than an election takes to see that there is no lease, and than the pause after a term that was given up.
const A_WHILE: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn alone() -> Election {
    let builder = Election::builder("my-namespace", "my-controller");
    let builder = builder.identity(Identity::new("only").unwrap()).timing(LeaseTiming::fast());
    builder.clock(Arc::new(TokioClock::new())).build_alone().unwrap()
}

async fn started() -> (Candidate, Running) {
    let running = alone().start();
    let candidate = running.candidate().clone();
    within(A_WHILE, "it leads", candidate.elected()).await;
    (candidate, running)
}

#[tokio::test(start_paused = true)]
async fn lone_candidate_leads_from_start_to_stop() {
    let election = alone();
    let candidate = election.candidate();
    assert!(!candidate.can_write(), "it has not started");
    let running = election.start();
    within(A_WHILE, "it leads", candidate.elected()).await;
    assert!(candidate.can_write());
    assert_eq!(candidate.holder().as_deref(), Some("only"));
    assert_eq!(candidate.lease(), &LeaseName::new("my-namespace", "my-controller").unwrap());
    let health = Health::new(candidate.clone(), Duration::from_secs(20));
    assert_eq!((health.answer("/livez").status, health.answer("/readyz").status), (200, 200));
    assert_eq!(running.stop().await, LeaseEnd::Released);
    assert!(!candidate.can_write());
}

/// No other process waits for the lease, so nothing can be overtaken.
#[tokio::test(start_paused = true)]
async fn stop_waits_for_no_write_without_an_answer() {
    let (candidate, running) = started().await;
    let unanswered = async { Err::<(), _>(io::Error::other("no answer")) };
    candidate.guard("work", unanswered).await.unwrap_err();
    within(Duration::from_millis(100), "it stops", running.stop()).await;
}

/// All at once, as a suspended process sees it: no renewal comes in between.
#[tokio::test(start_paused = true)]
async fn gate_stays_open_through_a_long_freeze() {
    let (candidate, _running) = started().await;
    let term = candidate.term();
    advance(23 * HOUR).await;
    assert!(candidate.can_write());
    assert_eq!(candidate.term(), term, "the same term");
}

#[tokio::test(start_paused = true)]
async fn lone_candidate_renews_for_days() {
    let (candidate, _running) = started().await;
    let term = candidate.term();
    for _ in 0..3 {
        advance(12 * HOUR).await;
        sleep(A_WHILE).await; // time to renew
    }
    assert!(candidate.leadership().time_left() > Some(23 * HOUR), "it has renewed");
    assert_eq!(candidate.term(), term, "the same term");
}

#[tokio::test(start_paused = true)]
async fn given_up_term_is_followed_by_another() {
    let (candidate, _running) = started().await;
    let first = candidate.term().unwrap();
    candidate.give_way();
    let ended = || candidate.term().is_none_or(|term| term != first);
    until(A_WHILE, "the term ends", ended).await;
    let second = within(A_WHILE, "it leads again", candidate.elected()).await;
    assert!(second.fencing_token() > first.fencing_token());
    let refused = candidate.only_in(&first).guard("work", async { Ok::<_, std::io::Error>(()) });
    let refused = refused.now_or_never().unwrap().unwrap_err();
    assert!(ErrNotLeader::find(&refused).is_some(), "{refused}");
}
