//! A slow uplink, over real sockets: what a client has sent arrives even if the client has disconnected.

use crate::support::{until, within};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Config, api::PostParams, core::ObjectMeta};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::Running,
    testing::{ApiServer, Endpoint, Judge, WriteRecord},
};
use std::{
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use test_support::assert_safety;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc},
    task::JoinSet,
    time::{Instant, sleep_until},
};

const PATIENCE: Duration = Duration::from_secs(60);
const SLOWNESS: Duration = Duration::from_millis(500);

/// A proxy whose uplink delays each piece, and the end, by this time. Its downlink delivers at once.
struct Uplink {
    addr: SocketAddr,
    /// Bytes of bodies that clients have sent.
    sent: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Uplink {
    async fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let sent = Arc::new(AtomicU64::new(0));
        let count = sent.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(to).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                lines.spawn(up(from_client, to_server, count.clone()));
                lines.spawn(down(from_server, to_client));
            }
        });
        Self { addr, sent, _tasks: tasks }
    }

    fn config(&self, user: &str) -> Config {
        let mut config = Config::new(format!("http://{}", self.addr).parse().unwrap());
        config.auth_info.token = Some(user.into());
        config
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn up(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, sent: Arc<AtomicU64>) {
    let (pieces, mut under_way) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let deliver = async move {
        while let Some((at, piece)) = under_way.recv().await {
            sleep_until(at).await;
            let written =
                if piece.is_empty() { server.shutdown().await } else { server.write_all(&piece).await };
            if written.is_err() {
                return;
            }
        }
    };
    let read = async move {
        let (mut piece, mut whole) = (vec![0; 1 << 16], Vec::new());
        loop {
            // A reset is an end, too.
            let count = client.read(&mut piece).await.unwrap_or(0);
            whole.extend_from_slice(&piece[..count]);
            // No server carries out a write whose body has not arrived.
            let head =
                whole.windows(4).position(|window| window == b"\r\n\r\n").map_or(whole.len(), |at| at + 4);
            sent.fetch_max((whole.len() - head) as u64, Ordering::SeqCst);
            // The end arrives even later: a server that sees it drops what it has not carried out.
            let late = if count == 0 { SLOWNESS * 2 } else { SLOWNESS };
            let _ = pieces.send((Instant::now() + late, piece[..count].to_vec()));
            if count == 0 {
                return;
            }
        }
    };
    tokio::join!(read, deliver);
}

async fn down(mut server: OwnedReadHalf, mut client: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut server, &mut client).await;
}

fn election(endpoint: &Endpoint, user: &str) -> Election {
    // It tolerates 2 s. A busy machine must not cost the old leader its term.
    let seconds = Duration::from_secs;
    let timing = LeaseTiming::new(seconds(12), seconds(10), Duration::from_millis(500)).unwrap();
    Election::builder("default", "operator")
        .identity(Identity::new(user).unwrap())
        .timing(timing)
        .grace(Duration::ZERO)
        .build(&endpoint.config(user))
        .unwrap()
}

/// A follower of this holder, and its workload's client.
async fn following(endpoint: &Endpoint, holder: &str) -> (Running, Client) {
    let election = election(endpoint, "b");
    let client = election.client(&endpoint.config("b")).unwrap();
    let running = election.start();
    until(PATIENCE, "the candidate knows the holder", || {
        running.candidate().holder().as_deref() == Some(holder)
    })
    .await;
    (running, client)
}

async fn create(client: &Client, name: &str) -> Result<(), kube_client::Error> {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let map = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &map).await.map(drop)
}

fn creates(server: &ApiServer, user: &str) -> Vec<WriteRecord> {
    let mut log = server.write_log();
    log.retain(|write| write.resource == "configmaps" && write.user == user && write.took_effect());
    log
}

/// The old leader's write is on its way when its workload must end, or drops the write.
#[tokio::test]
async fn s4_slow_write_lands_before_successor_leads() {
    for given_up in [false, true] {
        let server = ApiServer::new();
        let endpoint = server.serve().await.unwrap();
        let uplink = Uplink::new(endpoint.addr()).await;
        let election = election(&endpoint, "a");
        let (leader, client) = (election.candidate(), election.client(&uplink.config("a")).unwrap());
        let followed = Notify::new();
        let workload = async {
            followed.notified().await;
            let writing = create(&client, "of-a");
            if given_up {
                let sent = until(PATIENCE, "the write has left", || uplink.sent() > 0);
                tokio::select! {
                    biased;
                    () = sent => {}
                    _ = writing => unreachable!("its bytes are under way"),
                }
            } else {
                let _ = writing.await;
            }
            pending::<()>().await;
        };
        let shutdown = async {
            until(PATIENCE, "the write has left", || uplink.sent() > 0).await;
        };
        let succeeding = async {
            until(PATIENCE, "a leads", || leader.is_leader()).await;
            let (b, b_client) = following(&endpoint, "a").await;
            followed.notify_one();
            within(PATIENCE, "b leads", b.candidate().elected()).await;
            create(&b_client, "of-b").await.expect("b leads");
            // The bytes on the way arrive.
            until(PATIENCE, "the way is slow, and loses nothing", || !creates(&server, "a").is_empty()).await;
            b
        };
        let (ended, _b) = tokio::join!(
            within(PATIENCE, "the run ends", election.run_until(shutdown, workload)),
            within(PATIENCE, "b succeeds", succeeding),
        );
        ended.expect("it was told to end").into_output();
        let (old, new) = (&creates(&server, "a")[0], &creates(&server, "b")[0]);
        assert_safety!(
            old.received < new.received,
            "given up: {given_up}, the old leader's write landed later"
        );
        let verdict = Judge::new("default", "operator", ["a", "b"]).verdict(&server.write_log());
        assert_safety!(verdict.overlaps().count() == 0, "given up: {given_up}");
    }
}
