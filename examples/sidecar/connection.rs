//! One connection of a caller, from the first request to its end, including an upgrade.

use crate::{exchange::Exchange, proxy::Proxy, serve::Stop, socket::Socket};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};
use tokio::net::TcpStream;

/// The longest request line and headers. A longer request gets 431.
const LONGEST_HEAD: usize = 64 * 1024;
/// How long the head of the next request may take to come, idle time included. It is longer than clients keep idle
/// connections (90 s in Go and Rust), so that the client closes first and no request is lost.
const IDLE: Duration = Duration::from_secs(120);

/// Serves until the caller or a stop ends it.
pub async fn serve(stream: TcpStream, proxy: Arc<Proxy>, mut stop: Stop) {
    let exchange = Exchange::default();
    let handle = service_fn(|request: http::Request<Incoming>| {
        // At once: hyper may look for the end of the caller's side before it asks for the answer.
        exchange.arrive(request.body().is_end_stream());
        let (proxy, exchange) = (proxy.clone(), exchange.clone());
        async move { Ok::<_, Infallible>(proxy.handle(&exchange, request).await) }
    });
    let (socket, listener) = Socket::new(stream, exchange.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(socket), handle)
        .with_upgrades();
    let mut connection = pin!(connection);
    let mut served = pin!(poll_fn(|cx| {
        if exchange.take_end() {
            connection.as_mut().graceful_shutdown();
        }
        listener.begin();
        let served = connection.as_mut().poll(cx);
        if served.is_pending() && listener.poll_gone(cx).is_ready() {
            tracing::debug!("the caller of an endless read has gone");
            return Poll::Ready(Ok(()));
        }
        served
    }));
    tokio::select! {
        served = served.as_mut() => {
            // Taken in any case: what is left there would keep the socket, which keeps the exchange.
            let tunnel = exchange.tunnel();
            match (served, tunnel) {
                // The tunnel of a failed connection would wait for its caller for ever.
                (Err(error), _) => tracing::debug!("a connection failed: {}", crate::chain(&error)),
                (Ok(()), Some(tunnel)) => tokio::select! {
                    () = tunnel.run() => {}
                    () = stop.told() => {}
                },
                (Ok(()), None) => {}
            }
        }
        () = stop.told() => {
            if exchange.ends_by_itself() {
                exchange.end_with_this();
                // From here on the connection no longer delays the release of the lease.
                drop(stop);
                let _ = served.await;
                // An upgrade that was granted meanwhile.
                drop(exchange.tunnel());
            }
        }
    }
}
