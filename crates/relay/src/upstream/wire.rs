//! What crosses a connection, counted: the evidence for what a failed send left behind.
//!
//! ```text
//! hyper
//!   Counted   plain bytes: what was taken from hyper counts as written, even if TLS still holds it
//!   (TLS)
//!   Watched   how the socket ended; holds back a broken upload's error while an answer may still be read
//!   socket
//! ```

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most interim answers to one request. One every 15 s, as another relay sends them, makes 1440 in six hours; of a
/// peer that sends nothing else, and that without end, no time limit of ours would spare the machine the work.
pub(super) const MOST_INTERIM: u32 = 10_000;

/// The counts of one connection, shared between the connection's task and whoever sends on it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    written: AtomicU64,
    read: AtomicU64,
    reset: AtomicBool,
    read_ended: AtomicBool,
    answer_may_come: AtomicBool,
    /// Interim answers to the request that is under way.
    interim: AtomicU32,
}

impl Wire {
    /// Plain bytes of requests that the connection took so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// Plain bytes of answers that came so far.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::SeqCst)
    }

    /// Whether the peer reset the connection.
    pub(super) fn was_reset(&self) -> bool {
        self.reset.load(Ordering::SeqCst)
    }

    /// Whether the peer ended its side.
    pub(super) fn read_ended(&self) -> bool {
        self.read_ended.load(Ordering::SeqCst)
    }

    /// Says whether a request is under way, so that an answer may be read after writing became impossible.
    pub(super) fn expect_answer(&self, expected: bool) {
        self.interim.store(0, Ordering::SeqCst);
        self.answer_may_come.store(expected, Ordering::SeqCst);
    }

    /// Another interim answer came.
    pub(super) fn interim_came(&self) {
        self.interim.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether more interim answers came than any service has reason to send.
    pub(super) fn babbles(&self) -> bool {
        self.interim.load(Ordering::SeqCst) > MOST_INTERIM
    }
}

pub(super) fn is_reset(kind: io::ErrorKind) -> bool {
    [io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionAborted, io::ErrorKind::BrokenPipe]
        .contains(&kind)
}

/// A transport of any kind.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Counts plain bytes above TLS.
pub(super) struct Counted {
    inner: Box<dyn Transport>,
    wire: Arc<Wire>,
}

impl Counted {
    pub(super) fn new(inner: Box<dyn Transport>, wire: Arc<Wire>) -> Self {
        Self { inner, wire }
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(length)) = written {
            self.wire.written.fetch_add(length as u64, Ordering::SeqCst);
        }
        written
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.wire.babbles() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buf.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.wire.read.fetch_add((buf.filled().len() - before) as u64, Ordering::SeqCst);
        done
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Watches the socket below TLS.
///
/// A service that refuses a long upload answers, and closes with bytes of the upload unread, which resets the
/// connection. Our next write then fails while the answer lies in the receive buffer. So while an answer may come,
/// such a failure is not reported: the write stays pending and the read side tells how the connection ended.
pub(super) struct Watched<S> {
    inner: S,
    wire: Arc<Wire>,
}

impl<S> Watched<S> {
    pub(super) fn new(inner: S, wire: Arc<Wire>) -> Self {
        Self { inner, wire }
    }

    fn hold_back<T>(&self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Poll::Ready(Err(error)) = &done else { return done };
        if !is_reset(error.kind()) {
            return done;
        }
        self.wire.reset.store(true, Ordering::SeqCst);
        // The reader is woken by the same reset that failed the write, so nothing waits for ever.
        if self.wire.answer_may_come.load(Ordering::SeqCst) && !self.wire.read_ended() {
            return Poll::Pending;
        }
        done
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(cx, buf);
        match &done {
            Poll::Ready(Ok(())) if buf.filled().len() == before && buf.remaining() > 0 => {
                self.wire.read_ended.store(true, Ordering::SeqCst);
            }
            Poll::Ready(Err(error)) => {
                self.wire.read_ended.store(true, Ordering::SeqCst);
                if is_reset(error.kind()) {
                    self.wire.reset.store(true, Ordering::SeqCst);
                }
            }
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        done
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.hold_back(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.hold_back(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.hold_back(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
