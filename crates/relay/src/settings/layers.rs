//! Flags over process environment over env files over file: which layer has the say on each key that more than one
//! can set. Not the file's other keys.

use super::env_file::EnvFile;
use super::errors::{Findings, Place};
use super::file::{Drafts, System, usual_state_dir};
use super::read::{clipped, looks_secret, nearest};
use super::variables::{
    API_KEY, ENABLE_LOGGING, OTLP_DISABLED, RETRIES, Scope, TOTAL_TIMEOUT, VARIABLES, rank, setting,
};
use super::{Env, Flags};
use http::{HeaderName, HeaderValue};
use relay_core::base_url::BaseUrl;
use relay_core::config::{LogFormat, LogLevel, Secret};
use relay_core::plain::is_unfit;
use relay_core::units::{Invalid, duration};
use relay_core::{Lang, Listen};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A value, and where it comes from.
#[derive(Debug)]
pub(super) struct Set<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

impl<T> Set<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Set<U> {
        Set { value: change(self.value), place: self.place }
    }
}

/// What the layers say together; `None` where none says anything.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) listen: Option<Set<Listen>>,
    pub(super) port: Option<Set<u16>>,
    pub(super) metrics_port: Option<u16>,
    pub(super) token: Option<Set<Secret>>,
    /// Whether a token is given at all, be it valid or not.
    pub(super) has_token: bool,
    /// A URL or a name.
    pub(super) upstream: Option<Set<String>>,
    pub(super) profile: Option<Set<String>>,
    pub(super) gate: Option<bool>,
    pub(super) tls: Option<bool>,
    /// From outside the file, whose own is added by `build`; as are the three of the log.
    pub(super) ca_file: Option<Set<PathBuf>>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) log_format: Option<LogFormat>,
    pub(super) log_file: Option<PathBuf>,
    pub(super) lang: Option<Lang>,
    /// From outside the file, too.
    pub(super) state_dir: Option<PathBuf>,
    /// Where it is when nobody names it.
    pub(super) usual_state_dir: Option<PathBuf>,
    pub(super) sends: Option<u32>,
    pub(super) patience: Option<Duration>,
    pub(super) otlp: OtlpLayer,
    /// A key for the upstream of everything.
    pub(super) api_key: Option<Set<Secret>>,
    /// What was set outside the file, in the order it was asked for.
    pub(super) outside: Vec<Given>,
}

/// What the variables of OpenTelemetry say.
#[derive(Debug, Default)]
pub(super) struct OtlpLayer {
    pub(super) endpoint: Option<BaseUrl>,
    pub(super) headers: Option<Vec<(HeaderName, HeaderValue)>>,
    pub(super) service_name: Option<String>,
    pub(super) disabled: bool,
}

/// Something that was set outside the file.
#[derive(Debug)]
pub(super) struct Given {
    /// The key that it sets: `relay.port`.
    pub(super) key: &'static str,
    pub(super) place: Place,
}

/// A variable that is set to something: an empty one counts as not set.
pub(super) fn present(env: Env<'_>, name: &str) -> Option<OsString> {
    env.value(name).filter(|value| !value.is_empty())
}

/// All that is not the configuration file.
pub(super) struct Outside<'a> {
    pub(super) env: Env<'a>,
    /// The stronger first.
    pub(super) env_files: &'a [EnvFile],
    pub(super) found: &'a mut Findings,
    pub(super) notices: &'a mut Vec<String>,
}

