//! The caller's end of a connection.
//!
//! A caller may end its sending side after a request and still wait for the answer. A caller that has gone away looks the
//! same: in both cases there is nothing more to read. While a plain read is answered, this socket hides the end from
//! hyper, which would drop the request. What never ends by itself (a watch) or changes something ends with the caller.

use crate::exchange::Exchange;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

pub struct Socket {
    stream: TcpStream,
    exchange: Exchange,
}

// === impl Socket ===

impl Socket {
    pub fn new(stream: TcpStream, exchange: Exchange) -> Self {
        // Without this option, small answers wait for acknowledgements. A socket that refuses it works too.
        let _ = stream.set_nodelay(true);
        Self { stream, exchange }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
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
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
