//! The configuration file: where it is, its bytes as text, and its sections as drafts.
//! Not what one section demands of another (that is `build`).

use super::env_file::EnvFile;
use super::errors::{Findings, Place, line_around, line_of};
use super::keys::{
    ALERTS, BODIES, BREAKER, CLIENT, CODEX, CREDENTIAL, CredentialDraft, FALLBACK, FallbackDraft, HISTORY,
    HOLD, LIMITS, LOG, OTLP, POOL, PROFILE, PoolDraft, ProfileDraft, RELAY, ROUTE, RelayDraft, RouteDraft,
    SNAPSHOTS, TIMEOUTS, UPSTREAM, UpstreamDraft, WAITING,
};
use super::numbers::NUMBERS;
use super::read::{Into, Reader, Spans, Target, mask_secrets};
use super::reference::{SECTIONS, is_public};
use super::rules::{RULE, RuleDraft};
use super::{Env, Flags, ReadFile};
use relay_core::ProfileOverrides;
use relay_core::breaker;
use relay_core::client::Kind;
use relay_core::config::{
    AlertSettings, Bodies, ClientSettings, HistorySettings, Hold, Limits, LogSettings, OtlpSettings,
    SnapshotSettings, Timeouts, Waiting,
};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A configuration file's text.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Source {
    /// The line that holds `offset`.
    pub(super) fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.path.display(), line_of(&self.text, offset))
    }
}

/// Finds and reads the file: the one that is named, else the one in the user's folder, if it exists.
pub(super) fn open(looked_for: &LookedFor, read: ReadFile<'_>, found: &mut Findings) -> Option<Source> {
    let LookedFor { path, is_named } = looked_for.clone();
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => return None,
        Err(error) => {
            let (what, hint) =
                unreadable(&error, "config.toml", "check the path, or leave it out to use the defaults");
            found.add(Place::WholeFile(path), what, hint);
            return None;
        }
    };
    // Editors on Windows begin a file with a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Source { path, text: text.to_owned() });
    }
    let hint = "save it as UTF-8: some editors on Windows write UTF-16 or an older encoding";
    found.add(Place::WholeFile(path), "the file is not UTF-8 text", hint);
    None
}

/// Where the file is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LookedFor {
    pub(super) path: PathBuf,
    /// Somebody named it, so it has to be there.
    pub(super) is_named: bool,
}

impl LookedFor {
    /// By the flag, the environment, an env file, or where such files usually are; `None` where nothing tells.
    pub(super) fn by(flags: &Flags, env: Env<'_>, env_files: &[EnvFile]) -> Option<Self> {
        const NAME: &str = "STEADY_RELAY_CONFIG";
        let in_files = || {
            let (path, place) = env_files.iter().find_map(|file| file.get(NAME))?;
            Some(place.path.parent().map_or(PathBuf::from(path), |folder| folder.join(path)))
        };
        let in_process = || super::layers::present(env, NAME).map(PathBuf::from);
        match flags.config.clone().or_else(in_process).or_else(in_files) {
            Some(path) => Some(Self { path, is_named: true }),
            None => Some(Self { path: usual_path(env, System::THIS)?, is_named: false }),
        }
    }
}

/// What to say of a file that cannot be read. `such_as` is the name of a file that could be meant, `missing` what to do
/// where there is none.
pub(super) fn unreadable(error: &std::io::Error, such_as: &str, missing: &str) -> (String, String) {
    let folder = format!("name the file in it, such as {such_as}");
    let known = [
        (ErrorKind::NotFound, "there is no such file", missing),
        (ErrorKind::IsADirectory, "this is a folder, not a file", folder.as_str()),
        (
            ErrorKind::PermissionDenied,
            "the file may not be read",
            "check its owner and mode, and those of its folder",
        ),
        (
            ErrorKind::FileTooLarge,
            "the file is larger than 1 MiB",
            "settings are a few KiB: check that this is the file you mean",
        ),
        (
            ErrorKind::Unsupported,
            "this is a pipe or a device, not a file",
            "put a file there: a pipe is read once, at the start, and only where --config or --env-file names it",
        ),
    ];
    let found = known.into_iter().find(|(kind, _, _)| *kind == error.kind());
    found.map_or_else(
        || (format!("the file cannot be read: {error}"), String::new()),
        |(_, what, hint)| (what.to_owned(), hint.to_owned()),
    )
}