/// Reads flags, environment and env files, and what the file says where those are silent.
pub(super) fn read(flags: &Flags, file: &mut Drafts, outside: Outside<'_>) -> Layers {
    let mut layers = Layers::default();
    let mut reading = Reading { outside, given: Vec::new() };
    reading.mode(flags);
    reading.unknown_names();
    reading.unknown_variables();
    let spans = &file.relay_spans;
    let place = |key: &str| spans.get(key).map_or(Place::Default, |span| Place::File(span.clone()));
    let listen = reading.text(flags.listen.as_ref(), "--listen", "relay.listen");
    layers.listen = reading.parsed(listen).or_else(|| set(file.relay.listen, place("listen")));
    let port = reading.text(flags.port.as_ref(), "--port", "relay.port");
    let port = reading.parsed::<Port>(port).map(|set| set.map(|Port(port)| port));
    layers.port = port.or_else(|| set(file.relay.port, place("port")));
    let metrics = reading.text(flags.metrics_port.as_ref(), "--metrics-port", "relay.metrics_port");
    let metrics = reading.parsed::<Port>(metrics).map(|set| set.value.0);
    layers.metrics_port = metrics.or(file.relay.metrics_port);
    let upstream = reading.text(flags.upstream.as_ref(), "--upstream", "relay.upstream");
    layers.upstream = upstream.or_else(|| set(file.relay.upstream.take(), place("upstream")));
    let profile = reading.text(flags.profile.as_ref(), "--profile", "relay.profile");
    layers.profile = profile.or_else(|| set(file.relay.profile.take(), place("profile")));
    let gate = reading.text(flags.gate.as_ref(), "--gate", "relay.gate");
    layers.gate = reading.parsed::<Truth>(gate).map(|set| set.value.0).or(file.relay.gate);
    let tls = reading.text(flags.tls.as_ref(), "--tls", "relay.tls");
    layers.tls = reading.parsed::<Truth>(tls).map(|set| set.value.0).or(file.relay.tls);
    let token = reading.text(None, "", "relay.token");
    layers.has_token = token.is_some() || spans.contains_key("token");
    layers.token = reading.secret(token, str::parse).or_else(|| set(file.relay.token.take(), place("token")));
    layers.ca_file = reading.path(None, "", "relay.ca_file");
    reading.log(flags, &mut layers);
    if cfg!(feature = "otlp") {
        layers.otlp = reading.otlp();
    }
    let state_dir = reading.path(flags.state_dir.as_ref(), "--state-dir", "relay.state_dir");
    layers.state_dir = state_dir.map(|set| set.value);
    let lang = reading.text(flags.lang.as_ref(), "--lang", "relay.lang");
    layers.lang = reading.parsed::<Language>(lang).map(|set| set.value.0).or(file.relay.lang);
    layers.usual_state_dir = usual_state_dir(reading.outside.env, System::THIS);
    let sends = reading.text(None, "", RETRIES);
    layers.sends = reading.parsed::<Retries>(sends).map(|set| set.value.0.saturating_add(1));
    let patience = reading.text(None, "", TOTAL_TIMEOUT);
    layers.patience = reading.parsed::<Seconds>(patience).map(|set| set.value.0);
    let api_key = reading.text(None, "", API_KEY);
    let api_key = reading.secret(api_key, api_key_of);
    layers.api_key = reading.meant_for(api_key, layers.upstream.as_ref());
    layers.outside = reading.given;
    layers
}

fn set<T>(value: Option<T>, place: Place) -> Option<Set<T>> {
    value.map(|value| Set { value, place })
}

/// A port as flags and environment write it.
struct Port(u16);

impl FromStr for Port {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let port = text.trim().parse();
        port.map(Self).map_err(|_not_a_port| Invalid::new("is no port", "a port is a number from 0 to 65535"))
    }
}

/// How often to send again.
struct Retries(u32);

impl FromStr for Retries {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let count = text.trim().parse().ok().filter(|count| *count <= 999);
        count.map(Self).ok_or_else(|| Invalid::new("is no count", "write a whole number from 0 to 999"))
    }
}

/// A number of seconds, as older tools write a time.
struct Seconds(Duration);

impl FromStr for Seconds {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let time = duration(text).or_else(|_no_unit| duration(&format!("{text}s"))).ok();
        let time = time.filter(|time| *time <= super::keys::WEEK);
        time.map(Self).ok_or_else(|| Invalid::new("is no number of seconds", "write seconds, such as 120"))
    }
}

/// A language by its short name.
struct Language(Lang);

impl FromStr for Language {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let lang = Lang::ALL.into_iter().find(|lang| lang.code().eq_ignore_ascii_case(text.trim()));
        lang.map(Self)
            .ok_or_else(|| Invalid::new("is no language that there are messages in", "write en or zh"))
    }
}

/// A level by its name, or by the name that logs in Python have for it.
struct Level(LogLevel);

impl FromStr for Level {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let name = match text.trim().to_ascii_lowercase().as_str() {
            "warning" => "warn".to_owned(),
            "critical" | "fatal" => "error".to_owned(),
            name => name.to_owned(),
        };
        let level = LogLevel::ALL.into_iter().find(|level| level.name() == name);
        level.map(Self).ok_or_else(|| {
            let names = LogLevel::ALL.map(LogLevel::name).join(", ");
            Invalid::new("is no level", format!("write one of: {names}"))
        })
    }
}

