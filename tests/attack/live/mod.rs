//! The attack on a real kube-apiserver: requests that followers let through change only what their policies permit.
//!
//! `stage` has a leader and one follower for each policy. Each is a sidecar in front of the server, with a user of
//! its own. `ammunition` chooses requests for each: those that its gate permits, those that the gate takes for reads,
//! and any others. `bodies` gives them bodies that would take effect, `wire` sends them byte by byte, and `tricks`
//! follow. Then two witnesses are asked:
//!
//! 1. `audit`: each request that reached the server is a read, or what the policy permits, by the server's own
//!    account. That account equals the oracle's reading.
//! 2. `objects`: all objects of all kinds are unchanged, except for changes that such a request explains.

mod ammunition;
mod audit;
pub mod bodies;
mod objects;
pub mod stage;
mod tricks;
mod unanswered;
mod wire;

use self::{ammunition::Ammunition, audit::Witness, objects::Objects, stage::Stage};
use crate::{oracle::Oracle, settings};
use futures_util::future::join_all;

/// How many requests of each sort a follower gets.
const REQUESTS: usize = 40;

#[tokio::main(worker_threads = 2)]
pub async fn followers_change_only_what_policies_permit() {
    let mut oracle = Oracle::start();
    let stage = Stage::set().await;
    let (seed, requests) = (settings::seed(), settings::number("ATTACK_LIVE").unwrap_or(REQUESTS));
    let mut ammunition = Ammunition::make(seed, requests, &mut oracle, &stage.policies());
    let before = Objects::all(&stage.client).await;
    let mut witness = Witness::new(&stage);
    let mut tallies = Vec::new();
    for followers in stage.groups() {
        let stage = &stage;
        let attacks = followers.iter().enumerate().map(|(number, follower)| {
            let shots = ammunition.of(&follower.user);
            async move {
                let mut tally = wire::Tally::default();
                for shot in shots {
                    let Ok(code) = wire::fire(follower.addr, &shot).await else {
                        panic!(
                            "with ATTACK_SEED={seed}: {}",
                            unanswered::report(stage, follower, &shot).await
                        );
                    };
                    tally.count(code, &shot);
                }
                let tricks = tricks::all(number);
                let answers = join_all(tricks.iter().map(|trick| wire::trick(follower.addr, trick))).await;
                let heard = answers.iter().filter(|answer| answer.starts_with("HTTP/1.")).count();
                assert!(heard > tricks.len() / 2, "{}: {answers:?}", follower.name());
                tally
            }
        });
        for (follower, tally) in followers.iter().zip(join_all(attacks).await) {
            tally.check(follower);
            tallies.push(tally);
        }
    }
    wire::Tally::check_all(&tallies, requests);
    let after = Objects::all(&stage.client).await;
    let complaints = witness.complaints(&stage, &mut oracle, &before, &after).await;
    assert!(complaints.is_empty(), "with ATTACK_SEED={seed}:\n{}", complaints.join("\n"));
    stage.end().await;
}
