//! A fence together with the other ways to come to a lease.

use super::wall::{Mood, Wall};
use crate::{
    coordinated::support::{coordination, is_listed, name},
    early::pods::{create, early, report_end, watches},
    support::{FIRST, SOON, builder, pass, spec, until, within},
};
use kube_client::Client;
use std::time::Duration;

/// The settle time of an early takeover.
const SETTLE: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn coordinated_candidate_waits_for_its_fence() {
    let wall = Wall::new(Mood::Absent);
    let client = Client::new(wall.server.service().user("a"), "default");
    let (election, _) = wall.build("a", builder("a").coordinated(client, coordination()));
    let a = election.start();
    is_listed(&wall.server, "a").await;
    name(&wall.server, "a");
    pass(FIRST).await;
    assert!(!spec(&wall.server)["acquireTime"].is_null(), "it has claimed the lease");
    assert!(!a.candidate().is_leader());
    wall.turn(Mood::Follows);
    within(FIRST, "it leads", a.candidate().elected()).await;
}

#[tokio::test(start_paused = true)]
async fn early_successor_waits_for_its_fence() {
    let wall = Wall::new(Mood::Follows);
    let replica = |name: &'static str| {
        let early = early(&wall.server, name, &create(&wall.server, name));
        wall.build(name, builder(name).early_takeover(early)).0.start()
    };
    let a = replica("a");
    within(FIRST, "a leads", a.candidate().elected()).await;
    let b = replica("b");
    watches(&wall.server, "b").await;
    pass(SOON).await;
    drop(a);
    wall.turn(Mood::Absent);
    report_end(&wall.server, "a");
    until(SOON, "b has taken the lease", || spec(&wall.server)["holderIdentity"] == "b").await;
    pass(SETTLE + FIRST).await;
    assert!(!b.candidate().is_leader());
    wall.turn(Mood::Follows);
    within(FIRST, "b leads", b.candidate().elected()).await;
}