/// The families of systems that differ in where settings live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Unix,
    Mac,
    Windows,
}

impl System {
    pub(super) const THIS: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::Mac
    } else {
        Self::Unix
    };
}

/// Where the file usually is; `None` where the environment does not tell.
pub(super) fn usual_path(env: Env<'_>, system: System) -> Option<PathBuf> {
    let folder = |name| rooted(env, name);
    let base = match system {
        System::Windows => folder("APPDATA"),
        System::Mac => folder("XDG_CONFIG_HOME")
            .or_else(|| folder("HOME").map(|home| home.join("Library").join("Application Support"))),
        System::Unix => folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config"))),
    };
    base.map(|base| base.join("steady-relay").join("config.toml"))
}

/// Where state usually is; `None` where the environment does not tell.
pub(super) fn usual_state_dir(env: Env<'_>, system: System) -> Option<PathBuf> {
    let folder = |name| rooted(env, name);
    let base = match system {
        System::Windows => folder("LOCALAPPDATA"),
        System::Mac => folder("XDG_STATE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join("Library").join("Application Support"))),
        System::Unix => {
            folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local").join("state")))
        }
    };
    base.map(|base| base.join("steady-relay"))
}

/// A folder that a variable names.
fn rooted(env: Env<'_>, name: &str) -> Option<PathBuf> {
    super::layers::present(env, name).map(PathBuf::from).filter(|path| path.has_root())
}

/// An entry of the file that has a name.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) draft: T,
    /// Where its values stand.
    pub(super) spans: Spans,
    /// Where its name stands.
    pub(super) name: Range<usize>,
}

/// All that the file says, each value valid by itself.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    pub(super) relay: RelayDraft,
    pub(super) relay_spans: Spans,
    pub(super) timeouts: Timeouts,
    pub(super) hold: Hold,
    pub(super) waiting: Waiting,
    pub(super) bodies: Bodies,
    pub(super) bodies_spans: Spans,
    pub(super) limits: Limits,
    pub(super) log: LogSettings,
    pub(super) history: HistorySettings,
    pub(super) alerts: AlertSettings,
    pub(super) breaker: breaker::Rules,
    pub(super) otlp: OtlpSettings,
    pub(super) otlp_spans: Spans,
    pub(super) snapshots: SnapshotSettings,
    pub(super) clients: BTreeMap<Kind, Entry<ClientSettings>>,
    pub(super) upstreams: BTreeMap<String, Entry<UpstreamDraft>>,
    pub(super) pools: BTreeMap<String, Entry<PoolDraft>>,
    pub(super) credentials: BTreeMap<String, Entry<CredentialDraft>>,
    pub(super) profiles: BTreeMap<String, Entry<(ProfileDraft, ProfileOverrides)>>,
    pub(super) routes: Vec<Entry<(RouteDraft, ProfileOverrides)>>,
    pub(super) rules: Vec<Entry<RuleDraft>>,
    pub(super) fallbacks: Vec<Entry<FallbackDraft>>,
}

