//! A connection from one client to the API server that a test can disturb as a network would.

use crate::wire::{Listener, Server, Stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    task::JoinSet,
};

/// A proxy in front of the server. Dropping it closes its connections.
pub struct Line {
    rules: watch::Sender<Rules>,
    _tasks: JoinSet<()>,
}

/// The state of connections, which are numbered in the order in which they came.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// All connections are closed, and no new one is accepted.
    cut: bool,
    /// No data passes in either direction.
    held: bool,
    /// The number of connections so far.
    made: u64,
    /// Connections with lower numbers are closed.
    closed: u64,
    /// Connections with lower numbers stay open and silent.
    dead: u64,
}

enum Fate {
    Carried,
    Silent,
    Closed,
}

// === impl Line ===

impl Line {
    /// From the clients of `listener` to the server.
    pub fn new(listener: Listener, server: Server) -> Self {
        let rules = watch::Sender::new(Rules::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, rules.clone()));
        Self { rules, _tasks: tasks }
    }

    /// Closes connections and accepts none, until [`Self::mend`].
    pub fn cut(&self) {
        self.rules.send_modify(|rules| rules.cut = true);
    }

    /// Keeps connections open without passing data, until [`Self::mend`]: then all data passes.
    pub fn hold(&self) {
        self.rules.send_modify(|rules| rules.held = true);
    }

    pub fn mend(&self) {
        self.rules.send_modify(|rules| (rules.cut, rules.held) = (false, false));
    }

    /// Closes the open connections. New ones work.
    pub fn reset(&self) {
        self.rules.send_modify(|rules| rules.closed = rules.made);
    }

    /// Makes the open connections dead, as when a load balancer forgets them. New ones work.
    pub fn forget(&self) {
        self.rules.send_modify(|rules| rules.dead = rules.made);
    }
}

// === impl Rules ===

impl Rules {
    fn fate(&self, number: u64) -> Fate {
        if self.cut || number < self.closed {
            Fate::Closed
        } else if self.held || number < self.dead {
            Fate::Silent
        } else {
            Fate::Carried
        }
    }
}

/// Serves until it is dropped. Its connections end with it.
async fn accept(mut listener: Listener, server: Server, rules: watch::Sender<Rules>) {
    let mut connections = JoinSet::new();
    while let Some(client) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let number = rules.borrow().made;
        rules.send_modify(|rules| rules.made += 1);
        connections.spawn(connection(client, server.clone(), number, rules.subscribe()));
    }
}

async fn connection(mut client: Stream, server: Server, number: u64, mut rules: watch::Receiver<Rules>) {
    let Some(mut server) = server.connect().await else { return };
    let (mut up, mut down) = (vec![0; 1 << 14], vec![0; 1 << 14]);
    loop {
        let fate = rules.borrow_and_update().fate(number);
        let carried = match fate {
            Fate::Closed => return,
            Fate::Silent if rules.changed().await.is_err() => return,
            Fate::Silent => continue,
            Fate::Carried => tokio::select! {
                biased;
                changed = rules.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                read = client.read(&mut up) => match read {
                    Ok(read @ 1..) => server.write_all(&up[..read]).await,
                    _ => return,
                },
                read = server.read(&mut down) => match read {
                    Ok(read @ 1..) => client.write_all(&down[..read]).await,
                    _ => return,
                },
            },
        };
        if carried.is_err() {
            return;
        }
    }
}
