//! `steady-relay run -- CLIENT …`: starting a client so that its model requests come to this relay.
//!
//! [`plan`] decides, purely: what to start, with which arguments and variables, and where the client's requests
//! would have gone without us. [`supervise`] carries it out. Nothing is written to disk: the client is moved
//! by the means that it offers for one session, and its own files stay as they are.
//!
//! Each client has a file: what moves it, and what in the user's own settings would undo that.

mod child;
mod claude;
mod codex;

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use child::{Ended, supervise};

use crate::target::{Upstream, V1, is_version};
use crate::words::run;
use relay_core::Lang;
use relay_core::units::Invalid;

/// The relay that the client is to use: on loopback, at this port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayAddr {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// What it asks its client for, in the path, where it asks at all.
    pub key: Option<SessionKey>,
    /// Whether its own settings name the upstream of everything: then what the client's say does not count.
    pub has_upstream: bool,
}

/// What the relay of one session asks its client for, in place of the token of the settings: the client's arguments
/// show it to others on the machine, and it is worth nothing after the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(pub u128);

impl std::fmt::Display for SessionKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl RelayAddr {
    /// The base URL without a path.
    #[must_use]
    pub fn base(self) -> String {
        let key = self.key.map_or_else(String::new, |key| format!("/~{key}"));
        format!("http://127.0.0.1:{}{key}", self.port)
    }

    fn is(self, upstream: &Upstream) -> bool {
        upstream.is_at(&[SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))])
    }
}

/// What a plan may look at.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a text file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The folder that the client starts in.
    pub folder: &'a Path,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Surroundings").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Surroundings<'_> {
    /// A variable that is set to something.
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)?.into_string().ok().filter(|value| !value.is_empty())
    }

    fn home(&self) -> Option<PathBuf> {
        let names: &[&str] = if cfg!(windows) { &["USERPROFILE", "HOME"] } else { &["HOME"] };
        names.iter().find_map(|name| (self.env)(name)).filter(|home| !home.is_empty()).map(PathBuf::from)
    }

    /// A file's text; `None` where there is no file.
    fn text(&self, path: &Path) -> io::Result<Option<String>> {
        match (self.read)(path) {
            Ok(text) => Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// How to start the client, and what the relay should know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The program, as the user named it.
    pub program: OsString,
    /// Its arguments, ours among them.
    pub args: Vec<OsString>,
    /// Variables to set on top of the environment.
    pub env: Vec<(OsString, OsString)>,
    /// What the user should know, a sentence each.
    pub notices: Vec<String>,
    /// Where the user's own settings send this client: everything goes there. `None`: by credential.
    pub upstream: Option<Upstream>,
    /// How long Claude Code, started like this, waits for the head of an answer.
    pub claude_limit: Option<Duration>,
}

/// Why a client cannot be started, or was not.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Not a client that we know how to move.
    #[error(
        "`{client}` is not a client that `run` can start: it knows `codex` and `claude`\nhint: start `steady-relay` by itself and give your client one of its addresses as base URL:\n  {base}/v1 for OpenAI's SDKs (OPENAI_BASE_URL), {base} for Anthropic's (ANTHROPIC_BASE_URL)"
    )]
    UnknownClient {
        /// What was asked for.
        client: String,
        /// The address at which a relay listens that was started by itself.
        base: String,
    },
    /// The client's own settings already name this relay as its service.
    #[error(
        "{origin} already sends this client to the relay itself ({url})\nhint: remove that setting; `run` makes its own for each session"
    )]
    Itself {
        /// Where that is said.
        origin: String,
        /// The address.
        url: String,
    },
    /// The client's own settings name an address that cannot be forwarded to.
    ///
    /// The address is not repeated: it may hold a password.
    #[error("{origin} names an address that cannot be forwarded to: it {why}")]
    Url {
        /// Where that is said.
        origin: String,
        /// What is wrong with it.
        why: Invalid,
    },
    /// A setting stands in the way that no session can override.
    #[error("{client} cannot be moved to the relay: {why}\nhint: {hint}")]
    Immovable {
        /// The client.
        client: &'static str,
        /// What stands in the way.
        why: String,
        /// What the user can do.
        hint: String,
    },
    /// There is no such program.
    #[error("`{0}` was not found\nhint: install it, or give its full path")]
    NotFound(String),
    /// The program is there and the system does not start it.
    #[error(
        "`{program}` cannot be started: {source}\nhint: it has to be a program that you may start; try it without the relay"
    )]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The client runs and we lost sight of it.
    #[error("lost sight of `{program}`: {source}")]
    Lost {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}

