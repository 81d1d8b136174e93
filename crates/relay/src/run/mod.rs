//! `steady-relay run -- CLIENT …`: starting a client so that its model requests come to this relay.
//!
//! [`plan`] decides, purely: what to start, with which arguments and variables, and where the client's requests
//! would have gone without us. [`supervise`] carries it out. Nothing is written to disk: the client is moved
//! by the means that it offers for one session, and its own files stay as they are.
//!
//! Each client has a file: what moves it, and what in the user's own settings would undo that.

mod aider;
mod child;
mod claude;
mod codex;
mod files;
mod gemini;
pub mod join;
pub mod lines;
mod opencode;
mod title;
mod variables;
mod watch;

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use child::{Ended, supervise};
pub use watch::{Link, Watch};

pub use crate::sessions::SessionKey;
use crate::sessions::forwarding;
use crate::sessions::said::{NamedUrl, Sums, VERSION, Wanted};
use crate::setup::shown;
use crate::stats::morning::Morning;
use crate::target::{Upstream, is_version};
use crate::words::{lang, run, settings};
use relay_core::Lang;
use relay_core::units::Invalid;

/// The relay that the client is to use: on loopback, at this port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayAddr {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The key of the client's session, which its paths begin with.
    pub key: SessionKey,
    /// Whether its own settings name the upstream of everything: then what the client's say does not count.
    pub has_upstream: bool,
}

impl RelayAddr {
    /// The base URL without a path.
    #[must_use]
    pub fn base(self) -> String {
        format!("http://127.0.0.1:{}/~{}", self.port, self.key)
    }

    /// The base URL under which requests go on to this upstream of the session's own: with its version, if any, so
    /// that a client finds the paths it would find there.
    fn base_to(self, name: &str, upstream: &Upstream) -> String {
        let last = upstream.url.path().rsplit('/').next().unwrap_or_default();
        let version = if is_version(last) { format!("/{last}") } else { String::new() };
        format!("{}/to/{name}{version}", self.base())
    }

    /// Whether requests to this upstream would come back to it.
    #[must_use]
    pub fn is(self, upstream: &Upstream) -> bool {
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
    /// Where the user's own settings send this client. What has no place here goes by its credential.
    pub upstreams: Vec<NamedUrl>,
    /// How long Claude Code, started like this, waits for the head of an answer.
    pub claude_limit: Option<Duration>,
}

/// Why a client cannot be started, or was not.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The client's own settings already name this relay as its service.
    #[error("{}", run::already_here(lang(), origin, url))]
    Itself {
        /// Where that is said.
        origin: String,
        /// The address.
        url: String,
    },
    /// The client's own settings name an address that cannot be forwarded to.
    ///
    /// The address is not repeated: it may hold a password.
    #[error("{}", run::bad_address(lang(), origin, &settings::said_of(lang(), &why.to_string())))]
    Url {
        /// Where that is said.
        origin: String,
        /// What is wrong with it.
        why: Invalid,
    },
    /// A setting stands in the way that no session can override.
    #[error("{}", run::immovable(lang(), client, why, hint))]
    Immovable {
        /// The client.
        client: &'static str,
        /// What stands in the way.
        why: String,
        /// What the user can do.
        hint: String,
    },
    /// There is no such program.
    #[error("{}", run::not_found(lang(), .0))]
    NotFound(String),
    /// There is no such program, but a file of this name in the working directory.
    #[error("{}", run::is_here(lang(), .0, &format!(".{}{}", std::path::MAIN_SEPARATOR, .0)))]
    Here(String),
    /// The program is there and the system does not start it.
    #[error("{}", run::not_started(lang(), program, &source.to_string()))]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The client runs and we lost sight of it.
    #[error("{}", run::lost_sight(lang(), program, &source.to_string()))]
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
            Self::NotFound(_) | Self::Here(_) => 127,
            Self::NotStarted { .. } => 126,
            Self::Lost { .. } => 1,
            Self::Itself { .. } | Self::Url { .. } | Self::Immovable { .. } => 2,
        }
    }
}

