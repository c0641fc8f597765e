//! hyper takes [`Health`] as it is: it is a hyper service.

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use kube_leader_gate::health::Health;
use std::io;
use tokio::net::TcpListener;

/// Serves the probes on a port of their own.
///
/// # Errors
/// The error of a listener that takes no more connections.
pub async fn serve(listener: TcpListener, health: Health) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), health.clone()));
    }
}
