//! The stack that `docs/STACKING.md` recommends, over real sockets.

use super::{
    kube_retry::Scene,
    stage::{Outcome, arrived, ended, map, outcome, steal, until},
};
use kube_client::{
    Client, Config, Error,
    api::PostParams,
    client::{ClientBuilder, retry::RetryPolicy},
};
use kube_leader_gate::{
    Election,
    election::{LeaseEnd, ReadsOnly},
    testing::Fault,
};
use std::time::Duration;
use tower::{
    ServiceBuilder, buffer::BufferLayer, limit::ConcurrencyLimitLayer, retry::RetryLayer,
    timeout::TimeoutLayer,
};
use tower_http::trace::TraceLayer;

// As it stands in the guide, word for word.
fn stacked(election: &Election, mut config: Config) -> Result<Client, Error> {
    config.default_retry = false; // without kube's own retry, which would repeat writes
    let layers = ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(32)) // waits before the gate is asked
        .layer(election.layer()) // the gate, with the deadline of each request
        .layer(TimeoutLayer::new(Duration::from_secs(8))) // less than the drain timeout
        .layer(TraceLayer::new_for_http()) // what is sent
        .into_inner();
    Ok(ClientBuilder::try_from((config, election.connections()))?.with_layer(&layers).build())
}

// So does this.
fn retrying(election: &Election, mut config: Config) -> Result<Client, Box<dyn std::error::Error>> {
    config.default_retry = false;
    let thrice = RetryPolicy::new(Duration::from_millis(100), Duration::from_secs(1), 3, true)?;
    Ok(ClientBuilder::try_from((config, election.connections()))?
        .with_layer(&BufferLayer::new(64))
        .with_layer(&RetryLayer::new(ReadsOnly::new(thrice))) // without `ReadsOnly`, writes too
        .with_layer(&TimeoutLayer::new(Duration::from_secs(8))) // all attempts together
        .with_layer(&election.layer())
        .build())
}

#[test]
fn guide_contains_the_tested_stacks() {
    let (guide, source) = (include_str!("../../../docs/STACKING.md"), include_str!("recommended.rs"));
    for function in ["fn stacked(", "fn retrying("] {
        let begin = source.find(function).unwrap();
        let end = begin + source[begin..].find("\n}\n").unwrap();
        assert!(
            guide.contains(&source[begin..end]),
            "docs/STACKING.md has another {function}..) than is tested"
        );
    }
}

async fn leading() -> Scene {
    Scene::leading(|election, config| stacked(election, config).unwrap()).await
}

#[tokio::test]
async fn leader_writes_and_follower_is_rejected() {
    let scene = leading().await;
    assert_eq!(scene.write("x").await, Outcome::Done);
    steal(&scene.server);
    until("the candidate follows", || !scene.running.candidate().can_write()).await;
    assert_eq!(scene.write("y").await, Outcome::NotLeader);
    assert_eq!(arrived(&scene.server).len(), 1);
    scene.maps.get("x").await.expect("reads pass");
}

#[tokio::test]
async fn s2_loss_cuts_off_open_write() {
    let scene = leading().await;
    let _fault = scene.server.inject(Fault::hang_before().resource("configmaps"));
    let maps = scene.maps.clone();
    let writing = tokio::spawn(async move { outcome(maps.create(&PostParams::default(), &map("x")).await) });
    until("it arrives", || arrived(&scene.server).len() == 1).await;
    steal(&scene.server);
    assert_eq!(ended(writing).await, Outcome::LeadershipLost);
    assert!(arrived(&scene.server)[0].completed.is_none());
}

/// One attempt, one answer: the caller decides whether to retry.
#[tokio::test]
async fn unavailable_server_gets_one_attempt_without_delaying_stop() {
    let scene = leading().await;
    let _fault =
        scene.server.inject(Fault::status_retry_after(503, Duration::from_secs(3600)).resource("configmaps"));
    assert_eq!(scene.write("x").await, Outcome::Status(503));
    assert_eq!(arrived(&scene.server).len(), 1);
    assert_eq!(scene.running.stop().await, LeaseEnd::Released);
}

#[tokio::test]
async fn own_retry_repeats_reads_thrice_and_writes_never() {
    let scene = Scene::leading(|election, config| retrying(election, config).unwrap()).await;
    assert_eq!(scene.write("x").await, Outcome::Done);
    let unavailable = || Fault::status(503).resource("configmaps");
    let fault = scene.server.inject(unavailable().times(2));
    scene.maps.get("x").await.expect("the third attempt is answered");
    drop(fault);
    let fault = scene.server.inject(unavailable());
    scene.maps.get("x").await.expect_err("four attempts");
    assert_eq!(fault.hits(), 4);
    assert_eq!(scene.write("y").await, Outcome::Status(503));
    assert_eq!(fault.hits(), 5);
}