impl RunError {
    /// The exit code, as a shell would give it: 127 not found, 126 found and not startable, 2 for settings that
    /// are in the way.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotStarted { .. } => 126,
            Self::Lost { .. } => 1,
            Self::UnknownClient { .. } | Self::Itself { .. } | Self::Url { .. } | Self::Immovable { .. } => 2,
        }
    }
}

/// Decides how `client` is started so that its requests come to `relay`.
///
/// # Errors
/// [`RunError`] where it is no client that we know, or where its settings cannot be overridden.
pub fn plan(
    client: &OsStr,
    args: &[OsString],
    around: Surroundings<'_>,
    relay: RelayAddr,
) -> Result<Plan, RunError> {
    let mut plan = Plan {
        program: client.to_owned(),
        args: args.to_vec(),
        env: no_proxy(around),
        notices: Vec::new(),
        upstream: None,
        claude_limit: None,
    };
    match bare_name(client).as_str() {
        "codex" => codex::plan(&mut plan, around, relay)?,
        "claude" => claude::plan(&mut plan, around, relay)?,
        _ => {
            let client = client.to_string_lossy().into_owned();
            // Not this relay's address: it ends with this message.
            let usual =
                RelayAddr { port: relay_core::Config::default().port, key: None, has_upstream: false };
            return Err(RunError::UnknownClient { client, base: usual.base() });
        }
    }
    Ok(plan)
}

/// The name of a program without its folder and the endings of Windows.
fn bare_name(client: &OsStr) -> String {
    let name = client.to_string_lossy();
    let name =
        name.rsplit(if cfg!(windows) { &['/', '\\'][..] } else { &['/'][..] }).next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let endings = [".exe", ".cmd", ".bat", ".ps1"];
    endings.iter().find_map(|ending| lower.strip_suffix(ending)).unwrap_or(&lower).to_owned()
}

/// The clients send even loopback traffic to a proxy that the environment names; these variables stop that.
///
/// Both spellings are set. Where only one was, the other inherits its list: a client reads one of the two, and
/// the user's own exceptions must be in it.
fn no_proxy(around: Surroundings<'_>) -> Vec<(OsString, OsString)> {
    let names = ["NO_PROXY", "no_proxy"];
    let set = names.map(|name| (around.env)(name).filter(|list| !list.is_empty()));
    let either = set[0].clone().or_else(|| set[1].clone()).unwrap_or_default();
    let extended = |list: OsString| {
        let known = list.to_string_lossy().into_owned();
        let known: Vec<&str> = known.split(',').map(str::trim).collect();
        let mut list = list;
        for name in ["127.0.0.1", "localhost"] {
            if !known.contains(&"*") && !known.contains(&name) {
                if !list.is_empty() {
                    list.push(",");
                }
                list.push(name);
            }
        }
        list
    };
    names
        .iter()
        .zip(set)
        .map(|(name, own)| (OsString::from(name), extended(own.unwrap_or_else(|| either.clone()))))
        .collect()
}

/// The upstream for a base URL that the user's own settings name. Paths are appended as the client would.
fn own_upstream(url: &str, origin: &str, relay: RelayAddr) -> Result<Upstream, RunError> {
    let mut upstream =
        Upstream::parse("own", url).map_err(|why| RunError::Url { origin: origin.to_owned(), why })?;
    if relay.is(&upstream) {
        return Err(RunError::Itself { origin: origin.to_owned(), url: url.to_owned() });
    }
    upstream.v1 = V1::Keep;
    // The client itself would send its credential there like this.
    upstream.allow_plaintext = !upstream.is_https();
    Ok(upstream)
}

