//! The integration scenario of the system that this crate follows, in paused time: a write is a `TokenReview`, and
//! only the holder's write passes.

use crate::support::{LEASE, candidate, gated, is_not_leader, spec, until, within, write};
use kube_client::Client;
use kube_leader_gate::{election::Running, testing::ApiServer};
use std::time::Duration;

struct Candidate {
    identity: String,
    client: Client,
    running: Option<Running>,
}

struct Scenario {
    server: ApiServer,
    candidates: Vec<Candidate>,
}

impl Scenario {
    async fn new(candidates: usize, chance: &mut fastrand::Rng) -> Self {
        let server = ApiServer::new();
        let mut scenario = Self { server, candidates: Vec::new() };
        for number in 0..candidates {
            tokio::time::sleep(Duration::from_millis(chance.u64(..2000))).await;
            let identity = format!("candidate-{number}");
            let election = candidate(&scenario.server, &identity);
            let client = gated(&scenario.server, &election, &identity);
            scenario.candidates.push(Candidate { identity, client, running: Some(election.start()) });
        }
        scenario
    }

    fn running(&self) -> impl Iterator<Item = (&Candidate, &Running)> {
        self.candidates.iter().filter_map(|candidate| Some((candidate, candidate.running.as_ref()?)))
    }

    /// Waits until one candidate leads and the others know it; returns its place.
    async fn led(&self, bound: Duration) -> usize {
        until(bound, "one candidate leads and all know it", || {
            let holder = self.holder();
            let leads = |(candidate, running): (&Candidate, &Running)| {
                running.candidate().is_leader() == (candidate.identity == holder)
                    && running.candidate().holder().as_deref() == Some(holder.as_str())
            };
            self.running().all(leads) && self.running().any(|(candidate, _)| candidate.identity == holder)
        })
        .await;
        self.candidates.iter().position(|candidate| candidate.identity == self.holder()).expect("a candidate")
    }

    fn holder(&self) -> String {
        let lease = self.server.object(LEASE).unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// All candidates read, one writes.
    async fn only_the_holder_writes(&self, leader: usize) {
        for (place, candidate) in self.candidates.iter().enumerate() {
            candidate.client.apiserver_version().await.expect("reads pass");
            let result = write(&candidate.client).await;
            if place == leader {
                result.expect("the holder writes");
            } else {
                assert!(is_not_leader(&result), "{}: {result:?}", candidate.identity);
            }
        }
    }

    async fn no_candidate_writes(&self) {
        for candidate in &self.candidates {
            let result = write(&candidate.client).await;
            assert!(is_not_leader(&result), "{}: {result:?}", candidate.identity);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_holder_ever_writes() {
    for seed in 0..4 {
        for candidates in 1..=5 {
            scenario(candidates, &mut fastrand::Rng::with_seed(seed)).await;
        }
    }
}

async fn scenario(candidates: usize, chance: &mut fastrand::Rng) {
    let mut scenario = Scenario::new(candidates, chance).await;
    let leader = scenario.led(Duration::from_secs(1)).await;
    scenario.only_the_holder_writes(leader).await;

    // An outsider takes the lease: no candidate can write until it has expired.
    let before = spec(&scenario.server);
    let edited = scenario.server.edit("outsider", LEASE, |lease| {
        lease["spec"]["holderIdentity"] = "some-other-identity".into();
    });
    edited.expect("the lease is there");
    until(Duration::from_millis(50), "all gates close", || {
        scenario.running().all(|(_, running)| !running.candidate().can_write())
    })
    .await;
    scenario.no_candidate_writes().await;
    let leader = scenario.led(Duration::from_secs(20)).await;
    scenario.only_the_holder_writes(leader).await;
    let after = spec(&scenario.server);
    assert!(after["leaseTransitions"].as_u64() > before["leaseTransitions"].as_u64());
    assert!(after["acquireTime"].as_str() > before["acquireTime"].as_str());

    // The lease is deleted: a candidate makes a new one.
    scenario.server.delete("outsider", LEASE).expect("the lease is there");
    until(Duration::from_millis(200), "a new lease", || !scenario.holder().is_empty()).await;
    let leader = scenario.led(Duration::from_secs(5)).await;
    scenario.only_the_holder_writes(leader).await;
    assert!(spec(&scenario.server)["leaseTransitions"].as_u64() <= Some(1));

    // Leaders stop one after the other. None writes after its stop.
    let mut leader = leader;
    for left in (0..candidates).rev() {
        tokio::time::sleep(Duration::from_millis(chance.u64(..5000))).await;
        let running = scenario.candidates[leader].running.take().expect("it runs");
        within(Duration::from_secs(1), "the candidate stops", running.stop()).await;
        assert!(is_not_leader(&write(&scenario.candidates[leader].client).await));
        if left > 0 {
            leader = scenario.led(Duration::from_secs(5)).await;
            scenario.only_the_holder_writes(leader).await;
        }
    }
    scenario.no_candidate_writes().await;
    assert_eq!(scenario.holder(), "");
}
