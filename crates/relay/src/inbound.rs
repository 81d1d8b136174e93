//! One connection of a client, HTTP/1.1 or HTTP/2 by its first bytes, within limits. Not what is served on it
//! (that is `serve`).
//!
//! ```text
//! hyper         whole requests, answers
//!   WithInterim  interim answers between them
//!   Opening      have the first bytes come?
//!   Wire         TLS, or none
//!   ClientSocket has all left? does the client read what we write? is it there?
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use relay_core::config::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::client_socket::{ClientSocket, Signs};
use crate::https::{Opening, Wire, begins_tls, is_distrust};
use crate::interim::{Interim, WithInterim};
use crate::keepalive;
use crate::observe::Notice;
use crate::reply::Abort;
use crate::serve::serve;
use crate::shared::Shared;
use crate::words::{door, lang};

/// What may be under way of one request's body, or wait of one answer, over HTTP/2.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Silence on an HTTP/2 connection after which the client is asked for a sign of life.
const SILENCE: Duration = Duration::from_secs(60);

/// The place of a connection among those that may be open; it comes free when the last copy is dropped.
pub(crate) type Place = Arc<OwnedSemaphorePermit>;

/// What a request has to know of the connection that it came on.
#[derive(Clone)]
pub(crate) struct Line {
    /// Asks for interim answers on it.
    pub(crate) interim: Interim,
    /// Its place.
    pub(crate) place: Place,
    /// The settings in force, for what outlasts a request.
    pub(crate) current: Arc<ArcSwap<Shared>>,
}

/// Serves a connection to its end.
pub(crate) async fn connection(
    current: Arc<ArcSwap<Shared>>,
    stream: TcpStream,
    place: OwnedSemaphorePermit,
) {
    // The limits of a connection are those it began with; what tells of the relay's end is the same under all.
    let shared = current.load_full();
    // A small answer must not wait for the acknowledgement of the one before it.
    let _refused = stream.set_nodelay(true);
    keepalive::watch(&stream);
    let limits = &shared.config.limits;
    // Nothing that a peer does before its first request takes longer.
    let arriving = tokio::time::timeout(limits.head_time, arrive(&shared, stream));
    let arrived = tokio::select! {
        arrived = arriving => arrived,
        () = shared.draining() => return,
    };
    let Ok(Some((wire, signs))) = arrived else { return };
    // Held by every request of this connection until its answer was handed out.
    let busy = Arc::new(());
    let line = Line { interim: Interim::default(), place: Arc::new(place), current: Arc::clone(&current) };
    let opening = Opening::new(wire, Arc::clone(&signs.begun));
    let socket = WithInterim::new(opening, line.interim.clone());
    let (leaving, held) = (signs.clone(), Arc::clone(&busy));
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let version = request.version();
        let (shared, line) = (current.load_full(), line.clone());
        let (leaving, held) = (leaving.clone(), Arc::clone(&held));
        // Hyper keeps the room of this future as long as the connection: what is boxed goes with the answer.
        Box::pin(async move {
            let answer = serve(shared, request, line).await?;
            Ok::<_, Abort>(answer.map(|body| body.leaving_by(leaving, version).holding(held)))
        })
    });
    let server = server(limits);
    let connection = server.serve_connection_with_upgrades(TokioIo::new(socket), service);
    let mut connection = std::pin::pin!(connection);
    // Until it is clear which protocol is spoken, no protocol's own time limit holds.
    let silent = async {
        tokio::time::sleep(limits.head_time).await;
        if signs.begun.load(Ordering::Relaxed) {
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
            if Arc::strong_count(&busy) == 2 && !signs.unread.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    tokio::select! {
        _ended = connection => {}
        () = idle => {}
    }
}

/// Finds out whether a client wants TLS, and makes its handshake. `None`: it went, or the handshake failed.
async fn arrive(shared: &Shared, stream: TcpStream) -> Option<(Wire<ClientSocket>, Signs)> {
    let https = match &shared.https {
        Some(https) => begins_tls(&stream).await.ok()?.then_some(https),
        None => None,
    };
    let (socket, signs) = ClientSocket::new(stream, shared.config.limits.stall);
    let Some(https) = https else { return Some((Wire::Plain(socket), signs)) };
    // Boxed, as all that few connections need.
    match Box::pin(Wire::secured(https, socket)).await {
        Ok(wire) => Some((wire, signs)),
        Err(error) => {
            if is_distrust(&error) && shared.warn_of_distrust_once() {
                shared.observers.notice(&Notice::Advice(
                    "note: a client does not trust the relay's certificate\nhint: `steady-relay cert trust-help` says \
                     what each client needs"
                        .to_owned(),
                ));
            }
            None
        }
    }
}

/// How long a connection on which nothing is asked may stay when the relay stops.
const PARTING: Duration = Duration::from_millis(500);

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

/// Tells a client that there is no room for its connection; to one of https the words would be garbage.
pub(crate) async fn turn_away(mut stream: TcpStream, most: u32, has_https: bool) {
    const WITHIN: Duration = Duration::from_secs(1);
    let words = door::too_many_connections(lang(), most);
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\n\r\n{words}",
        words.len()
    );
    let telling = async {
        if has_https && begins_tls(&stream).await? {
            return Ok(());
        }
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with its request unread would take the answer away from it again.
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    let _told = tokio::time::timeout(WITHIN, telling).await;
}