/// How lines of the log look.
struct Format(LogFormat);

impl FromStr for Format {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let format = LogFormat::ALL.into_iter().find(|format| format.name() == text);
        format.map(Self).ok_or_else(|| Invalid::new("is no format", "write text or json"))
    }
}

/// True or false, as flags and variables write it.
struct Truth(bool);

impl FromStr for Truth {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Self(true)),
            "false" | "0" | "no" | "off" => Ok(Self(false)),
            _ => Err(Invalid::new("is neither true nor false", "write on or off, or true or false")),
        }
    }
}

/// Reads a key of an API.
pub(super) fn api_key_of(text: &str) -> Result<Secret, Invalid> {
    let is_plain = !text.is_empty() && text.len() <= 16_384 && text.bytes().all(|b| b.is_ascii_graphic());
    if is_plain && HeaderValue::from_str(text).is_ok() {
        return Ok(Secret::new(text.to_owned()));
    }
    Err(Invalid::new("is no key", "a key is one word of letters, digits and signs of ASCII"))
}

/// The value as it may be shown in a message.
pub(super) fn shown(text: &str) -> Option<&str> {
    let is_short = text.chars().count() <= 60 && !text.contains(is_unfit);
    (is_short && !looks_secret(text)).then_some(text)
}

struct Reading<'a> {
    outside: Outside<'a>,
    given: Vec<Given>,
}

