//! `steady-relay serve`: listens and relays until it is told to stop; follows its settings while it runs.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use relay_core::config::{Config, UpstreamChoice};
use relay_core::gate::View;
use steady_relay::app::{Parts, Relay};
use steady_relay::cli::Flags;
use steady_relay::clock::{Clock, RatedClock, SystemClock};
use steady_relay::descriptors;
use steady_relay::files::Files;
use steady_relay::guard::Guard;
use steady_relay::held::{self, Sources};
use steady_relay::history;
use steady_relay::https::Https;
use steady_relay::listen::{Bound, bind, passed, reached_at};
use steady_relay::metrics_door::{self, Door};
use steady_relay::observe::log::Log;
use steady_relay::observe::metrics::Metrics;
use steady_relay::observe::{LaneName, Notice, Observer};
use steady_relay::proxy::SystemProxies;
use steady_relay::reload::{self, Watch, changed, needs_restart};
use steady_relay::settings::{Loaded, Places, Shown};
use steady_relay::words::{self, https as table, start};

use super::signals::{Hangups, Signals};
use super::{Failure, block_on, failed, files, listen, load, place, places, targets, tls_config};

/// Serves until told to stop.
pub(crate) fn serve(flags: &Flags) -> Result<u8, Failure> {
    let passed = passed::take().map_err(|error| failed(1, &error))?;
    block_on(serve_until_told(flags, passed))
}

async fn serve_until_told(flags: &Flags, passed: Option<Vec<TcpListener>>) -> Result<u8, Failure> {
    let clock = clock(flags)?;
    // Before they are read: a file that changes meanwhile is read again.
    let files = files(flags);
    let watch = Watch::over(&places(flags, &files));
    let Loaded { config, notices, shown, .. } = load(flags, &files)?;
    let (tls, tls_notices) = tls_config(&config)?;
    let bound = match passed {
        Some(sockets) => passed::use_passed(sockets, config.port, config.token.is_some())
            .map_err(|error| failed(1, &error))?,
        None => listen(&config)?,
    };
    let listening = bound.addresses();
    let metrics = MetricsAt::of(&config)?;
    let targets = targets(&config, &listening).await?;
    let (https, https_notices) = https(&config, listening.first())?;
    let mut signals = Signals::new()?;
    let hangups = Hangups::new()?;
    let log = Log::start(&config.log, clock.clone(), true).map_err(|error| failed(2, &error))?;
    let log = Arc::new(log);
    let lack = descriptors::lack(config.limits.connections, descriptors::raise());
    let told: Vec<String> = notices.into_iter().chain(tls_notices).chain(https_notices).chain(lack).collect();
    for words in told.iter().chain(&bound.notices) {
        log.notice(&Notice::Advice(start::note(words::lang(), words)));
    }
    let url = url_of(&bound);
    let beyond = listening.first().copied().and_then(beyond);
    let upstream = config.upstream.as_ref().map(|choice| match choice {
        // A path may be a secret.
        UpstreamChoice::Url(upstream) => {
            format!("{}://{}", upstream.url.scheme().name(), upstream.url.authority())
        }
        UpstreamChoice::Named(name) => format!("[upstream.{name}]"),
        UpstreamChoice::Pool(name) => format!("[pool.{name}]"),
    });
    let held = Arc::<held::Watch>::default();
    let mut observers: Vec<Arc<dyn Observer>> = vec![log.clone(), held.clone()];
    observers.extend(metrics.as_ref().map(|at| Arc::clone(&at.metrics) as Arc<dyn Observer>));
    let started_with = config.clone();
    let told_by = Arc::clone(&log);
    let say = move |words: String| told_by.notice(&Notice::Advice(start::note(words::lang(), &words)));
    let recorder = history::start(&config, "serve", clock.clone(), say)
        .map_err(|error| failed(2, &words::history::no_thread(words::lang(), &error.to_string())))?;
    let relay = Relay::start(Parts {
        config,
        targets,
        tls,
        clock: Arc::clone(&clock),
        observers,
        recorder: Some(Arc::clone(&recorder)),
        sockets: bound.sockets,
        system_proxies: SystemProxies::found(),
        https,
    });
    relay.show_settings(&shown);
    relay.show_log(log.tail());
    // Whoever reads this finds the relay there, and its local token.
    log.notice(&Notice::Listening { url, upstream, beyond });
    if let Some(at) = metrics {
        log.notice(&Notice::Metrics { url: url_of(&at.bound) });
        tokio::spawn(at.serve(relay.lanes(0)));
    }
    let settings = relay.settings();
    let wanted = move || settings().waiting.desktop;
    tokio::spawn(held.over(Sources { clock, held: relay.held(), wanted, tell: relay.notices() }));
    log.show_lanes(relay.lanes(0)).map_err(|error| failed(2, &error))?;
    tell_manager(ManagerHears::Ready);
    let mut following = Following { flags, relay: &relay, log: &log, listening, started_with, shown, told };
    tokio::select! {
        () = signals.next() => {}
        () = following.follow(watch, hangups, files) => {}
    }
    tell_manager(ManagerHears::Stopping);
    relay.drain(signals.next()).await;
    recorder.close();
    log.close();
    Ok(0)
}