/// Reads the text. The second value says whether it is TOML throughout: where it is not, a section may be
/// missing or misplaced, and nothing should be concluded from the whole.
pub(super) fn parse(text: &str, found: Findings) -> (Drafts, bool, Findings) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, found };
    mask_secrets(&mut reader.found, root.get_ref());
    let drafts = sections(&mut reader, root.get_ref());
    let mut found = reader.found;
    let mut broken: Vec<Range<usize>> = Vec::new();
    for error in &errors {
        let start = error.span().unwrap_or_default().start;
        // A line can have as many errors as it has characters.
        if broken.last().is_some_and(|line| (line.start..=line.end).contains(&start)) {
            continue;
        }
        let line = line_around(text, start);
        mask_broken_line(&mut found, text, &line);
        broken.push(line);
    }
    broken.sort_by_key(|line| line.start);
    let starts =
        |line: &Range<usize>| text.get(line.clone()).is_some_and(|line| line.trim_start().starts_with('['));
    // A broken headline puts all that follows into the wrong section.
    let from = broken.iter().find(|line| starts(line)).map(|line| line.start);
    let is_in_broken_line = |at: usize| {
        let before = broken.partition_point(|line| line.start <= at);
        broken.get(..before).and_then(<[_]>::last).is_some_and(|line| at <= line.end)
    };
    found.drop_where(|span| from.is_some_and(|from| span.start >= from) || is_in_broken_line(span.start));
    let mut last = None;
    for error in &errors {
        let span = error.span().unwrap_or_default();
        if last != Some(span.start) {
            found.add(Place::File(span.clone()), error.message(), syntax_hint(error.message()));
        }
        last = Some(span.start);
    }
    (drafts, errors.is_empty(), found)
}

/// What to do about the slips that happen most.
pub(super) fn syntax_hint(message: &str) -> &'static str {
    let known = [
        (
            "string values must be quoted",
            "a value is text in quotes, a number, true, false or a list: idle = \"30s\"",
        ),
        ("duplicate key", "write each key, and each line such as [relay], only once"),
        ("key with no value", "write key = value"),
        ("invalid unquoted key", "write key = value; a name has letters, digits, hyphens and underscores"),
        ("unclosed table", "close the bracket: [relay]"),
        ("unclosed array", "close the list with ]"),
        ("invalid basic string", "close the quotes in the same line; in \"double\" ones \\ is written \\\\"),
        ("invalid literal string", "close the quotes in the same line"),
        (
            "unexpected key or value",
            "write each key = value, and each line such as [relay], on a line of its own",
        ),
    ];
    // Each says at least what a file looks like: to many this is the first one.
    const ANY: &str =
        "write key = value below a line such as [relay], and text in quotes: listen = \"127.0.0.1\"";
    known.iter().find(|(start, _)| message.starts_with(start)).map_or(ANY, |(_, hint)| hint)
}

/// Masks what follows the `=` in a line that is not TOML, unless its key is known to hold no secret.
fn mask_broken_line(found: &mut Findings, text: &str, line: &Range<usize>) {
    let content = text.get(line.clone()).unwrap_or_default();
    if content.trim_start().starts_with('[') {
        return;
    }
    let (key, from) = match content.split_once('=') {
        Some((key, _)) => (key.trim(), line.start + key.len() + 1),
        None => ("", line.start),
    };
    let is_inline = content.contains('{');
    if is_inline || !is_public(key) {
        let blank = text.get(from..line.end).map_or(0, |rest| rest.len() - rest.trim_start().len());
        found.mask(from + blank..line.end);
    }
}

fn sections(reader: &mut Reader<'_>, root: &DeTable<'_>) -> Drafts {
    let mut drafts = Drafts::default();
    for (name, value) in root {
        match name.get_ref().as_ref() {
            "relay" => {
                drafts.relay_spans =
                    reader.section("relay", value, &mut [&mut Into(RELAY, &mut drafts.relay)]);
            }
            "timeouts" => {
                reader.section("timeouts", value, &mut [&mut Into(TIMEOUTS, &mut drafts.timeouts)]);
            }
            "waiting" => {
                reader.section("waiting", value, &mut [&mut Into(WAITING, &mut drafts.waiting)]);
            }
            "hold" => {
                reader.section("hold", value, &mut [&mut Into(HOLD, &mut drafts.hold)]);
            }
            "bodies" => {
                drafts.bodies_spans =
                    reader.section("bodies", value, &mut [&mut Into(BODIES, &mut drafts.bodies)]);
            }
            "limits" => {
                reader.section("limits", value, &mut [&mut Into(LIMITS, &mut drafts.limits)]);
            }
            "log" => {
                reader.section("log", value, &mut [&mut Into(LOG, &mut drafts.log)]);
            }
            "history" => {
                reader.section("history", value, &mut [&mut Into(HISTORY, &mut drafts.history)]);
            }
            "alerts" => {
                reader.section("alerts", value, &mut [&mut Into(ALERTS, &mut drafts.alerts)]);
            }
            "otlp" => {
                drafts.otlp_spans = reader.section("otlp", value, &mut [&mut Into(OTLP, &mut drafts.otlp)]);
            }
            "snapshots" => {
                reader.section("snapshots", value, &mut [&mut Into(SNAPSHOTS, &mut drafts.snapshots)]);
            }
            "breaker" => {
                reader.section("breaker", value, &mut [&mut Into(BREAKER, &mut drafts.breaker)]);
            }
            "client" => clients(reader, value, &mut drafts),
            "upstream" => upstreams(reader, value, &mut drafts),
            "pool" => pools(reader, value, &mut drafts),
            "credential" => credentials(reader, value, &mut drafts),
            "profile" => profiles(reader, value, &mut drafts),
            "route" => routes(reader, value, &mut drafts),
            "rule" => rules(reader, value, &mut drafts),
            "fallback" => fallbacks(reader, value, &mut drafts),
            other => reader.unknown_key("", (other, name.span()), value, &SECTIONS),
        }
    }
    drafts
}

