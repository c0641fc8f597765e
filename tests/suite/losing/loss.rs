//! How a candidate loses leadership: the gate closes first, and at once.

use crate::support::{
    FIRST, LEASE, SOON, candidate, is_cut_off, is_not_leader, leading, lease_writes, pass, spec, steal,
    until, within, write,
};
use futures_util::{FutureExt, StreamExt};
use kube_leader_gate::{
    leadership::Loss,
    testing::{ApiServer, Fault},
};
use std::time::Duration;

/// The deadline counts from before the renewal is sent, not from its answer.
#[tokio::test(start_paused = true)]
async fn s1_deadline_counts_from_before_the_renewal_call() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let _slow = server.inject(Fault::delay_after(Duration::from_secs(1)).verb("update").resource("leases"));
    pass(Duration::from_millis(3500)).await;
    // The renewal was sent 2 s after the acquisition or somewhat earlier, by chance, and answered 1 s later.
    let sent = lease_writes(&server, "a")[1].received;
    let left = a.candidate().leadership().time_left().unwrap() + sent.at.elapsed();
    assert!(left <= Duration::from_millis(10_010) && left >= Duration::from_millis(9990), "{left:?}");
}

/// The same for the call that acquires the lease.
#[tokio::test(start_paused = true)]
async fn s1_first_deadline_counts_from_before_acquisition_call() {
    let server = ApiServer::new();
    let _slow = server.inject(Fault::delay_after(Duration::from_secs(1)).verb("create").resource("leases"));
    let a = candidate(&server, "a").start();
    within(FIRST * 2, "the candidate leads", a.candidate().elected()).await;
    let left = a.candidate().leadership().time_left().unwrap();
    assert!(left <= Duration::from_secs(9) && left >= Duration::from_millis(8900), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn s1_outage_closes_gate_at_the_deadline() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let outage = server.inject(Fault::drop_before());
    let began = tokio::time::Instant::now();
    until(Duration::from_secs(11), "the gate closes", || !a.candidate().can_write()).await;
    let after = began.elapsed();
    assert!(after <= Duration::from_secs(10) && after > Duration::from_secs(9), "{after:?}");
    assert!(is_not_leader(&write(&client).await));
    // The lease still names this candidate, so it may take it back, in a new term.
    let before = spec(&server)["leaseTransitions"].clone();
    drop(outage);
    within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
    assert_ne!(spec(&server)["leaseTransitions"], before);
    write(&client).await.expect("the candidate leads");
}

/// No task polls the workload's write, and the loss still ends it.
#[tokio::test(start_paused = true)]
async fn s2_loss_cuts_off_a_hanging_write() {
    for expire in [true, false] {
        let server = ApiServer::new();
        let (a, client) = leading(&server, "a").await;
        let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
        let hanging = tokio::spawn(async move { write(&client).await });
        until(SOON, "the write is under way", || a.candidate().leadership().writes_under_way() == 1).await;
        let _outage = expire.then(|| server.inject(Fault::drop_before().resource("leases")));
        if !expire {
            steal(&server);
        }
        let bound = if expire { Duration::from_secs(11) } else { SOON };
        let result = within(bound, "the write is cut off", hanging).await.unwrap();
        assert!(is_cut_off(&result), "{result:?}");
        assert_eq!(a.candidate().leadership().writes_under_way(), 0);
    }
}

/// The write ends at the deadline itself, before the elector looks again: the elector's own call hangs.
#[tokio::test(start_paused = true)]
async fn s2_deadline_cuts_off_hanging_write_at_once() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before());
    let hanging = tokio::spawn(async move { write(&client).await });
    until(Duration::from_secs(11), "the gate closes", || !a.candidate().can_write()).await;
    let result = within(Duration::from_millis(5), "the write is cut off", hanging).await.unwrap();
    assert!(is_cut_off(&result), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn s7_watch_event_of_theft_closes_the_gate() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let renewals = lease_writes(&server, "a").len();
    steal(&server);
    until(Duration::from_millis(5), "the gate closes", || !a.candidate().is_leader()).await;
    assert_eq!(lease_writes(&server, "a").len(), renewals, "by the watch, not by a renewal");
    assert_eq!(a.candidate().leadership().state().lost, Some(Loss::Taken));
    assert_eq!(a.candidate().holder().as_deref(), Some("outsider"));
    assert!(is_not_leader(&write(&client).await));
}

#[tokio::test(start_paused = true)]
async fn s7_failed_renewal_after_theft_closes_the_gate() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (a, client) = leading(&server, "a").await;
    steal(&server);
    until(Duration::from_millis(2100), "the gate closes", || !a.candidate().is_leader()).await;
    assert!(is_not_leader(&write(&client).await));
}

/// A renewal that hangs must not prevent the elector from noticing the theft.
#[tokio::test(start_paused = true)]
async fn s7_theft_is_noticed_during_hanging_renewal() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let hang = server.inject(Fault::hang_before().verb("update").resource("leases").user("a"));
    until(Duration::from_secs(3), "a renewal hangs", || hang.hits() > 0).await;
    steal(&server);
    until(Duration::from_millis(5), "the gate closes", || !a.candidate().is_leader()).await;
}

#[tokio::test(start_paused = true)]
async fn s8_deletion_closes_gate_until_new_term() {
    for watching in [true, false] {
        let server = ApiServer::new();
        let _no_watch = (!watching).then(|| server.inject(Fault::forbidden().verb("watch")));
        let (a, client) = leading(&server, "a").await;
        let first = a.candidate().term().unwrap();
        let no_create = server.inject(Fault::status(500).verb("create").resource("leases"));
        server.delete("outsider", LEASE).unwrap();
        let bound = Duration::from_millis(if watching { 5 } else { 2100 });
        until(bound, "the gate closes", || !a.candidate().is_leader()).await;
        assert!(is_not_leader(&write(&client).await));
        drop(no_create);
        let second =
            within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
        assert_ne!(first.lease_uid(), second.lease_uid());
    }
}

/// The 404 of a renewal is enough: no read has to confirm it.
#[tokio::test(start_paused = true)]
async fn s8_renewal_of_deleted_lease_closes_the_gate() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    let _no_reads = server.inject(Fault::status(500).verb("get"));
    let _gone = server.inject(Fault::status(404).verb("update").resource("leases"));
    until(Duration::from_millis(2100), "the gate closes", || !a.candidate().is_leader()).await;
    assert_eq!(a.candidate().leadership().state().lost, Some(Loss::Deleted));
}

/// Three renewals in a row hang or lose their connection, and it still leads.
#[tokio::test(start_paused = true)]
async fn s9_three_failed_renewals_do_not_end_term() {
    for fault in [Fault::hang_before, Fault::hang_after, Fault::drop_before, Fault::drop_after] {
        let server = ApiServer::new();
        let (a, _) = leading(&server, "a").await;
        let mut changes = a.candidate().changes();
        assert!(changes.next().await.is_some(), "the present state");
        let fault = server.inject(fault().verb("update").resource("leases").times(3));
        until(Duration::from_secs(12), "three renewals go wrong", || fault.hits() == 3).await;
        pass(Duration::from_secs(3)).await;
        assert!(a.candidate().is_leader());
        assert!(changes.next().now_or_never().is_none(), "and it never stopped leading");
        assert!(lease_writes(&server, "a").len() >= 2, "it renewed after that");
    }
}