impl Reading<'_> {
    /// The flag, else the first variable that is set in the strongest layer that has one.
    fn text(
        &mut self,
        flag: Option<&String>,
        flag_name: &'static str,
        sets: &'static str,
    ) -> Option<Set<String>> {
        let found = match flag {
            Some(value) => Set { value: value.clone(), place: Place::Flag(flag_name) },
            None => self.variable(sets)?,
        };
        self.given.push(Given { key: sets, place: found.place.clone() });
        Some(found)
    }

    fn variable(&mut self, sets: &str) -> Option<Set<String>> {
        let Outside { env, env_files, .. } = self.outside;
        let in_process = |name| Some((name, present(env, name)?));
        let allowed = |scope: Scope| setting(sets).filter(move |variable| variable.scope != scope);
        let set: Vec<_> = allowed(Scope::EnvFiles).filter_map(|variable| in_process(variable.name)).collect();
        if let Some((name, value)) = set.first().cloned() {
            self.tell_older(sets, &set.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "");
            let Ok(value) = value.into_string() else {
                self.outside.found.add(Place::Env(name), "the value is not UTF-8 text", "");
                return None;
            };
            return Some(Set { value, place: Place::Env(name) });
        }
        env_files.iter().find_map(|file| {
            let names: Vec<_> = allowed(Scope::Process).map(|variable| variable.name).collect();
            let set: Vec<_> = names.into_iter().filter(|name| file.get(name).is_some()).collect();
            let (value, place) = file.get(set.first()?)?;
            self.tell_older(sets, &set, &format!(" in {}", file.path.display()));
            Some(Set { value: value.to_owned(), place: Place::EnvFile(place) })
        })
    }

    /// Tells of older names that are read, and of those that are not, since a stronger one is set too.
    fn tell_older(&mut self, sets: &str, set: &[&'static str], at: &str) {
        let Some((first, rest)) = set.split_first() else { return };
        if let Some(instead) = setting(sets).find(|variable| variable.name == *first).and_then(|v| v.instead)
        {
            self.outside
                .notices
                .push(format!("{first}{at} is an older name and still read: write {instead}"));
        }
        self.outside
            .notices
            .extend(rest.iter().map(|name| format!("{name}{at} is ignored, since {first} is set")));
    }

    fn parsed<T: FromStr<Err = Invalid>>(&mut self, text: Option<Set<String>>) -> Option<Set<T>> {
        let Set { value: text, place } = text?;
        match text.parse() {
            Ok(value) => Some(Set { value, place }),
            Err(error) => {
                self.outside.found.invalid(place, "", shown(&text), error);
                None
            }
        }
    }

    fn secret<T>(
        &mut self,
        text: Option<Set<String>>,
        read: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<Set<T>> {
        let Set { value: text, place } = text?;
        match read(&text) {
            Ok(value) => Some(Set { value, place }),
            Err(error) => {
                self.outside.found.invalid(place, "", None, error);
                None
            }
        }
    }

    /// A path. In an env file a relative one starts at the folder of that file, elsewhere at the working directory.
    fn path(
        &mut self,
        flag: Option<&String>,
        flag_name: &'static str,
        sets: &'static str,
    ) -> Option<Set<PathBuf>> {
        let Set { value, place } = self.text(flag, flag_name, sets)?;
        let path = PathBuf::from(value);
        let value = match &place {
            Place::EnvFile(place) => place.path.parent().map_or(path.clone(), |folder| folder.join(&path)),
            Place::File(_) | Place::WholeFile(_) | Place::Env(_) | Place::Flag(_) | Place::Default => path,
        };
        Some(Set { value, place })
    }

    fn log(&mut self, flags: &Flags, layers: &mut Layers) {
        let enabled = self.text(None, "", ENABLE_LOGGING);
        let switched_off = self.parsed::<Truth>(enabled).filter(|set| !set.value.0).map(|set| set.place);
        let level = self.text(flags.log_level.as_ref(), "--log-level", "log.level");
        let level = self.parsed::<Level>(level);
        let stronger = |off: &Place| level.as_ref().is_none_or(|set| self.rank(off) < self.rank(&set.place));
        let silenced = switched_off.filter(stronger);
        if let (Some(_), Some(Set { place: Place::EnvFile(place), .. })) = (&silenced, &level) {
            let which = format!("{} in {} is ", place.name, place.path.display());
            // Not read either, then.
            self.outside.notices.retain(|words| !words.starts_with(&which));
            self.outside.notices.push(format!("{which}ignored, since ENABLE_LOGGING is false"));
        }
        // Who sets nothing is not named as the one that did.
        let without = if silenced.is_some() { "log.level" } else { ENABLE_LOGGING };
        self.given.retain(|given| given.key != without);
        layers.log_level =
            if silenced.is_some() { Some(LogLevel::Error) } else { level.map(|set| set.value.0) };
        let format = self.text(flags.log_format.as_ref(), "--log-format", "log.format");
        layers.log_format = self.parsed::<Format>(format).map(|set| set.value.0);
        let file = self.path(flags.log_file.as_ref(), "--log-file", "log.file");
        layers.log_file = file.map(|set| set.value);
    }

    fn otlp(&mut self) -> OtlpLayer {
        let endpoint = self.text(None, "", "otlp.endpoint");
        let headers = self.text(None, "", "otlp.headers");
        let disabled = self.text(None, "", OTLP_DISABLED);
        OtlpLayer {
            endpoint: self.parsed(endpoint).map(|set| set.value),
            headers: self.secret(headers, super::keys::otlp_headers).map(|set| set.value),
            service_name: self.text(None, "", "otlp.service_name").map(|set| set.value),
            // By the specification whatever is not `true` is false.
            disabled: disabled.is_some_and(|set| set.value.trim().eq_ignore_ascii_case("true")),
        }
    }

    /// How strong the place of a setting is, by its layer and within that by the table of variables: the smaller, the
    /// stronger.
    fn rank(&self, place: &Place) -> (usize, usize) {
        match place {
            Place::Flag(_) => (0, 0),
            Place::Env(name) => (1, rank(name)),
            Place::EnvFile(place) => {
                let file = self.outside.env_files.iter().position(|file| file.path == place.path);
                (2 + file.unwrap_or_default(), rank(&place.name))
            }
            Place::File(_) | Place::WholeFile(_) | Place::Default => (usize::MAX, 0),
        }
    }

    /// A key goes only to the upstream that the same file names, or that our own configuration file does: whoever
    /// names another one, in the environment or by a flag, did not mean to send it there.
    fn meant_for(&mut self, key: Option<Set<Secret>>, upstream: Option<&Set<String>>) -> Option<Set<Secret>> {
        let key = key?;
        let Place::EnvFile(super::env_file::EnvPlace { path, name, .. }) = &key.place else { return None };
        let names_one =
            self.outside.env_files.iter().find(|file| file.path == *path).is_some_and(|file| {
                setting("relay.upstream").any(|variable| file.get(variable.name).is_some())
            });
        let fits = match upstream.map(|set| &set.place) {
            Some(Place::EnvFile(place)) => place.path == *path,
            Some(Place::File(_)) => !names_one,
            Some(Place::Flag(_) | Place::Env(_) | Place::WholeFile(_) | Place::Default) | None => false,
        };
        if fits {
            return Some(key);
        }
        let path = path.display();
        self.outside.notices.push(match upstream {
            Some(_) => format!("{name} in {path} is not used: another place names the upstream, and it may not be meant for that"),
            None => format!("{name} in {path} is not used: name its upstream there too, with STEADY_RELAY_UPSTREAM"),
        });
        None
    }

    /// `--mode proxy` belongs to an older tool, whose other modes are verbs here.
    fn mode(&mut self, flags: &Flags) {
        match flags.mode.as_deref() {
            None => {}
            Some("proxy") => {
                self.outside
                    .notices
                    .push("--mode proxy is an older flag: this is always a proxy, leave it out".into());
            }
            Some(_) => {
                let hint = "leave it out; `steady-relay --help` shows what there is";
                self.outside.found.add(Place::Flag("--mode"), "the only mode is `proxy`", hint);
            }
        }
    }

    /// A name of ours that does not exist is an error; what is nearly a name that we read deserves a word. All else
    /// in an env file belongs to others.
    fn unknown_names(&mut self) {
        let read: Vec<_> = names_but(Scope::Process);
        let lower: Vec<_> = read.iter().map(|name| name.to_ascii_lowercase()).collect();
        let lower: Vec<_> = lower.iter().map(String::as_str).collect();
        for (name, place) in self.outside.env_files.iter().flat_map(EnvFile::names) {
            if read.contains(&name) {
                continue;
            }
            if let Some(rest) = name.strip_prefix(OURS) {
                let full = self.outside.found.is_full();
                let hint = if full { String::new() } else { near_ours(rest, Scope::Process) };
                self.outside.found.add(Place::EnvFile(place), "there is no such setting", hint);
                continue;
            }
            if let Some(near) = nearest(name, &lower).filter(|_| name.len() >= 8) {
                let (path, near) = (place.path.display(), near.to_ascii_uppercase());
                self.outside.notices.push(format!("{name} in {path} is not read: did you mean `{near}`?"));
            }
        }
    }

    /// A name of ours in the process environment that is none deserves a word and stops nothing: whoever set it may
    /// have meant another version, or another program of ours.
    fn unknown_variables(&mut self) {
        let known = names_but(Scope::EnvFiles);
        let is_known = |name: &String| {
            known
                .iter()
                .any(|known| if cfg!(windows) { known.eq_ignore_ascii_case(name) } else { known == name })
        };
        let mut names = self.outside.env.names();
        names.retain(|name| !is_known(name) && present(self.outside.env, name).is_some());
        names.sort();
        for name in names {
            if let Some(rest) = after_ours(&name) {
                let (name, hint) = (clipped(&name), near_ours(rest, Scope::EnvFiles));
                self.outside.notices.push(format!("{name} in the environment is not read: {hint}"));
            }
        }
    }
}

/// What the names of our own variables begin with.
const OURS: &str = "STEADY_RELAY_";

/// What follows that beginning. On some systems `steady_relay_port` is another variable, and meant all the same.
fn after_ours(name: &str) -> Option<&str> {
    let (start, rest) = name.split_at_checked(OURS.len())?;
    start.eq_ignore_ascii_case(OURS).then_some(rest)
}

/// The names that are read somewhere else than in this scope alone.
fn names_but(scope: Scope) -> Vec<&'static str> {
    VARIABLES.iter().filter(|variable| variable.scope != scope).map(|variable| variable.name).collect()
}

/// Which of our own variables is meant, or all there are. The beginning that they share does not count: it would
/// make any short name look like any other.
fn near_ours(rest: &str, but: Scope) -> String {
    let names = names_but(but);
    let lower: Vec<_> =
        names.iter().filter_map(|name| after_ours(name)).map(str::to_ascii_lowercase).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    match nearest(rest, &lower) {
        Some(near) => format!("did you mean `{OURS}{}`?", near.to_ascii_uppercase()),
        None => {
            let ours = names.into_iter().filter(|name| after_ours(name).is_some());
            format!("names: {}", ours.collect::<Vec<_>>().join(", "))
        }
    }
}
