//! The settings, as types: whatever a `Config` holds is valid, so nothing is checked again later.
//! Not the reading of files, flags or the environment (that is the relay's `settings`), and not the numbers
//! of a profile (that is `profile`). Every default is here, with its reason.

mod alerts;
mod credential;
mod fallback;
mod otlp;
mod pool;
mod snapshots;
mod upstream;

pub use alerts::{AlertSettings, WebhookUrl};
pub use credential::{
    Credential, Held, OAuth, REFRESH_BEFORE, REFRESH_TOKEN, Source, TokenRequest, TokenUrl,
};
pub use fallback::{FALLBACK_AFTER, Fallback};
pub use otlp::OtlpSettings;
pub use pool::{Pool, SHARES};
pub use snapshots::SnapshotSettings;
pub use upstream::{
    Http2, ProxyChoice, ProxyList, ProxyUrl, Secret, Upstream, UpstreamChoice, Warm, Websocket,
};

use crate::breaker;
use crate::client::Kind;
use crate::dialect::Rule;
use crate::listen::Listen;
use crate::overrides::ProfileOverrides;
use crate::profile::Profile;
use crate::words::Lang;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All settings of a relay.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The addresses to listen on. Loopback unless told otherwise.
    pub listen: Listen,
    /// The port on each of them; 0 picks a free one. 8787 is rarely taken and needs no privilege.
    pub port: u16,
    /// Whether https is spoken on the same port, beside http. Off: a certificate has to be trusted by clients first, and
    /// on loopback nobody listens in.
    pub tls: bool,
    /// Names and addresses of the relay beside `localhost`, in lower case.
    pub names: Vec<String>,
    /// What a client has to show to be served; needed, and always set, beyond loopback.
    pub token: Option<Secret>,
    /// The one upstream for everything. `None`: chosen by the credential that each request carries.
    pub upstream: Option<UpstreamChoice>,
    /// The profile of calls whose route or client names none.
    pub profile: ProfileChoice,
    /// Whether profiles have a gate of which nothing else says so; `profiles` go by it already.
    pub gate: bool,
    /// Whether profiles park a lane whose quota is spent of which nothing else says so; `profiles` go by it already.
    pub park_quota: bool,
    /// Numbers in place of those of every profile, from the settings of older tools, which have no profiles.
    pub numbers: ProfileOverrides,
    /// Every profile by name: the six that ship, as changed, and the user's own.
    pub profiles: BTreeMap<String, Profile>,
    /// Every upstream by name: the four that ship, as changed, and the user's own.
    pub upstreams: BTreeMap<String, Upstream>,
    /// Every pool by name; no upstream has the same one.
    pub pools: BTreeMap<String, Pool>,
    /// When an upstream is cut off for a while.
    pub breaker: breaker::Rules,
    /// Every credential of the relay's own by name. None unless somebody sets one: clients bring theirs.
    pub credentials: BTreeMap<String, Credential>,
    /// When upstreams whose entry does not say are spoken to over HTTP/2.
    pub http2: Http2,
    /// What becomes of WebSockets to upstreams whose entry does not say.
    pub websocket: Websocket,
    /// The proxy on the way to upstreams whose entry names none, or several.
    pub proxy: ProxyList,
    /// The routes in the order of the file; the first that matches a call holds.
    pub routes: Vec<Route>,
    /// Models that may answer in place of others, in the order of the file; the first that fits a call holds. None: what a
    /// client asks for is its own choice.
    pub fallbacks: Vec<Fallback>,
    /// The user's own rules in the order of the file; the first that fits an answer holds, before all that ship.
    pub rules: Vec<OwnRule>,
    /// How long each step of a send may take.
    pub timeouts: Timeouts,
    /// How much of an answer is held back before it is committed.
    pub hold: Hold,
    /// What a client is shown while it waits.
    pub waiting: Waiting,
    /// How much of the requests is kept for a resend.
    pub bodies: Bodies,
    /// What clients may ask of the relay itself.
    pub limits: Limits,
    /// What is known of, and allowed for, each kind of client.
    pub clients: BTreeMap<Kind, ClientSettings>,
    /// PEM files of certificates that are trusted besides the system's.
    pub ca_files: Vec<PathBuf>,
    /// Origins of web pages that may call the relay, besides its own; in lower case, without a slash at the end.
    pub allowed_origins: Vec<String>,
    /// What is written to the log.
    pub log: LogSettings,
    /// What is kept of calls that are over.
    pub history: HistorySettings,
    /// What a person is told of, and how.
    pub alerts: AlertSettings,
    /// Where traces and metrics are sent.
    pub otlp: OtlpSettings,
    /// What is kept of calls that end badly.
    pub snapshots: SnapshotSettings,
    /// The language of what clients are told. `None`: nobody chose one, so the surroundings of the program decide.
    pub lang: Option<Lang>,
    /// The folder for what outlives a restart. `None`: nothing tells where that could be, so nothing outlives it.
    pub state_dir: Option<PathBuf>,
    /// The folder for tokens that were issued: below the one above, and kept where a relay leaves nothing else behind. A
    /// refresh token may be good once, so whoever uses it has to keep the next one.
    pub credentials_dir: Option<PathBuf>,
    /// The port at which metrics are read. Off: nobody should listen whom nobody asks.
    pub metrics_port: Option<u16>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            port: 8787,
            tls: false,
            names: Vec::new(),
            token: None,
            upstream: None,
            profile: ProfileChoice::Auto,
            // Calls that know of each other wait no longer and send less.
            gate: true,
            // What goes back at once shows its user that the quota is spent.
            park_quota: false,
            numbers: ProfileOverrides::default(),
            profiles: shipped_profiles(),
            upstreams: shipped_upstreams(),
            pools: BTreeMap::new(),
            breaker: breaker::Rules::default(),
            credentials: BTreeMap::new(),
            http2: Http2::default(),
            websocket: Websocket::default(),
            proxy: ProxyList::default(),
            routes: Vec::new(),
            fallbacks: Vec::new(),
            rules: Vec::new(),
            timeouts: Timeouts::default(),
            hold: Hold::default(),
            waiting: Waiting::default(),
            bodies: Bodies::default(),
            limits: Limits::default(),
            clients: Kind::ALL.map(|name| (name, ClientSettings::default())).into(),
            ca_files: Vec::new(),
            allowed_origins: Vec::new(),
            log: LogSettings::default(),
            history: HistorySettings::default(),
            alerts: AlertSettings::default(),
            otlp: OtlpSettings::default(),
            snapshots: SnapshotSettings::default(),
            lang: None,
            state_dir: None,
            credentials_dir: None,
            metrics_port: None,
        }
    }
}

