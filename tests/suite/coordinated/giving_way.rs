//! A holder gives way to a preferred candidate, in the order of rule S4.

use super::support::{coordinated, is_listed, is_released, leading, name, prefer};
use crate::{
    leading::support::Journal,
    support::{
        LEASE, SKEW, SOON, begin_write, gated, is_cut_off, is_not_leader, lease_writes, pass, releases, spec,
        until, within, write,
    },
};
use kube_leader_gate::{
    leadership::Loss,
    testing::{ApiServer, Fault},
};
use std::{future::pending, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn s4_admitted_write_finishes_before_the_release() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let slow = server.inject(Fault::delay_before(5 * SECOND).resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    prefer(&server, "b");
    until(SOON, "the gate closes", || !a.candidate().can_write()).await;
    assert!(is_not_leader(&write(&client).await));
    let before = lease_writes(&server, "a").len();
    pass(4 * SECOND).await;
    assert!(!writing.is_finished() && a.candidate().is_leader());
    assert!(lease_writes(&server, "a").len() > before, "still renewing");
    assert!(releases(&server, "a").is_empty());
    pass(SECOND).await;
    writing.await.unwrap().unwrap();
    is_released(&server).await;
    assert_eq!(a.candidate().state().lost, Some(Loss::Released));
    drop(slow);
    name(&server, "a");
    within(SOON, "it is named again", a.candidate().elected()).await;
    write(&client).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn s4_write_longer_than_the_drain_timeout_is_cut_off() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(a.candidate(), &client).await;
    prefer(&server, "b");
    until(SOON, "the gate closes", || !a.candidate().can_write()).await;
    pass((10 * SECOND).saturating_sub(SOON)).await;
    assert!(!writing.is_finished(), "the drain timeout is 10 s");
    pass(SOON).await;
    assert!(is_cut_off(&within(SOON, "the write is cut off", writing).await.unwrap()));
    // Its outcome is unknown, so it holds the lease.
    pass(SKEW.saturating_sub(SOON)).await;
    assert!(releases(&server, "a").is_empty());
    pass(2 * SOON).await;
    assert_eq!(releases(&server, "a").len(), 1);
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
    within(SOON, "it leads again", a.candidate().elected()).await;
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
    let journal = Journal::default();
    let election = coordinated(&server, "a");
    let client = gated(&server, &election, "a");
    let run = tokio::spawn(election.run_while_leading(pending::<()>(), journal.obedient(3 * SECOND)));
    is_listed(&server, "a").await;
    name(&server, "a");
    until(SECOND, "the work runs", || journal.begun().len() == 1).await;
    prefer(&server, "b");
    pass(2 * SECOND).await;
    assert!(is_not_leader(&write(&client).await), "the gate has closed");
    assert_eq!((journal.cancelled().len(), journal.present()), (1, 1));
    assert!(releases(&server, "a").is_empty());
    pass(SECOND).await;
    is_released(&server).await;
    assert!(journal.ended()[0] <= releases(&server, "a")[0].received.at);
    name(&server, "a");
    until(SECOND, "the work of the next term runs", || journal.begun().len() == 2).await;
    assert_eq!(journal.most(), 1);
    run.abort();
}

/// No work has begun that could order the release.
#[tokio::test(start_paused = true)]
async fn lease_without_work_is_given_up_too() {
    let server = ApiServer::new();
    let election = coordinated(&server, "a");
    let run = tokio::spawn(election.run_while_leading(pending::<()>(), |_, _| pending::<()>()));
    is_listed(&server, "a").await;
    name(&server, "a");
    prefer(&server, "b");
    pass(6 * SECOND).await;
    is_released(&server).await;
    run.abort();
}
