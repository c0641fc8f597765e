//! The parts of lines: TCP to a real server, and pipes in memory to the in-process one, so that its time can stand
//! still.

use crate::pipe::CAPACITY;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube_leader_gate::testing::{ApiServer, ApiService};
use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};
use tower::Service;

pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

pub type Stream = Box<dyn Bytes>;

/// Where connections come from.
pub enum Listener {
    Port(TcpListener),
    Pipes(mpsc::UnboundedReceiver<DuplexStream>),
}

/// Where they go.
#[derive(Clone)]
pub enum Server {
    Port(SocketAddr),
    InMemory(InMemory),
}

/// The in-process API server at the other end of pipes.
#[derive(Clone)]
pub struct InMemory {
    service: ApiService,
    /// Whether it answers. Each change ends its connections.
    answers: watch::Sender<bool>,
}

// === impl Listener ===

impl Listener {
    pub async fn accept(&mut self) -> Option<Stream> {
        match self {
            Self::Port(listener) => {
                let (stream, _) = listener.accept().await.ok()?;
                Some(Box::new(without_delay(stream)))
            }
            Self::Pipes(pipes) => Some(Box::new(pipes.recv().await?)),
        }
    }
}

fn without_delay(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).expect("no delay");
    stream
}

// === impl Server ===

impl Server {
    pub async fn connect(&self) -> Option<Stream> {
        match self {
            Self::Port(addr) => Some(Box::new(without_delay(TcpStream::connect(addr).await.ok()?))),
            Self::InMemory(server) => Some(Box::new(server.connect()?)),
        }
    }
}

// === impl InMemory ===

impl InMemory {
    pub fn new(server: &ApiServer) -> Self {
        Self { service: server.service(), answers: watch::Sender::new(true) }
    }

    /// Closes all connections, and every new one at once, until the server answers again.
    pub fn answer(&self, answers: bool) {
        self.answers.send_replace(answers);
    }

    fn connect(&self) -> Option<DuplexStream> {
        let mut answers = self.answers.subscribe();
        if !*answers.borrow_and_update() {
            return None;
        }
        let (near, far) = duplex(CAPACITY);
        let service = self.service.clone();
        let service = service_fn(move |request| {
            let answer = service.clone().call(request);
            async { answer.await.map_err(io::Error::other) }
        });
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = answers.changed() => {}
                // The client or a line caused the error.
                _ = http1::Builder::new().serve_connection(TokioIo::new(far), service) => {}
            }
        });
        Some(near)
    }
}