impl Config {
    /// Whether requests can be sent to what has this name: an upstream or a pool.
    #[must_use]
    pub fn sends_to(&self, name: &str) -> bool {
        self.upstreams.contains_key(name) || self.pools.contains_key(name)
    }

    /// The names of all upstreams and pools.
    pub fn destinations(&self) -> impl Iterator<Item = &str> {
        self.upstreams.keys().chain(self.pools.keys()).map(String::as_str)
    }

    /// The first route that fits.
    #[must_use]
    pub fn route(&self, path: &str, client: Kind, model: Option<&str>) -> Option<&Route> {
        self.routes.iter().find(|route| route.matches(path, client, model))
    }

    /// The first fallback for calls that ask this one, an upstream or a pool, for this model.
    #[must_use]
    pub fn fallback(&self, model: &str, upstream: &str) -> Option<&Fallback> {
        self.fallbacks.iter().find(|fallback| fallback.matches(model, upstream))
    }

    /// The profile that is asked for: by the route, else for the client, else for all.
    #[must_use]
    pub fn profile_choice<'a>(&'a self, route: Option<&'a Route>, client: Kind) -> &'a ProfileChoice {
        let by_client = || self.clients.get(&client).and_then(|settings| settings.profile.as_ref());
        route.and_then(|route| route.profile.as_ref()).or_else(by_client).unwrap_or(&self.profile)
    }

    /// The user's own rules for the answers of this dialect from this upstream.
    #[must_use]
    pub fn rules_for(&self, dialect: &str, upstream: &str) -> Arc<[Arc<Rule>]> {
        let fits = |only: Option<&str>, it: &str| only.is_none_or(|only| only == it);
        let rules = self
            .rules
            .iter()
            .filter(|own| fits(own.dialect, dialect) && fits(own.upstream.as_deref(), upstream));
        rules.map(|own| Arc::clone(&own.rule)).collect()
    }

