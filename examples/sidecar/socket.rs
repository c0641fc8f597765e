//! The caller's end of a connection.
//!
//! A caller may end its sending side after a request and still wait for the answer. A caller that has gone away looks the
//! same: in both cases there is nothing more to read. While a plain read is answered, this socket hides the end from
//! hyper, which would drop the request. What never ends by itself (a watch) or changes something ends with the caller.
//!
//! hyper does not wait for that end while it has bytes that it does not need yet, such as a second request behind a
//! watch. Then [`Listener`] looks for it.

use crate::exchange::Exchange;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

pub struct Socket {
    shared: Arc<Mutex<Shared>>,
    exchange: Exchange,
}

/// Waits for the caller's end when hyper does not.
pub struct Listener {
    shared: Arc<Mutex<Shared>>,
    exchange: Exchange,
}

struct Shared {
    stream: TcpStream,
    /// Since the listener last asked, hyper has looked at the socket and found nothing. Then the next byte or the end
    /// wakes it. Nothing wakes it if it has found bytes and stops there.
    waits: bool,
}

// === impl Socket ===

impl Socket {
    pub fn new(stream: TcpStream, exchange: Exchange) -> (Self, Listener) {
        // Without this option, small answers wait for acknowledgements. A socket that refuses it works too.
        let _ = stream.set_nodelay(true);
        let shared = Arc::new(Mutex::new(Shared { stream, waits: false }));
        let listener = Listener { shared: shared.clone(), exchange: exchange.clone() };
        (Self { shared, exchange }, listener)
    }
}

// === impl Listener ===

impl Listener {
    /// Forgets what hyper has done so far.
    pub fn begin(&self) {
        lock(&self.shared).waits = false;
    }

    /// Ready if the caller has ended its side while a read without an end is answered, and hyper has not come to wait for
    /// that end since [`begin`](Self::begin). Drops the bytes that come before that end. After that the connection must
    /// serve no further request: the exchange knows.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = lock(&self.shared);
        if shared.waits || !self.exchange.answers_an_endless_read() {
            return Poll::Pending;
        }
        let mut dropped = [0; 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut dropped);
            let read = ready!(Pin::new(&mut shared.stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
            if self.exchange.end_with_this() {
                cx.waker().wake_by_ref();
            }
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl AsyncRead and AsyncWrite for Socket ===

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let mut shared = lock(&self.shared);
        let read = Pin::new(&mut shared.stream).poll_read(cx, buffer);
        shared.waits = read.is_pending();
        ready!(read)?;
        let has_ended = buffer.filled().len() == before && buffer.remaining() > 0;
        if has_ended && self.exchange.answers_a_read() {
            // The exchange tells the connection that this request is the last one.
            if self.exchange.end_with_this() {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut lock(&self.shared).stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut lock(&self.shared).stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        lock(&self.shared).stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.shared).stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.shared).stream).poll_shutdown(cx)
    }
}
