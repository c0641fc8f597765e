//! The line between one candidate and the API server, which can be disturbed.

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
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

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
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    mode: watch::Sender<Mode>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// A proxy to `target` on a loopback port; it ends with its connections when it is dropped.
    pub async fn to(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (mode, modes) = watch::channel(Mode::Open);
        Ok(Self { addr, mode, task: tokio::spawn(accept(listener, target, modes)) })
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, modes: watch::Receiver<Mode>) {
    let mut connections = JoinSet::new();
    loop {
        // An error is the client's, which has gone already, or a passing lack of descriptors.
        match listener.accept().await {
            Ok((near, _)) => drop(connections.spawn(connection(near, target, modes.clone()))),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(near: TcpStream, target: SocketAddr, modes: watch::Receiver<Mode>) {
    // It is dropped before its end by a reset alone.
    let _ = near.set_zero_linger();
    tokio::select! {
        // First, so that nothing that is lost is carried after all.
        biased;
        () = broken(modes.clone()) => {}
        _ = joined(near, target, modes) => {}
    }
}

/// Waits until the line breaks connections.
async fn broken(mut modes: watch::Receiver<Mode>) {
    let broken = modes.wait_for(|mode| matches!(mode, Mode::Cut | Mode::Blackhole)).await.is_ok();
    if broken {
        let _ = modes.wait_for(|mode| *mode != Mode::Blackhole).await;
    }
}

async fn joined(near: TcpStream, target: SocketAddr, modes: watch::Receiver<Mode>) -> io::Result<()> {
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    let up = carry(near_read, far_write, Way::Up, modes.clone());
    let down = carry(far_read, near_write, Way::Down, modes);
    tokio::try_join!(up, down).map(drop)
}

/// Carries one direction to its end. What waits is one chunk; the rest stays with the sender.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: Way,
    mut modes: watch::Receiver<Mode>,
) -> io::Result<()> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut chunk).await?;
        // An error: the proxy has been dropped.
        let mode = *modes.wait_for(|mode| !mode.holds(way)).await.map_err(io::Error::other)?;
        if let Mode::Delay(delay) = mode {
            sleep(delay).await;
        }
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&chunk[..length]).await?;
    }
}

impl Mode {
    fn holds(self, way: Way) -> bool {
        match self {
            Self::HoldUp => way == Way::Up,
            Self::HoldDown => way == Way::Down,
            Self::Blackhole => true,
            Self::Open | Self::Cut | Self::Delay(_) => false,
        }
    }
}