/// Decides how `client` is started so that its requests come to `relay`.
///
/// # Errors
/// [`RunError`] where the client's settings cannot be overridden, or name no address.
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
        upstreams: Vec::new(),
        claude_limit: None,
    };
    match bare_name(client).as_str() {
        "codex" => codex::plan(&mut plan, around, relay)?,
        "claude" => claude::plan(&mut plan, around, relay)?,
        "gemini" => gemini::plan(&mut plan, around, relay)?,
        "opencode" => opencode::plan(&mut plan, around, relay)?,
        "aider" => aider::plan(&mut plan, around, relay)?,
        _any => variables::plan(&mut plan, around, relay)?,
    }
    Ok(plan)
}

impl Plan {
    /// The session that the client needs.
    #[must_use]
    pub fn wanted(&self, key: SessionKey) -> Wanted {
        let limit = self.claude_limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let client = bare_name(&self.program);
        Wanted {
            v: VERSION,
            client,
            key: Some(key),
            claude_limit_ms: limit,
            upstreams: self.upstreams.clone(),
        }
    }

    /// Whether the client writes the terminal's title again and again, and says on its screen what is held.
    fn has_title(&self) -> bool {
        bare_name(&self.program) == "codex" && codex::has_screen(&self.args)
    }

    /// The base URL that takes the place of the user's own, whose requests go on to that one.
    fn stand_in(&mut self, name: &str, own: &Own, relay: RelayAddr) -> Result<String, RunError> {
        let Own { url, origin } = own;
        let upstream = own_upstream(url, origin, relay)?;
        let notice = run::forwards_to(lang(), &shown(&upstream.url.to_string()), origin);
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
        let base = relay.base_to(name, &upstream);
        let named = NamedUrl { name: name.to_owned(), url: upstream.url.to_string() };
        if !self.upstreams.contains(&named) {
            self.upstreams.push(named);
        }
        Ok(base)
    }

    /// The relay has an upstream for all, which comes before the user's own: said, since a key goes there as well.
    fn passes_over(&mut self, own: &Own) {
        let notice = run::passed_over(lang(), &own.origin);
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.env.push((name.into(), value.into()));
    }
}

/// A base URL of the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    url: String,
    /// Where it stands, in words.
    origin: String,
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
    let upstream = forwarding(url).map_err(|why| RunError::Url { origin: origin.to_owned(), why })?;
    if relay.is(&upstream) {
        return Err(RunError::Itself { origin: origin.to_owned(), url: shown(url) });
    }
    Ok(upstream)
}

/// A session that is as long as this one is told of as a whole.
const LONG: Duration = Duration::from_secs(3600);

