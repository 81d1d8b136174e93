//! One connection of a client, HTTP/1.1 or HTTP/2 by its first bytes, within limits. Not what is served on it
//! (that is `serve`).
//!
//! ```text
//! hyper         whole requests, answers
//!   WithInterim interim answers between them
//!   Inbound      has the first bytes come? does the client read what we write?
//!   ClientSocket has all left? is the client there?
//! ```

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use relay_core::config::Limits;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::client_socket::ClientSocket;
use crate::clock::IdleLimit;
use crate::interim::{Interim, WithInterim};
use crate::keepalive;
use crate::reply::Abort;
use crate::serve::serve;
use crate::shared::Shared;

/// How an HTTP/2 connection begins (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What may be under way of one request's body, or wait of one answer, over HTTP/2.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Silence on an HTTP/2 connection after which the client is asked for a sign of life.
const SILENCE: Duration = Duration::from_secs(60);

/// Serves a connection to its end.
pub(crate) async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    // A small answer must not wait for the acknowledgement of the one before it.
    let _refused = stream.set_nodelay(true);
    keepalive::watch(&stream);
    let limits = &shared.config.limits;
    let seen = Arc::new(Seen::default());
    // Held by every request of this connection until its answer was handed out.
    let busy = Arc::new(());
    let (flushed, interim) = (Arc::new(Notify::new()), Interim::default());
    let socket = ClientSocket::new(stream, Arc::clone(&flushed));
    let socket = Inbound::new(socket, limits.stall, Arc::clone(&seen));
    let socket = WithInterim::new(socket, interim.clone());
    let (serving, held) = (Arc::clone(&shared), Arc::clone(&busy));
    let service = hyper::service::service_fn(move |request| {
        let answer = serve(Arc::clone(&serving), request, interim.clone());
        let (flushed, held) = (Arc::clone(&flushed), Arc::clone(&held));
        async move { Ok::<_, Abort>(answer.await?.map(|body| body.leaving_by(flushed).holding(held))) }
    });
    let server = server(limits);
    let connection = server.serve_connection_with_upgrades(TokioIo::new(socket), service);
    let mut connection = std::pin::pin!(connection);
    // Until it is clear which protocol is spoken, no protocol's own time limit holds.
    let silent = async {
        tokio::time::sleep(limits.head_time).await;
        if seen.begun.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    };
    // How a connection ended was told by the calls on it; what is left is the peer's business.
    tokio::select! {
        _ended = connection.as_mut() => return,
        () = silent => return,
        () = shared.draining() => connection.as_mut().graceful_shutdown(),
    }
    // A head that is not whole is no call of anybody's yet. It is not waited for.
    let idle = async {
        loop {
            tokio::time::sleep(PARTING).await;
            if Arc::strong_count(&busy) == 2 && !seen.unread.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    tokio::select! {
        _ended = connection => {}
        () = idle => {}
    }
}

/// How long a connection on which nothing is asked may stay when the relay stops.
const PARTING: Duration = Duration::from_millis(500);

/// What the lower layers have seen.
#[derive(Debug, Default)]
struct Seen {
    /// It is clear which protocol is spoken.
    begun: AtomicBool,
    /// Something waits for the client to read.
    unread: AtomicBool,
}

fn server(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    let head = usize::try_from(limits.head).unwrap_or(usize::MAX);
    server
        .http1()
        .preserve_header_case(true)
        .half_close(false)
        .max_headers(usize::try_from(limits.headers).unwrap_or(usize::MAX))
        .max_buf_size(head)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time);
    server
        .http2()
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        // Room for all of them: uploads that are not read leave the connection to the others.
        .initial_connection_window_size(STREAM_WINDOW.saturating_mul(limits.streams).min(MOST_WINDOW))
        .max_send_buf_size(usize::try_from(STREAM_WINDOW).unwrap_or(usize::MAX))
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE);
    server
}

/// The largest window that HTTP/2 has.
const MOST_WINDOW: u32 = (1 << 31) - 1;

/// Tells a client that there is no room for its connection.
pub(crate) async fn turn_away(mut stream: TcpStream, most: u32) {
    const WITHIN: Duration = Duration::from_secs(1);
    let words = format!(
        "steady-relay: {most} connections are open, and that is the limit\n\
         hint: close some, or raise `limits.connections`\n"
    );
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\n\r\n{words}",
        words.len()
    );
    let telling = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with its request unread would take the answer away from it again.
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    let _told = tokio::time::timeout(WITHIN, telling).await;
}

/// The socket of a client.
struct Inbound {
    inner: ClientSocket,
    stall: Duration,
    /// Runs while the client does not read what waits for it.
    unread: Option<IdleLimit>,
    /// How many of the first bytes have come, as long as they could be those of HTTP/2.
    opening: usize,
    seen: Arc<Seen>,
}

impl Inbound {
    const fn new(inner: ClientSocket, stall: Duration, seen: Arc<Seen>) -> Self {
        Self { inner, stall, unread: None, opening: 0, seen }
    }

    fn look_at_opening(&mut self, came: &[u8]) {
        let expected = PREFACE.get(self.opening..).unwrap_or_default();
        let length = came.len().min(expected.len());
        self.opening += length;
        if self.opening == PREFACE.len() || came.get(..length) != expected.get(..length) {
            self.opening = PREFACE.len();
            self.seen.begun.store(true, Ordering::Relaxed);
        }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.seen.unread.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.unread = None;
            return written;
        }
        let stall = self.stall;
        let unread = self.unread.get_or_insert_with(|| IdleLimit::new(stall));
        unread.poll_passed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Inbound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(cx, buf);
        if self.opening < PREFACE.len() {
            self.look_at_opening(buf.filled().get(before..).unwrap_or_default());
        }
        done
    }
}

impl AsyncWrite for Inbound {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
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
