//! What all calls share: settings, upstreams, the ledger, the room for bodies, the observers; and what of it a
//! reload replaces.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::{HeaderMap, Version};
use relay_core::Moment;
use relay_core::config::{Config, Http2, Secret};
use relay_core::event::CallId;
use relay_core::ledger::Ledger;
use tokio::sync::watch;

use crate::alerts::Alerts;
use crate::body::{Room, SendBody};
use crate::body_text::Reader;
use crate::clock::{Clock, drawn};
use crate::cookies::{self, Cookies};
use crate::credential::AccountKey;
use crate::credentials::{Credentials, Renewals};
use crate::dashboard::Board;
use crate::guard::Guard;
use crate::history::Recorder;
use crate::hops::Hop;
use crate::https::Https;
use crate::kept::KeptBody;
use crate::lanes::{Lanes, Places};
use crate::learned::LearnedFile;
use crate::legs::Served;
use crate::local_token::local_token;
use crate::observe::status::Status;
use crate::observe::{Notice, Observer, Observers};
use crate::otlp::Otlp;
use crate::parked::Parked;
use crate::proxy::{Proxies, SystemProxies};
use crate::sessions::said::{Held, Page};
use crate::sessions::{Session, Sessions};
use crate::snapshots::Snapshots;
use crate::target::{Upstream, Upstreams as Targets};
use crate::upstream::{PoolLimits, Standings, Upstreams, Ways};
use crate::words::{lang, start};
use crate::{warm, websocket};

/// What it is made of.
pub(crate) struct Common {
    pub(crate) config: Config,
    pub(crate) targets: Targets,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// What the environment or the system says about proxies.
    pub(crate) system_proxies: SystemProxies,
    /// The addresses we listen on.
    pub(crate) listening: Vec<SocketAddr>,
    /// TLS for clients, where it is wanted.
    pub(crate) https: Option<Https>,
}

/// What a call goes by: the settings in force when it began, and what lasts beyond them, which is reached as if it
/// stood here. A reload makes another one; open calls keep theirs.
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) targets: Targets,
    pub(crate) credentials: Credentials,
    pub(crate) guard: Guard,
    pub(crate) upstreams: Upstreams<SendBody>,
    pub(crate) room: Arc<Room>,
    proxies: Proxies,
    tls: Arc<rustls::ClientConfig>,
    lasting: Arc<Lasting>,
}

impl Deref for Shared {
    type Target = Lasting;

    fn deref(&self) -> &Lasting {
        &self.lasting
    }
}

/// What lasts as long as the relay.
pub(crate) struct Lasting {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Observers,
    pub(crate) status: Arc<Status>,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) alerts: Arc<Alerts>,
    pub(crate) otlp: Option<Arc<Otlp>>,
    /// Whether calls have a place in a trace.
    pub(crate) has_traces: bool,
    pub(crate) snapshots: Snapshots,
    pub(crate) started: Moment,
    pub(crate) reader: Reader,
    pub(crate) hop: Hop,
    pub(crate) lanes: Lanes,
    pub(crate) websockets: websocket::Memory,
    pub(crate) parked: Parked,
    pub(crate) served: Served,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) https: Option<Https>,
    pub(crate) board: Board,
    pub(crate) warming: warm::Bell,
    pub(crate) renewals: Renewals,
    system_proxies: SystemProxies,
    standings: Arc<Standings>,
    ledger: Mutex<Ledger>,
    cookies: Mutex<Cookies>,
    open_bodies: Mutex<Vec<Weak<KeptBody>>>,
    next_call: AtomicU64,
    uploads: Arc<()>,
    drain: watch::Sender<bool>,
    plan_warned: AtomicBool,
    crowd_warned: AtomicBool,
    state_warned: AtomicBool,
    distrust_warned: AtomicBool,
}

impl Shared {
    pub(crate) fn new(common: Common) -> Self {
        let Common { config, targets, tls, clock, mut observers, recorder, system_proxies, listening, https } =
            common;
        let status = Arc::new(Status::default());
        // First: what others tell of is counted by then.
        observers.insert(0, Arc::clone(&status) as Arc<dyn Observer>);
        observers.extend(recorder.clone().map(|recorder| recorder as Arc<dyn Observer>));
        let alerts = Arc::new(Alerts::new(Arc::clone(&clock), &config));
        observers.push(Arc::clone(&alerts) as Arc<dyn Observer>);
        let otlp = Otlp::of(&config.otlp, &clock);
        observers.extend(otlp.iter().flat_map(Otlp::observers));
        let observers = Observers::new(observers);
        let proxies = Proxies::new(system_proxies.clone(), config.proxy.clone(), listening.clone());
        if let Some(words) = proxies.advice() {
            observers.notice(&Notice::Advice(words));
        }
        let told = observers.clone();
        let standings = Standings::new(Arc::clone(&clock), move |news| told.notice(&Notice::Way(news)));
        let (learned, notice) = LearnedFile::open(config.state_dir.as_deref(), clock.wall());
        if let Some(words) = notice {
            observers.notice(&Notice::Advice(start::note(lang(), &words)));
        }
        let lanes = Lanes::new(Arc::clone(&clock), observers.clone(), learned);
        let credentials = Credentials::of(&config, None);
        for words in credentials.advice(&config) {
            observers.notice(&Notice::Advice(start::note(lang(), &words)));
        }
        let guard = Guard {
            local: local_token(config.state_dir.as_deref()).map(Secret::new),
            ..Guard::of(&config, listening)
        };
        let has_traces = config.otlp.has_traces();
        Self {
            targets,
            credentials,
            guard,
            upstreams: Upstreams::new(&tls, Arc::clone(&clock), limits(&config)),
            room: room(&config),
            config: Arc::new(config),
            proxies,
            tls,
            lasting: Arc::new(Lasting {
                observers,
                status,
                recorder,
                alerts,
                otlp,
                has_traces,
                snapshots: Snapshots::default(),
                started: clock.now(),
                reader: Reader::default(),
                clock,
                hop: Hop::of(drawn()),
                lanes,
                websockets: websocket::Memory::default(),
                parked: Parked::default(),
                served: Served::default(),
                sessions: Arc::default(),
                https,
                board: Board::default(),
                warming: warm::Bell::default(),
                renewals: Renewals::default(),
                system_proxies,
                standings: Arc::new(standings),
                ledger: Mutex::default(),
                cookies: Mutex::default(),
                open_bodies: Mutex::default(),
                next_call: AtomicU64::new(1),
                uploads: Arc::default(),
                drain: watch::Sender::new(false),
                plan_warned: AtomicBool::new(false),
                crowd_warned: AtomicBool::new(false),
                state_warned: AtomicBool::new(false),
                distrust_warned: AtomicBool::new(false),
            }),
        }
    }

