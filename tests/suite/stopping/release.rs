//! How a leader stops: first the gate closes, then the writes finish, then the lease is released.

use crate::support::{
    FIRST, LEASE, SKEW, SOON, begin_write, build, builder, candidate, gated, is_cut_off, is_not_leader,
    leading, lease_writes, parts, pass, releases, spec, steal, until, within, write,
};
use futures_util::FutureExt;
use kube_leader_gate::{
    LeaseTiming,
    election::LeaseEnd,
    testing::{ApiServer, Fault},
};
use std::{future::pending, panic::AssertUnwindSafe, time::Duration};
use test_support::wait::timed;
use tokio::{sync::oneshot, time::Instant};

/// Pinniped's order: no write can pass from the moment when the release is sent, even if the release fails.
#[tokio::test(start_paused = true)]
async fn s3_gate_closes_before_release_is_sent() {
    for fault in [Fault::hang_before, Fault::drop_before, Fault::drop_after, Fault::forbidden] {
        let server = ApiServer::new();
        let (a, client) = leading(&server, "a").await;
        let leader = a.candidate().clone();
        let fault = server.inject(fault().verb("update").resource("leases"));
        let stop = tokio::spawn(a.stop());
        until(SOON, "the release is sent", || fault.hits() > 0).await;
        assert!(!leader.is_leader());
        assert!(is_not_leader(&write(&client).await));
        within(Duration::from_secs(10), "the candidate stops", stop).await.unwrap();
        let refused = write(&client).await;
        assert!(is_not_leader(&refused));
        assert!(refused.unwrap_err().to_string().ends_with("it will not lead again"), "and says so");
    }
}

/// A workload that ignores its signal blocks neither the end of the process nor the release of the lease.
#[tokio::test(start_paused = true)]
async fn s4_workload_that_ignores_stop_is_dropped_after_grace() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let leader = election.candidate();
    let (told, shutdown) = oneshot::channel();
    let workload = async {
        leader.elected().await;
        told.send(()).expect("the receiver waits");
        pending::<()>().await;
    };
    let (began, grace) = (Instant::now(), Duration::from_secs(5));
    let shutdown = async { shutdown.await.expect("the candidate leads") };
    let finished = within(Duration::from_secs(6), "it ends", election.run_until(shutdown, workload)).await;
    assert_eq!(parts(finished), Ok((None, LeaseEnd::Released)));
    assert!(began.elapsed() >= grace, "it had its grace");
    assert_eq!(releases(&server, "a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn workload_that_ends_within_grace_returns_its_output() {
    let server = ApiServer::new();
    let slow = async {
        pass(Duration::from_secs(4)).await;
        "done"
    };
    let run = candidate(&server, "a").run_until(async {}, slow);
    let finished = within(Duration::from_secs(5), "it ends", run).await;
    assert_eq!(parts(finished), Ok((Some("done"), LeaseEnd::Released)));
    let at_once = candidate(&server, "b").run_until(pending(), async { 7 });
    let finished = within(SOON, "it ends by itself", at_once).await;
    assert_eq!(parts(finished), Ok((Some(7), LeaseEnd::Released)));
}

/// The workload ends, the gate closes, open writes finish while the lease is renewed, and then the lease is released.
#[tokio::test(start_paused = true)]
async fn s4_clean_stop_drains_writes_before_release() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
    let _slow = server.inject(Fault::delay_before(Duration::from_secs(7)).resource("tokenreviews"));
    let workload = async {
        leader.elected().await;
        let writer = client.clone();
        let left_behind = tokio::spawn(async move { write(&writer).await });
        until(SOON, "the write is under way", || leader.leadership().writes_under_way() == 1).await;
        // Wrapped in a closure: a task that is returned would not be waited for.
        Some(left_behind)
    };
    let meanwhile = async {
        pass(Duration::from_secs(5)).await;
        assert!(leader.is_leader() && !leader.can_write(), "the candidate drains");
        assert!(is_not_leader(&write(&client).await));
    };
    let (run, ()) =
        tokio::join!(within(Duration::from_secs(8), "the run ends", election.run(workload)), meanwhile);
    let run = run.expect("the election did not die");
    run.output.expect("the workload's output").await.unwrap().expect("the write finished");
    assert_eq!(run.lease, LeaseEnd::Released);
    assert_eq!(spec(&server)["holderIdentity"], "");
    let log = server.write_log();
    let written = log.iter().find(|write| write.resource == "tokenreviews").unwrap().completed.unwrap();
    let released = &releases(&server, "a")[0];
    assert!(written < released.received, "released after the write");
    let renewals = lease_writes(&server, "a").iter().filter(|renewal| renewal.received < written).count();
    assert!(renewals >= 3, "renewed meanwhile: {renewals}");
}