fn clients(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(table) = reader.table("client.NAME", value) else { return };
    for (name, value) in table {
        let Some(client) = Kind::ALL.into_iter().find(|client| client.name() == name.get_ref()) else {
            let known = Kind::ALL.map(Kind::name);
            reader.unknown_key("client", (name.get_ref(), name.span()), value, &known);
            continue;
        };
        let mut draft = ClientSettings::default();
        let at = format!("client.{}", client.name());
        // Cutting is what Codex alone recovers from.
        let spans = if client == Kind::Codex {
            let mut both = ClientSettings::default();
            let spans =
                reader.section(&at, value, &mut [&mut Into(CLIENT, &mut draft), &mut Into(CODEX, &mut both)]);
            draft.cut_fatal = both.cut_fatal;
            draft.cuts = both.cuts;
            spans
        } else {
            reader.section(&at, value, &mut [&mut Into(CLIENT, &mut draft)])
        };
        drafts.clients.insert(client, Entry { draft, spans, name: name.span() });
    }
}

fn upstreams(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(table) = choice_or_table(reader, "upstream", value) else { return };
    for (name, value) in not_too_many(reader, "upstream", value, table.iter()) {
        if !is_fit_name(reader, name.get_ref(), name.span()) {
            continue;
        }
        let mut draft = UpstreamDraft::default();
        let at = format!("upstream.{}", name.get_ref());
        let spans = reader.section(&at, value, &mut [&mut Into(UPSTREAM, &mut draft)]);
        drafts.upstreams.insert(name.get_ref().to_string(), Entry { draft, spans, name: name.span() });
    }
}

fn pools(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(table) = reader.table("pool.NAME", value) else { return };
    for (name, value) in not_too_many(reader, "pool", value, table.iter()) {
        if !is_fit_name(reader, name.get_ref(), name.span()) {
            continue;
        }
        let mut draft = PoolDraft::default();
        let at = format!("pool.{}", name.get_ref());
        let spans = reader.section(&at, value, &mut [&mut Into(POOL, &mut draft)]);
        drafts.pools.insert(name.get_ref().to_string(), Entry { draft, spans, name: name.span() });
    }
}

fn credentials(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(table) = reader.table("credential.NAME", value) else { return };
    for (name, value) in not_too_many(reader, "credential", value, table.iter()) {
        if !is_fit_name(reader, name.get_ref(), name.span()) {
            continue;
        }
        let mut draft = CredentialDraft::default();
        let at = format!("credential.{}", name.get_ref());
        let spans = reader.section(&at, value, &mut [&mut Into(CREDENTIAL, &mut draft)]);
        drafts.credentials.insert(name.get_ref().to_string(), Entry { draft, spans, name: name.span() });
    }
}

