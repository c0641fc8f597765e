//! A holder gives way to a preferred candidate, in the order of rule S4.

use crate::support::{
    LEASE, SKEW, SOON, begin_write, coordinated, gated, is_cut_off, is_listed, is_not_leader, is_released,
    leading, lease_writes, name, pass, path, prefer, releases, spec, until, within, write,
};
use kube_leader_gate::{
    CancellationToken,
    leadership::Loss,
    testing::{ApiServer, Fault},
};
use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// A candidate that has given way rests for a retry period.
const RESTED: Duration = Duration::from_millis(2_100);

#[tokio::test(start_paused = true)]
async fn s4_admitted_write_finishes_before_the_release() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let slow = server.inject(Fault::delay_before(5 * SECOND).resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    prefer(&server, "b");
    until(SOON, "the gate closes", || !a.candidate().can_write()).await;
    assert!(is_not_leader(&write(&client).await));
    pass(4 * SECOND).await;
    assert!(!writing.is_finished() && a.candidate().is_leader());
    assert!(releases(&server, "a").is_empty());
    pass(SECOND).await;
    writing.await.unwrap().unwrap();
    is_released(&server).await;
    assert_eq!(a.candidate().leadership().state().lost, Some(Loss::Released));
    drop(slow);
    name(&server, "a");
    within(RESTED, "it is named again", a.candidate().elected()).await;
    write(&client).await.unwrap();
}

/// Its outcome is unknown, so the lease is not released before its end.
#[tokio::test(start_paused = true)]
async fn s4_write_that_hangs_until_the_deadline_leaves_the_lease_to_run_out() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    prefer(&server, "b");
    until(SOON, "the gate closes", || !a.candidate().can_write()).await;
    let claims = lease_writes(&server, "a").len();
    assert!(is_cut_off(&within(10 * SECOND, "the write is cut off", writing).await.unwrap()));
    pass(SKEW + SECOND).await;
    assert_eq!((lease_writes(&server, "a").len(), a.candidate().is_leader()), (claims, false));
    name(&server, "b");
    until(SOON, "it has lost the lease", || a.candidate().holder().as_deref() != Some("a")).await;
}

#[tokio::test(start_paused = true)]
async fn lease_is_released_although_the_preference_goes() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let slow = server.inject(Fault::delay_before(SECOND).resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    prefer(&server, "b");
    until(SOON, "the gate closes", || !a.candidate().can_write()).await;
    server
        .edit("coordinator", LEASE, |lease| {
            lease["spec"].as_object_mut().unwrap().remove("preferredHolder");
        })
        .unwrap();
    writing.await.unwrap().unwrap();
    is_released(&server).await;
    drop(slow);
    name(&server, "a");
    within(RESTED, "it leads again", a.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn own_name_as_the_preferred_one_changes_nothing() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    prefer(&server, "a");
    pass(60 * SECOND).await;
    write(&client).await.unwrap();
    assert!(a.candidate().is_leader() && releases(&server, "a").is_empty());
    assert_eq!(spec(&server)["preferredHolder"], "a", "a foreign field");
}

/// Rule S4 for work that runs while leading: it has ended when the lease is released.
#[tokio::test(start_paused = true)]
async fn s4_work_ends_before_the_lease_is_given_up() {
    let server = ApiServer::new();
    let election = coordinated(&server, "a");
    let client = gated(&server, &election, "a");
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let work = {
        let (begun, ended) = (begun.clone(), ended.clone());
        move |token: CancellationToken, _| {
            let ended = ended.clone();
            begun.fetch_add(1, SeqCst);
            async move {
                token.cancelled().await;
                pass(3 * SECOND).await;
                ended.lock().unwrap().push(Instant::now());
            }
        }
    };
    let run = tokio::spawn(election.run_while_leading(pending::<()>(), work));
    is_listed(&server, "a").await;
    name(&server, "a");
    until(SECOND, "the work runs", || begun.load(SeqCst) == 1).await;
    prefer(&server, "b");
    pass(2 * SECOND).await;
    assert!(is_not_leader(&write(&client).await), "the gate has closed");
    assert!(releases(&server, "a").is_empty() && ended.lock().unwrap().is_empty());
    pass(SECOND).await;
    is_released(&server).await;
    assert!(ended.lock().unwrap()[0] <= releases(&server, "a")[0].received.at);
    until(SECOND, "it stands again", || server.object(&path("a")).is_some()).await;
    name(&server, "a");
    until(RESTED, "the work of the next term runs", || begun.load(SeqCst) == 2).await;
    run.abort();
}

/// No work has begun that could order the release.
#[tokio::test(start_paused = true)]
async fn lease_without_work_is_given_up_too() {
    let server = ApiServer::new();
    let election = coordinated(&server, "a");
    let leader = election.candidate();
    let run = tokio::spawn(election.run_while_leading(pending::<()>(), |_, _| pending::<()>()));
    is_listed(&server, "a").await;
    name(&server, "a");
    within(SECOND, "it leads", leader.elected()).await;
    prefer(&server, "b");
    pass(6 * SECOND).await;
    is_released(&server).await;
    run.abort();
}

/// It holds the lease already, and its gate opens later. It gives way then.
#[tokio::test(start_paused = true)]
async fn holder_that_is_preferred_no_more_before_it_leads_gives_way() {
    let server = ApiServer::new();
    let a = coordinated(&server, "a").start();
    is_listed(&server, "a").await;
    let slow = server.inject(Fault::delay_after(SECOND).verb("update").resource("leases"));
    name(&server, "a");
    until(SECOND, "it has claimed the lease", || spec(&server)["leaseDurationSeconds"] == 15).await;
    prefer(&server, "b");
    drop(slow);
    until(6 * SECOND, "it gives way", || releases(&server, "a").len() == 1).await;
    assert!(!a.candidate().is_leader());
}
