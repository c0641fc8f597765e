//! The server over real HTTP/1.1 on a loopback port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tower_service::Service;

use crate::http::service::ApiService;
use crate::server::ApiServer;

/// More connections than this wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;

/// How long to wait after a failed accept, such as for want of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// A port on which the server answers. Dropping it stops listening and closes its connections.
#[derive(Debug)]
pub struct Endpoint {
    addr: SocketAddr,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

/// `true` pauses; the answer says that it has been done.
type Command = (bool, oneshot::Sender<()>);

impl ApiServer {
    /// Listens on a free port of 127.0.0.1. One server may have several endpoints.
    ///
    /// # Errors
    /// When no port can be bound.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O.
    pub async fn serve(&self) -> io::Result<Endpoint> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (commands, receiver) = mpsc::channel(1);
        let task = tokio::spawn(accept(listener, self.service(), receiver));
        Ok(Endpoint { addr, commands, task })
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// The address and port.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// A client configuration for this endpoint, with the user's name as its token and `default` as its
    /// namespace.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn config(&self, user: &str) -> kube_client::Config {
        // An address with a port is always a URI; `/` is one too.
        let uri = self.uri().parse().unwrap_or_default();
        let mut config = kube_client::Config::new(uri);
        config.auth_info.token = Some(user.into());
        config
    }

    /// Closes all connections, and every new one at once, until [`Endpoint::resume`]: an outage of the API.
    /// Done when it returns; dropped before that, it may or may not happen.
    pub async fn pause(&self) {
        self.command(true).await;
    }

    /// Answers again after a [`Endpoint::pause`], on the same port.
    pub async fn resume(&self) {
        self.command(false).await;
    }

    /// Stops listening and closes all connections; they are closed when it returns.
    pub async fn shutdown(mut self) {
        self.pause().await;
        self.task.abort();
        // The error says that the task was aborted.
        let _ = (&mut self.task).await;
    }

    async fn command(&self, pause: bool) {
        let (done, answer) = oneshot::channel();
        if self.commands.send((pause, done)).await.is_ok() {
            // An error means that the runtime is going down, and the connections with it.
            let _ = answer.await;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts until it is dropped; the connections are its own and end with it.
async fn accept(listener: TcpListener, service: ApiService, mut commands: mpsc::Receiver<Command>) {
    let mut connections = JoinSet::new();
    let mut paused = false;
    loop {
        tokio::select! {
            // First, so that a pause cannot be overtaken by what it shuts out.
            biased;
            Some((pause, done)) = commands.recv() => {
                paused = pause;
                if paused {
                    connections.shutdown().await;
                }
                // Nobody may be waiting any more.
                let _ = done.send(());
            }
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) if !paused => {
                    connections.spawn(connection(stream, service.clone()));
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_BACKOFF).await,
            },
        }
    }
}

/// Serves one connection. An error of the service, or of the client, closes the socket.
async fn connection(stream: TcpStream, service: ApiService) {
    // Without it, small answers wait for acknowledgements; a socket that refuses it works all the same.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = service.clone().call(request);
        async { answer.await.map_err(io::Error::other) }
    });
    // The error has been the client's or a fault's doing; there is nobody to tell.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
