//! What must hold once the owner of an election is gone, at whatever point of its run.

use crate::support::{
    SKEW, SOON, build, builder, gated, is_not_leader, lease_writes, releases, until, within, write,
};
use kube_client::Client;
use kube_leader_gate::{
    Candidate, Election,
    testing::{ApiServer, Fault, FaultGuard, Judge, WriteRecord},
};
use std::{cell::Cell, pin::pin, time::Duration};
use test_support::assert_safety;
use test_support::cancellation::tasks;
use tokio::time::{Instant, interval, sleep, timeout};

/// A lease of 15 s that another candidate sees for the first time, and some calls.
const HANDOVER: Duration = Duration::from_secs(17);

/// A candidate `a`, and what a workload needs.
pub struct World {
    pub server: ApiServer,
    pub leader: Candidate,
    client: Client,
    /// When a write of the workload last ended without an answer.
    unanswered: Cell<Option<Instant>>,
}

impl World {
    pub fn new() -> (Self, Election) {
        let server = ApiServer::new();
        let settings = builder("a").grace(Duration::from_secs(1));
        // An observer is a task of the election too.
        let settings = settings.attend(|_, stopped| async move { stopped.cancelled().await });
        let election = build(&server, "a", settings).expect("a valid election");
        let (leader, client) = (election.candidate(), gated(&server, &election, "a"));
        (Self { server, leader, client, unanswered: Cell::new(None) }, election)
    }

    pub async fn write(&self) {
        write(&self.client).await.expect("it leads");
    }

    /// A write that this task gives up before its answer. It may land late.
    pub async fn give_a_write_up(&self) {
        let _hangs = self.inject(Fault::hang_before());
        // Also if this future is dropped.
        let _ended = Noted(&self.unanswered);
        timeout(Duration::from_millis(300), write(&self.client)).await.unwrap_err();
    }

    /// A write of a task that nothing waits for.
    pub fn leave_a_write_behind(&self) {
        let (slow, client) =
            (self.inject(Fault::delay_before(Duration::from_millis(400))), self.client.clone());
        tokio::spawn(async move {
            let _slow = slow;
            // A drop of the election cuts it off.
            let _ = write(&client).await;
        });
    }

    fn inject(&self, fault: Fault) -> FaultGuard {
        self.server.inject(fault.resource("tokenreviews").user("a"))
    }

    /// The owner of the election is gone. Nothing of it is left, and another candidate can lead.
    pub async fn must_be_orphaned(self) {
        let Self { server, leader, client, unanswered } = self;
        assert!(!leader.can_write() && !leader.is_leader(), "the gate is closed at once");
        let _ = within(SOON, "the end is reported", leader.ended()).await;
        assert!(is_not_leader(&write(&client).await));
        drop(client);
        until(SOON, "no task is left", || tasks() == 0).await;
        let written = lease_writes(&server, "a").len();
        let gone = Instant::now();
        let b = build(&server, "b", builder("b")).expect("a valid election");
        let b_client = gated(&server, &b, "b");
        let b = b.start();
        within(HANDOVER, "another candidate leads", b.candidate().elected()).await;
        write(&b_client).await.expect("b leads");
        assert_eq!(lease_writes(&server, "a").len(), written, "it leaves the lease alone");
        let verdict = Judge::new("default", "operator", ["a", "b"]).verdict(&server.write_log());
        assert_safety!(verdict.strays.is_empty(), "{:?}", verdict.strays);
        for release in releases(&server, "a") {
            let at = release.received.at;
            let might_land = |end: Instant| end <= at && at + Duration::from_millis(5) < end + SKEW;
            assert!(!unanswered.get().is_some_and(might_land), "released while a write might land");
            assert!(at <= gone);
            let outlives = |it: &WriteRecord| {
                let before = it.user == "a" && it.resource != "leases" && it.received < release.received;
                before && it.completed.is_some_and(|end| end > release.received)
            };
            assert!(!server.write_log().iter().any(outlives), "released while a write was under way");
        }
        b.stop().await;
    }
}

/// Notes when it is dropped.
struct Noted<'a>(&'a Cell<Option<Instant>>);

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.set(Some(Instant::now()));
    }
}

/// Waits on tokio's clock, as a workload does that is not told to end.
pub async fn pass_ms(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds)).await;
}

/// Polls `future` every millisecond too, so that it can be dropped between its own wake-ups.
pub async fn restless<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut ticks = interval(Duration::from_millis(1));
    loop {
        tokio::select! {
            biased;
            output = &mut future => return output,
            _ = ticks.tick() => {}
        }
    }
}
