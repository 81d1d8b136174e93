//! Interim answers: `102 Processing` tells a client that its request is being worked on. Node's fetch and Gemini
//! CLI hang up when no byte of an answer comes for a while, and such an answer is a byte to them.
//!
//! Hyper's server sends none, so they are written below it, by the connection's own I/O, at a moment when nothing
//! of an answer is on its way: hyper flushes the I/O only when its own buffer is empty.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// RFC 2518, section 10.1; RFC 9110, section 15.2 asks every HTTP/1.1 client to accept interim answers.
const PROCESSING: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";

#[derive(Debug, Default)]
struct Pending {
    /// One is asked for and not begun.
    wanted: bool,
    /// The rest of one that is begun; nothing else may be written before it.
    rest: &'static [u8],
}

/// Asks for interim answers on one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interim(Arc<Mutex<Pending>>);

impl Interim {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for one `102 Processing`. It goes out when the connection is polled next, which is when the service
    /// future that asked returns; if an answer begins in that very moment, it does not.
    pub(crate) fn processing(&self) {
        self.pending().wanted = true;
    }
}

/// The I/O of a connection that can write interim answers between answers.
#[derive(Debug)]
pub(crate) struct WithInterim<I> {
    io: I,
    interim: Interim,
}

impl<I> WithInterim<I> {
    pub(crate) const fn new(io: I, interim: Interim) -> Self {
        Self { io, interim }
    }
}

impl<I: AsyncWrite + Unpin> WithInterim<I> {
    /// Writes what is begun.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let rest = self.interim.pending().rest;
            if rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let written = std::task::ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.pending().rest = rest.get(written..).unwrap_or_default();
        }
    }

    /// Ready to write a part of an answer: what is begun goes first, what is only wanted comes too late.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_rest(cx))?;
        self.interim.pending().wanted = false;
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WithInterim<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, into)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WithInterim<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        std::task::ready!(this.poll_answer(cx))?;
        Pin::new(&mut this.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        std::task::ready!(this.poll_answer(cx))?;
        Pin::new(&mut this.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        {
            let mut pending = this.interim.pending();
            if std::mem::take(&mut pending.wanted) && pending.rest.is_empty() {
                pending.rest = PROCESSING;
            }
        }
        std::task::ready!(this.poll_rest(cx))?;
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn it_goes_out_with_a_flush_and_never_inside_an_answer() {
        let (mut peer, ours) = tokio::io::duplex(1024);
        let interim = Interim::default();
        let mut io = WithInterim::new(ours, interim.clone());
        interim.processing();
        io.flush().await.unwrap();
        io.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        interim.processing();
        io.write_all(b"content-length: 0\r\n\r\n").await.unwrap();
        io.flush().await.unwrap();
        drop(io);
        let mut seen = Vec::new();
        peer.read_to_end(&mut seen).await.unwrap();
        let whole = [PROCESSING, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"].concat();
        assert_eq!(String::from_utf8_lossy(&seen), String::from_utf8_lossy(&whole));
    }

    #[tokio::test]
    async fn one_that_is_begun_ends_before_the_answer_begins() {
        // The pipe takes ten bytes at a time.
        let (mut peer, ours) = tokio::io::duplex(10);
        let interim = Interim::default();
        let mut io = WithInterim::new(ours, interim.clone());
        interim.processing();
        let writing = async {
            let first = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut io).poll_flush(cx))).await;
            assert!(first.is_pending(), "27 bytes do not fit into ten");
            io.write_all(b"answer").await.unwrap();
            io.flush().await.unwrap();
            drop(io);
        };
        let mut seen = Vec::new();
        let (_, read) = tokio::join!(writing, peer.read_to_end(&mut seen));
        read.unwrap();
        assert_eq!(seen, [PROCESSING, b"answer"].concat());
    }
}