/// The base URL that leads a client to the same paths through the relay: with the upstream's version, if any.
fn base_for(upstream: &Upstream, relay: RelayAddr) -> String {
    let last = upstream.url.path().rsplit('/').next().unwrap_or_default();
    if is_version(last) { format!("{}/{last}", relay.base()) } else { relay.base() }
}

fn forwards_to(upstream: &Upstream, origin: &str) -> String {
    format!("requests go on to {}, as {origin} says", upstream.url)
}

/// What a session came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Calls that met a fault the relay waited for.
    pub calls: u64,
    /// Those of them that met a want of capacity.
    pub at_capacity: u64,
    /// Those of them that were served in the end.
    pub recovered: u64,
    /// How long they waited in all.
    pub waited: Duration,
    /// All physical sends of these calls.
    pub sends: u64,
    /// Those of them that the relay gave up.
    pub lost: u64,
    /// Sends that may have run twice upstream.
    pub maybe_billed_twice: u64,
}

/// The one line after a session; `None` where there is nothing to tell.
#[must_use]
pub fn closing_line(lang: Lang, saved: &Summary) -> Option<String> {
    if saved.recovered == 0 && saved.maybe_billed_twice == 0 && saved.lost == 0 {
        return None;
    }
    let recovered = match (saved.calls, saved.recovered) {
        (1, 1) => run::recovered_alone(lang),
        (calls, recovered) if calls == recovered => run::all_recovered(lang),
        (_, recovered) => run::some_recovered(lang, recovered),
    };
    let ended = if saved.lost > 0 { run::lost(lang, &recovered, saved.lost) } else { recovered };
    let met = if saved.at_capacity == saved.calls { run::capacity_errors(lang) } else { run::failures(lang) };
    let spent = run::spent(lang, rounded_seconds(saved.waited), saved.sends);
    let spent = match saved.maybe_billed_twice {
        0 => spent,
        twice => run::spent_twice(lang, &spent, twice),
    };
    Some(run::closing(lang, saved.calls, &met, &ended, &spent))
}

