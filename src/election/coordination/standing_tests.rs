//! Tests of what the elector learns of its `LeaseCandidate`, and when the task writes and deletes the object.

use super::*;
use crate::{
    leadership::Grantor,
    testing::{ApiServer, Fault, TokioClock},
};
use test_support::wait::{until, within};
use tokio::time::{Instant, sleep};

const PATH: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates/a";
const SECOND: Duration = Duration::from_secs(1);
const DRAIN: Duration = Duration::from_secs(10);

struct Scene {
    server: ApiServer,
    standing: Standing,
    grantor: Grantor,
}

impl Scene {
    /// A candidate that does not stand yet. Its task waits.
    async fn new() -> Self {
        let server = ApiServer::new();
        let grantor = Grantor::with_clock(Arc::new(TokioClock::new()));
        let client = Client::new(server.service().user("a"), "default");
        let standing = Enrolment::new(client, Coordination::new("1.5.0").unwrap()).start(
            LeaseName::new("default", "operator").unwrap(),
            Identity::new("a").unwrap(),
            LeaseTiming::fast(),
            grantor.leadership(),
            DRAIN,
            &Span::none(),
        );
        sleep(SECOND).await;
        Self { server, standing, grantor }
    }

    /// A candidate that the coordinator may choose.
    async fn listed() -> Self {
        let scene = Self::new().await;
        scene.standing.stand(true);
        until(SECOND, "it is listed", || !scene.is_gone()).await;
        sleep(SECOND).await;
        scene
    }

    fn is_gone(&self) -> bool {
        self.server.object(PATH).is_none()
    }

    fn now(&self) -> Moment {
        self.grantor.now()
    }
}

#[tokio::test(start_paused = true)]
async fn one_order_lists_the_candidate_and_one_withdraws_it() {
    let scene = Scene::new().await;
    assert!(scene.is_gone());
    scene.standing.stand(true);
    until(SECOND, "it is listed", || !scene.is_gone()).await;
    sleep(SECOND).await;
    scene.standing.stand(false);
    within(SECOND, "it is withdrawn", scene.standing.withdrawn()).await;
    assert!(scene.is_gone());
}

/// The release of the lease comes after this wait. Before the deletion the coordinator could name this process again.
#[tokio::test(start_paused = true)]
async fn withdrawal_lasts_until_a_slow_deletion_is_done() {
    let scene = Scene::listed().await;
    let _slow = scene.server.inject(Fault::delay_before(SECOND).verb("delete"));
    let begun = Instant::now();
    scene.standing.stand(false);
    within(2 * SECOND, "it is withdrawn", scene.standing.withdrawn()).await;
    assert!(scene.is_gone() && begun.elapsed() >= SECOND, "{:?}", begun.elapsed());
}

/// The elector does not wait for the second attempt, but the object must not stay.
#[tokio::test(start_paused = true)]
async fn failed_deletion_ends_the_wait_and_is_repeated() {
    let scene = Scene::listed().await;
    let failing = scene.server.inject(Fault::status(500).verb("delete").times(1));
    scene.standing.stand(false);
    within(SECOND, "the wait ends", scene.standing.withdrawn()).await;
    assert!(!scene.is_gone() && scene.standing.trouble().is_some());
    until(3 * SECOND, "it is deleted", || scene.is_gone()).await;
    until(SECOND, "the trouble is over", || scene.standing.trouble().is_none()).await;
    assert_eq!(failing.hits(), 1);
}

/// A term that gives way later has a drain timeout of its own.
#[tokio::test(start_paused = true)]
async fn each_drain_counts_from_its_own_beginning() {
    let mut scene = Scene::new().await;
    let first = scene.now();
    assert_eq!(scene.standing.gives_way(first), first.saturating_add(DRAIN));
    let second = first.saturating_add(60 * SECOND);
    assert_eq!(scene.standing.gives_way(second), first.saturating_add(DRAIN), "the same drain");
    scene.standing.gave_way();
    assert_eq!(scene.standing.gives_way(second), second.saturating_add(DRAIN));
}

#[tokio::test(start_paused = true)]
async fn vacant_lease_is_trouble_from_one_moment_on() {
    let mut scene = Scene::new().await;
    let begun = scene.now();
    let patience = LeaseTiming::fast().lease_duration() + CHOOSING;
    let nearly = begun.saturating_add(patience.saturating_sub(Duration::from_nanos(1)));
    let over = begun.saturating_add(patience);
    let changes = [
        (false, begun, false),
        (true, begun, false),
        (true, nearly, false),
        (true, over, true),
        (true, over.saturating_add(SECOND), false),
        (false, over.saturating_add(2 * SECOND), true),
        (false, over.saturating_add(3 * SECOND), false),
    ];
    let mut trouble = false;
    for (vacant, now, changed) in changes {
        assert_eq!(scene.standing.is_vacant(vacant, now), changed, "{now:?}");
        trouble ^= changed;
        assert_eq!(scene.standing.trouble().is_some(), trouble, "{now:?}");
    }
}