fn profiles(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(table) = choice_or_table(reader, "profile", value) else { return };
    for (name, value) in not_too_many(reader, "profile", value, table.iter()) {
        if !is_fit_name(reader, name.get_ref(), name.span()) {
            continue;
        }
        let mut draft = (ProfileDraft::default(), ProfileOverrides::default());
        let at = format!("profile.{}", name.get_ref());
        let mut targets = (Into(PROFILE, &mut draft.0), Into(NUMBERS, &mut draft.1));
        let spans = reader.section(&at, value, &mut [&mut targets.0 as &mut dyn Target, &mut targets.1]);
        drafts.profiles.insert(name.get_ref().to_string(), Entry { draft, spans, name: name.span() });
    }
}

fn routes(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(list) = list_of_tables(reader, "route", value) else { return };
    for value in not_too_many(reader, "route", value, list.iter()) {
        let mut draft = (RouteDraft::default(), ProfileOverrides::default());
        let mut targets = (Into(ROUTE, &mut draft.0), Into(NUMBERS, &mut draft.1));
        let spans = reader.section("route", value, &mut [&mut targets.0 as &mut dyn Target, &mut targets.1]);
        drafts.routes.push(Entry { draft, spans, name: value.span() });
    }
}

fn fallbacks(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(list) = list_of_tables(reader, "fallback", value) else { return };
    for value in not_too_many(reader, "fallback", value, list.iter()) {
        let mut draft = FallbackDraft::default();
        let spans = reader.section("fallback", value, &mut [&mut Into(FALLBACK, &mut draft)]);
        drafts.fallbacks.push(Entry { draft, spans, name: value.span() });
    }
}

fn rules(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, drafts: &mut Drafts) {
    let Some(list) = list_of_tables(reader, "rule", value) else { return };
    for value in not_too_many(reader, "rule", value, list.iter()) {
        let mut draft = RuleDraft::default();
        let spans = reader.section("rule", value, &mut [&mut Into(RULE, &mut draft)]);
        drafts.rules.push(Entry { draft, spans, name: value.span() });
    }
}

/// The first of them. Each call may have to go through all routes and rules, and each route is checked against every
/// profile.
fn not_too_many<I: ExactSizeIterator>(
    reader: &mut Reader<'_>,
    kind: &str,
    value: &Spanned<DeValue<'_>>,
    entries: I,
) -> std::iter::Take<I> {
    const MOST: usize = 1000;
    if entries.len() > MOST {
        let what = format!("{} entries `{kind}` are too many", entries.len());
        reader.found.add(Place::File(value.span()), what, format!("write at most {MOST} of a kind"));
    }
    entries.take(MOST)
}

/// The list of tables; where it is none, that is noted.
fn list_of_tables<'v, 'i>(
    reader: &mut Reader<'_>,
    name: &str,
    value: &'v Spanned<DeValue<'i>>,
) -> Option<&'v DeArray<'i>> {
    let list = value.get_ref().as_array().filter(|list| list.iter().all(|item| item.get_ref().is_table()));
    if list.is_none() {
        let hint = format!("write [[{name}]], with two brackets, above the keys of each {name}");
        reader.found.add(Place::File(value.span()), format!("`{name}` is no list of tables"), hint);
    }
    list
}

/// `upstream` and `profile` are choices in `[relay]` and tables of entries at the top; whoever writes the choice
/// at the top is told so.
fn choice_or_table<'v, 'i>(
    reader: &mut Reader<'_>,
    name: &str,
    value: &'v Spanned<DeValue<'i>>,
) -> Option<&'v DeTable<'i>> {
    if !matches!(value.get_ref(), DeValue::String(_)) {
        return reader.table(&format!("{name}.NAME"), value);
    }
    let hint = format!("to choose one for all calls, write it below a line [relay]: {name} = …");
    reader.found.add(Place::File(value.span()), format!("`{name}` at the top is the table of {name}s"), hint);
    None
}

/// Names appear in flags, paths and logs, and `auto` and URLs have a meaning of their own there.
fn is_fit_name(reader: &mut Reader<'_>, name: &str, span: Range<usize>) -> bool {
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let is_fit = is_plain && (1..=64).contains(&name.len()) && name != "auto";
    if !is_fit {
        let hint = "a name has 1 to 64 letters, digits, hyphens, dots and underscores, and is not `auto`";
        reader.found.add(Place::File(span), "this cannot be a name", hint);
    }
    is_fit
}
