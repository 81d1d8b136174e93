//! What all calls share, and the relay's own life: start, drain, stop.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::HeaderMap;
use hyper_util::rt::{TokioIo, TokioTimer};
use relay_core::Moment;
use relay_core::config::Config;
use relay_core::event::CallId;
use relay_core::ledger::Ledger;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::body::{Room, SendBody};
use crate::client_socket::ClientSocket;
use crate::clock::Clock;
use crate::cookies::{self, Cookies};
use crate::credential::AccountKey;
use crate::guard::Guard;
use crate::observe::status::Status;
use crate::observe::{Notice, Observer, Observers};
use crate::open::KeptBody;
use crate::reply::Abort;
use crate::serve::serve;
use crate::target::{Upstream, Upstreams as Targets};
use crate::upstream::{PoolLimits, Upstreams};

/// The most headers of one request; some clients behind gateways send over a hundred.
const MOST_HEADERS: usize = 512;
/// The largest head of one request.
const LARGEST_HEAD: usize = 256 * 1024;
/// How long a client may take over the head of a request, and how long its connection may carry nothing.
pub const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// What all calls share.
pub(crate) struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) targets: Targets,
    pub(crate) guard: Guard,
    pub(crate) upstreams: Upstreams<SendBody>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Observers,
    pub(crate) status: Arc<Status>,
    pub(crate) room: Arc<Room>,
    pub(crate) started: Moment,
    head_within: Duration,
    ledger: Mutex<Ledger>,
    cookies: Mutex<Cookies>,
    open_bodies: Mutex<Vec<Weak<KeptBody>>>,
    next_call: AtomicU64,
    drain: watch::Sender<bool>,
    plan_warned: std::sync::atomic::AtomicBool,
}

impl App {
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits until the relay is being stopped.
    pub(crate) async fn draining(&self) {
        let mut drain = self.drain.subscribe();
        // The sender lives as long as the app does.
        let _gone = drain.wait_for(|draining| *draining).await;
    }

    pub(crate) fn add_cookies(&self, upstream: &Upstream, account: AccountKey, headers: &mut HeaderMap) {
        if cookies::applies(upstream.is_https(), upstream.url.host()) {
            self.cookies().add(account, headers, self.clock.wall());
        }
    }

    pub(crate) fn take_cookies(&self, upstream: &Upstream, account: AccountKey, headers: &HeaderMap) {
        if cookies::applies(upstream.is_https(), upstream.url.host()) {
            self.cookies().take(account, headers, self.clock.wall());
        }
    }

    fn cookies(&self) -> MutexGuard<'_, Cookies> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a kept body, so that a call can ask whether another with the same body is under way.
    pub(crate) fn register(&self, body: &Arc<KeptBody>) {
        let mut open = self.open_bodies.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|body| body.strong_count() > 0);
        open.push(Arc::downgrade(body));
    }

    /// Whether another call with the same body and credential is under way.
    pub(crate) fn is_open_elsewhere(&self, body: &Arc<KeptBody>) -> bool {
        let others: Vec<_> = {
            let open = self.open_bodies.lock().unwrap_or_else(PoisonError::into_inner);
            open.iter().filter_map(Weak::upgrade).collect()
        };
        others.iter().any(|other| {
            !Arc::ptr_eq(other, body)
                && other.credential() == body.credential()
                && other.hash() == body.hash()
        })
    }

    /// True for the first caller.
    pub(crate) fn warn_of_plan_once(&self) -> bool {
        !self.plan_warned.swap(true, Ordering::Relaxed)
    }
}

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
    app: Arc<App>,
    accepting: JoinSet<()>,
    connections: Arc<tokio::sync::Mutex<JoinSet<()>>>,
    stop_now: watch::Sender<bool>,
}

