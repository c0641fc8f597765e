//! One connection of a caller, from the first request to its end, including an upgrade.
//!
//! A caller may end its sending side after a request and still wait for the answer. A caller that has gone away looks the
//! same: in both cases there is nothing more to read. So a plain read is answered all the same. What never ends by
//! itself (a watch), or changes something and has no answer yet, ends with the caller.

use crate::{exchange::Exchange, failure::chain, proxy::Proxy, serve::Stop, socket::Socket};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::{io::Ready, net::TcpStream};

/// The longest request line and headers. A longer request gets 431.
const LONGEST_HEAD: usize = 64 * 1024;
/// How long the head of the next request may take to come, idle time included. It is longer than clients keep idle
/// connections (90 s in Go and Rust), so that the client closes first and no request is lost.
const IDLE: Duration = Duration::from_secs(120);

/// Serves until the caller or a stop ends it.
pub(crate) async fn serve(stream: TcpStream, proxy: Arc<Proxy>, mut stop: Stop) {
    let socket = Socket::new(stream);
    let exchange = Exchange::new(proxy.upstream.clone());
    let handle = service_fn(|request: http::Request<Incoming>| {
        // At once: the caller's end may be looked for before hyper asks for the answer.
        exchange.arrive(request.body().is_end_stream());
        async { Ok::<_, Infallible>(proxy.handle(&exchange, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_header_size(LONGEST_HEAD)
        .max_buf_size(LONGEST_HEAD)
        .half_close(true)
        .serve_connection(TokioIo::new(socket.clone()), handle)
        .with_upgrades();
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = until_gone(connection.as_mut(), &socket, &exchange) => served,
        () = stop.told() => {
            if exchange.ends_by_itself() {
                connection.as_mut().graceful_shutdown();
                // From here on the connection no longer delays the release of the lease.
                drop(stop);
                tokio::select! {
                    biased;
                    () = proxy.cut_off.cancelled() => {
                        exchange.cut_off();
                        let _ = until_gone(connection, &socket, &exchange).await;
                    }
                    _ = until_gone(connection.as_mut(), &socket, &exchange) => {}
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

/// Serves until the end, or until the caller has gone and what it waits for ends with it.
async fn until_gone(
    mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    socket: &Socket,
    exchange: &Exchange,
) -> hyper::Result<()> {
    let (mut end, mut seen) = (pin!(socket.end()), Ready::EMPTY);
    poll_fn(|cx| {
        let served = connection.as_mut().poll(cx);
        if seen.is_empty()
            && let Poll::Ready(end) = end.as_mut().poll(cx)
        {
            seen = end;
        }
        let is_gone = seen.is_error() || !seen.is_empty() && exchange.ends_with_its_caller();
        if served.is_pending() && is_gone {
            tracing::debug!("the caller has gone before the end of its answer");
            return Poll::Ready(Ok(()));
        }
        served
    })
    .await
}
