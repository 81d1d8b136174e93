//! A client's socket under hyper, which hides two things that the relay has to know.
//!
//! That all that was handed out has left: an abort waits for it, since the client must see every byte that came
//! before a break, and hyper drops what it still holds when a body fails. And that the client is gone although
//! nobody reads from it: hyper does not look as long as it has bytes that were sent ahead of their turn, or a body
//! that nobody asks for. Both show when hyper flushes, which it does whenever its task wakes.

use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// The socket of one client.
#[derive(Debug)]
pub(crate) struct ClientSocket {
    stream: TcpStream,
    flushed: Arc<Notify>,
}

impl ClientSocket {
    /// Notifies `flushed` whenever nothing is left to be sent.
    pub(crate) const fn new(stream: TcpStream, flushed: Arc<Notify>) -> Self {
        Self { stream, flushed }
    }

    /// Whether the client has closed its side; if not, the task is woken when it does.
    fn is_left(&self, cx: &mut Context<'_>) -> bool {
        // The first keeps the waker, the second tells the two kinds of readiness apart.
        self.stream.poll_read_ready(cx).is_ready()
            && match pin!(self.stream.ready(Interest::READABLE)).poll(cx) {
                Poll::Ready(Ok(ready)) => ready.is_read_closed(),
                Poll::Ready(Err(_)) => true,
                Poll::Pending => false,
            }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.flushed.notify_waiters();
        if self.is_left(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