    /// The user's own rules that ask for an alert.
    #[must_use]
    pub fn alerting_rules(&self) -> Vec<OwnRule> {
        self.rules.iter().filter(|own| own.alert).cloned().collect()
    }

    /// What is set for this kind of client.
    #[must_use]
    pub fn client(&self, name: Kind) -> ClientSettings {
        self.clients.get(&name).cloned().unwrap_or_default()
    }
}

/// Whether a model is the one of this name, at whose end a `*` stands for any rest.
fn is_model(pattern: &str, model: &str) -> bool {
    pattern.strip_suffix('*').map_or(model == pattern, |start| model.starts_with(start))
}

/// The six profiles that ship.
#[must_use]
pub fn shipped_profiles() -> BTreeMap<String, Profile> {
    BTreeMap::from([
        ("interactive".to_owned(), Profile::interactive()),
        ("batch".to_owned(), Profile::batch()),
        ("patient".to_owned(), Profile::patient()),
        ("strict".to_owned(), Profile::strict()),
        ("codex-retry".to_owned(), Profile::codex_retry()),
        ("opencodex".to_owned(), Profile::opencodex()),
    ])
}

/// The four upstreams that ship, one for each family of credentials.
#[must_use]
pub fn shipped_upstreams() -> BTreeMap<String, Upstream> {
    const URLS: [(&str, &str); 4] = [
        ("openai", "https://api.openai.com/v1"),
        ("chatgpt", "https://chatgpt.com/backend-api/codex"),
        ("anthropic", "https://api.anthropic.com"),
        ("gemini", "https://generativelanguage.googleapis.com"),
    ];
    let entry = |(name, url): (&str, &str)| Some((name.to_owned(), Upstream::at(url.parse().ok()?)));
    URLS.into_iter().filter_map(entry).collect()
}

/// Which profile a call gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProfileChoice {
    /// By what is known of the client. The default: nobody has to know the profiles.
    #[default]
    Auto,
    /// The profile of this name, which exists.
    Named(String),
}

impl ProfileChoice {
    /// Reads a name, of which `auto` is one.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        if name == "auto" { Self::Auto } else { Self::Named(name.to_owned()) }
    }

    /// The name in settings.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Auto => "auto",
            Self::Named(name) => name,
        }
    }
}

/// A rule of the user's own: what an answer looks like, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnRule {
    /// The name of the dialect it is about; `None`: all.
    pub dialect: Option<&'static str>,
    /// The name of the upstream it is about; `None`: all.
    pub upstream: Option<String>,
    /// The rule, of the same type as those that ship.
    pub rule: Arc<Rule>,
    /// Whether a person is to be told of answers that it fits.
    pub alert: bool,
}

/// What is different for some calls. A condition that is not set fits every call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Route {
    /// Fits this path and all below it.
    pub path: Option<String>,
    /// Fits this kind of client.
    pub client: Option<Kind>,
    /// Fits this model; a `*` at the end stands for any rest.
    pub model: Option<String>,
    /// The name of the upstream, or of the pool, to send to.
    pub upstream: Option<String>,
    /// The profile to use.
    pub profile: Option<ProfileChoice>,
    /// The most of these calls that an upstream works on at once, in place of what its entry says.
    pub max_running: Option<NonZeroU32>,
    /// Numbers in place of the profile's; they fit every profile that the route can meet.
    pub overrides: ProfileOverrides,
}

impl Route {
    /// Whether the route fits a call.
    #[must_use]
    pub fn matches(&self, path: &str, client: Kind, model: Option<&str>) -> bool {
        let below = |prefix: &String| match path.strip_prefix(prefix.as_str()) {
            Some(rest) => rest.is_empty() || prefix.ends_with('/') || rest.starts_with(['/', '?']),
            None => false,
        };
        let same_model = |pattern: &String| model.is_some_and(|model| is_model(pattern, model));
        self.path.as_ref().is_none_or(below)
            && self.client.is_none_or(|wanted| wanted == client)
            && self.model.as_ref().is_none_or(same_model)
    }

    /// Whether it fits every call.
    #[must_use]
    pub fn fits_all(&self) -> bool {
        self.path.is_none() && self.client.is_none() && self.model.is_none()
    }

