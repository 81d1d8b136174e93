//! The relay's own life: start, accept, drain, stop.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use relay_core::config::Config;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::client_socket::ClientSocket;
use crate::clock::Clock;
use crate::interim::{Interim, WithInterim};
use crate::keepalive;
use crate::observe::status::Status;
use crate::observe::{Notice, Observer};
use crate::reply::Abort;
use crate::serve::serve;
use crate::shared::{Common, Shared};
use crate::target::Upstreams as Targets;

/// The most headers of one request; some clients behind gateways send over a hundred.
const MOST_HEADERS: usize = 512;
/// The largest head of one request.
const LARGEST_HEAD: usize = 256 * 1024;
/// How long a client may take over the head of a request. Hyper counts the idle time of a kept-alive connection
/// as well, and closing one that a client is about to use costs that client an error.
pub const HEAD_WITHIN: Duration = Duration::from_secs(300);

/// What every connection needs.
#[derive(Clone)]
struct Server {
    shared: Arc<Shared>,
    head_within: Duration,
}

type Connections = Arc<Mutex<JoinSet<()>>>;

/// What a relay is made of.
pub struct Parts {
    /// The settings.
    pub config: Config,
    /// Where requests can go.
    pub targets: Targets,
    /// TLS towards upstreams.
    pub tls: Arc<rustls::ClientConfig>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Observers beside the status, which is always there.
    pub observers: Vec<Arc<dyn Observer>>,
    /// The sockets to accept on.
    pub sockets: Vec<TcpListener>,
    /// How long a client may take over the head of a request; [`HEAD_WITHIN`] outside tests.
    pub head_within: Duration,
}

/// A relay that runs.
pub struct Relay {
    shared: Arc<Shared>,
    accepting: JoinSet<()>,
    connections: Connections,
}

impl Relay {
    /// Starts to accept calls.
    #[must_use]
    pub fn start(parts: Parts) -> Self {
        let Parts { config, targets, tls, clock, observers, sockets, head_within } = parts;
        let listening = sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        let shared = Arc::new(Shared::new(Common { config, targets, tls, clock, observers, listening }));
        let connections = Connections::default();
        let mut accepting = JoinSet::new();
        for socket in sockets {
            let server = Server { shared: Arc::clone(&shared), head_within };
            accepting.spawn(accept(server, socket, Arc::clone(&connections)));
        }
        Self { shared, accepting, connections }
    }

    /// The sums since the start.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.shared.status)
    }

    /// Stops taking calls, waits for those that are open, at most as long as the settings say, or until
    /// `hurry` is ready, and drops the rest.
    pub async fn drain(mut self, hurry: impl Future<Output = ()>) {
        let shared = &self.shared;
        let within = shared.config.timeouts.drain;
        shared.observers.notice(&Notice::Draining { open: shared.status.open(), within });
        self.accepting.shutdown().await;
        shared.start_draining();
        let all_gone = async {
            let mut connections = self.connections.lock().await;
            while connections.join_next().await.is_some() {}
        };
        tokio::select! {
            () = all_gone => {}
            () = tokio::time::sleep(within) => {}
            () = hurry => {}
        }
        shared.observers.notice(&Notice::Stopping { open: shared.status.open() });
        self.connections.lock().await.shutdown().await;
    }
}

async fn accept(server: Server, socket: TcpListener, connections: Connections) {
    loop {
        match socket.accept().await {
            Ok((stream, _peer)) => {
                let mut connections = connections.lock().await;
                // Those that have ended give their memory back.
                while connections.try_join_next().is_some() {}
                connections.spawn(connection(server.clone(), stream));
            }
            Err(error) => {
                // Out of file descriptors, most likely: the ones in use will come free.
                server.shared.observers.notice(&Notice::AcceptFailed(error.to_string()));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(server: Server, stream: TcpStream) {
    let Server { shared, head_within } = server;
    // A small answer must not wait for the acknowledgement of the one before it.
    let _refused = stream.set_nodelay(true);
    keepalive::watch(&stream);
    let (flushed, interim) = (Arc::new(Notify::new()), Interim::default());
    let stream = WithInterim::new(ClientSocket::new(stream, Arc::clone(&flushed)), interim.clone());
    let serving = Arc::clone(&shared);
    let service = hyper::service::service_fn(move |request| {
        let answer = serve(Arc::clone(&serving), request, interim.clone());
        let flushed = Arc::clone(&flushed);
        async move { Ok::<_, Abort>(answer.await?.map(|body| body.leaving_by(flushed))) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .half_close(false)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(head_within)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // How a connection ended was told by the calls on it; what is left is the peer's business.
    tokio::select! {
        _ended = connection.as_mut() => return,
        () = shared.draining() => connection.as_mut().graceful_shutdown(),
    }
    let _ended = connection.await;
}