fn rounded_seconds(span: Duration) -> u64 {
    span.saturating_add(Duration::from_millis(500)).as_secs()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    pub(super) const RELAY: RelayAddr = RelayAddr { port: 4567, key: None, has_upstream: false };

    /// A pretend machine: variables and files.
    #[derive(Default)]
    pub(super) struct Machine {
        env: BTreeMap<String, String>,
        files: BTreeMap<PathBuf, String>,
    }

    impl Machine {
        pub(super) fn new() -> Self {
            Self::default().env("HOME", "/home/u").env("USERPROFILE", "/home/u")
        }

        pub(super) fn env(mut self, name: &str, value: &str) -> Self {
            self.env.insert(name.to_owned(), value.to_owned());
            self
        }

        pub(super) fn file(mut self, path: &str, text: &str) -> Self {
            self.files.insert(PathBuf::from(path), text.to_owned());
            self
        }

        pub(super) fn plan(&self, line: &[&str]) -> Result<Plan, RunError> {
            self.plan_for(RELAY, line)
        }

        pub(super) fn plan_for(&self, relay: RelayAddr, line: &[&str]) -> Result<Plan, RunError> {
            let env = |name: &str| self.env.get(name).map(OsString::from);
            let read = |path: &Path| match self.files.get(path).map(String::as_str) {
                None => Err(io::ErrorKind::NotFound.into()),
                Some("<unreadable>") => Err(io::ErrorKind::PermissionDenied.into()),
                Some(text) => Ok(text.to_owned()),
            };
            let around = Surroundings { env: &env, read: &read, folder: Path::new("/project") };
            let args: Vec<OsString> = line[1..].iter().map(OsString::from).collect();
            plan(line[0].as_ref(), &args, around, relay)
        }
    }

    pub(super) fn variable<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
        plan.env.iter().find(|(set, _)| set == name).and_then(|(_, value)| value.to_str())
    }

    #[test]
    fn clients_are_known_by_their_bare_name() {
        for client in ["codex", "/usr/local/bin/codex", "codex.cmd", "Codex.EXE", "claude", "./claude"] {
            assert!(Machine::new().plan(&[client]).is_ok(), "{client}");
        }
        for client in ["gemini", "codex2", "", "npx"] {
            let error = Machine::new().plan(&[client]).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let text = error.to_string();
            for part in ["`codex` and `claude`", "http://127.0.0.1:8787/v1", "ANTHROPIC_BASE_URL"] {
                assert!(text.contains(part), "{text}");
            }
        }
    }

    #[test]
    fn loopback_goes_around_proxies_and_own_exceptions_stay() {
        let ours = "127.0.0.1,localhost";
        let rows = [
            (None, None, ours, ours),
            (Some(""), None, ours, ours),
            (Some("corp"), None, "corp,127.0.0.1,localhost", "corp,127.0.0.1,localhost"),
            (None, Some("corp"), "corp,127.0.0.1,localhost", "corp,127.0.0.1,localhost"),
            (Some("a"), Some("b"), "a,127.0.0.1,localhost", "b,127.0.0.1,localhost"),
            (Some("localhost, x"), None, "localhost, x,127.0.0.1", "localhost, x,127.0.0.1"),
            (Some("*"), None, "*", "*"),
        ];
        for (upper, lower, expected_upper, expected_lower) in rows {
            let mut machine = Machine::new();
            for (name, value) in [("NO_PROXY", upper), ("no_proxy", lower)] {
                if let Some(value) = value {
                    machine = machine.env(name, value);
                }
            }
            for client in ["codex", "claude"] {
                let plan = machine.plan(&[client]).unwrap();
                assert_eq!(variable(&plan, "NO_PROXY"), Some(expected_upper));
                assert_eq!(variable(&plan, "no_proxy"), Some(expected_lower));
            }
        }
    }

    #[test]
    fn an_upstream_of_the_relays_own_comes_before_those_of_clients() {
        let machine = Machine::new()
            .file("/home/u/.codex/config.toml", "openai_base_url = 'https://o.example/v4'")
            .file("/home/u/.claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"https://a.example"}}"#);
        let relay = RelayAddr { has_upstream: true, ..RELAY };
        let codex = machine.plan_for(relay, &["codex"]).unwrap();
        assert_eq!(codex.args, ["-c", "openai_base_url=\"http://127.0.0.1:4567/v1\""]);
        let claude = machine.plan_for(relay, &["claude"]).unwrap();
        assert_eq!(claude.args, ["--settings", r#"{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:4567"}}"#]);
        for plan in [codex, claude] {
            assert_eq!((plan.upstream, plan.notices), (None, vec![]));
        }
    }

    #[test]
    fn the_closing_line_is_exact_and_silent_when_healthy() {
        let healthy = Summary { calls: 0, sends: 40, ..Summary::default() };
        assert_eq!(closing_line(Lang::English, &healthy), None);
        let base = Summary {
            calls: 3,
            at_capacity: 3,
            recovered: 3,
            waited: Duration::from_millis(13_600),
            sends: 61,
            ..Summary::default()
        };
        let rows = [
            (base, "steady-relay: 3 calls met capacity errors, all recovered, 14 s waited, 61 sends"),
            (
                Summary {
                    calls: 1,
                    at_capacity: 1,
                    recovered: 1,
                    sends: 2,
                    waited: Duration::from_millis(1200),
                    ..base
                },
                "steady-relay: 1 call met capacity errors, recovered, 1 s waited, 2 sends",
            ),
            (
                Summary { recovered: 2, lost: 1, ..base },
                "steady-relay: 3 calls met capacity errors, 2 recovered, 1 lost, 14 s waited, 61 sends",
            ),
            (
                Summary { calls: 2, at_capacity: 2, lost: 2, sends: 6, recovered: 0, ..base },
                "steady-relay: 2 calls met capacity errors, 0 recovered, 2 lost, 14 s waited, 6 sends",
            ),
            (
                Summary { calls: 1, at_capacity: 0, recovered: 0, lost: 1, maybe_billed_twice: 1, ..base },
                "steady-relay: 1 call met failures, 0 recovered, 1 lost, 14 s waited, 61 sends, \
                 1 may have been billed twice",
            ),
        ];
        for (saved, line) in rows {
            assert_eq!(closing_line(Lang::English, &saved).as_deref(), Some(line));
        }
    }
}