    /// Whether it fits every call that the other one fits.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let below = |prefix: &String| {
            let rest = other.path.as_ref().and_then(|path| path.strip_prefix(prefix.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
        };
        let among = |pattern: &String| {
            let model = other.model.as_deref();
            match pattern.strip_suffix('*') {
                Some(start) => model.is_some_and(|model| model.trim_end_matches('*').starts_with(start)),
                None => model == Some(pattern),
            }
        };
        self.path.as_ref().is_none_or(below)
            && self.client.is_none_or(|wanted| other.client == Some(wanted))
            && self.model.as_ref().is_none_or(among)
    }
}

/// How long each step of a send may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands, TLS included. 10 s covers a lost packet or two on a slow line.
    pub connect: Duration,
    /// Until the first byte of an answer, for every client. `None`: no limit for Codex, which waits for an hour
    /// by itself, a known client's own limit for it, and `first_byte_unknown` for all others.
    pub first_byte: Option<Duration>,
    /// Until the first byte of an answer, for clients of which no limit is known. Long answers that are not
    /// streamed take minutes, and a limit hit means work that was paid for and lost: 15 min.
    pub first_byte_unknown: Duration,
    /// Between two signs of life of an answer. 300 s is what Codex itself bears.
    pub idle: Duration,
    /// How long a connection nobody uses stays fit for a POST. Edges close theirs after 60 s; 45 s stays clear of it.
    pub pool_idle: Duration,
    /// How long open calls may go on after the relay is told to stop. 300 s lets most turns end.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: None,
            first_byte_unknown: Duration::from_secs(15 * 60),
            idle: Duration::from_secs(300),
            pool_idle: Duration::from_secs(45),
            drain: Duration::from_secs(300),
        }
    }
}

/// How much, and how long, the beginning of an answer is held back in case it turns out to be a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// At most so many bytes. Lifecycle events echo the request's tools and instructions; 256 KiB holds those.
    pub bytes: u64,
    /// At most so long after the upstream's head (no limit for Codex). 20 s stays below what people and
    /// proxies bear without a byte.
    pub time: Duration,
}

impl Default for Hold {
    fn default() -> Self {
        Self { bytes: 256 << 10, time: Duration::from_secs(20) }
    }
}

/// What a client is shown while it waits, so that it goes on waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// How often an HTTP/1.1 client gets a `102 Processing`. Every client measured accepts it, and Node's fetch and
    /// Gemini CLI wait past their own limits for it. 15 s: well inside the shortest of these, 60 s.
    pub interim: Option<Duration>,
    /// After how long a stream that was asked for is begun although no answer is there. Off: once a stream is begun,
    /// a failure can only be told inside it, and no client sends again for that.
    pub early_commit: Option<Duration>,
    /// How often a stream that was begun early carries a sign of life.
    pub heartbeat: Duration,
    /// After how long of being held the person in front of Codex is shown so. 15 s: nobody should wonder for longer than
    /// 20 s, and most waits are shorter.
    pub notice: Option<Duration>,
    /// Whether `run` says in the terminal's title what is held. On: it costs the client nothing, and is the one place
    /// beside the client's screen where the person looks.
    pub title: bool,
    /// Whether the desktop is told of what is held for long. Where nothing else shows it: a notice interrupts, and yet
    /// is better than a client that seems dead.
    pub desktop: Desktop,
}

/// When the desktop is told that calls are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Desktop {
    /// Where neither the client nor the title of a terminal shows it.
    #[default]
    Auto,
    /// In any case.
    On,
    /// Never.
    Off,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            interim: Some(Duration::from_secs(15)),
            early_commit: None,
            heartbeat: Duration::from_secs(15),
            notice: Some(Duration::from_secs(15)),
            title: true,
            desktop: Desktop::Auto,
        }
    }
}

/// How much of the requests is kept for a resend; what exceeds it is streamed and cannot be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bodies {
    /// Bytes kept of one request. 128 MiB is four times what services take at most (32 MB).
    pub each: u64,
    /// Bytes kept of all requests together. 1 GiB is eight of the largest, and bounds the relay's memory.
    pub total: u64,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { each: 128 << 20, total: 1 << 30 }
    }
}

