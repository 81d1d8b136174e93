//! The program `steady-relay`: reads the command line, puts the parts together, prints, and exits.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use relay_core::Listen;
use relay_core::client::Kind;
use relay_core::config::{Config, LogLevel};
use steady_relay::app::{Parts, Relay};
use steady_relay::cli::{Cli, Flags, Verb};
use steady_relay::clock::SystemClock;
use steady_relay::listen::{Bound, Place, bind, leads_back};
use steady_relay::observe::log::Log;
use steady_relay::observe::{Notice, Observer};
use steady_relay::proxy::SystemProxies;
use steady_relay::run::{self, RelayAddr, Summary, Surroundings, closing_line};
use steady_relay::settings::{self, Loaded};
use steady_relay::target::Upstreams;
use steady_relay::tls;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Why the program ends early: what to print, and the exit code.
struct Failure(u8, String);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.verb() {
        Verb::Serve => runtime().and_then(|runtime| runtime.block_on(serve(&cli.flags))),
        Verb::Run(client) => {
            runtime().and_then(|runtime| runtime.block_on(run_client(&cli.flags, &client.command)))
        }
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(Failure(code, words)) => {
            say(&words);
            ExitCode::from(code)
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure(1, format!("error: the system does not let the relay start: {error}")))
}

/// Words for a person, on standard error. A reader that is gone cannot be told anything.
fn say(words: &str) {
    let _unread = writeln!(std::io::stderr(), "{words}");
}

fn load(flags: &Flags) -> Result<Loaded, Failure> {
    let env = |name: &str| std::env::var_os(name);
    let read = |path: &std::path::Path| std::fs::read(path);
    settings::load(flags, &env, &read).map_err(|error| Failure(2, error.to_string().trim_end().to_owned()))
}

fn listen(config: &Config) -> Result<Bound, Failure> {
    let place = match config.listen {
        Listen::Localhost => Place::Loopback(config.port),
        Listen::Address(ip) => Place::At(SocketAddr::new(ip, config.port)),
    };
    bind(place).map_err(|error| Failure(1, format!("error: {error}")))
}

/// Where requests go; an upstream that is the relay itself would send every request round for ever.
async fn targets(config: &Config, bound: &Bound) -> Result<Upstreams, Failure> {
    let targets = Upstreams::of(config);
    let listening = bound.addresses();
    for upstream in targets.all() {
        let url = &upstream.url;
        if upstream.is_at(&listening) || leads_back(url.host(), url.port(), &listening).await {
            return Err(Failure(
                2,
                format!(
                    "error: upstream `{}` is {}, which is this relay itself\nhint: name the service that answers, \
                     or give the relay another port",
                    upstream.name,
                    upstream.shown()
                ),
            ));
        }
    }
    Ok(targets)
}

fn tls_config(config: &Config) -> Result<(Arc<rustls::ClientConfig>, Vec<String>), Failure> {
    tls::client_config(&config.ca_files).map_err(|error| Failure(2, format!("error: {error}")))
}

/// Log lines go to standard error as they are: no time, no level, no colour.
fn start_log(level: tracing::level_filters::LevelFilter) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_ansi(false);
    let ours = Targets::new().with_target("steady_relay", level);
    tracing_subscriber::registry().with(ours).with(lines).init();
}

const fn level(level: LogLevel) -> tracing::level_filters::LevelFilter {
    use tracing::level_filters::LevelFilter;
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

async fn serve(flags: &Flags) -> Result<u8, Failure> {
    let Loaded { config, notices, .. } = load(flags)?;
    start_log(level(config.log.level));
    let (tls, tls_notices) = tls_config(&config)?;
    let bound = listen(&config)?;
    let targets = targets(&config, &bound).await?;
    let signals = Signals::new()?;
    let log = Log::default();
    for words in notices.into_iter().chain(tls_notices).chain(bound.notices.iter().cloned()) {
        log.notice(&Notice::Advice(format!("note: {words}")));
    }
    log.notice(&Notice::Listening { url: shown_url(&bound) });
    let relay = Relay::start(Parts {
        config,
        targets,
        tls,
        clock: Arc::new(SystemClock),
        observers: vec![Arc::new(log)],
        sockets: bound.sockets,
        system_proxies: SystemProxies::found(),
    });
    let mut signals = signals;
    signals.next().await;
    relay.drain(signals.next()).await;
    Ok(0)
}

fn shown_url(bound: &Bound) -> String {
    match bound.addresses().first() {
        Some(address) => format!("http://{address}"),
        None => format!("port {}", bound.port),
    }
}

async fn run_client(flags: &Flags, command: &[OsString]) -> Result<u8, Failure> {
    let mut flags = flags.clone();
    // A relay of the session's own: the port that clients are pointed at for good stays free.
    flags.port.get_or_insert_with(|| "0".to_owned());
    let Loaded { mut config, notices, .. } = load(&flags)?;
    start_log(tracing::level_filters::LevelFilter::ERROR);
    let (tls, tls_notices) = tls_config(&config)?;
    let bound = listen(&config)?;
    let mut targets = targets(&config, &bound).await?;
    let Some((client, arguments)) = command.split_first() else {
        return Err(Failure(2, "error: no client named\nhint: steady-relay run -- codex".to_owned()));
    };
    let folder = std::env::current_dir().unwrap_or_default();
    let surroundings = Surroundings {
        env: &|name| std::env::var_os(name),
        read: &|path| std::fs::read_to_string(path),
        folder: &folder,
    };
    let plan = run::plan(client, arguments, surroundings, RelayAddr { port: bound.port })
        .map_err(|error| Failure(error.exit_code(), format!("error: {error}")))?;
    if config.upstream.is_none()
        && let Some(upstream) = plan.upstream.clone()
    {
        targets.send_everything_to(upstream);
    }
    if let Some(limit) = plan.claude_limit {
        config.clients.entry(Kind::ClaudeCode).or_default().limit.get_or_insert(limit);
    }
    for words in notices.iter().chain(&tls_notices).chain(&plan.notices) {
        say(&format!("steady-relay: {words}"));
    }
    let relay = Relay::start(Parts {
        config,
        targets,
        tls,
        clock: Arc::new(SystemClock),
        observers: Vec::new(),
        sockets: bound.sockets,
        system_proxies: SystemProxies::found(),
    });
    let status = relay.status();
    let ended = run::supervise(&plan).await;
    // The client is gone: nobody is left to be answered.
    relay.drain(std::future::ready(())).await;
    let totals = status.totals();
    if let Some(line) = closing_line(&Summary {
        calls: totals.met_fault,
        at_capacity: totals.met_capacity,
        recovered: totals.recovered,
        waited: std::time::Duration::from_secs_f64(totals.waited_s.max(0.0)),
        sends: totals.retried_sends,
        lost: totals.lost,
        maybe_billed_twice: totals.maybe_billed_twice,
    }) {
        say(&line);
    }
    match ended {
        Ok(ended) => Ok(u8::try_from(ended.exit_code()).unwrap_or(1)),
        Err(error) => Err(Failure(error.exit_code(), format!("error: {error}"))),
    }
}

/// The signals that end the relay.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|error| Failure(1, format!("error: signals: {error}")));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    #[cfg(not(unix))]
    const fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Waits for the next one.
    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _end = self.terminate.recv() => {}
            _end = self.interrupt.recv() => {}
        }
    }

    /// Waits for the next one.
    #[cfg(not(unix))]
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
