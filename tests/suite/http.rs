//! Over real HTTP on loopback ports, in real time.

use crate::support::{is_not_leader, lease_writes, until, within, write};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Config, api::ListParams};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::Running,
    testing::{ApiServer, Endpoint, Fault},
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

const PATIENCE: Duration = Duration::from_secs(10);

fn timing() -> LeaseTiming {
    LeaseTiming::new(Duration::from_secs(2), Duration::from_millis(1500), Duration::from_millis(100)).unwrap()
}

fn start(config: &Config, identity: &str) -> (Running, Client) {
    let builder = Election::builder("default", "operator").identity(Identity::new(identity).unwrap());
    let election = builder.timing(timing()).build(config).unwrap();
    let client = election.client(config.clone()).unwrap();
    (election.start(), client)
}

#[tokio::test]
async fn replicas_over_sockets_hand_over() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let (a, a_client) = start(&endpoint.config("a"), "a");
    within(PATIENCE, "a leads", a.leader().elected()).await;
    let (b, b_client) = start(&endpoint.config("b"), "b");
    until(PATIENCE, "b knows a", || b.leader().holder().is_some()).await;
    write(&a_client).await.expect("the leader writes");
    assert!(is_not_leader(&write(&b_client).await));
    let maps: Api<ConfigMap> = Api::default_namespaced(b_client.clone());
    maps.list(&ListParams::default()).await.expect("a follower reads");
    a.stop().await;
    within(PATIENCE, "b leads", b.leader().elected()).await;
    write(&b_client).await.expect("the leader writes");
    assert!(is_not_leader(&write(&a_client).await));
}

/// Bytes between a client and the server, until the connections of that moment are frozen: they stay open, and nothing
/// goes through them any more.
struct Proxy {
    addr: SocketAddr,
    freeze: watch::Sender<()>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn new(endpoint: &Endpoint) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, target) = (listener.local_addr().unwrap(), endpoint.addr());
        let freeze = watch::Sender::new(());
        let frozen = freeze.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let frozen = frozen.subscribe();
                connections.spawn(async move {
                    let server = TcpStream::connect(target).await.unwrap();
                    carry(client, server, frozen).await;
                });
            }
        });
        Self { addr, freeze, _tasks: tasks }
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, mut frozen: watch::Receiver<()>) {
    let (mut up, mut down) = ([0; 4096], [0; 4096]);
    loop {
        let carried = tokio::select! {
            _ = frozen.changed() => break,
            read = client.read(&mut up) => match read {
                Ok(read @ 1..) => server.write_all(&up[..read]).await,
                _ => return,
            },
            read = server.read(&mut down) => match read {
                Ok(read @ 1..) => client.write_all(&down[..read]).await,
                _ => return,
            },
        };
        if carried.is_err() {
            return;
        }
    }
    // Both ends stay open and silent.
    std::future::pending::<()>().await;
}

/// Every connection that stands goes dead, as when a load balancer forgets them; new ones work.
#[tokio::test]
async fn s9_an_attempt_after_a_timeout_uses_a_fresh_connection() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let proxy = Proxy::new(&endpoint).await;
    let mut config = endpoint.config("a");
    config.cluster_url = format!("http://{}", proxy.addr).parse().unwrap();
    let (a, _) = start(&config, "a");
    within(PATIENCE, "a leads", a.leader().elected()).await;
    let term = a.leader().term();
    for _ in 0..3 {
        // Its connection stands: it has been used twice.
        let renewed = lease_writes(&server, "a").len();
        until(PATIENCE, "it renews", || lease_writes(&server, "a").len() >= renewed + 2).await;
        proxy.freeze.send_replace(());
        let low = Some(Duration::from_millis(1300));
        until(PATIENCE, "its time runs down", || a.leader().time_left() < low).await;
        until(PATIENCE, "it renews all the same", || {
            a.leader().time_left() > Some(Duration::from_millis(1400))
        })
        .await;
        assert_eq!(a.leader().term(), term, "and has led throughout");
    }
}

/// S14: the workload's own connections are all taken by requests that hang; the election has its own.
#[tokio::test]
async fn s14_hanging_requests_of_the_workload_do_not_hold_up_renewals() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let (a, client) = start(&endpoint.config("a"), "a");
    within(PATIENCE, "a leads", a.leader().elected()).await;
    let hang = server.inject(Fault::hang_before().resource("tokenreviews"));
    let client = Arc::new(client);
    let mut stuck = JoinSet::new();
    for _ in 0..50 {
        let client = client.clone();
        stuck.spawn(async move { write(&client).await });
    }
    until(PATIENCE, "they hang", || hang.hits() == 50).await;
    let term = a.leader().term();
    for _ in 0..5 {
        until(PATIENCE, "its time runs down", || a.leader().time_left() < Some(Duration::from_millis(1450)))
            .await;
        until(PATIENCE, "it renews", || a.leader().time_left() > Some(Duration::from_millis(1450))).await;
    }
    assert_eq!(a.leader().term(), term);
}

/// S14: the election's own pause between two attempts is a quarter of a second at least; a retry below it is faster.
#[tokio::test]
async fn s14_its_own_client_does_not_retry() {
    let server = ApiServer::new();
    let endpoint = server.serve().await.unwrap();
    let unavailable = server.inject(Fault::status(503).verb("get").resource("leases"));
    let builder = Election::builder("default", "operator").identity(Identity::new("a").unwrap());
    let election = builder.build(&endpoint.config("a")).unwrap();
    let began = Instant::now();
    let _a = election.start();
    until(PATIENCE, "it reads again", || unavailable.hits() >= 2).await;
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
}
