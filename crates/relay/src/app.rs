//! The relay's own life: start, accept, drain, stop.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use relay_core::Moment;
use relay_core::config::Config;
use relay_core::gate::View;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use crate::alerts;
use crate::clock::{Clock, SystemClock};
use crate::history::Recorder;
use crate::https::Https;
use crate::inbound::{connection, turn_away};
use crate::observe::status::Status;
use crate::observe::tail::Tail;
use crate::observe::{LaneName, Notice, Observer};
use crate::otlp;
use crate::proxy::SystemProxies;
use crate::sessions::said::{Held, Page};
use crate::sessions::{Holder, Sessions};
use crate::settings::Shown;
use crate::shared::{Common, Shared};
use crate::target::Upstreams as Targets;
use crate::warm;
use crate::words::{credentials, lang, start};

/// The settings in force and all that goes with them.
type Current = Arc<ArcSwap<Shared>>;

type Connections = Arc<Mutex<JoinSet<()>>>;

/// More places than connections can be set to.
const PLACES: u32 = 1 << 24;

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
    /// What records calls, if anything does.
    pub recorder: Option<Arc<Recorder>>,
    /// The sockets to accept on.
    pub sockets: Vec<TcpListener>,
    /// What the environment or the system says about proxies.
    pub system_proxies: SystemProxies,
    /// TLS for clients, where it is wanted.
    pub https: Option<Https>,
}

/// A relay that runs.
pub struct Relay {
    current: Current,
    accepting: JoinSet<()>,
    connections: Connections,
    /// What sends traces and metrics; longer than calls are taken.
    exporting: JoinSet<()>,
    /// Those of the connections, and of what they have become: tunnels and WebSockets.
    places: Arc<Semaphore>,
}

impl Relay {
    /// Starts to accept calls.
    #[must_use]
    pub fn start(parts: Parts) -> Self {
        let Parts { config, targets, tls, clock, observers, recorder, sockets, system_proxies, https } =
            parts;
        let listening = sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        let common =
            Common { config, targets, tls, clock, observers, recorder, system_proxies, listening, https };
        let current = Arc::new(ArcSwap::from_pointee(Shared::new(common)));
        let connections = Connections::default();
        let places = Arc::new(Semaphore::new(PLACES as usize));
        let door = Door {
            current: Arc::clone(&current),
            places: Arc::clone(&places),
            connections: Arc::clone(&connections),
            failures: Arc::default(),
        };
        let mut accepting = JoinSet::new();
        accepting.spawn(keep_learned(Arc::clone(&current)));
        accepting.spawn(keep_certificate(Arc::clone(&current)));
        accepting.spawn(warm::keep(Arc::clone(&current)));
        accepting.spawn(alerts::deliver(Arc::clone(&current)));
        let mut exporting = JoinSet::new();
        exporting.spawn(otlp::export(Arc::clone(&current)));
        for socket in sockets {
            accepting.spawn(accept(door.clone(), socket));
        }
        Self { current, accepting, connections, exporting, places }
    }

    /// The sums since the start.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.current.load().status)
    }

    /// The sessions of clients that somebody started.
    #[must_use]
    pub fn sessions(&self) -> Arc<Sessions> {
        Arc::clone(&self.current.load().sessions)
    }

    /// How a session is that somebody holds.
    #[must_use]
    pub fn session_page(&self, holder: &Holder) -> Page {
        self.current.load().session_page(holder.session())
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current.load().config)
    }

    /// What tells how the lanes are, with the first `most` calls of each line.
    pub fn lanes(&self, most: usize) -> impl Fn() -> Vec<(LaneName, View)> + Send + Sync + 'static + use<> {
        let current = Arc::clone(&self.current);
        move || current.load().lanes.views(most)
    }

    /// Tells of a test alert by every way that the settings name, and what came of each.
    pub async fn try_alerts(&self) -> Vec<alerts::Tried> {
        alerts::try_all(&self.current.load_full()).await
    }

    /// What tells which calls are held whose client nobody looks after: those of a session are its own.
    pub fn held(&self) -> impl Fn() -> Vec<Held> + Send + Sync + 'static + use<> {
        let current = Arc::clone(&self.current);
        move || current.load().held_alone()
    }

    /// What tells the settings in force.
    pub fn settings(&self) -> impl Fn() -> Arc<Config> + Send + Sync + 'static + use<> {
        let current = Arc::clone(&self.current);
        move || Arc::clone(&current.load().config)
    }

    /// What tells the observers something about the relay.
    pub fn notices(&self) -> impl Fn(&Notice) + Send + Sync + 'static + use<> {
        let current = Arc::clone(&self.current);
        move |notice| current.load().observers.notice(notice)
    }

    /// The dashboard shows these settings from now on, as those in force.
    pub fn show_settings(&self, shown: &[Shown]) {
        self.current.load().board.show(shown);
    }

    /// The dashboard shows these lines.
    pub fn show_log(&self, tail: Arc<Tail>) {
        self.current.load().board.show_log(tail);
    }

    /// Tells the observers something about the relay.
    pub fn notice(&self, notice: &Notice) {
        self.current.load().observers.notice(notice);
    }

    /// From now on calls go by these settings; open ones keep those they began with, but the number of places. `tls`
    /// where that changed. Addresses, port and token stay as they are.
    pub fn reload(&self, config: Config, targets: Targets, tls: Option<Arc<rustls::ClientConfig>>) {
        let next = Arc::new(self.current.load().under(config, targets, tls));
        self.current.store(Arc::clone(&next));
        next.renumber_lanes();
        next.forget_ways();
    }

    /// Whether a credential of the relay's own is being renewed.
    #[must_use]
    pub fn is_renewing(&self) -> bool {
        self.current.load().renewals.any()
    }

    /// Waits until none is being renewed, for a relay that is about to end: who drops it in the middle of that may lose the
    /// only refresh token there is.
    pub async fn renewals_over(&self) {
        let shared = self.current.load_full();
        // What has not set out yet does not any more.
        shared.start_draining();
        shared.renewals.over().await;
    }

    /// Stops taking calls, waits for those that are open and for credentials that are being renewed, at most as long as the
    /// settings say, or until `hurry` is ready, and drops the rest.
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
            let _all = self.places.acquire_many(PLACES).await;
            if shared.renewals.any() {
                let words = credentials::ends_after_it(lang());
                shared.observers.notice(&Notice::Advice(start::note(lang(), &words)));
            }
            shared.renewals.over().await;
        };
        tokio::select! {
            () = all_gone => {}
            () = tokio::time::sleep(within) => {}
            () = hurry => {}
        }
        shared.observers.notice(&Notice::Stopping { open: shared.open() });
        self.connections.lock().await.shutdown().await;
        save_learned(&shared).await;
        otlp::close(&shared, self.exporting).await;
        // It waits for a disk, for a moment at most.
        let _written = tokio::task::spawn_blocking(move || shared.snapshots.close()).await;
    }
}

