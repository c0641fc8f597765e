//! One connection of a caller, from the first request to its end, including an upgrade.
//!
//! A caller that ends its sending side has gone away, as for the API server itself. Then its request ends, too.

use crate::{exchange::Exchange, failure::chain, hang_up::HangUp, proxy::Proxy, serve::Stop};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};
use tokio::net::TcpStream;

/// The longest request line and headers. A longer request gets 431.
const LONGEST_HEAD: usize = 64 * 1024;
/// How long the head of the next request may take to come, idle time included. It is longer than clients keep idle
/// connections (90 s in Go and Rust), so that the client closes first and no request is lost.
const IDLE: Duration = Duration::from_secs(120);

/// Serves until the caller or a stop ends it.
pub(crate) async fn serve(stream: TcpStream, proxy: Arc<Proxy>, mut stop: Stop) {
    // Without this option, small answers wait for acknowledgements. A socket that refuses it works too.
    let _ = stream.set_nodelay(true);
    let hang_up = match HangUp::of(&stream) {
        Ok(hang_up) => hang_up,
        Err(error) => return tracing::debug!("a connection failed: {error}"),
    };
    let exchange = Exchange::new(proxy.upstream.clone());
    let handle = service_fn(async |request: http::Request<Incoming>| {
        exchange.arrive();
        Ok::<_, Infallible>(proxy.handle(&exchange, request).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), handle)
        .with_upgrades();
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = hang_up.seen() => return,
        () = stop.told() => {
            if exchange.ends_by_itself() {
                connection.as_mut().graceful_shutdown();
                // From here on the connection no longer delays the release of the lease.
                drop(stop);
                tokio::select! {
                    biased;
                    () = proxy.cut_off.cancelled() => {
                        exchange.cut_off();
                        let _ = connection.await;
                    }
                    _ = connection.as_mut() => {}
                    () = hang_up.seen() => {}
                }
            }
            return;
        }
    };
    if let Err(error) = served {
        // Its tunnel, if any, would wait for the caller for ever.
        return tracing::debug!("a connection failed: {}", chain(&error));
    }
    if let Some(tunnel) = exchange.tunnel() {
        tokio::select! {
            () = tunnel.run() => {}
            () = stop.told() => {}
        }
    }
}
