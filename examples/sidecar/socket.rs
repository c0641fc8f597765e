//! The caller's end of a connection.
//!
//! Only hyper reads it, so no byte is lost. A second owner learns from the kernel that the caller has ended its side,
//! even if there are bytes that hyper does not need yet, such as a second request behind a watch.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready},
    net::TcpStream,
    time::sleep,
};

#[derive(Clone)]
pub struct Socket(Arc<TcpStream>);

/// What the kernel tells of an end. On Linux it can be asked for that alone; elsewhere unread bytes are news too.
#[cfg(target_os = "linux")]
const NEWS: Interest = Interest::PRIORITY.add(Interest::ERROR);
#[cfg(not(target_os = "linux"))]
const NEWS: Interest = Interest::READABLE.add(Interest::ERROR);
/// How long to wait while there are unread bytes.
const PAUSE: Duration = Duration::from_secs(1);

// === impl Socket ===

impl Socket {
    pub fn new(stream: TcpStream) -> Self {
        // Without this option, small answers wait for acknowledgements. A socket that refuses it works too.
        let _ = stream.set_nodelay(true);
        Self(Arc::new(stream))
    }

    /// Waits until the caller has ended its side, or reset the connection. Reads nothing.
    pub async fn end(&self) -> Ready {
        loop {
            let news = self.0.ready(NEWS).await.unwrap_or(Ready::ERROR);
            if news.is_read_closed() || news.is_error() {
                return news;
            }
            sleep(PAUSE).await;
        }
    }
}

/// Tries again when the socket is ready.
fn when_ready<T>(
    mut poll_ready: impl FnMut() -> Poll<io::Result<()>>,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        ready!(poll_ready())?;
        match attempt() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
}

// === impl AsyncRead and AsyncWrite for Socket ===

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        when_ready(|| self.0.poll_read_ready(cx), || self.0.try_read_buf(buffer).map(drop))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        when_ready(|| self.0.poll_write_ready(cx), || self.0.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        when_ready(|| self.0.poll_write_ready(cx), || self.0.try_write_vectored(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Without Unix, the end of the socket is the end of both sides.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        #[cfg(unix)]
        rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write)?;
        Poll::Ready(Ok(()))
    }
}
