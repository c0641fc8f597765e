//! A connection between one candidate and the API server that can be disturbed.

use fastrand::Rng;
use rustix::net::sockopt::set_socket_linger;
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
    /// The line carries nothing. All bytes are lost, and connections are reset when the fault ends.
    Blackhole,
    /// The candidate's bytes wait until the fault ends and are then delivered, as TCP does after a partition. This
    /// includes the bytes of a client that has disconnected meanwhile.
    HoldUp,
    /// The same for the server's answers.
    HoldDown,
    /// Each chunk waits this long.
    Delay(Duration),
    /// Delays what the candidate sends by up to this time. Each connection has its own delay and delivers in order:
    /// if the client has disconnected meanwhile, first its bytes, then the end.
    SlowUp(Duration),
}

/// A chunk under way, and the time of its arrival. An empty chunk is the end.
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
        // The client caused the error and has gone already, or descriptors are short for a moment.
        match listener.accept().await {
            Ok((near, _)) => drop(connections.spawn(connection(near, target, number, modes.clone()))),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(near: TcpStream, target: SocketAddr, number: u64, modes: watch::Receiver<Mode>) {
    // Only a reset drops it before its end.
    let _ = set_socket_linger(&near, Some(Duration::ZERO));
    tokio::select! {
        // First, so that no byte that must be lost is carried.
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
    // The bytes on their way up arrive even if the client no longer waits for the answer.
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

/// Reads the sender's bytes. The line holds one chunk back, and the rest stays with the sender.
async fn take(
    mut from: OwnedReadHalf,
    sent: mpsc::Sender<UnderWay>,
    way: Way,
    number: u64,
    mut modes: watch::Receiver<Mode>,
) -> io::Result<()> {
    loop {
        let mut chunk = vec![0; 16 * 1024];
        // A reset is an end too: the bytes that were sent before it are under way.
        let length = from.read(&mut chunk).await.unwrap_or(0);
        chunk.truncate(length);
        // An error says that the proxy has been dropped.
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

/// Delivers each chunk when it is due, and in order.
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
                // The same script draws the same delays again, and short ones more often, so that sometimes a release
                // overtakes the writes before it.
                let seed = u64::from(most.subsec_nanos()).wrapping_add(number);
                least + most.saturating_sub(least).mul_f64(Rng::with_seed(seed).f64().powi(2))
            }
            _ => Duration::ZERO,
        }
    }
}
