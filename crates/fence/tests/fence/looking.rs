//! A leader looks whether its fence still stands.

use crate::{
    support::{FIRST, RETRY_PERIOD, SOON, builder, holder, pass, until, within},
    wall::{Mood, Wall, fence},
};
use kube_leader_gate::election::Running;
use std::time::Duration;

const LOOKS_WITHIN: Duration = Duration::from_secs(65);

async fn leading(wall: &Wall, gives_way: bool) -> Running {
    let layer = fence().layer(wall.client("a"));
    let layer = if gives_way { layer.give_way_if_gone() } else { layer };
    let a = wall.over("a", builder("a").layer_lock(layer)).start();
    within(FIRST, "it leads", a.candidate().elected()).await;
    a
}

#[tokio::test(start_paused = true)]
async fn leader_reports_that_its_fence_is_gone_and_leads_on() {
    for (mood, says) in [(Mood::Absent, "no fence"), (Mood::Broken, "resulted in error")] {
        let wall = Wall::new(Mood::Follows);
        let a = leading(&wall, false).await;
        pass(LOOKS_WITHIN).await;
        assert_eq!((*wall.probes.lock().unwrap(), a.candidate().trouble()), (2, None), "it has looked once");
        let term = a.candidate().term();
        wall.turn(mood);
        until(LOOKS_WITHIN, "there is trouble", || a.candidate().trouble().is_some()).await;
        let trouble = a.candidate().trouble().unwrap();
        assert!(trouble.starts_with("this candidate leads, and its fence may be gone: "), "{trouble}");
        assert!(trouble.contains(says), "{trouble}");
        pass(LOOKS_WITHIN).await;
        assert_eq!(a.candidate().term(), term);
        wall.turn(Mood::Follows);
        until(LOOKS_WITHIN, "it is back", || a.candidate().trouble().is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn leader_gives_way_if_its_fence_is_gone() {
    let wall = Wall::new(Mood::Follows);
    let a = leading(&wall, true).await;
    let term = a.candidate().term();
    wall.turn(Mood::Absent);
    until(LOOKS_WITHIN, "it gives the lease away", || holder(&wall.server).is_empty()).await;
    assert!(!a.candidate().is_leader());
    pass(RETRY_PERIOD * 5).await;
    assert!(!a.candidate().is_leader(), "no gate opens without a fence");
    wall.turn(Mood::Follows);
    within(RETRY_PERIOD * 3, "it leads again", a.candidate().elected()).await;
    assert_ne!(a.candidate().term(), term);
    assert_eq!(a.candidate().trouble(), None);
}

/// The renewals show by themselves that the API server is away. No answer is no news of the fence.
#[tokio::test(start_paused = true)]
async fn silence_is_no_news() {
    let wall = Wall::new(Mood::Follows);
    let a = leading(&wall, true).await;
    let term = a.candidate().term();
    wall.turn(Mood::Silent);
    pass(LOOKS_WITHIN * 3).await;
    assert_eq!((a.candidate().term(), a.candidate().trouble()), (term, None));
    let probes = *wall.probes.lock().unwrap();
    drop(a);
    pass(SOON).await;
    assert_eq!(*wall.probes.lock().unwrap(), probes);
}

/// A load balancer without a backend, a full queue, an expired token: none of them has asked the fence.
#[tokio::test(start_paused = true)]
async fn answer_that_did_not_ask_the_fence_is_no_news() {
    for code in [401, 408, 429, 500, 502, 503, 504] {
        let wall = Wall::new(Mood::Follows);
        let a = leading(&wall, true).await;
        let term = a.candidate().term();
        wall.turn(Mood::Says(code));
        pass(LOOKS_WITHIN * 3).await;
        assert_eq!(a.candidate().term(), term, "{code}");
        assert_eq!(a.candidate().trouble(), None, "{code}");
    }
}