    /// The same relay under other settings. Connections and the room for bodies go on where nothing about them
    /// changed; addresses and token stay those it was started with. `tls` where that changed.
    pub(crate) fn under(
        &self,
        config: Config,
        targets: Targets,
        tls: Option<Arc<rustls::ClientConfig>>,
    ) -> Self {
        self.alerts.set(&config);
        let same_connections = tls.is_none() && limits(&config) == limits(&self.config);
        let tls = tls.unwrap_or_else(|| Arc::clone(&self.tls));
        let upstreams = if same_connections {
            self.upstreams.clone()
        } else {
            Upstreams::new(&tls, Arc::clone(&self.clock), limits(&config))
        };
        let same_room = config.bodies.total == self.config.bodies.total;
        let guard = Guard { allowed_origins: config.allowed_origins.clone(), ..self.guard.clone() };
        let credentials = Credentials::of(&config, Some(&self.credentials));
        self.status.forget_credentials(|name| !credentials.has_kept(name, &self.credentials));
        Self {
            targets,
            credentials,
            upstreams,
            proxies: Proxies::new(self.system_proxies.clone(), config.proxy.clone(), guard.listening.clone()),
            guard,
            room: if same_room { Arc::clone(&self.room) } else { room(&config) },
            config: Arc::new(config),
            tls,
            lasting: Arc::clone(&self.lasting),
        }
    }

    /// Lanes have the number of places that the settings state now.
    pub(crate) fn renumber_lanes(&self) {
        self.lanes.renumber(|origin, route| match route {
            Some(fits) => {
                self.config.routes.iter().find(|route| Places::of_route(route) == fits)?.max_running
            }
            None => self.targets.max_running(origin),
        });
    }

    /// Ways that failed and are not in the settings any more are forgotten.
    pub(crate) fn forget_ways(&self) {
        let way = |upstream: &Arc<Upstream>| self.way(upstream, Version::HTTP_11);
        self.standings.keep_only(self.targets.all().map(way));
    }

    /// How a request of a client that speaks `version` gets to `upstream`.
    pub(crate) fn way(&self, upstream: &Upstream, version: Version) -> Ways {
        let wanted = match upstream.http2.unwrap_or(self.config.http2) {
            Http2::Auto => version == Version::HTTP_2,
            Http2::Off => false,
            Http2::Always => true,
        };
        let http2 = wanted && upstream.is_https();
        Ways::new(Arc::clone(&upstream.origin), self.proxies.towards(upstream), http2, &self.standings)
    }
}

fn limits(config: &Config) -> PoolLimits {
    let (connect, idle) = (config.timeouts.connect, config.timeouts.pool_idle);
    PoolLimits { connect, idle, ..PoolLimits::default() }
}

fn room(config: &Config) -> Arc<Room> {
    Room::new(usize::try_from(config.bodies.total).unwrap_or(usize::MAX))
}

/// The most calls of a lane that are looked through for those that are held.
const IN_LINE: usize = 1000;

impl Lasting {
    /// How a session is now.
    pub(crate) fn session_page(&self, session: &Session) -> Page {
        session.page(self.clock.now(), || self.lanes.views(IN_LINE))
    }

    /// The calls that are held and belong to no session.
    pub(crate) fn held_alone(&self) -> Vec<Held> {
        let now = self.clock.now();
        let (_, mut held) = self.status.held(now, || self.lanes.views(IN_LINE));
        if !held.is_empty() {
            let of_sessions = self.sessions.held(now);
            held.retain(|call| !of_sessions.contains(&call.call));
        }
        held
    }

    /// From now on no call waits any more.
    pub(crate) fn start_draining(&self) {
        self.drain.send_replace(true);
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an upload that is no call yet, as long as what it returns is held.
    pub(crate) fn upload(&self) -> Arc<()> {
        Arc::clone(&self.uploads)
    }

    /// The calls that are open, and the uploads that will become some.
    pub(crate) fn open(&self) -> usize {
        self.status.open() + Arc::strong_count(&self.uploads) - 1
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

    /// True for the first caller.
    pub(crate) fn warn_of_state_once(&self) -> bool {
        !self.state_warned.swap(true, Ordering::Relaxed)
    }

    /// Whether to tell now that a client does not trust the certificate: once.
    pub(crate) fn warn_of_distrust_once(&self) -> bool {
        !self.distrust_warned.swap(true, Ordering::Relaxed)
    }

    /// True for the first caller.
    pub(crate) fn warn_of_crowd_once(&self) -> bool {
        !self.crowd_warned.swap(true, Ordering::Relaxed)
    }
}
