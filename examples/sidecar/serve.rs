//! Accepts connections and owns their tasks.

use crate::Failure;
use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

/// The pause after a failed accept, for example when descriptors are used up.
const BACKOFF: Duration = Duration::from_millis(10);

/// The connections of one port. Dropping this ends them.
pub struct Connections {
    most: usize,
    when_full: WhenFull,
    tasks: JoinSet<()>,
    /// Oldest first, if the oldest makes room for a new one.
    oldest_first: VecDeque<AbortHandle>,
    stop: watch::Sender<bool>,
}

/// What happens when the limit of connections is reached.
#[derive(Clone, Copy, PartialEq)]
pub enum WhenFull {
    /// New ones wait in the listener's queue until one ends.
    Wait,
    /// The oldest is closed.
    CloseOldest,
}

/// Tells a connection to stop. [`Connections::end`] waits until every owner of one has dropped it.
pub struct Stop(watch::Receiver<bool>);

pub async fn bind(addr: SocketAddr) -> Result<TcpListener, Failure> {
    Ok(TcpListener::bind(addr).await.map_err(|error| format!("cannot listen on {addr}: {error}"))?)
}

// === impl Connections ===

impl Connections {
    pub fn new(most: usize, when_full: WhenFull) -> Self {
        let stop = watch::Sender::new(false);
        Self { most, when_full, tasks: JoinSet::new(), oldest_first: VecDeque::new(), stop }
    }

    /// Accepts connections for ever. Cancel-safe.
    pub async fn accept<F>(
        &mut self,
        listener: &TcpListener,
        serve: impl Fn(TcpStream, Stop) -> F,
    ) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            tokio::select! {
                Some(_) = self.tasks.join_next() => {}
                accepted = listener.accept(), if self.tasks.len() < self.most => match accepted {
                    Ok((stream, _)) => {
                        let task = self.tasks.spawn(serve(stream, Stop(self.stop.subscribe())));
                        self.make_room(task);
                    }
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        sleep(BACKOFF).await;
                    }
                },
            }
        }
    }

    /// The newest connection may have taken the last free place.
    fn make_room(&mut self, newest: AbortHandle) {
        let is_full = self.tasks.len() == self.most;
        match self.when_full {
            WhenFull::Wait if is_full => {
                tracing::warn!(
                    connections = self.most,
                    "connection limit reached: new connections wait until one ends"
                );
            }
            WhenFull::Wait => {}
            WhenFull::CloseOldest => {
                self.oldest_first.retain(|task| !task.is_finished());
                self.oldest_first.push_back(newest);
                if is_full && let Some(oldest) = self.oldest_first.pop_front() {
                    oldest.abort();
                }
            }
        }
    }

    /// Ends the connections that would never end by themselves, and lets the others finish their current request.
    /// When it returns, the former have ended.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }

    /// Waits until the last answer has been delivered and all connections have ended, at most `bound`.
    pub async fn finish(&mut self, bound: Duration) {
        let _ = timeout(bound, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

// === impl Stop ===

impl Stop {
    pub async fn told(&mut self) {
        // An error says that the owner has gone, and its tasks with it.
        let _ = self.0.wait_for(|told| *told).await;
    }
}