/// Where a client on this machine reaches what listens there.
fn url_of(bound: &Bound) -> String {
    match bound.addresses().first() {
        Some(address) => format!("http://{}", reached_at(*address)),
        None => format!("port {}", bound.port),
    }
}

/// Metrics, and the sockets at which they are to be read.
struct MetricsAt {
    metrics: Arc<Metrics>,
    bound: Bound,
    guard: Guard,
}

impl MetricsAt {
    /// Where the settings want it.
    fn of(config: &Config) -> Result<Option<Self>, Failure> {
        let Some(port) = config.metrics_port else { return Ok(None) };
        let bound = bind(place(config, port)).map_err(|error| failed(1, &error.by_flag("--metrics-port")))?;
        let guard = Guard::of(config, bound.addresses());
        Ok(Some(Self { metrics: Arc::default(), bound, guard }))
    }

    /// Serves them for as long as the program runs.
    fn serve(
        self,
        lanes: impl Fn() -> Vec<(LaneName, View)> + Send + Sync + 'static,
    ) -> impl Future<Output = ()> {
        let Self { metrics, bound, guard } = self;
        metrics_door::serve(bound.sockets, Door { metrics, lanes: Arc::new(lanes), guard })
    }
}

/// TLS for clients, where it is wanted, and what there is to say about it.
fn https(config: &Config, listening: Option<&SocketAddr>) -> Result<(Option<Https>, Vec<String>), Failure> {
    if !config.tls {
        return Ok((None, Vec::new()));
    }
    let (https, mut notices) = Https::open(config, SystemClock.wall())?;
    if let Some(address) = listening {
        notices.push(table::also_https(words::lang(), &format!("https://{}", reached_at(*address))));
    }
    Ok((Some(https), notices))
}

/// What a service manager waits to hear.
enum ManagerHears {
    Ready,
    Stopping,
}

/// Tells the service manager, if one has started the relay and listens (`NOTIFY_SOCKET`). Without it the relay works
/// as well.
fn tell_manager(what: ManagerHears) {
    #[cfg(target_os = "linux")]
    {
        let state = match what {
            ManagerHears::Ready => sd_notify::NotifyState::Ready,
            ManagerHears::Stopping => sd_notify::NotifyState::Stopping,
        };
        let _unheard = sd_notify::notify(&[state]);
    }
    #[cfg(not(target_os = "linux"))]
    match what {
        ManagerHears::Ready | ManagerHears::Stopping => {}
    }
}

/// The machine's clock, or one that goes faster.
fn clock(flags: &Flags) -> Result<Arc<dyn Clock>, Failure> {
    let Some(rate) = &flags.clock_rate else { return Ok(Arc::new(SystemClock)) };
    match rate.parse() {
        Ok(rate) => Ok(Arc::new(RatedClock::new(Arc::new(SystemClock), rate))),
        Err(_not_one) => Err(Failure(2, start::no_rate(words::lang()))),
    }
}

