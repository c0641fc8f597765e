//! The line between one candidate and the API server, which can be disturbed.

use fastrand::Rng;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;

/// The shortest delay of a slow uplink.
const LEAST_LATENCY: Duration = Duration::from_millis(200);
/// Chunks that can be under way on one connection; the rest stays with the sender.
const UNDER_WAY: usize = 256;

/// What the line does to the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Open,
    /// Connections are reset, new ones too.
    Cut,
    /// Nothing is heard of either side. What was sent is lost, and connections are reset when it is over.
    Blackhole,
    /// What the candidate sends waits until this is over and is then delivered, as TCP does after a partition: also what a
    /// client that has hung up meanwhile had sent.
    HoldUp,
    /// The same with what the server answers.
    HoldDown,
    /// Each chunk waits this long.
    Delay(Duration),
    /// Delays what the candidate sends by up to this long. Each connection has a delay of its own, and delivers in order: when
    /// the client has hung up meanwhile, first what it had sent, then the end.
    SlowUp(Duration),
}

/// A chunk under way, and when it arrives. An empty one is the end.
type UnderWay = (Instant, Vec<u8>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    mode: watch::Sender<Mode>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy to `target` on a loopback port; it ends with its connections when it is dropped.
    pub async fn to(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (mode, modes) = watch::channel(Mode::Open);
        let task = AbortOnDropHandle::new(tokio::spawn(accept(listener, target, modes)));
        Ok(Self { addr, mode, _task: task })
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, modes: watch::Receiver<Mode>) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        // An error is the client's, which has gone already, or a passing lack of descriptors.
        match listener.accept().await {
            Ok((near, _)) => drop(connections.spawn(connection(near, target, number, modes.clone()))),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(near: TcpStream, target: SocketAddr, number: u64, modes: watch::Receiver<Mode>) {
    // It is dropped before its end by a reset alone.
    let _ = near.set_zero_linger();
    tokio::select! {
        // First, so that nothing that is lost is carried after all.
        biased;
        () = broken(modes.clone()) => {}
        _ = joined(near, target, number, modes) => {}
    }
}

/// Waits until the line breaks connections.
async fn broken(mut modes: watch::Receiver<Mode>) {
    let broken = modes.wait_for(|mode| matches!(mode, Mode::Cut | Mode::Blackhole)).await.is_ok();
    if broken {
        let _ = modes.wait_for(|mode| *mode != Mode::Blackhole).await;
    }
}

async fn joined(
    near: TcpStream,
    target: SocketAddr,
    number: u64,
    modes: watch::Receiver<Mode>,
) -> io::Result<()> {
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    let up = carry(near_read, far_write, Way::Up, number, modes.clone());
    let down = carry(far_read, near_write, Way::Down, number, modes);
    // What is on its way up arrives also when the client is not there any more for the answer.
    let (up, down) = tokio::join!(up, down);
    up.and(down)
}

/// Carries one direction to its end.
async fn carry(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    way: Way,
    number: u64,
    modes: watch::Receiver<Mode>,
) -> io::Result<()> {
    let (sent, under_way) = mpsc::channel(UNDER_WAY);
    tokio::try_join!(take(from, sent, way, number, modes), deliver(under_way, to)).map(drop)
}

/// Takes what is sent. What the line holds back is one chunk; the rest stays with the sender.
async fn take(
    mut from: OwnedReadHalf,
    sent: mpsc::Sender<UnderWay>,
    way: Way,
    number: u64,
    mut modes: watch::Receiver<Mode>,
) -> io::Result<()> {
    loop {
        let mut chunk = vec![0; 16 * 1024];
        // A reset is an end too: what was sent before it is under way.
        let length = from.read(&mut chunk).await.unwrap_or(0);
        chunk.truncate(length);
        // An error: the proxy has been dropped.
        let mode = *modes.wait_for(|mode| !mode.holds(way)).await.map_err(io::Error::other)?;
        if let Mode::Delay(delay) = mode {
            sleep(delay).await;
        }
        let arrives = Instant::now() + mode.latency(way, number);
        if sent.send((arrives, chunk)).await.is_err() || length == 0 {
            return Ok(());
        }
    }
}

/// Delivers each chunk when it is due, and none before those that were sent before it.
async fn deliver(mut under_way: mpsc::Receiver<UnderWay>, mut to: OwnedWriteHalf) -> io::Result<()> {
    while let Some((arrives, chunk)) = under_way.recv().await {
        // A timer that is over already still waits for its next tick, up to 1 ms.
        if arrives > Instant::now() {
            sleep_until(arrives).await;
        }
        to.write_all(&chunk).await?;
    }
    to.shutdown().await
}

impl Mode {
    fn holds(self, way: Way) -> bool {
        match self {
            Self::HoldUp => way == Way::Up,
            Self::HoldDown => way == Way::Down,
            Self::Blackhole => true,
            Self::Open | Self::Cut | Self::Delay(_) | Self::SlowUp(_) => false,
        }
    }

    /// How long a chunk of the connection of this number is under way.
    fn latency(self, way: Way, number: u64) -> Duration {
        match self {
            Self::SlowUp(most) if way == Way::Up => {
                let least = LEAST_LATENCY.min(most);
                // The same script draws the same delays again, and short ones more often: so that now and then a release
                // overtakes the writes before it.
                let seed = u64::from(most.subsec_nanos()).wrapping_add(number);
                least + most.saturating_sub(least).mul_f64(Rng::with_seed(seed).f64().powi(2))
            }
            _ => Duration::ZERO,
        }
    }
}
