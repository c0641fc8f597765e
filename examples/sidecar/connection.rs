//! One connection of a caller, from the first request to the end of what an upgrade made of it.

use crate::{proxy::Proxy, serve::Stop, tunnel::Tunnel};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::net::TcpStream;

/// Line and headers of a request; what is longer gets 431.
const LONGEST_HEAD: usize = 64 * 1024;
/// How long the head of the next request may take to come, idle time included. Longer than clients keep idle connections
/// (90 s in Go and Rust), so that it is the client that closes first and no request is lost.
const IDLE: Duration = Duration::from_secs(120);

/// What is going on in a connection: one request at a time.
#[derive(Clone, Default)]
pub struct Exchange(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Its present request comes to an end by itself: a stop waits for the answer.
    ends_by_itself: bool,
    tunnel: Option<Tunnel>,
}

/// Serves until the caller or a stop ends it.
pub async fn serve(stream: TcpStream, proxy: Arc<Proxy>, mut stop: Stop) {
    // Without it, small answers wait for acknowledgements; a socket that refuses it works all the same.
    let _ = stream.set_nodelay(true);
    let exchange = Exchange::default();
    let handle = service_fn(|request| {
        let (proxy, exchange) = (proxy.clone(), exchange.clone());
        async move { Ok::<_, Infallible>(proxy.handle(&exchange, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), handle)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        served = connection.as_mut() => {
            if let Err(error) = served {
                tracing::debug!("a connection failed: {}", crate::chain(&error));
            }
            if let Some(tunnel) = exchange.tunnel() {
                tokio::select! {
                    () = tunnel.run() => {}
                    () = stop.told() => {}
                }
            }
        }
        () = stop.told() => {
            if exchange.state().ends_by_itself {
                connection.as_mut().graceful_shutdown();
                // From here on it holds up nobody's lease.
                drop(stop);
                let _ = connection.await;
            }
        }
    }
}

// === impl Exchange ===

impl Exchange {
    /// A request has come in.
    pub fn begin(&self, endless: bool) {
        self.state().ends_by_itself = !endless;
    }

    /// The answer to the present request switches protocols.
    pub fn switch(&self, tunnel: Tunnel) {
        self.state().tunnel = Some(tunnel);
    }

    fn tunnel(&self) -> Option<Tunnel> {
        self.state().tunnel.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