/// The one line after a session; `None` where there is nothing to tell.
#[must_use]
pub fn closing_line(lang: Lang, saved: &Sums, took: Duration) -> Option<String> {
    if saved.recovered == 0 && saved.maybe_billed_twice == 0 && saved.lost == 0 {
        return None;
    }
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let morning = Morning {
        took: ms(took),
        refusals: saved.refusals,
        waited: Duration::try_from_secs_f64(saved.waited_s).map_or(0, ms),
        lost: saved.lost,
        sends: saved.sends,
        billed_twice: saved.maybe_billed_twice,
    };
    if took >= LONG {
        // Nobody was there all the time: how it went as a whole matters more than what became of each call.
        let morning = Morning { sends: saved.all_sends, ..morning };
        return Some(run::told(lang, &morning.line(lang)));
    }
    let recovered = match (saved.calls, saved.recovered) {
        (1, 1) => run::recovered_alone(lang),
        (calls, recovered) if calls == recovered => run::all_recovered(lang),
        (_, recovered) => run::some_recovered(lang, recovered),
    };
    let ended = if saved.lost > 0 { run::lost(lang, &recovered, saved.lost) } else { recovered };
    let met = if saved.at_capacity == saved.calls { run::capacity_errors(lang) } else { run::failures(lang) };
    Some(run::closing(lang, saved.calls, &met, &ended, &morning.spent(lang)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    pub(super) const RELAY: RelayAddr = RelayAddr { port: 4567, key: SessionKey(0xab), has_upstream: false };
    pub(super) const BASE: &str = "http://127.0.0.1:4567/~000000000000000000000000000000ab";

    pub(super) fn upstreams(plan: &Plan) -> Vec<(&str, &str)> {
        plan.upstreams.iter().map(|named| (named.name.as_str(), named.url.as_str())).collect()
    }

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
            let args: Vec<OsString> = line[1..].iter().map(OsString::from).collect();
            self.around(|around| plan(line[0].as_ref(), &args, around, relay))
        }

        pub(super) fn around<T>(&self, look: impl FnOnce(Surroundings<'_>) -> T) -> T {
            let env = |name: &str| self.env.get(name).map(OsString::from);
            let read = |path: &Path| match self.files.get(path).map(String::as_str) {
                None => Err(io::ErrorKind::NotFound.into()),
                Some("<unreadable>") => Err(io::ErrorKind::PermissionDenied.into()),
                Some(text) => Ok(text.to_owned()),
            };
            look(Surroundings { env: &env, read: &read, folder: Path::new("/project") })
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
        for client in ["codex2", "npx", "python"] {
            let plan = Machine::new().plan(&[client]).unwrap();
            assert_eq!(variable(&plan, "OPENAI_BASE_URL"), Some(&*format!("{BASE}/v1")), "{client}");
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
        let ours = format!("openai_base_url=\"{BASE}/v1\"");
        assert_eq!(codex.args, ["-c", &*ours]);
        let claude = machine.plan_for(relay, &["claude"]).unwrap();
        let settings = format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{BASE}"}}}}"#);
        assert_eq!(claude.args, ["--settings", &*settings]);
        for (plan, origin) in
            [(codex, "/home/u/.codex/config.toml"), (claude, "/home/u/.claude/settings.json")]
        {
            // A key that was meant for that address goes elsewhere: nobody is to learn of it later.
            let told = "requests go to the relay's own `upstream`, not where ";
            assert_eq!((plan.upstreams, plan.notices.len()), (vec![], 1));
            assert!(
                plan.notices[0].starts_with(told) && plan.notices[0].contains(origin),
                "{:?}",
                plan.notices
            );
        }
    }

    #[test]
    fn the_closing_line_is_exact_and_silent_when_healthy() {
        let healthy = Sums { calls: 0, sends: 40, ..Sums::default() };
        let soon = Duration::from_secs(60);
        assert_eq!(closing_line(Lang::English, &healthy, soon), None);
        assert_eq!(closing_line(Lang::English, &healthy, 10 * LONG), None);
        let base =
            Sums { calls: 3, at_capacity: 3, recovered: 3, waited_s: 13.6, sends: 61, ..Sums::default() };
        let rows = [
            (base, "steady-relay: 3 calls met capacity errors, all recovered, 14 s waited, 61 sends"),
            (
                Sums { calls: 1, at_capacity: 1, recovered: 1, sends: 2, waited_s: 1.2, ..base },
                "steady-relay: 1 call met capacity errors, recovered, 1 s waited, 2 sends",
            ),
            (
                Sums { recovered: 2, lost: 1, ..base },
                "steady-relay: 3 calls met capacity errors, 2 recovered, 1 lost, 14 s waited, 61 sends",
            ),
            (
                Sums { calls: 2, at_capacity: 2, lost: 2, sends: 6, recovered: 0, ..base },
                "steady-relay: 2 calls met capacity errors, 0 recovered, 2 lost, 14 s waited, 6 sends",
            ),
            (
                Sums { calls: 1, at_capacity: 0, recovered: 0, lost: 1, maybe_billed_twice: 1, ..base },
                "steady-relay: 1 call met failures, 0 recovered, 1 lost, 14 s waited, 61 sends, \
                 1 may have been billed twice",
            ),
        ];
        for (saved, line) in rows {
            assert_eq!(closing_line(Lang::English, &saved, soon).as_deref(), Some(line));
        }
        let night = Sums {
            waited_s: 8_040.2,
            recovered: 12,
            refusals: 37,
            sends: 49,
            all_sends: 61,
            maybe_billed_twice: 1,
            ..Sums::default()
        };
        let line = "steady-relay: 8 h: 37 refusals, 2 h 14 min waited, 0 turns lost, 61 sends, \
                    1 may have been billed twice";
        assert_eq!(closing_line(Lang::English, &night, 8 * LONG).as_deref(), Some(line));
    }
}