/// The writes are cut off after the drain timeout. They may take effect for as long as a lease tolerates.
#[tokio::test(start_paused = true)]
async fn s4_writes_that_do_not_finish_delay_the_release() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let leader = a.candidate().clone();
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let hanging = tokio::spawn(async move { write(&client).await });
    until(SOON, "the write is under way", || leader.leadership().writes_under_way() == 1).await;
    let stop = tokio::spawn(a.stop());
    let result = within(Duration::from_millis(10_100), "the write is cut off", hanging).await.unwrap();
    assert!(is_cut_off(&result), "{result:?}");
    let cut_off = Instant::now();
    let stopped = within(SKEW + SOON, "the candidate stops", stop).await.unwrap();
    assert_eq!(stopped, LeaseEnd::Released);
    let after = releases(&server, "a")[0].received.at - cut_off;
    assert!(after >= SKEW, "released {after:?} after the write was cut off");
}

/// A leader that loses the lease while it drains must not take it back and open the gate again.
#[tokio::test(start_paused = true)]
async fn s4_stopping_candidate_does_not_acquire_the_lease() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews").times(1));
    let writer = client.clone();
    let hanging = tokio::spawn(async move { write(&writer).await });
    until(SOON, "the write is under way", || a.candidate().leadership().writes_under_way() == 1).await;
    let leader = a.candidate().clone();
    let stop = tokio::spawn(a.stop());
    until(SOON, "the candidate drains", || !leader.can_write()).await;
    server.delete("outsider", LEASE).unwrap();
    within(SOON, "the write is cut off", hanging).await.unwrap().unwrap_err();
    within(SOON, "the candidate stops", stop).await.unwrap();
    assert!(server.object(LEASE).is_none());
    assert!(is_not_leader(&write(&client).await));
}

/// kubernetes #131867: a late release erased a successor.
#[tokio::test(start_paused = true)]
async fn s5_late_release_does_not_change_successors_lease() {
    let server = ApiServer::new();
    // Without a watch, the candidate does not know its successor when it stops.
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    steal(&server);
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert_eq!(spec(&server)["holderIdentity"], "outsider");
    assert!(releases(&server, "a").is_empty());
}

/// The same holder in another term is another process.
#[tokio::test(start_paused = true)]
async fn s5_late_release_does_not_change_own_later_term() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let first = candidate(&server, "a").start();
    within(FIRST, "it leads", first.candidate().elected()).await;
    // Another process of this name has taken the lease meanwhile.
    let take = |lease: &mut serde_json::Value| {
        lease["spec"]["leaseTransitions"] = 7.into();
        lease["spec"]["renewTime"] = "2026-01-02T03:04:05.000000Z".into();
    };
    server.edit("outsider", LEASE, take).unwrap();
    first.stop().await;
    assert_eq!(
        (&spec(&server)["holderIdentity"], &spec(&server)["leaseTransitions"]),
        (&"a".into(), &7.into())
    );
}

#[tokio::test(start_paused = true)]
async fn s5_release_succeeds_after_conflict_with_foreign_label() {
    let server = ApiServer::new();
    let _no_watch = server.inject(Fault::forbidden().verb("watch"));
    let (a, _) = leading(&server, "a").await;
    server.edit("outsider", LEASE, |lease| lease["metadata"]["labels"]["x"] = "y".into()).unwrap();
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert_eq!(spec(&server)["holderIdentity"], "");
    assert_eq!(server.object(LEASE).unwrap()["metadata"]["labels"]["x"], "y");
}

/// No lease is left to release, and the candidate knows that at once: an API server may answer 409 or 404.
#[tokio::test(start_paused = true)]
async fn s5_release_of_deleted_lease_creates_nothing() {
    for status in [None, Some(404)] {
        let server = ApiServer::new();
        let _no_watch = server.inject(Fault::forbidden().verb("watch"));
        let (a, _) = leading(&server, "a").await;
        let _answer = status.map(|status| server.inject(Fault::status(status).verb("update")));
        server.delete("outsider", LEASE).unwrap();
        assert_eq!(within(SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released);
        assert!(server.object(LEASE).is_none());
    }
}

/// A newer version is usual, for example without a watch. Many of them in a row are not.
#[tokio::test(start_paused = true)]
async fn release_that_always_conflicts_is_given_up() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let conflicts = server.inject(Fault::status(409).verb("update").resource("leases").times(20));
    assert_eq!(within(Duration::from_secs(8), "the candidate stops", a.stop()).await, LeaseEnd::LeftToExpire);
    assert_eq!(conflicts.hits(), 3);
}

/// The API server has not carried it out, so there is nothing to release or to wait for.
#[tokio::test(start_paused = true)]
async fn stop_after_a_refused_acquisition_is_clean() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden().verb("create").resource("leases"));
    let a = candidate(&server, "a").start();
    until(FIRST, "it tries", || refused.hits() > 0).await;
    assert_eq!(within(SOON, "the candidate stops", a.stop()).await, LeaseEnd::Released);
}

