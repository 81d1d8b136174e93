//! The settings in force, key by key, each with the layer that won: what `config show` prints. Secrets are masked.
//! Not the printing (that is the program).

use super::errors::Place;
use super::file::Source;
use super::layers::Given;
use super::read::looks_secret;
use super::reference::{KeyDoc, SectionDoc, reference};
use super::variables::{API_KEY, ENABLE_LOGGING, RETRIES, TOTAL_TIMEOUT};
use relay_core::client::Kind;
use relay_core::config::{Config, Upstream, UpstreamChoice, Warm};
use relay_core::overrides::CURVES;
use relay_core::units::show_duration;
use relay_core::{ClientLimit, Profile};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// One key, as it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// How its section is written: `[timeouts]`.
    pub section: String,
    /// Which one of several sections of the same name, from 0.
    pub nth: usize,
    /// Its name; empty for an entry of a list that sets nothing.
    pub key: String,
    /// The value as it would stand in the file; `None` where it is not set.
    pub value: Option<String>,
    /// Who set it: `--port`, `STEADY_RELAY_PORT`, `relay.env:2: PORT`, `config.toml:3` or `default`.
    pub origin: String,
}

/// What a secret looks like when it is shown.
const MASK: &str = "\"…\"";

/// All keys in force.
pub(super) fn shown(config: &Config, source: Option<&Source>, outside: &[Given]) -> Vec<Shown> {
    let nothing = Source::default();
    let source = source.unwrap_or(&nothing);
    let (root, _no_errors) = DeTable::parse_recoverable(&source.text);
    let show = Show { config, source, root: root.get_ref(), outside };
    let mut all = Vec::new();
    for section in reference() {
        let name = section.head.trim_matches(['[', ']']);
        match name.split_once('.') {
            // Shown with the other kinds of clients.
            Some(("client", "codex")) => {}
            Some((kind, _)) => {
                for name in show.names(kind) {
                    show.section(&section, &[kind, &name], &mut all);
                }
            }
            None if section.head.starts_with("[[") => show.routes(name, &mut all),
            None => show.section(&section, &[name], &mut all),
        }
    }
    all
}

/// Where each of the tables of this list stands.
pub(super) fn places_of(list: &str, source: &Source) -> Vec<String> {
    let (root, _no_errors) = DeTable::parse_recoverable(&source.text);
    let tables = root.get_ref().get(list).and_then(|list| list.get_ref().as_array());
    tables.into_iter().flatten().map(|table| source.at(table.span().start)).collect()
}

struct Show<'a> {
    config: &'a Config,
    source: &'a Source,
    root: &'a DeTable<'a>,
    outside: &'a [Given],
}

