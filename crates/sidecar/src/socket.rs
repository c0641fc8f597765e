//! The socket of a caller, for hyper and for a look at the caller's end.

use futures_util::FutureExt;
use std::{
    future::poll_fn,
    io::{IoSlice, Result},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready},
    net::TcpStream,
    time::sleep,
};

/// How long to wait while there are unread bytes. Of these the kernel tells at once, and then no more.
const PAUSE: Duration = Duration::from_secs(1);

/// One socket with two users in one task, so the lock is free. A copy of the descriptor would do too, but the kernel would
/// then report each byte twice.
#[derive(Clone)]
pub(crate) struct Socket(Arc<Mutex<TcpStream>>);

// === impl Socket ===

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Without this option, small answers wait for acknowledgements. A socket that refuses it works too.
        let _ = stream.set_nodelay(true);
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Waits until the caller has ended its side, or reset the connection. Reads nothing: it learns of the end even if
    /// there are bytes that hyper does not need yet, such as a second request behind a watch.
    pub(crate) async fn end(&self) -> Ready {
        const NEWS: Interest = Interest::READABLE.add(Interest::ERROR);
        loop {
            // hyper reads in the same task, so this may share the place of its waker.
            if poll_fn(|cx| self.stream().poll_read_ready(cx)).await.is_err() {
                return Ready::ERROR;
            }
            let news = self.stream().ready(NEWS).now_or_never().unwrap_or(Ok(Ready::EMPTY));
            let news = news.unwrap_or(Ready::ERROR);
            if news.is_read_closed() || news.is_error() {
                return news;
            }
            sleep(PAUSE).await;
        }
    }

    fn stream(&self) -> MutexGuard<'_, TcpStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut *self.stream()).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut *self.stream()).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut *self.stream()).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut *self.stream()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut *self.stream()).poll_shutdown(cx)
    }
}
