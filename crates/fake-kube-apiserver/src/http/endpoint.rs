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

/// Connections beyond this number wait in the listener's queue.
const MAX_CONNECTIONS: usize = 1024;

/// How long to wait after a failed accept, for example when there are no file descriptors left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// A port on which the server answers. Dropping it closes the port and its connections.
#[derive(Debug)]
pub struct Endpoint {
    addr: SocketAddr,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

/// `true` pauses, `false` resumes. The sender receives the answer when that is done.
type Command = (bool, oneshot::Sender<()>);

impl ApiServer {
    /// Listens on a free port of 127.0.0.1. One server may have several endpoints.
    ///
    /// # Errors
    /// The operating system gives no port.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled.
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
    /// Returns the address and port.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Makes a client configuration for this endpoint. Its token is the name of the user, its namespace is
    /// `default`.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn config(&self, user: &str) -> kube_client::Config {
        // An address with a port is always a URI, so the default is never used.
        let uri = self.uri().parse().unwrap_or_default();
        let mut config = kube_client::Config::new(uri);
        config.auth_info.token = Some(user.into());
        config
    }

    /// Closes all connections, and each new connection at once, until [`Endpoint::resume`]: an outage of the
    /// API. All connections are closed when the future completes.
    ///
    /// # Cancel safety
    /// If the future is dropped earlier, the pause may or may not begin.
    pub async fn pause(&self) {
        self.command(true).await;
    }

    /// Answers again on the same port after [`Endpoint::pause`].
    pub async fn resume(&self) {
        self.command(false).await;
    }

    /// Closes the port and all connections. They are closed when the future completes.
    pub async fn shutdown(mut self) {
        self.pause().await;
        self.task.abort();
        // The only error is that the task was aborted.
        let _ = (&mut self.task).await;
    }

    async fn command(&self, pause: bool) {
        let (done, answer) = oneshot::channel();
        if self.commands.send((pause, done)).await.is_ok() {
            // An error means that the runtime shuts down, and the connections with it.
            let _ = answer.await;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections until it is dropped. Its connections end with it.
async fn accept(listener: TcpListener, service: ApiService, mut commands: mpsc::Receiver<Command>) {
    let mut connections = JoinSet::new();
    let mut paused = false;
    loop {
        tokio::select! {
            // Commands first, so that no connection is accepted after a pause.
            biased;
            Some((pause, done)) = commands.recv() => {
                paused = pause;
                if paused {
                    connections.shutdown().await;
                }
                // The caller may have dropped its future.
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

/// Serves one connection. An error of the service or of the client closes the socket.
async fn connection(stream: TcpStream, service: ApiService) {
    // Without this, small answers wait for acknowledgements. A socket that refuses it works too.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = service.clone().call(request);
        async { answer.await.map_err(io::Error::other) }
    });
    // The client or a fault caused the error, so the test already knows.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
