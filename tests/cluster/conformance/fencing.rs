//! Fencing tokens, by the versions that the server gives.

use crate::{
    candidate::{Contender, contending},
    outsider::Outsider,
    support::until,
    world::World,
};
use fastrand::Rng;
use kube_leader_gate::leadership::Term;
use serde_json::json;
use std::time::Duration;

const USERS: [&str; 2] = ["candidate-0", "candidate-1"];

pub async fn fencing_tokens_grow_in_every_history(world: &impl World) {
    for seed in [1, 2] {
        history(world, seed).await;
    }
}

/// What happens to a lease and its leader, in a random order. Between two events a term begins.
async fn history(world: &impl World, seed: u64) {
    let outsider = Outsider::of(world);
    let mut crowd = [Some(contending(world, USERS[0]).await), Some(contending(world, USERS[1]).await)];
    let mut events = ["delete", "free", "step down", "restart", "delete", "crash", "delete"];
    Rng::with_seed(seed).shuffle(&mut events);
    let (mut place, mut last) = leader(&crowd, None).await;
    let mut leases = vec![last.lease_uid().to_owned()];
    for event in events {
        match event {
            "delete" => outsider.delete().await,
            "free" => drop(outsider.patch(json!({ "spec": { "holderIdentity": "" } })).await),
            "step down" => {
                let leader = crowd[place].as_mut().expect("it leads");
                leader.running.step_down(Duration::from_millis(100)).await;
            }
            _ => {
                let Contender { running, .. } = crowd[place].take().expect("it leads");
                if event == "restart" {
                    running.stop().await;
                } else {
                    drop(running);
                }
                crowd[place] = Some(contending(world, USERS[place]).await);
            }
        }
        let (at, term) = leader(&crowd, Some(&last)).await;
        let [before, token] = [&last, &term].map(|term| term.fencing_token().expect("versions are numbers"));
        assert!(before < token, "seed {seed}, {event}: {last} had {before}, {term} has {token}");
        let lease = outsider.get().await.expect("the lease");
        let version: u64 = lease["metadata"]["resourceVersion"].as_str().expect("a version").parse().unwrap();
        assert!(token <= version, "seed {seed}, {event}: no version of the lease is {token} yet");
        leases.push(term.lease_uid().to_owned());
        (place, last) = (at, term);
    }
    leases.sort();
    leases.dedup();
    assert!(leases.len() >= 3, "seed {seed}: the lease was created again: {leases:?}");
    // The next history begins without a holder.
    for contender in crowd.into_iter().flatten() {
        contender.running.stop().await;
    }
}

/// The candidate that leads in another term than `before`.
async fn leader(crowd: &[Option<Contender>; 2], before: Option<&Term>) -> (usize, Term) {
    let mut found = None;
    until("a new term begins", async || {
        let terms = crowd.iter().map(|it| it.as_ref().and_then(|it| it.candidate().term()));
        found =
            terms.enumerate().find_map(|(place, term)| Some((place, term.filter(|it| before != Some(it))?)));
        found.is_some()
    })
    .await;
    found.expect("it was found")
}
