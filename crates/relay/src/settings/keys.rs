//! Every key of the configuration file, declared once: name, kind of value, default, meaning, and where it goes.
//! Not the defaults in force (those are `relay_core::config`; a test
//! compares the two), not the numbers of a profile (those are `numbers`), and not what one key demands of another (that is `build`).

mod alerts;
mod credential;
mod fallback;
mod otlp;
mod pool;
mod snapshots;
mod upstream;

pub(super) use alerts::ALERTS;
pub(super) use credential::{CREDENTIAL, CredentialDraft};
pub(super) use fallback::{FALLBACK, FallbackDraft};
pub(super) use otlp::{OTLP, headers as otlp_headers};
pub(super) use pool::{BREAKER, POOL, PoolDraft};
pub(super) use snapshots::SNAPSHOTS;
pub(super) use upstream::{UPSTREAM, UpstreamDraft};

use super::read::{Given, Key};
use relay_core::client::Kind;
use relay_core::config::Timeouts;
use relay_core::config::{
    Bodies, ClientSettings, Desktop, HistorySettings, Hold, Http2, Limits, LogFormat, LogLevel, LogSettings,
    ProfileChoice, ProxyList, Secret, Waiting, Websocket,
};
use relay_core::units::Invalid;
use relay_core::{Lang, Listen};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// No setting that is a time exceeds a week: what is longer is a slip of the unit.
pub(super) const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
pub(super) const ANY_TIME: RangeInclusive<Duration> = Duration::ZERO..=WEEK;
/// A sign of life more often than once a second is noise, and beyond five minutes every client has hung up.
const BEATS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(300);
const SOME_TIME: RangeInclusive<Duration> = Duration::from_millis(1)..=WEEK;
/// What is kept for longer than ten years nobody looks at.
const AGES: RangeInclusive<Duration> = Duration::from_secs(3600)..=Duration::from_secs(3650 * 24 * 3600);

/// What `[relay]` says. Names are not yet looked up.
#[derive(Debug, Default)]
pub(super) struct RelayDraft {
    pub(super) listen: Option<Listen>,
    pub(super) port: Option<u16>,
    pub(super) tls: Option<bool>,
    pub(super) names: Vec<String>,
    pub(super) token: Option<Secret>,
    pub(super) upstream: Option<String>,
    pub(super) profile: Option<String>,
    pub(super) gate: Option<bool>,
    pub(super) park_quota: Option<bool>,
    pub(super) http2: Option<Http2>,
    pub(super) websocket: Option<Websocket>,
    pub(super) proxy: Option<ProxyList>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) allowed_origins: Vec<String>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) metrics_port: Option<u16>,
    pub(super) lang: Option<Lang>,
}