/// Who else can reach the relay, and what they need.
fn beyond(listening: SocketAddr) -> Option<String> {
    if listening.ip().is_loopback() {
        return None;
    }
    let family = if listening.is_ipv4() { "IPv4" } else { "IPv6" };
    let whence = match listening.ip().is_unspecified() {
        true => start::every_address(words::lang(), family, listening.port()),
        false => String::new(),
    };
    Some(start::beyond(words::lang(), &whence))
}

/// A relay that follows its settings.
struct Following<'a> {
    flags: &'a Flags,
    relay: &'a Relay,
    log: &'a Log,
    listening: Vec<SocketAddr>,
    started_with: Config,
    /// The keys as they are in force.
    shown: Vec<Shown>,
    /// What was said at the start, and is not said again at every change.
    told: Vec<String>,
}

impl Following<'_> {
    /// Reloads whenever a file changes or somebody asks, once at a time; never ends. What happens meanwhile is noticed
    /// afterwards: a signal is kept, and a file differs from what was seen of it.
    async fn follow(&mut self, mut watch: Watch, mut hangups: Hangups, mut files: Files) {
        loop {
            let asked = tokio::select! {
                () = hangups.next() => {
                    watch.look_now();
                    true
                }
                () = watch.changed() => false,
            };
            let Some(mut reread) = self.reread().await else { continue };
            // A file that is being replaced is empty, or not there, until it is written.
            if reread.files.lack_what_was(&files) {
                tokio::time::sleep(reload::EVERY).await;
                let Some(again) = self.reread().await else { continue };
                reread = again;
            }
            files = reread.files;
            if let Err(Failure(_, words)) = self.take_on(reread.fresh, asked).await {
                self.relay.notice(&Notice::ReloadRefused(words));
            }
            // The files themselves may be others now.
            watch.now_over(&reread.places);
        }
    }

    /// Reads all anew, on a thread where that may take its time; `None` where the system has no thread for it.
    async fn reread(&self) -> Option<Reread> {
        let (flags, old) = (self.flags.clone(), self.relay.config());
        tokio::task::spawn_blocking(move || Reread::now(&flags, &old)).await.ok()
    }

    async fn take_on(&mut self, fresh: Result<Fresh, Failure>, asked: bool) -> Result<(), Failure> {
        let Fresh { config, notices, shown, tls } = fresh?;
        let old = self.relay.config();
        if config == *old {
            if asked {
                self.relay.notice(&Notice::Reloaded { changed: Vec::new(), kept: Vec::new() });
            }
            return Ok(());
        }
        let targets = targets(&config, &self.listening).await?;
        let kept = needs_restart(&self.started_with, &config);
        let changed = changed((&old, &self.shown), (&config, &shown));
        self.shown = shown;
        self.log.set_level(config.log.level);
        self.relay.reload(config, targets, tls);
        self.relay.show_settings(&self.shown);
        for words in notices.into_iter().filter(|words| !self.told.contains(words)) {
            self.relay.notice(&Notice::Advice(start::note(words::lang(), &words)));
        }
        self.relay.notice(&Notice::Reloaded { changed, kept });
        Ok(())
    }
}

/// What one more reading of the files came to.
struct Reread {
    fresh: Result<Fresh, Failure>,
    files: Files,
    places: Places,
}

/// Settings that can be put in force.
struct Fresh {
    config: Config,
    notices: Vec<String>,
    shown: Vec<Shown>,
    /// Where the certificates to trust are others.
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Reread {
    fn now(flags: &Flags, old: &Config) -> Self {
        let files = Files::anew();
        let fresh = Fresh::read(flags, &files, old);
        let places = places(flags, &files);
        Self { fresh, files, places }
    }
}

impl Fresh {
    fn read(flags: &Flags, files: &Files, old: &Config) -> Result<Self, Failure> {
        let Loaded { config, mut notices, shown, .. } = load(flags, files)?;
        let mut tls = None;
        if config.ca_files != old.ca_files {
            let (fresh, more) = tls_config(&config)?;
            tls = Some(fresh);
            notices.extend(more);
        }
        Ok(Self { config, notices, shown, tls })
    }
}