impl Show<'_> {
    /// The entries that there are of one kind.
    fn names(&self, kind: &str) -> Vec<String> {
        match kind {
            "client" => Kind::ALL.map(|kind| kind.name().to_owned()).to_vec(),
            "upstream" => self.config.upstreams.keys().cloned().collect(),
            "profile" => self.config.profiles.keys().cloned().collect(),
            _ => self
                .table(&[kind])
                .into_iter()
                .flat_map(|table| table.keys().map(ToString::to_string))
                .collect(),
        }
    }

    fn table(&self, path: &[&str]) -> Option<&DeTable<'_>> {
        path.iter().try_fold(self.root, |table, name| table.get(*name)?.get_ref().as_table())
    }

    fn section(&self, section: &SectionDoc, path: &[&str], all: &mut Vec<Shown>) {
        let mut keys = section.keys.clone();
        if path == ["client", "codex"] {
            let codex = reference().into_iter().find(|section| section.head == "[client.codex]");
            keys.extend(codex.into_iter().flat_map(|section| section.keys));
        }
        let head = format!("[{}]", path.join("."));
        for key in keys {
            // A profile that ships stands on no other.
            if key.name == "based_on" && self.in_file(path, key.name).is_none() {
                continue;
            }
            let (value, origin) = self.value(path, &key);
            all.push(Shown { section: head.clone(), nth: 0, key: key.name.to_owned(), value, origin });
        }
    }

    fn value(&self, path: &[&str], key: &KeyDoc) -> (Option<String>, String) {
        let in_file = self.in_file(path, key.name);
        let [kind, ..] = path else { return (None, String::new()) };
        if let Some(origin) = self.set_outside(path, key.name) {
            let value = self.typed(&format!("{kind}.{}", key.name)).or_else(|| self.of_entry(path, key.name));
            return match in_file {
                // This one does not replace the file's: it is added.
                Some((value, at)) if key.name == "ca_file" => {
                    (Some(value), format!("{at}, and {origin} adds one"))
                }
                Some(_) | None => (value, origin),
            };
        }
        if let Some((value, origin)) = in_file {
            return (Some(value), origin);
        }
        if let ["profile", _] = path {
            let origin = (key.name == "gate").then(|| self.without_gate_by(path)).flatten();
            return (self.of_entry(path, key.name), origin.unwrap_or_else(|| "default".to_owned()));
        }
        let default = (!key.default.is_empty()).then(|| key.default.to_owned());
        (self.of_entry(path, key.name).or(default), "default".to_owned())
    }

    /// Who took the gate from a profile whose own table does not name it: the first curve there, or the choice for all.
    fn without_gate_by(&self, profile: &[&str]) -> Option<String> {
        let own = CURVES.iter().find_map(|key| self.in_file(profile, key));
        let all = || {
            let in_file = || self.in_file(&["relay"], "gate").map(|(_, at)| at);
            self.set_outside(&["relay"], "gate").or_else(in_file).filter(|_| !self.config.gate)
        };
        own.map(|(_, at)| at).or_else(all)
    }

    /// Who set the key from outside the file.
    fn set_outside(&self, path: &[&str], key: &str) -> Option<String> {
        let given = |sets: &str| {
            self.outside.iter().find(|given| given.key == sets).map(|given| self.place(&given.place))
        };
        match (path, key) {
            (["profile", _], "sends") => given(RETRIES),
            (["profile", _], "patience" | "client_limit") => given(TOTAL_TIMEOUT),
            (["upstream", name], "api_key") => {
                let named =
                    matches!(&self.config.upstream, Some(UpstreamChoice::Named(chosen)) if chosen == name);
                given(API_KEY).filter(|_| {
                    named && self.config.upstreams.get(*name).is_some_and(|u| u.api_key.is_some())
                })
            }
            (["relay"], "upstream") => given("relay.upstream").map(|origin| {
                let lent =
                    matches!(&self.config.upstream, Some(UpstreamChoice::Url(it)) if it.api_key.is_some());
                let key = given(API_KEY).filter(|_| lent);
                key.map_or(origin.clone(), |key| format!("{origin}, with the key of {key}"))
            }),
            (["log"], "level") => given("log.level").or_else(|| given(ENABLE_LOGGING)),
            ([section], key) => given(&format!("{section}.{key}")),
            _ => None,
        }
    }

    /// The value of a key that can be set outside the file.
    fn typed(&self, key: &str) -> Option<String> {
        let config = self.config;
        match key {
            "relay.listen" => Some(quoted(&config.listen.to_string())),
            "relay.port" => Some(config.port.to_string()),
            "relay.metrics_port" => config.metrics_port.map(|port| port.to_string()),
            "relay.token" => Some(MASK.to_owned()),
            "relay.upstream" => config.upstream.as_ref().map(|choice| match choice {
                UpstreamChoice::Named(name) | UpstreamChoice::Pool(name) => quoted(name),
                UpstreamChoice::Url(upstream) => quoted(&upstream.url.to_string()),
            }),
            "relay.profile" => Some(quoted(config.profile.name())),
            "relay.gate" => Some(config.gate.to_string()),
            "relay.park_quota" => Some(config.park_quota.to_string()),
            "relay.tls" => Some(config.tls.to_string()),
            "relay.ca_file" => config.ca_files.last().map(|path| quoted(&path.display().to_string())),
            "relay.lang" => config.lang.map(|lang| quoted(lang.code())),
            "relay.state_dir" => config.state_dir.as_ref().map(|path| quoted(&path.display().to_string())),
            "otlp.endpoint" => config.otlp.endpoint.as_ref().map(|url| quoted(&url.to_string())),
            "otlp.headers" => Some(MASK.to_owned()),
            "otlp.service_name" => Some(quoted(&config.otlp.service_name)),
            "log.level" => Some(quoted(config.log.level.name())),
            "log.format" => Some(quoted(config.log.format.name())),
            "log.file" => config.log.file.as_ref().map(|path| quoted(&path.display().to_string())),
            _ => None,
        }
    }

    /// The value of an entry's key, as the entry is in force: what ships differs from entry to entry.
    fn of_entry(&self, path: &[&str], key: &str) -> Option<String> {
        match path {
            // By the environment.
            ["relay"] if key == "state_dir" => self.typed("relay.state_dir"),
            ["upstream", name] => {
                self.config.upstreams.get(*name).and_then(|upstream| of_upstream(upstream, key))
            }
            ["profile", name] => {
                let profile = self.config.profiles.get(*name)?;
                let changed = self.config.numbers.apply(profile).unwrap_or_else(|_| profile.clone());
                numbers(&changed).into_iter().find(|(name, _)| *name == key).and_then(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The value as it stands in the file, and where.
    fn in_file(&self, path: &[&str], key: &str) -> Option<(String, String)> {
        let value = self.table(path)?.get(key)?;
        let at = self.at(value.span().start);
        if is_secret(key) {
            let masked = if key == "headers" { self.of_entry(path, key) } else { None };
            return Some((masked.unwrap_or_else(|| MASK.to_owned()), at));
        }
        Some((self.text(value.get_ref(), value.span()), at))
    }

    fn text(&self, value: &DeValue<'_>, span: std::ops::Range<usize>) -> String {
        let text = self.source.text.get(span).unwrap_or_default();
        let is_masked = |value: &DeValue<'_>| value.as_str().is_some_and(looks_secret);
        match value.as_array() {
            // One of them, or of what a comment between them has.
            Some(list) if looks_secret(text) || list.iter().any(|one| is_masked(one.get_ref())) => {
                let each = list.iter().map(|one| self.text(one.get_ref(), one.span()));
                format!("[{}]", each.collect::<Vec<_>>().join(", "))
            }
            Some(_) | None if is_masked(value) => MASK.to_owned(),
            Some(_) | None => text.to_owned(),
        }
    }

    fn routes(&self, name: &str, all: &mut Vec<Shown>) {
        let Some(list) = self.root.get(name).and_then(|list| list.get_ref().as_array()) else { return };
        let tables = list.iter().filter_map(|item| Some((item, item.get_ref().as_table()?)));
        for (nth, (item, table)) in tables.enumerate() {
            let shown = |key: String, value, at: usize| Shown {
                section: format!("[[{name}]]"),
                nth,
                key,
                value,
                origin: self.at(at),
            };
            if table.is_empty() {
                all.push(shown(String::new(), None, item.span().start));
            }
            for (key, value) in table {
                let text = self.text(value.get_ref(), value.span());
                all.push(shown(key.get_ref().to_string(), Some(text), value.span().start));
            }
        }
    }

    fn at(&self, offset: usize) -> String {
        self.source.at(offset)
    }

    fn place(&self, place: &Place) -> String {
        match place {
            Place::File(span) => self.at(span.start),
            Place::WholeFile(path) => file_name(path),
            Place::EnvFile(place) => format!("{}:{}: {}", file_name(&place.path), place.line, place.name),
            Place::Env(name) | Place::Flag(name) => (*name).to_owned(),
            Place::Default => "default".to_owned(),
        }
    }
}

fn file_name(path: &Path) -> String {
    path.display().to_string()
}

/// Whether the value of a key of this name is never shown.
fn is_secret(key: &str) -> bool {
    matches!(
        key,
        "token"
            | "api_key"
            | "headers"
            | "webhook"
            | "command"
            | "key"
            | "key_command"
            | "refresh_token"
            | "client_secret"
    )
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    if looks_secret(text) {
        return MASK.to_owned();
    }
    // JSON's strings are TOML's.
    serde_json::Value::from(text).to_string()
}

fn of_upstream(upstream: &Upstream, key: &str) -> Option<String> {
    match key {
        "url" => Some(quoted(&upstream.url.to_string())),
        "headers" => {
            let mut names: Vec<_> = upstream.headers.iter().map(|(name, _)| name.as_str()).collect();
            names.dedup();
            let pairs: Vec<_> = names.iter().map(|name| format!("{} = {MASK}", quoted(name))).collect();
            (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", ")))
        }
        "api_key" => upstream.api_key.as_ref().map(|_| MASK.to_owned()),
        "credential" => upstream.credential.as_deref().map(quoted),
        "max_running" => upstream.max_running.map(|most| most.to_string()),
        "warm" => upstream.warm.as_ref().map(of_warm),
        _ => None,
    }
}

/// The model alone where that says it all.
fn of_warm(warm: &Warm) -> String {
    match &warm.model {
        Some(model) if *warm == Warm::ollama(model) => quoted(model),
        Some(_) | None => format!("{{ path = {}, body = {} }}", quoted(&warm.path), quoted(&warm.body)),
    }
}

/// Every number of a profile, as it would stand in the file; `None` where it would not: beside a gate stands no curve.
pub(super) fn numbers(profile: &Profile) -> Vec<(&'static str, Option<String>)> {
    let count =
        |count: Option<u32>| count.map_or_else(|| "\"unlimited\"".to_owned(), |count| count.to_string());
    let time = |time| format!("\"{}\"", show_duration(time));
    let client_limit = match profile.client_limit {
        ClientLimit::Replaces => "\"replaces\"",
        ClientLimit::Shortens => "\"shortens\"",
        ClientLimit::Ignored => "\"ignored\"",
    };
    let on_curve = |value: String| profile.gate.is_none().then_some(value);
    vec![
        ("gate", Some(profile.gate.is_some().to_string())),
        ("park_quota", profile.gate.map(|_| profile.park_quota.to_string())),
        ("sends", Some(count(profile.sends))),
        ("gated_sends", profile.gated_sends.map(|count| count.to_string())),
        ("failed_sends", Some(profile.failed_sends.to_string())),
        ("throttled_sends", Some(count(profile.throttled_sends))),
        ("capacity_sends", Some(count(profile.capacity_sends))),
        ("ambiguous_resends", Some(profile.ambiguous_resends.to_string())),
        ("patience", Some(time(profile.patience))),
        ("client_limit", Some(client_limit.to_owned())),
        ("serves_resends", Some(profile.serves_resends.to_string())),
        ("base", on_curve(time(profile.curve.base))),
        ("factor", on_curve(format!("{:?}", profile.curve.factor))),
        ("cap", on_curve(time(profile.curve.cap))),
        ("jitter", on_curve(time(profile.curve.jitter))),
        ("overloaded_base", on_curve(time(profile.overloaded.base))),
        ("overloaded_factor", on_curve(format!("{:?}", profile.overloaded.factor))),
        ("overloaded_cap", on_curve(time(profile.overloaded.cap))),
        ("never_sent_base", Some(time(profile.never_sent.base))),
        ("never_sent_cap", Some(time(profile.never_sent.cap))),
        ("useless_floor", Some(time(profile.useless_floor))),
    ]
}