/// `[relay]`: the relay itself.
pub(super) const RELAY: &[Key<RelayDraft>] = &[
    Key {
        name: "listen",
        shape: "address",
        default: "\"localhost\"",
        doc: "The IP address to listen on; `localhost` is both 127.0.0.1 and ::1. Any address beyond loopback needs a \
              `token`, since whoever reaches the relay can spend the credentials that pass through it. \
              The relay of `run` listens on loopback alone, whatever is said here. Also `--listen` and `STEADY_RELAY_LISTEN`.",
        set: |relay, given| given.parsed().map(|value| relay.listen = Some(value)),
    },
    Key {
        name: "port",
        shape: "whole number",
        default: "8787",
        doc: "The port to listen on; 0 picks a free one. Also `--port` and `STEADY_RELAY_PORT`.",
        set: |relay, given| {
            let port = given.count(0..=u32::from(u16::MAX))?;
            relay.port = u16::try_from(port).ok();
            Ok(())
        },
    },
    Key {
        name: "token",
        shape: "text",
        default: "",
        doc: "What a client has to show to be served, 16 characters or more. Needed beyond loopback. \
              The client of `run` shows a key of its session in its place. Also `STEADY_RELAY_TOKEN`.",
        set: |relay, given| given.parsed().map(|value| relay.token = Some(value)),
    },
    Key {
        name: "upstream",
        shape: "URL or name",
        default: "",
        doc: "The one upstream that everything goes to: a URL, or the name of an `[upstream.NAME]` or a `[pool.NAME]`. Not set, the \
              credential that a request carries decides. Also `--upstream` and `STEADY_RELAY_UPSTREAM`.",
        set: |relay, given| given.text().map(|text| relay.upstream = Some(text.to_owned())),
    },
    Key {
        name: "profile",
        shape: "name",
        default: "\"auto\"",
        doc: "The profile of calls whose route or client names none: `auto`, which chooses by what is known of the \
              client, `interactive`, `batch`, `patient`, `strict`, `codex-retry`, `opencodex`, or the name of a \
              `[profile.NAME]`. \
              Also `--profile` and `STEADY_RELAY_PROFILE`.",
        set: |relay, given| given.text().map(|text| relay.profile = Some(text.to_owned())),
    },
    Key {
        name: "gate",
        shape: "true or false",
        default: "true",
        doc: "Whether calls wait in the gate of their lane, that is, with all others of the same upstream, credential \
              and model: one that is refused then holds the others back, and one that is taken lets them follow. \
              `false`: each call waits by itself, on the curves of its profile, unless the profile's own table or a \
              route says `gate = true`. Also `--gate` and `STEADY_RELAY_GATE`, as `on` and `off`.",
        set: |relay, given| given.flag().map(|value| relay.gate = Some(value)),
    },
    Key {
        name: "park_quota",
        shape: "true or false",
        default: "false",
        doc: "Whether a spent quota that names when there is one again (Codex's `usage_limit_reached` with its reset, a \
              `Retry-After`, the reset of a subscription) parks its lane: nothing is sent there before, calls whose \
              `patience` lasts wait, and all others get the answer that the service gave. `false`: such an answer goes \
              back at once, each time. A profile's own table or a route may say otherwise. It takes the gate; a balance \
              that is used up is never waited for.",
        set: |relay, given| given.flag().map(|value| relay.park_quota = Some(value)),
    },
    Key {
        name: "http2",
        shape: "choice",
        default: "\"auto\"",
        doc: "When upstreams are spoken to over HTTP/2, where they agree to it under TLS: `auto` for clients that \
              speak it themselves, `always`, or `off`. Header names are in lower case there.",
        set: |relay, given| http2(given).map(|value| relay.http2 = Some(value)),
    },
    Key {
        name: "websocket",
        shape: "choice",
        default: "\"speak\"",
        doc: "What becomes of a WebSocket on which a client asks for answers of a model, as Codex does first: `speak`, \
              and each request on it is protected like one over HTTP; `refuse`, and the client is told to use HTTP, for \
              networks that do not bear WebSockets; `tunnel`, and bytes pass as they come, unprotected. A change holds for \
              those that are opened from then on.",
        set: |relay, given| websocket(given).map(|value| relay.websocket = Some(value)),
    },
    Key {
        name: "proxy",
        shape: "choice, URL or list",
        default: "\"system\"",
        doc: "The proxy on the way to upstreams: `system` for what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and \
              `NO_PROXY` or the system's settings say, `none` or `direct`, or an address with http, https, socks4, socks4a, \
              socks5 or socks5h. A list of up to 8, `[\"http://proxy.example:3128\", \"direct\"]`, is tried in its order \
              ([ways.md](ways.md)); one way alone is never left. An upstream on this machine is never reached \
              through a proxy.",
        set: |relay, given| proxies(given).map(|value| relay.proxy = Some(value)),
    },
    Key {
        name: "ca_file",
        shape: "path",
        default: "\"\"",
        doc: "A PEM file of certificates to trust besides the system's; a relative path starts at the folder of this \
              file. Empty: none. `SSL_CERT_FILE` adds one more. No setting turns checking off.",
        set: |relay, given| {
            let path = given.text()?;
            relay.ca_file = (!path.is_empty()).then(|| PathBuf::from(path));
            Ok(())
        },
    },
    Key {
        name: "allowed_origins",
        shape: "list of origins",
        default: "[]",
        doc: "Origins of web pages that may call the relay, such as `http://localhost:3000`. All others are refused, \
              so that no page you visit can spend your credentials.",
        set: |relay, given| {
            relay.allowed_origins = given.texts()?.into_iter().map(origin).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Key {
        name: "metrics_port",
        shape: "whole number",
        default: "",
        doc: "The port at which metrics are read, at `/metrics` in OpenMetrics; 0 picks a free one. Not set, there are none. \
              Its addresses are those of `listen`, and it asks for the `token` where there is one. \
              Also `--metrics-port` and `STEADY_RELAY_METRICS_PORT`.",
        set: |relay, given| {
            let port = given.count(0..=u32::from(u16::MAX))?;
            relay.metrics_port = u16::try_from(port).ok();
            Ok(())
        },
    },
    Key {
        name: "tls",
        shape: "true or false",
        default: "false",
        doc: "Whether https is spoken too, on the same port as http, for clients that insist on it. The certificate is made at \
              the first start, by an authority of its own in the state folder, which clients have to trust: \
              `steady-relay cert trust-help` says how. The relay of `run` speaks http alone. Also `--tls` and `STEADY_RELAY_TLS`.",
        set: |relay, given| given.flag().map(|value| relay.tls = Some(value)),
    },
    Key {
        name: "names",
        shape: "list of names",
        default: "[]",
        doc: "Names and addresses by which clients reach the relay beside `localhost`, 127.0.0.1 and ::1, such as \
              `relay.lan`. Its certificate and its own pages hold for them, too.",
        set: |relay, given| {
            let names = given.texts()?;
            if names.len() > MOST_NAMES {
                let hint = format!("write at most {MOST_NAMES} names");
                return Err(Invalid::new("holds too many names", hint));
            }
            relay.names = names.into_iter().map(host_name).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Key {
        name: "state_dir",
        shape: "path",
        default: "",
        doc: "The folder for what the relay learns about the capacity of services and keeps over a restart: one small \
              file, `lanes.json`, that only its owner can read. It holds numbers and hashes, no credential and nothing \
              of a request, and relays may share it. Beside it is `token`, which whoever changes something at the relay \
              shows, and, where `tls` is set, the folder `tls` with the keys of https. A relative path starts at the folder of this file. Not set: \
              `steady-relay` in `$XDG_STATE_HOME` or `~/.local/state`, on macOS in `~/Library/Application Support` where \
              that variable is not set, on Windows in `%LOCALAPPDATA%`. Also `--state-dir` and `STEADY_RELAY_STATE_DIR`.",
        set: |relay, given| {
            let path = given.text()?;
            relay.state_dir = (!path.is_empty()).then(|| PathBuf::from(path));
            Ok(())
        },
    },
    Key {
        name: "lang",
        shape: "choice",
        default: "",
        doc: "The language of messages, to you and to clients: `en` or `zh`. Not set: the first of `LC_ALL`, \
              `LC_MESSAGES` and `LANG` that is set decides, and where none is, on macOS and Windows the language of \
              the system. A service has none of these, so name it here. What programs read (log lines of the form \
              `[retry] key=value`, JSON, names of events) is English in any case. Also `--lang` and \
              `STEADY_RELAY_LANG`.",
        set: |relay, given| {
            given.choice(&Lang::ALL.map(|lang| (lang.code(), lang))).map(|value| relay.lang = Some(value))
        },
    },
];

/// Reads the name of a model, or the beginning of one with a `*`.
fn model(given: &Given<'_>) -> Result<String, Invalid> {
    let model = given.text()?;
    let name = model.strip_suffix('*').unwrap_or(model);
    if name.contains('*') || model.is_empty() {
        return Err(Invalid::new("is no model", "write a name, with at most one * and that at its end"));
    }
    Ok(model.to_owned())
}

/// More calls at once than this no server works on.
fn max_running(given: &Given<'_>) -> Result<Option<NonZeroU32>, Invalid> {
    given.count(1..=100_000).map(NonZeroU32::new)
}

fn websocket(given: &Given<'_>) -> Result<Websocket, Invalid> {
    given.choice(&Websocket::ALL.map(|choice| (choice.name(), choice)))
}

/// Reads one proxy, or several in their order.
fn proxies(given: &Given<'_>) -> Result<ProxyList, Invalid> {
    let listed = given.each_or_one();
    let several = listed.len() > 1;
    // Which one it is tells its number: what stands there may hold a password.
    let numbered = |at: usize, error: Invalid| {
        let why = format!("(number {} of the list) {}", at + 1, error.why);
        if several { Invalid::new(why, error.allowed) } else { error }
    };
    let ways = listed.iter().enumerate();
    let ways = ways.map(|(at, way)| way.parsed().map_err(|error| numbered(at, error)));
    ProxyList::of(ways.collect::<Result<_, _>>()?)
}

fn http2(given: &Given<'_>) -> Result<Http2, Invalid> {
    given.choice(&Http2::ALL.map(|choice| (choice.name(), choice)))
}

/// Each name stands in the certificates, and those are read up to a size; this many of the longest fit.
const MOST_NAMES: usize = 100;

/// Reads a name of a host, or an address.
fn host_name(text: &str) -> Result<String, Invalid> {
    let name = text.trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| {
        let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.parse::<std::net::IpAddr>().is_ok() || name.len() <= 253 && name.split('.').all(is_label) {
        return Ok(name);
    }
    Err(Invalid::new(
        "holds what is no name of a host",
        "write a name or an address without scheme and port: \"relay.lan\"",
    ))
}

/// Reads `scheme://host` or `scheme://host:port`.
fn origin(text: &str) -> Result<String, Invalid> {
    let origin = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
    let is_whole = origin.split_once("://").is_some_and(|(scheme, host)| {
        let name = |b: u8| b.is_ascii_alphanumeric() || b"-._+".contains(&b);
        let place = |b: u8| name(b) || b":[]".contains(&b);
        !scheme.is_empty() && !host.is_empty() && scheme.bytes().all(name) && host.bytes().all(place)
    });
    if is_whole {
        return Ok(origin);
    }
    Err(Invalid::new(
        "holds what is no origin",
        "an origin is scheme, host and, where needed, port: \"http://localhost:3000\"",
    ))
}

/// `[timeouts]`.
pub(super) const TIMEOUTS: &[Key<Timeouts>] = &[
    Key {
        name: "connect",
        shape: "time",
        default: "\"10s\"",
        doc: "How long a connection to an upstream may take, TLS included.",
        set: |timeouts, given| given.duration(SOME_TIME).map(|value| timeouts.connect = value),
    },
    Key {
        name: "first_byte",
        shape: "time",
        default: "",
        doc: "How long an upstream may take until the first byte of its answer. Not set: no limit for Codex, a known \
              client's own limit for it, and `first_byte_unknown` for all others and for one that is still there after \
              its limit. A call that meets this limit is \
              never sent again, since it is probably still running. The tool codex-retry gives an answer 60 s, which \
              cuts those that take longer.",
        set: |timeouts, given| given.duration(SOME_TIME).map(|value| timeouts.first_byte = Some(value)),
    },
    Key {
        name: "first_byte_unknown",
        shape: "time",
        default: "\"15min\"",
        doc: "The same for clients of which no limit is known, where `first_byte` is not set, and for all on a WebSocket, Codex \
              too, since what keeps it waiting there takes its own limit away.",
        set: |timeouts, given| given.duration(SOME_TIME).map(|value| timeouts.first_byte_unknown = value),
    },
    Key {
        name: "idle",
        shape: "time",
        default: "\"300s\"",
        doc: "How long an answer may go without a sign of life: any byte before its output begins, events after. \
              A client's own limit holds where it is longer.",
        set: |timeouts, given| given.duration(SOME_TIME).map(|value| timeouts.idle = value),
    },
    Key {
        name: "pool_idle",
        shape: "time",
        default: "\"45s\"",
        doc: "How long a connection may lie unused and still carry a POST.",
        set: |timeouts, given| given.duration(ANY_TIME).map(|value| timeouts.pool_idle = value),
    },
    Key {
        name: "drain",
        shape: "time",
        default: "\"300s\"",
        doc: "How long open calls may go on after the relay is told to stop.",
        set: |timeouts, given| given.duration(ANY_TIME).map(|value| timeouts.drain = value),
    },
];

/// `[hold]`.
pub(super) const HOLD: &[Key<Hold>] = &[
    Key {
        name: "bytes",
        shape: "size",
        default: "\"256KiB\"",
        doc: "How much of an answer's beginning is held back in case it turns out to be a refusal.",
        set: |hold, given| given.size(0..=64 << 20).map(|value| hold.bytes = value),
    },
    Key {
        name: "time",
        shape: "time",
        default: "\"20s\"",
        doc: "How long it is held back, counted from the upstream's head. Codex has no such limit.",
        set: |hold, given| given.duration(ANY_TIME).map(|value| hold.time = value),
    },
];

/// `[waiting]`.
pub(super) const WAITING: &[Key<Waiting>] = &[
    Key {
        name: "interim",
        shape: "time or `off`",
        default: "\"15s\"",
        doc: "How often an HTTP/1.1 client that waits gets an interim answer, `102 Processing`, which keeps Node and \
              Gemini clients waiting past their own limits. Only clients that are known to skip it get it. `off` \
              where something in between does not expect it. On a WebSocket that waits as often comes a ping or, for \
              Codex, a message of the type `keepalive`.",
        set: |waiting, given| given.time_or_off(BEATS).map(|value| waiting.interim = value),
    },
    Key {
        name: "early_commit",
        shape: "time or `off`",
        default: "\"off\"",
        doc: "After how long of waiting the answer to a request for a stream is begun, with signs of life in the \
              client's dialect until the real one comes. From then on a failure is told inside the stream, and an answer that comes whole is lost, which is told there too.",
        set: |waiting, given| given.time_or_off(ANY_TIME).map(|value| waiting.early_commit = value),
    },
    Key {
        name: "heartbeat",
        shape: "time",
        default: "\"15s\"",
        doc: "How often a stream that was begun early carries a sign of life.",
        set: |waiting, given| given.duration(BEATS).map(|value| waiting.heartbeat = value),
    },
    Key {
        name: "notice",
        shape: "time or `off`",
        default: "\"15s\"",
        doc: "After how long of being held a turn of interactive Codex shows so, below Codex's own `Reconnecting...`; \
              again after 5 and 30 min. Each takes one of the five tries that Codex has for an answer; two are left for \
              real failures. `codex exec` and the threads that Codex starts by itself show nothing and get none.",
        set: |waiting, given| given.time_or_off(ANY_TIME).map(|value| waiting.notice = value),
    },
    Key {
        name: "title",
        shape: "choice",
        default: "\"on\"",
        doc: "`on`, and the title of the terminal says what is held while a call of the client of `run` is held for \
              more than 10 s, and until when; `off`. Interactive Codex writes its own all the time, so it is left alone; see \
              `notice`. Where there is no terminal, or a dumb one, nothing is written.",
        set: |waiting, given| {
            given.choice(&[("on", true), ("off", false)]).map(|value| waiting.title = value)
        },
    },
    Key {
        name: "desktop",
        shape: "choice",
        default: "\"auto\"",
        doc: "Whether the desktop shows a notice when calls are held for close to 20 s, and another when none is held any \
              more: once for each model, and no more than two in a minute for one. `auto`, where nothing else shows it: for \
              clients that were pointed at a relay that serves, unless they show it themselves, and for `run` without a \
              terminal or with `title = \"off\"`; `on`, in any case; `off`. It takes a session of a desktop, and there \
              `notify-send` or `busctl`.",
        set: |waiting, given| {
            let among = [("auto", Desktop::Auto), ("on", Desktop::On), ("off", Desktop::Off)];
            given.choice(&among).map(|value| waiting.desktop = value)
        },
    },
];

/// `[bodies]`.
pub(super) const BODIES: &[Key<Bodies>] = &[
    Key {
        name: "each",
        shape: "size",
        default: "\"128MiB\"",
        doc: "How much of one request is kept for a resend. A larger one is streamed and never sent again. An encoded \
              request is decoded to look at it, to at most this size and a hundred times its own, two at a time; zstd \
              takes twice as much meanwhile.",
        set: |bodies, given| given.size(0..=1 << 40).map(|value| bodies.each = value),
    },
    Key {
        name: "total",
        shape: "size",
        default: "\"1GiB\"",
        doc: "How much of all requests together is kept; at least `each`. Messages of WebSockets take from it as well, in both directions and as long as they are on their way: one that finds no room closes its WebSocket with the code 1013. Where it is less than `limits.message`, no WebSockets are spoken and clients are told to use HTTP.",
        set: |bodies, given| given.size(0..=1 << 40).map(|value| bodies.total = value),
    },
];

/// `[limits]`.
pub(super) const LIMITS: &[Key<Limits>] = &[
    Key {
        name: "connections",
        shape: "whole number",
        default: "1024",
        doc: "How many connections clients may have open at a time, tunnels among them. One more is answered 503 and closed.",
        set: |limits, given| given.count(1..=1_000_000).map(|value| limits.connections = value),
    },
    Key {
        name: "streams",
        shape: "whole number",
        default: "128",
        doc: "How many requests may be under way at a time on one HTTP/2 connection of a client.",
        set: |limits, given| given.count(1..=10_000).map(|value| limits.streams = value),
    },
    Key {
        name: "head",
        shape: "size",
        default: "\"256KiB\"",
        doc: "How long the head of a request may be. A longer one is answered 431.",
        set: |limits, given| given.size(8 << 10..=16 << 20).map(|value| limits.head = value),
    },
    Key {
        name: "headers",
        shape: "whole number",
        default: "512",
        doc: "How many headers a request may have. More are answered 431.",
        set: |limits, given| given.count(16..=10_000).map(|value| limits.headers = value),
    },
    Key {
        name: "head_time",
        shape: "time",
        default: "\"300s\"",
        doc: "How long a client may take over the head of a request. A connection that lies unused counts as well.",
        set: |limits, given| given.duration(SOME_TIME).map(|value| limits.head_time = value),
    },
    Key {
        name: "stall",
        shape: "time",
        default: "\"300s\"",
        doc: "How long a client may stop in the middle: of an upload, which is then answered 408 (one that is streamed \
              is cut), or of reading an answer, which is then cut.",
        set: |limits, given| given.duration(SOME_TIME).map(|value| limits.stall = value),
    },
    Key {
        name: "message",
        shape: "size",
        default: "\"64MiB\"",
        doc: "How long one message of a WebSocket may be, either way. A longer one of a client closes it with the code \
              1009, upon which Codex goes on over HTTP; one of the service ends the call with words that say so.",
        set: |limits, given| given.size(64 << 10..=1 << 30).map(|value| limits.message = value),
    },
];

/// `[log]`.
pub(super) const LOG: &[Key<LogSettings>] = &[
    Key {
        name: "level",
        shape: "choice",
        default: "\"info\"",
        doc: "The least important that is logged: `error`, `warn`, `info` (each wait and each retried call), \
              `debug` (every call) or `trace` (every step of every call). Also `--log-level` and \
              `STEADY_RELAY_LOG_LEVEL`.",
        set: |log, given| {
            given.choice(&LogLevel::ALL.map(|level| (level.name(), level))).map(|value| log.level = value)
        },
    },
    Key {
        name: "format",
        shape: "choice",
        default: "\"text\"",
        doc: "How a line looks: `text`, or `json`, one object per line with its version in `v`. Also `--log-format` and \
              `STEADY_RELAY_LOG_FORMAT`.",
        set: |log, given| {
            given
                .choice(&LogFormat::ALL.map(|format| (format.name(), format)))
                .map(|value| log.format = value)
        },
    },
    Key {
        name: "file",
        shape: "path",
        default: "\"\"",
        doc: "A file that the log is written to as well as to standard error; only its owner can read it. A relative \
              path starts at the folder of this file. Empty: none. Also `--log-file` and `STEADY_RELAY_LOG_FILE`.",
        set: |log, given| {
            let path = given.text()?;
            log.file = (!path.is_empty()).then(|| PathBuf::from(path));
            Ok(())
        },
    },
    Key {
        name: "max_size",
        shape: "size",
        default: "\"10MiB\"",
        doc: "The size at which the file is renamed, with `.1` added, and a new one begun.",
        set: |log, given| given.size(4096..=1 << 40).map(|value| log.max_size = value),
    },
    Key {
        name: "max_files",
        shape: "whole number",
        default: "5",
        doc: "The most files that are kept, the present one included; the oldest goes first.",
        set: |log, given| given.count(1..=1000).map(|value| log.max_files = value),
    },
];

/// `[history]`.
pub(super) const HISTORY: &[Key<HistorySettings>] = &[
    Key {
        name: "enabled",
        shape: "true or false",
        default: "true",
        doc: "Whether calls are recorded in a file, for `why`, `stats` and the dashboard: times, names, faults, waits, \
              bytes and tokens; never a prompt, an answer or a credential.",
        set: |history, given| given.flag().map(|value| history.enabled = value),
    },
    Key {
        name: "file",
        shape: "path",
        default: "\"\"",
        doc: "The file, a SQLite database that only its owner can read. A relative path starts at the folder of this \
              file. Empty: `history.sqlite` in `relay.state_dir`; without such a folder calls are kept in memory alone.",
        set: |history, given| {
            let path = given.text()?;
            history.file = (!path.is_empty()).then(|| PathBuf::from(path));
            Ok(())
        },
    },
    Key {
        name: "max_age",
        shape: "time",
        default: "\"90d\"",
        doc: "Calls older than this are removed.",
        set: |history, given| given.duration(AGES).map(|value| history.max_age = value),
    },
    Key {
        name: "max_size",
        shape: "size",
        default: "\"256MiB\"",
        doc: "The most that the file holds; beyond it the oldest calls are removed.",
        set: |history, given| given.size(1 << 20..=1 << 40).map(|value| history.max_size = value),
    },
];

/// `[client.NAME]`. The profile's name is not yet looked up.
pub(super) const CLIENT: &[Key<ClientSettings>] = &[
    Key {
        name: "profile",
        shape: "name",
        default: "",
        doc: "The profile of this client's calls, where their route names none. Not set: the one of `[relay]`.",
        set: |client, given| given.text().map(|name| client.profile = Some(ProfileChoice::from_name(name))),
    },
    Key {
        name: "limit",
        shape: "time",
        default: "",
        doc: "The longest this client waits for the head of an answer. It takes the place of what is known of its kind \
              and of what a request states by itself (`x-stainless-timeout` and its like), be that longer or shorter, \
              and it holds while interim answers come, too: those lift only limits that are known to start again with \
              each of them. What it does to `patience` is the profile's `client_limit`.",
        set: |client, given| {
            given.duration(Duration::from_secs(1)..=WEEK).map(|value| client.limit = Some(value))
        },
    },
];

/// What `[client.codex]` has besides.
pub(super) const CODEX: &[Key<ClientSettings>] = &[
    Key {
        name: "cut_fatal",
        shape: "true or false",
        default: "true",
        doc: "Whether a fatal capacity event after the commit is withheld and the connection cut, so that Codex \
              resumes by itself in place of losing the turn.",
        set: |client, given| given.flag().map(|value| client.cut_fatal = value),
    },
    Key {
        name: "cuts",
        shape: "whole number",
        default: "3",
        doc: "How often that is done in one turn; then the event passes unchanged.",
        set: |client, given| given.count(0..=100).map(|value| client.cuts = value),
    },
];

/// What a `[profile.NAME]` says besides its numbers.
#[derive(Debug, Default)]
pub(super) struct ProfileDraft {
    pub(super) based_on: Option<String>,
}

/// What a `[profile.NAME]` has besides the numbers.
pub(super) const PROFILE: &[Key<ProfileDraft>] = &[Key {
    name: "based_on",
    shape: "name",
    default: "\"interactive\"",
    doc: "The profile whose numbers hold where this one names none. Only for profiles of your own: a profile that \
          ships keeps its own numbers.",
    set: |profile, given| given.text().map(|text| profile.based_on = Some(text.to_owned())),
}];

/// What a `[[route]]` says besides its numbers. Names are not yet looked up.
#[derive(Debug, Default)]
pub(super) struct RouteDraft {
    pub(super) path: Option<String>,
    pub(super) client: Option<Kind>,
    pub(super) model: Option<String>,
    pub(super) upstream: Option<String>,
    pub(super) profile: Option<String>,
    pub(super) max_running: Option<NonZeroU32>,
}

/// What a `[[route]]` has besides the numbers.
pub(super) const ROUTE: &[Key<RouteDraft>] = &[
    Key {
        name: "path",
        shape: "path",
        default: "",
        doc: "Fits this path and all below it, so it takes no `*`. Not set: every path.",
        set: |route, given| {
            let path = given.text()?;
            if !path.starts_with('/') || path.contains(['?', '#']) {
                return Err(Invalid::new(
                    "is no path",
                    "a path begins with / and has no query: \"/v1/messages\"",
                ));
            }
            // It would be looked for as it stands, and never found.
            if path.contains('*') {
                return Err(Invalid::new(
                    "has a `*`, which stands for nothing in a path",
                    "leave it out, with the / before it: a path fits all below it, too",
                ));
            }
            route.path = Some(path.to_owned());
            Ok(())
        },
    },
    Key {
        name: "client",
        shape: "choice",
        default: "",
        doc: "Fits this kind of client: `codex`, `claude_code`, `stainless` (the OpenAI and Anthropic SDKs), \
              `gemini_cli`, `google_genai`, `ollama` or `other`. Not set: every client.",
        set: |route, given| {
            route.client = Some(given.choice(&Kind::ALL.map(|client| (client.name(), client)))?);
            Ok(())
        },
    },
    Key {
        name: "model",
        shape: "text",
        default: "",
        doc: "Fits this model; a `*` at the end stands for any rest. Not set: every model.",
        set: |route, given| model(given).map(|value| route.model = Some(value)),
    },
    Key {
        name: "upstream",
        shape: "name",
        default: "",
        doc: "The `[upstream.NAME]` or `[pool.NAME]` that these calls go to. Not set: as without a route.",
        set: |route, given| given.text().map(|text| route.upstream = Some(text.to_owned())),
    },
    Key {
        name: "profile",
        shape: "name",
        default: "",
        doc: "The profile of these calls. Not set: the client's, else the one of `[relay]`.",
        set: |route, given| given.text().map(|text| route.profile = Some(text.to_owned())),
    },
    Key {
        name: "max_running",
        shape: "whole number",
        default: "",
        doc: "The most calls that run at once, from 1 to 100000, as in `[upstream.NAME]` and in place of what that says: \
              for one of several models of a server, or for an upstream that is no more than a URL.",
        set: |route, given| max_running(given).map(|value| route.max_running = value),
    },
];