impl Relay {
    /// Starts to accept calls.
    #[must_use]
    pub fn start(parts: Parts) -> Self {
        let Parts { config, targets, tls, clock, mut observers, sockets, head_within } = parts;
        let status = Arc::new(Status::default());
        observers.push(Arc::clone(&status) as Arc<dyn Observer>);
        let limits = PoolLimits {
            connect: config.timeouts.connect,
            idle: config.timeouts.pool_idle,
            ..PoolLimits::default()
        };
        let addresses: Vec<SocketAddr> =
            sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        let guard = Guard {
            listening: addresses,
            names: Vec::new(),
            allowed_origins: config.allowed_origins.clone(),
            token: config.token.as_ref().map(|token| token.expose().to_owned()),
        };
        let app = Arc::new(App {
            targets,
            guard,
            upstreams: Upstreams::new(tls, Arc::clone(&clock), limits),
            observers: Observers::new(observers),
            status,
            room: Room::new(usize::try_from(config.bodies.total).unwrap_or(usize::MAX)),
            started: clock.now(),
            head_within,
            config: Arc::new(config),
            clock,
            ledger: Mutex::default(),
            cookies: Mutex::default(),
            open_bodies: Mutex::default(),
            next_call: AtomicU64::new(1),
            drain: watch::Sender::new(false),
            plan_warned: std::sync::atomic::AtomicBool::new(false),
        });
        let connections = Arc::new(tokio::sync::Mutex::new(JoinSet::new()));
        let stop_now = watch::Sender::new(false);
        let mut accepting = JoinSet::new();
        for socket in sockets {
            accepting.spawn(accept(Arc::clone(&app), socket, Arc::clone(&connections)));
        }
        Self { app, accepting, connections, stop_now }
    }

    /// The sums since the start.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.app.status)
    }

    /// Stops taking calls, waits for those that are open, at most as long as the settings say, or until
    /// `hurry` is ready, and drops the rest.
    pub async fn drain(mut self, hurry: impl Future<Output = ()>) {
        let app = &self.app;
        let within = app.config.timeouts.drain;
        app.observers.notice(&Notice::Draining { open: app.status.open(), within });
        self.accepting.shutdown().await;
        app.drain.send_replace(true);
        let all_gone = async {
            let mut connections = self.connections.lock().await;
            while connections.join_next().await.is_some() {}
        };
        tokio::select! {
            () = all_gone => {}
            () = tokio::time::sleep(within) => {}
            () = hurry => {}
        }
        app.observers.notice(&Notice::Stopping { open: app.status.open() });
        self.stop_now.send_replace(true);
        self.connections.lock().await.shutdown().await;
    }
}

async fn accept(app: Arc<App>, socket: TcpListener, connections: Arc<tokio::sync::Mutex<JoinSet<()>>>) {
    loop {
        match socket.accept().await {
            Ok((stream, _peer)) => {
                let mut connections = connections.lock().await;
                // Those that have ended give their memory back.
                while connections.try_join_next().is_some() {}
                connections.spawn(connection(Arc::clone(&app), stream));
            }
            Err(error) => {
                // Out of file descriptors, most likely: the ones in use will come free.
                app.observers.notice(&Notice::AcceptFailed(error.to_string()));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(app: Arc<App>, stream: TcpStream) {
    // A small answer must not wait for the acknowledgement of the one before it.
    let _refused = stream.set_nodelay(true);
    let (serving, flushed) = (Arc::clone(&app), Arc::new(Notify::new()));
    let stream = ClientSocket::new(stream, Arc::clone(&flushed));
    let service = hyper::service::service_fn(move |request| {
        let (answer, flushed) = (serve(Arc::clone(&serving), request), Arc::clone(&flushed));
        async move { Ok::<_, Abort>(answer.await?.map(|body| body.leaving_by(flushed))) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .half_close(false)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(app.head_within)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // How a connection ended was told by the calls on it; what is left is the peer's business.
    tokio::select! {
        _ended = connection.as_mut() => return,
        () = app.draining() => connection.as_mut().graceful_shutdown(),
    }
    let _ended = connection.await;
}
