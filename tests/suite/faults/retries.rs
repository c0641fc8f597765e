//! Over real HTTP on a loopback port, in real time: tests that need a fault. The others are in
//! `tests/cluster/conformance`.
//!
//! The crate makes the election's clients from a configuration, as in a program.

use crate::support::{lease_writes, until, within, write};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::Running,
    testing::{ApiServer, Endpoint, Fault},
};
use std::time::{Duration, Instant};
use test_support::wait::{once_within, timed};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);

/// A leader that renews each second, and its workload's client. Both use this configuration.
async fn leading(config: Config) -> (Running, Client) {
    let seconds = Duration::from_secs;
    let election = Election::builder("default", "operator")
        .identity(Identity::new("a").unwrap())
        .timing(LeaseTiming::new(seconds(31), seconds(30), seconds(1)).unwrap())
        .build(&config)
        .unwrap();
    let client = election.client(&config).unwrap();
    let running = election.start();
    within(PATIENCE, "the candidate leads", running.candidate().elected()).await;
    (running, client)
}

fn map() -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some("x".into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

async fn serve() -> (ApiServer, Endpoint) {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    (server, endpoint)
}

/// Rule S14: the election itself waits at least a quarter of a second between two attempts. A retry layer below it
/// would be faster.
#[tokio::test]
async fn s14_election_client_does_not_retry() {
    let (server, endpoint) = serve().await;
    let unavailable = server.inject(Fault::status(503).verb("get").resource("leases"));
    let builder = Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let election = builder.build(&endpoint.config("a")).unwrap();
    let began = Instant::now();
    let _a = election.start();
    until(PATIENCE, "it reads again", || unavailable.hits() >= 2).await;
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
}

/// A retry layer inside would wait for the server's `Retry-After`, and a timeout layer inside would end the watch.
#[tokio::test]
async fn s14_no_retry_runs_below_the_election() {
    let (server, endpoint) = serve().await;
    let mut config = endpoint.config("a");
    config.default_retry = true;
    config.read_timeout = Some(Duration::from_millis(500));
    let (a, _) = leading(config).await;
    let (term, call) = (a.candidate().term(), a.candidate().timing().call_timeout());
    let busy = Fault::status_retry_after(503, Duration::from_secs(600));
    let busy = busy.verb("update").resource("leases").times(3);
    // The election's own two pauses take half a second at most. A call that waits inside takes the whole call timeout.
    once_within(call, "no call waits", async || {
        let busy = server.inject(busy.clone());
        until(PATIENCE, "a renewal is refused", || busy.hits() >= 1).await;
        timed(until(PATIENCE, "it is tried again", || busy.hits() == 3)).await.0
    })
    .await;
    let renewed = lease_writes(&server, "a").len();
    until(PATIENCE, "the candidate renews", || lease_writes(&server, "a").len() > renewed).await;
    assert_eq!(a.candidate().term(), term);
    assert_eq!(server.reads("a", "watch", "leases"), 1, "the first watch still stands");
}

/// kube's own client repeats writes as well as reads. A write that waits for its next attempt delays a stop, and a 504
/// may have been carried out.
#[tokio::test]
async fn client_repeats_reads_and_sends_writes_once() {
    let (server, endpoint) = serve().await;
    let (_a, client) = leading(endpoint.config("a")).await;
    let maps = Api::<ConfigMap>::default_namespaced(client);
    for status in [429, 503, 504] {
        let reads = server.inject(Fault::status(status).resource("configmaps").times(2));
        maps.list(&ListParams::default()).await.expect("the third attempt is answered");
        assert_eq!(reads.hits(), 2, "{status}");
        let writes = server.inject(Fault::status(status).resource("configmaps"));
        let create = maps.create(&PostParams::default(), &map()).await;
        let delete = maps.delete("x", &DeleteParams::default()).await.map(drop);
        for refused in [create.map(drop), delete] {
            assert!(
                matches!(refused, Err(kube_client::Error::Api(error)) if error.code == status),
                "{status}"
            );
        }
        assert_eq!(writes.hits(), 2, "each write was sent once");
    }
    maps.create(&PostParams::default(), &map()).await.expect("the client is as good as before");
}

#[tokio::test]
async fn client_without_kubes_retry_sends_reads_once() {
    let (server, endpoint) = serve().await;
    let mut config = endpoint.config("a");
    config.default_retry = false;
    let (_a, client) = leading(config).await;
    let reads = server.inject(Fault::status(503).resource("configmaps"));
    let refused = Api::<ConfigMap>::default_namespaced(client).list(&ListParams::default()).await;
    assert!(matches!(refused, Err(kube_client::Error::Api(error)) if error.code == 503));
    assert_eq!(reads.hits(), 1);
}

/// kubernetes #53793, karpenter #2100: the workload's own client has no free connection.
#[tokio::test]
async fn s14_workload_cannot_starve_the_election() {
    const STUCK: usize = 100;
    let (server, endpoint) = serve().await;
    let (a, client) = leading(endpoint.config("a")).await;
    let term = a.candidate().term();
    let _hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let mut stuck = JoinSet::new();
    for _ in 0..STUCK {
        let client = client.clone();
        stuck.spawn(async move { write(&client).await });
    }
    until(PATIENCE, "the writes are under way", || a.candidate().leadership().writes_under_way() == STUCK)
        .await;
    let before = lease_writes(&server, "a").len();
    until(PATIENCE, "it renews on", || lease_writes(&server, "a").len() >= before + 3).await;
    assert_eq!(a.candidate().term(), term);
    assert_eq!(a.candidate().leadership().writes_under_way(), STUCK);
}
