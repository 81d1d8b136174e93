//! Flags over environment over file: which layer has the say on each key that more than one can set.
//! Not the file's other keys.

use super::errors::{Findings, Place};
use super::file::Drafts;
use super::read::looks_secret;
use super::{Env, Flags};
use relay_core::Listen;
use relay_core::config::Secret;
use relay_core::units::Invalid;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// A value, and where it comes from.
#[derive(Debug)]
pub(super) struct Set<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// What the layers say together; `None` where none says anything.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) listen: Option<Set<Listen>>,
    pub(super) port: Option<Set<u16>>,
    pub(super) token: Option<Set<Secret>>,
    /// Whether a token is given at all, be it valid or not.
    pub(super) has_token: bool,
    /// A URL or a name.
    pub(super) upstream: Option<Set<String>>,
    pub(super) profile: Option<Set<String>>,
    /// From the environment; the file's is added by `build`.
    pub(super) ca_file: Option<PathBuf>,
}

/// A variable that is set to something: an empty one counts as not set.
pub(super) fn present(env: Env<'_>, name: &str) -> Option<OsString> {
    env(name).filter(|value| !value.is_empty())
}

/// Reads flags and environment, and what the file says where those are silent.
pub(super) fn read(
    flags: &Flags,
    env: Env<'_>,
    file: &mut Drafts,
    found: &mut Findings,
    notices: &mut Vec<String>,
) -> Layers {
    let mut outside = Outside { env, found, notices };
    let listen = outside.text(flags.listen.as_ref(), "--listen", &["STEADY_RELAY_LISTEN"]);
    let port = outside.text(flags.port.as_ref(), "--port", &["STEADY_RELAY_PORT", "PORT"]);
    let upstream =
        outside.text(flags.upstream.as_ref(), "--upstream", &["STEADY_RELAY_UPSTREAM", "UPSTREAM_URL"]);
    let profile = outside.text(flags.profile.as_ref(), "--profile", &["STEADY_RELAY_PROFILE"]);
    let token = outside.text(None, "", &["STEADY_RELAY_TOKEN"]);
    let spans = &file.relay_spans;
    let place = |key: &str| spans.get(key).map_or(Place::Default, |span| Place::File(span.clone()));
    let has_token = token.is_some() || spans.contains_key("token");
    Layers {
        has_token,
        listen: outside.parsed(listen).or_else(|| set(file.relay.listen, place("listen"))),
        port: outside
            .parsed::<Port>(port)
            .map(|Set { value: Port(value), place }| Set { value, place })
            .or_else(|| set(file.relay.port, place("port"))),
        token: outside.secret(token).or_else(|| set(file.relay.token.take(), place("token"))),
        upstream: upstream.or_else(|| set(file.relay.upstream.take(), place("upstream"))),
        profile: profile.or_else(|| set(file.relay.profile.take(), place("profile"))),
        ca_file: present(env, "SSL_CERT_FILE").map(PathBuf::from),
    }
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

/// The value as it may be shown in a message.
pub(super) fn shown(text: &str) -> Option<&str> {
    let is_short = text.chars().count() <= 60 && !text.contains(char::is_control);
    (is_short && !looks_secret(text)).then_some(text)
}

/// Flags and environment.
struct Outside<'a> {
    env: Env<'a>,
    found: &'a mut Findings,
    notices: &'a mut Vec<String>,
}

impl Outside<'_> {
    /// The flag, else the first variable that is set. The second variable is an older name and worth a notice.
    fn text(
        &mut self,
        flag: Option<&String>,
        flag_name: &'static str,
        names: &[&'static str],
    ) -> Option<Set<String>> {
        if let Some(value) = flag {
            return Some(Set { value: value.clone(), place: Place::Flag(flag_name) });
        }
        let set: Vec<_> = names.iter().filter_map(|name| Some((*name, present(self.env, name)?))).collect();
        let (name, value) = set.first()?.clone();
        if let [current, older] = names {
            if name == *older {
                self.notices.push(format!("{older} is an older name and still read: write {current}"));
            } else if set.len() > 1 {
                self.notices.push(format!("{older} is ignored, since {current} is set"));
            }
        }
        let Ok(value) = value.into_string() else {
            self.found.add(Place::Env(name), "the value is not UTF-8 text", "");
            return None;
        };
        Some(Set { value, place: Place::Env(name) })
    }

    fn parsed<T: FromStr<Err = Invalid>>(&mut self, text: Option<Set<String>>) -> Option<Set<T>> {
        let Set { value: text, place } = text?;
        match text.parse() {
            Ok(value) => Some(Set { value, place }),
            Err(error) => {
                self.found.invalid(place, "", shown(&text), error);
                None
            }
        }
    }

    fn secret(&mut self, text: Option<Set<String>>) -> Option<Set<Secret>> {
        let Set { value: text, place } = text?;
        match text.parse() {
            Ok(value) => Some(Set { value, place }),
            Err(error) => {
                self.found.invalid(place, "", None, error);
                None
            }
        }
    }
}