/// Saves what lanes learn, every minute.
async fn keep_learned(current: Current) {
    const MINUTE: Duration = Duration::from_secs(60);
    loop {
        tokio::time::sleep(MINUTE).await;
        save_learned(&current.load_full()).await;
    }
}

/// Looks every minute whether the certificate has to be another; what is in the way is told once.
async fn keep_certificate(current: Current) {
    const MINUTE: Duration = Duration::from_secs(60);
    let mut told = String::new();
    while current.load().https.is_some() {
        tokio::time::sleep(MINUTE).await;
        let shared = current.load_full();
        let looking = Arc::clone(&shared);
        let looked = tokio::task::spawn_blocking(move || {
            // The one that people's machines go by, however fast a test lets time pass.
            looking.https.as_ref().map_or(Ok(()), |https| https.refresh(SystemClock.wall()))
        });
        let words = match looked.await {
            Ok(Err(error)) => format!("note: {error}"),
            Ok(Ok(())) | Err(_) => String::new(),
        };
        if !words.is_empty() && words != told {
            shared.observers.notice(&Notice::Advice(words.clone()));
        }
        told = words;
    }
}

async fn save_learned(shared: &Arc<Shared>) {
    let saver = Arc::clone(shared);
    let saved = tokio::task::spawn_blocking(move || saver.lanes.save()).await;
    if let Ok(Err(error)) = saved
        && shared.warn_of_state_once()
    {
        shared.observers.notice(&Notice::Advice(start::unsaved(lang(), &error.to_string())));
    }
}

/// What accepts connections.
#[derive(Clone)]
struct Door {
    current: Current,
    /// Those that are missing are taken. How many may be, the settings in force say.
    places: Arc<Semaphore>,
    connections: Connections,
    failures: Arc<std::sync::Mutex<Failures>>,
}

/// Failures to accept: the first is told at once, and then a minute has to pass. There are ten in a second for each
/// socket.
#[derive(Debug, Default)]
struct Failures {
    told: Option<Moment>,
    untold: u64,
}

impl Failures {
    /// How many were not told before this one, if it is to be told.
    fn one_more(&mut self, now: Moment) -> Option<u64> {
        const MINUTE: Duration = Duration::from_secs(60);
        if self.told.is_some_and(|told| now.since(told) < MINUTE) {
            self.untold += 1;
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

async fn accept(door: Door, socket: TcpListener) {
    loop {
        match socket.accept().await {
            Ok((stream, _peer)) => door.admit(stream).await,
            Err(error) => {
                // Out of file descriptors, most likely: the ones in use will come free.
                door.tell(&error);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Door {
    fn tell(&self, error: &std::io::Error) {
        let shared = self.current.load();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(untold) = failures.one_more(shared.clock.now()) {
            shared.observers.notice(&Notice::AcceptFailed { why: error.to_string(), untold });
        }
    }

    async fn admit(&self, stream: TcpStream) {
        let mut connections = self.connections.lock().await;
        // Those that have ended give their memory back.
        while connections.try_join_next().is_some() {}
        let shared = self.current.load();
        let most = shared.config.limits.connections;
        let taken = PLACES as usize - self.places.available_permits();
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
                connections.spawn(turn_away(stream, most, shared.https.is_some()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_to_accept_are_told_once_a_minute_with_their_number() {
        let mut failures = Failures::default();
        let mut at = |millis| failures.one_more(Moment::after_start(Duration::from_millis(millis)));
        assert_eq!([at(0), at(100), at(200), at(59_999)], [Some(0), None, None, None]);
        assert_eq!([at(60_000), at(60_100), at(120_000), at(500_000)], [Some(3), None, Some(1), Some(0)]);
    }
}