/// What clients may ask of the relay itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients at a time; more are refused with 503. 1024 is more than a crowd of agents opens.
    pub connections: u32,
    /// Requests at a time on one HTTP/2 connection. 128 is what servers usually grant.
    pub streams: u32,
    /// Bytes in the head of one request. 256 KiB is 16 times what most services take.
    pub head: u64,
    /// Lines in the head of one request. Clients behind gateways send over a hundred.
    pub headers: u32,
    /// Until the head of a request is whole; a connection that lies unused counts as well. 300 s, since closing one
    /// that a client is about to use costs that client an error.
    pub head_time: Duration,
    /// Between two pieces of a request's body, and how long an answer may wait for a client that does not read.
    /// 300 s, as between two pieces of an answer.
    pub stall: Duration,
    /// Bytes in one message of a WebSocket, either way. A turn with pictures is one message, and they go as text.
    pub message: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            streams: 128,
            head: 256 << 10,
            headers: 512,
            head_time: Duration::from_secs(300),
            stall: Duration::from_secs(300),
            message: 64 << 20,
        }
    }
}

/// What is set for one kind of client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// The profile of its calls, where their route names none.
    pub profile: Option<ProfileChoice>,
    /// The longest this client waits for the head of an answer, in place of what is known of it.
    pub limit: Option<Duration>,
    /// Codex only: a fatal capacity event after the commit is withheld and the connection cut, so that Codex
    /// resumes by itself. True: passed on, the event ends the turn and loses its work.
    pub cut_fatal: bool,
    /// Codex only: how often in one turn. 3 leaves Codex two of its own five reconnections.
    pub cuts: u32,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self { profile: None, limit: None, cut_fatal: true, cuts: 3 }
    }
}

/// What is written to the log, where, and how it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// The least important that is still written.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
    /// The file that lines go to, beside standard error. `None`: nothing is written to disk unasked.
    pub file: Option<PathBuf>,
    /// The size at which a new file is begun. 10 MiB still opens in an editor.
    pub max_size: u64,
    /// The most files, the present one included. 5 of 10 MiB hold some hundred thousand waits.
    pub max_files: u32,
}

impl Default for LogSettings {
    fn default() -> Self {
        let (level, format) = (LogLevel::Info, LogFormat::Text);
        Self { level, format, file: None, max_size: 10 << 20, max_files: 5 }
    }
}

/// What is kept of calls that are over, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistorySettings {
    /// Whether anything is written to a file.
    pub enabled: bool,
    /// The file. `None`: the usual one in the state folder, where there is such a folder.
    pub file: Option<PathBuf>,
    /// Calls older than this go. 90 days show whether a month was better than the one before.
    pub max_age: Duration,
    /// The most bytes of the file; the oldest calls go first. 256 MiB hold about half a million calls.
    pub max_size: u64,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self { enabled: true, file: None, max_age: Duration::from_secs(90 * 24 * 3600), max_size: 256 << 20 }
    }
}

impl Config {
    /// The file that the history is written to, if it is.
    #[must_use]
    pub fn history_file(&self) -> Option<PathBuf> {
        let usual = || self.state_dir.as_ref().map(|folder| folder.join("history.sqlite"));
        self.history.file.clone().or_else(usual).filter(|_| self.history.enabled)
    }
}

impl Config {
    /// Whether snapshots are kept: they are wanted, and there is a folder for them.
    #[must_use]
    pub const fn keeps_snapshots(&self) -> bool {
        self.snapshots.enabled && (self.snapshots.folder.is_some() || self.state_dir.is_some())
    }

    /// The folder of snapshots, whether they are kept or not.
    #[must_use]
    pub fn snapshots_folder(&self) -> Option<PathBuf> {
        let usual = || self.state_dir.as_ref().map(|folder| folder.join("snapshots"));
        self.snapshots.folder.clone().or_else(usual)
    }
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// How much is written to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// What the relay itself could not do.
    Error,
    /// And what needs attention soon.
    Warn,
    /// And each wait and each retried call. The default: silent as long as all is well.
    #[default]
    Info,
    /// And every call.
    Debug,
    /// And every step of every call.
    Trace,
}

impl LogLevel {
    /// Every level, the quietest first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

#[cfg(test)]
mod tests;
