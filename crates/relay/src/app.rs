//! The relay's own life: start, accept, drain, stop.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use relay_core::config::Config;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::inbound::{connection, turn_away};
use crate::observe::status::Status;
use crate::observe::{Notice, Observer};
use crate::proxy::SystemProxies;
use crate::shared::{Common, Shared};
use crate::target::Upstreams as Targets;

/// The settings in force and all that goes with them.
type Current = Arc<ArcSwap<Shared>>;

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
    /// What the environment or the system says about proxies.
    pub system_proxies: SystemProxies,
}

/// A relay that runs.
pub struct Relay {
    current: Current,
    accepting: JoinSet<()>,
    connections: Connections,
}

impl Relay {
    /// Starts to accept calls.
    #[must_use]
    pub fn start(parts: Parts) -> Self {
        let Parts { config, targets, tls, clock, observers, sockets, system_proxies } = parts;
        let listening = sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        let common = Common { config, targets, tls, clock, observers, system_proxies, listening };
        let current = Arc::new(ArcSwap::from_pointee(Shared::new(common)));
        let connections = Connections::default();
        let door = Door {
            current: Arc::clone(&current),
            places: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            connections: Arc::clone(&connections),
        };
        let mut accepting = JoinSet::new();
        for socket in sockets {
            accepting.spawn(accept(door.clone(), socket));
        }
        Self { current, accepting, connections }
    }

    /// The sums since the start.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.current.load().status)
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current.load().config)
    }

    /// Tells the observers something about the relay.
    pub fn notice(&self, notice: &Notice) {
        self.current.load().observers.notice(notice);
    }

    /// From now on calls go by these settings; open ones keep those they began with. `tls` where that changed.
    /// Addresses, port and token stay as they are.
    pub fn reload(&self, config: Config, targets: Targets, tls: Option<Arc<rustls::ClientConfig>>) {
        let next = self.current.load().under(config, targets, tls);
        self.current.store(Arc::new(next));
    }

    /// Stops taking calls, waits for those that are open, at most as long as the settings say, or until
    /// `hurry` is ready, and drops the rest.
    pub async fn drain(mut self, hurry: impl Future<Output = ()>) {
        let shared = self.current.load_full();
        let within = shared.config.timeouts.drain;
        shared.observers.notice(&Notice::Draining {
            open: shared.open(),
            waiting: shared.status.waiting(),
            within,
        });
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
        shared.observers.notice(&Notice::Stopping { open: shared.open() });
        self.connections.lock().await.shutdown().await;
    }
}

/// What accepts connections.
#[derive(Clone)]
struct Door {
    current: Current,
    /// Those that are missing are taken. How many may be, the settings in force say.
    places: Arc<Semaphore>,
    connections: Connections,
}

async fn accept(door: Door, socket: TcpListener) {
    loop {
        match socket.accept().await {
            Ok((stream, _peer)) => door.admit(stream).await,
            Err(error) => {
                // Out of file descriptors, most likely: the ones in use will come free.
                door.current.load().observers.notice(&Notice::AcceptFailed(error.to_string()));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Door {
    async fn admit(&self, stream: TcpStream) {
        let mut connections = self.connections.lock().await;
        // Those that have ended give their memory back.
        while connections.try_join_next().is_some() {}
        let shared = self.current.load();
        let most = shared.config.limits.connections;
        let taken = Semaphore::MAX_PERMITS - self.places.available_permits();
        let has_room = usize::try_from(most).is_ok_and(|most| taken < most);
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) if has_room => {
                connections.spawn(connection(Arc::clone(&self.current), stream, place));
            }
            Ok(_) | Err(_) => {
                if shared.warn_of_crowd_once() {
                    shared.observers.notice(&Notice::Advice(format!(
                        "{most} connections are open, which is the limit (`limits.connections`): more are refused"
                    )));
                }
                connections.spawn(turn_away(stream, most));
            }
        }
    }
}
