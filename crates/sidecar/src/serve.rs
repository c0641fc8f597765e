//! Accepts connections and owns their tasks.

use crate::failure::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{convert::Infallible, io, net::SocketAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

/// The pause after a failed accept, for example when descriptors are used up.
const BACKOFF: Duration = Duration::from_millis(10);
/// Enough for any application beside it.
const MOST: usize = 4096;
/// Connections that wait to be accepted, as far as the kernel allows (net.core.somaxconn).
const QUEUE: u32 = 4096;
/// Descriptors of one connection: two of the caller's socket, and a connection to the API server.
const EACH: u64 = 3;
/// Descriptors for the election, files, and connections that are being closed.
const RESERVED: u64 = 64;

/// The connections of callers. Dropping this ends them.
pub(crate) struct Connections {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

/// Tells a connection to stop. [`Connections::end`] waits until every owner of one has dropped it.
pub(crate) struct Stop(watch::Receiver<bool>);

/// Reads an address to listen on. A client of this port has the permissions of this process, so only clients on this machine (or in the pod) may
/// reach it.
pub(crate) fn loopback(given: &str) -> Result<SocketAddr, String> {
    let problem = match given.parse::<SocketAddr>() {
        Ok(addr) if addr.ip().is_loopback() => return Ok(addr),
        Ok(addr) => format!("other machines could reach {} and use this process's permissions", addr.ip()),
        Err(error) => error.to_string(),
    };
    Err(format!("{problem}; allowed: a loopback address and a port, such as 127.0.0.1:8001 or [::1]:8001"))
}

/// Takes a port. A burst of connections waits in the kernel's queue, which tokio makes 128 long by itself: the kernel drops
/// what does not fit, and the caller tries again after a second.
pub(crate) fn bind(addr: SocketAddr) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As tokio does: a new process may take the port of the one before.
        socket.set_reuseaddr(true)?;
        socket.bind(addr)?;
        socket.listen(QUEUE)
    };
    Ok(listen().map_err(|error: io::Error| format!("cannot listen on {addr}: {error}"))?)
}

/// The next connection. Cancel-safe.
pub(crate) async fn accept(listener: &TcpListener) -> TcpStream {
    let mut is_told = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Once: it may last, and there is another try each `BACKOFF`.
            Err(error) if !is_told => tracing::warn!("cannot accept a connection: {error}"),
            Err(_) => {}
        }
        is_told = true;
        sleep(BACKOFF).await;
    }
}

// === impl Connections ===

impl Connections {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), stop: watch::Sender::new(false) }
    }

    /// Accepts connections for ever. Beyond the limit, new ones wait in the listener's queue until one ends. Cancel-safe.
    /// `others` are the descriptors that other listeners may need.
    pub(crate) async fn accept<F>(
        &mut self,
        listener: &TcpListener,
        others: usize,
        serve: impl Fn(TcpStream, Stop) -> F,
    ) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let most = limit(others as u64);
        loop {
            tokio::select! {
                Some(_) = self.tasks.join_next() => {}
                stream = accept(listener), if self.tasks.len() < most => {
                    self.tasks.spawn(serve(stream, Stop(self.stop.subscribe())));
                    if self.tasks.len() == most {
                        tracing::warn!(
                            connections = most,
                            "connection limit reached: new connections wait until one ends"
                        );
                    }
                }
            }
        }
    }

    /// Ends the connections that would never end by themselves, and lets the others finish their current request.
    /// When it returns, the former have ended.
    pub(crate) async fn end(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }

    /// Waits until the last answer has been delivered and all connections have ended, at most `bound`.
    pub(crate) async fn finish(&mut self, bound: Duration) {
        let _ = timeout(bound, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

/// How many connections may be open at once, so that the election always has descriptors of its own.
fn limit(others: u64) -> usize {
    let limit = getrlimit(Resource::Nofile);
    // The soft limit is there for programs that use select(2).
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let room =
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(RESERVED + others) / EACH;
    usize::try_from(room).unwrap_or(MOST).clamp(1, MOST)
}

// === impl Stop ===

impl Stop {
    pub(crate) async fn told(&mut self) {
        // An error says that the owner has gone, and its tasks with it.
        let _ = self.0.wait_for(|told| *told).await;
    }
}