#[tokio::test(start_paused = true)]
async fn s4_hung_release_is_sent_again() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let hang = server.inject(Fault::hang_before().verb("update").resource("leases").times(1));
    assert_eq!(a.stop().await, LeaseEnd::Released);
    assert_eq!(hang.hits(), 1);
    assert_eq!(spec(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn follower_stops_without_writing_the_lease() {
    let server = ApiServer::new();
    let (_a, _) = leading(&server, "a").await;
    let b = candidate(&server, "b").start();
    until(SOON, "b knows a", || b.candidate().holder().is_some()).await;
    assert_eq!(within(SOON, "the candidate stops", b.stop()).await, LeaseEnd::Released);
    assert_eq!(spec(&server)["holderIdentity"], "a");
}

/// kcp #3196, cilium #48385: the workload was dead, but its process still held the lease.
#[tokio::test(start_paused = true)]
async fn workload_panic_releases_lease_and_reaches_caller() {
    let server = ApiServer::new();
    let election = candidate(&server, "a");
    let leader = election.candidate();
    let workload = async move {
        leader.elected().await;
        panic!("the workload breaks");
    };
    let run = AssertUnwindSafe(election.run(workload)).catch_unwind().await;
    let message = *run.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(message, "the workload breaks");
    assert_eq!(spec(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn s4_writes_may_take_as_long_as_the_chosen_drain_timeout() {
    let server = ApiServer::new();
    let election = build(&server, "a", builder("a").drain_timeout(Duration::from_secs(1))).unwrap();
    let client = gated(&server, &election, "a");
    let running = election.start();
    within(FIRST, "the candidate leads", running.candidate().elected()).await;
    let _hangs = server.inject(Fault::hang_before().resource("tokenreviews"));
    let writing = begin_write(running.candidate(), &client).await;
    let _stop = tokio::spawn(running.stop());
    pass(Duration::from_millis(900)).await;
    assert!(!writing.is_finished());
    assert!(is_cut_off(&within(2 * SOON, "the write ends", writing).await.unwrap()));
}

/// A person wipes the lease, so the number of a term that was given away comes again.
#[tokio::test(start_paused = true)]
async fn each_order_to_give_way_is_carried_out() {
    let server = ApiServer::new();
    let (a, _) = leading(&server, "a").await;
    let first = a.candidate().elected().await;
    a.candidate().give_way();
    until(SOON, "it gives way", || !a.candidate().can_write()).await;
    let second = a.candidate().elected().await;
    assert_eq!(second.transitions(), first.transitions() + 1);
    a.candidate().give_way();
    until(SOON, "it gives way again", || !a.candidate().can_write()).await;
    a.candidate().elected().await;
    server.edit("admin", LEASE, |lease| lease["spec"] = serde_json::json!({})).unwrap();
    until(SOON, "its term is over", || !a.candidate().can_write()).await;
    assert_eq!(a.candidate().elected().await.transitions(), second.transitions());
    a.candidate().give_way();
    until(SOON, "it gives way a third time", || !a.candidate().can_write()).await;
}

/// A refused creation has made no lease, so a stop waits for nothing. After an answer that leaves that open, it looks whether
/// the lease appears.
#[tokio::test(start_paused = true)]
async fn stop_after_a_refused_creation_leaves_no_lease() {
    for code in [400, 401, 403, 404, 405, 413, 422, 429, 451, 408, 500, 502, 503, 504] {
        let server = ApiServer::new();
        let refused = server.inject(Fault::status(code).verb("create").resource("leases"));
        let a = candidate(&server, "a").start();
        until(FIRST, "it has tried", || refused.hits() > 0).await;
        until(SOON, "it has heard", || a.candidate().trouble().is_some()).await;
        let leaves_open = code == 408 || code >= 500;
        let (took, end) = timed(a.stop()).await;
        assert_eq!(end, LeaseEnd::Released, "{code}");
        assert_eq!(took > SOON, leaves_open, "{code}: {took:?}");
        assert!(server.object(LEASE).is_none());
    }
}

/// Renewals hang, and the election has learned to wait. A stop does not: it releases the lease over a fresh connection.
#[tokio::test(start_paused = true)]
async fn s4_stop_beside_a_hung_renewal_releases() {
    let seconds = Duration::from_secs;
    for (lease, deadline, retry) in [(137, 107, 26), (137, 136, 26)] {
        let timing = LeaseTiming::new(seconds(lease), seconds(deadline), seconds(retry)).unwrap();
        let server = ApiServer::new();
        let a = build(&server, "a", builder("a").timing(timing)).unwrap().start();
        within(FIRST, "a leads", a.candidate().elected()).await;
        let hung = server.inject(Fault::hang_before().verb("update").resource("leases").times(4));
        until(seconds(100), "four renewals hang", || hung.hits() == 4).await;
        let (took, end) = timed(a.stop()).await;
        assert_eq!(end, LeaseEnd::Released, "{timing}");
        assert!(took < timing.call_timeout() * 2, "{timing}: {took:?}");
    }
}
