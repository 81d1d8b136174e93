//! A client's socket under hyper, which hides four things that the relay has to know.
//!
//! That the client has stopped to read what waits for it: hyper would wait for ever. That all that was handed out has left: an abort waits for it,
//! since the client must see every byte that came before a break, and hyper drops what it still holds when a body
//! fails. And that the client is gone although nobody reads from it: hyper does not look as long as it has bytes that
//! were sent ahead of their turn, or a body that nobody asks for. The last two show when hyper flushes, which it does
//! whenever its task wakes.

use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::clock::IdleLimit;

/// How often it is looked whether a client is still there that has sent more than is read by now: of what comes behind
/// that, its end too, the socket wakes nobody.
const LOOK: Duration = Duration::from_millis(100);

/// The socket of one client.
#[derive(Debug)]
pub(crate) struct ClientSocket {
    stream: TcpStream,
    signs: Signs,
    /// How long the client may leave unread what waits for it.
    stall: Duration,
    /// Runs while it does.
    unread: Option<IdleLimit>,
    /// Runs while the client has sent more than is read.
    look: Option<IdleLimit>,
}

/// What a socket tells besides its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signs {
    /// Notified whenever nothing is left to be sent.
    pub(crate) flushed: Arc<Notify>,
    /// Whether it is clear by the first bytes which protocol is spoken; whoever reads them sets it.
    pub(crate) begun: Arc<AtomicBool>,
    /// Whether something waits for the client to read.
    pub(crate) unread: Arc<AtomicBool>,
    /// Set by whoever wants the connection reset rather than closed: to a client of HTTP/1.0, which may be told no
    /// length, a closed connection is a whole answer.
    pub(crate) reset: Arc<AtomicBool>,
}

impl ClientSocket {
    /// A client that leaves unread what waits for it is cut after `stall`.
    pub(crate) fn new(stream: TcpStream, stall: Duration) -> (Self, Signs) {
        let signs = Signs::default();
        (Self { stream, signs: signs.clone(), stall, unread: None, look: None }, signs)
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.signs.unread.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.unread = None;
            return written;
        }
        let stall = self.stall;
        let unread = self.unread.get_or_insert_with(|| IdleLimit::new(stall));
        unread.poll_passed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Whether the client has closed its side; if not, the task is woken when it does, or looks again.
    fn is_left(&mut self, cx: &mut Context<'_>) -> bool {
        // The first keeps the waker, the second tells the two kinds of readiness apart.
        if self.stream.poll_read_ready(cx).is_pending() {
            self.look = None;
            return false;
        }
        let is_closed = match pin!(self.stream.ready(Interest::READABLE)).poll(cx) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if !is_closed {
            self.look_again(cx);
        }
        is_closed
    }

    /// What is ready keeps no waker, so a timer has to.
    fn look_again(&mut self, cx: &mut Context<'_>) {
        let look = self.look.get_or_insert_with(|| IdleLimit::new(LOOK));
        while look.poll_passed(cx).is_ready() {
            look.restart();
        }
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if self.signs.reset.load(Ordering::Relaxed) {
            // Where the system cannot, it closes.
            let _unsupported = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
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
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.signs.flushed.notify_waiters();
        if self.is_left(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
