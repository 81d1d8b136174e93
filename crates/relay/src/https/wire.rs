//! The bytes of one client, through TLS or not.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Https;

/// What a connection that speaks TLS begins with: a record of a handshake (RFC 8446, section 5.1). No request does.
const HANDSHAKE: u8 = 0x16;

/// A client's connection.
#[derive(Debug)]
pub(crate) enum Wire<I> {
    /// As it comes.
    Plain(I),
    /// Through TLS, whose state is large.
    Secured(Box<TlsStream<I>>),
}

/// Whether a client begins TLS, by its first byte, which stays unread. Waits for it.
pub(crate) async fn begins_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let length = stream.peek(&mut first).await?;
    Ok(length == 1 && first[0] == HANDSHAKE)
}

impl<I: AsyncRead + AsyncWrite + Unpin> Wire<I> {
    /// Makes the handshake.
    pub(crate) async fn secured(https: &Https, io: I) -> io::Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::clone(&https.server));
        Ok(Self::Secured(Box::new(acceptor.accept(io).await?)))
    }
}

/// Whether a handshake failed since the client does not trust the certificate.
pub(crate) fn is_distrust(error: &io::Error) -> bool {
    use rustls::AlertDescription::{BadCertificate, CertificateUnknown, UnknownCA};
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::AlertReceived(BadCertificate | CertificateUnknown | UnknownCA)))
}

/// Calls the same method of whatever the connection goes through.
macro_rules! through {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            Wire::Plain(io) => {
                let $io = Pin::new(io);
                $call
            }
            Wire::Secured(io) => {
                let $io = Pin::new(&mut **io);
                $call
            }
        }
    };
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        through!(self, io => io.poll_read(cx, into))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        through!(self, io => io.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        through!(self, io => io.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Secured(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        through!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        through!(self, io => io.poll_shutdown(cx))
    }
}

/// How an HTTP/2 connection begins (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose first bytes are looked at: before it is clear by them which protocol is spoken, none of hyper's own
/// time limits holds.
#[derive(Debug)]
pub(crate) struct Opening<I> {
    io: I,
    /// How many of the first bytes have come, as long as they could be those of HTTP/2.
    came: usize,
    /// Set once it is clear.
    begun: Arc<AtomicBool>,
}

impl<I> Opening<I> {
    pub(crate) const fn new(io: I, begun: Arc<AtomicBool>) -> Self {
        Self { io, came: 0, begun }
    }

    fn look_at(&mut self, came: &[u8]) {
        let expected = PREFACE.get(self.came..).unwrap_or_default();
        let length = came.len().min(expected.len());
        self.came += length;
        if self.came == PREFACE.len() || came.get(..length) != expected.get(..length) {
            self.came = PREFACE.len();
            self.begun.store(true, Ordering::Relaxed);
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Opening<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let done = Pin::new(&mut this.io).poll_read(cx, into);
        if this.came < PREFACE.len() {
            this.look_at(into.filled().get(before..).unwrap_or_default());
        }
        done
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Opening<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
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
    async fn it_is_clear_by_the_first_bytes_which_protocol_is_spoken() {
        let rows: [(&[&[u8]], bool); 5] = [
            (&[b"G"], true),
            (&[b"P"], false),
            (&[b"PRI * HT", b"TP/2.0\r\n\r\nSM\r\n"], false),
            (&[b"PRI * HT", b"TP/2.0\r\n\r\nSM\r\n\r\n"], true),
            (&[b"P", b"O"], true),
        ];
        for (pieces, clear) in rows {
            let (mut client, ours) = tokio::io::duplex(64);
            let begun = Arc::new(AtomicBool::new(false));
            let mut opening = Opening::new(ours, Arc::clone(&begun));
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                opening.read_exact(&mut vec![0; piece.len()]).await.unwrap();
            }
            assert_eq!(begun.load(Ordering::Relaxed), clear, "{pieces:?}");
        }
    }
}
