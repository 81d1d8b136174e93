//! Which clients point to the relay, which do not, and which to an address where nobody answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use relay_core::Lang;
use serde_json::{Value, json};

use super::address::{RelayAt, authority, shown, who_is_at};
use super::clients::{self, Client, Finding, Look, Wanted, Way};
use super::machine::{Bad, Machine, Side};
use crate::running::Who;
use crate::words::{settings, setup as words};

/// One client as it is set up now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientState {
    /// Which one.
    pub client: Client,
    /// Its name for people, with the editor that it lives in.
    pub title: String,
    /// On which side of a Windows machine it is.
    pub side: Side,
    /// Its file; empty where it has none that a program should write.
    pub file: PathBuf,
    /// The key that holds its address, as one would say it.
    pub key: String,
    /// Where it points.
    pub standing: Standing,
    /// Every address in its file, with those that are not ours to set.
    pub addresses: Vec<Told>,
    /// What the user should know besides, a sentence each.
    pub notes: Vec<String>,
}

/// An address that a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The key that holds it, as one would say it.
    pub key: String,
    /// The address, ready to be shown.
    pub shown: String,
    /// Where it leads.
    pub standing: Standing,
}

/// Where a client points. Addresses are ready to be shown: what may be a secret in them is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// To the relay, which answers.
    Relay,
    /// To the relay's address, where nobody answers now, or another program.
    RelayDown(String),
    /// To another address of this machine where nobody answers.
    Dead(String),
    /// To another address.
    Elsewhere(String),
    /// It has no address of its own, and asks its service directly.
    Unset,
    /// Only the user can see and change it: how.
    ByHand(Vec<String>),
    /// It cannot be moved: why.
    Immovable(String),
    /// Its file cannot be used.
    Unreadable(Bad),
}

impl Standing {
    /// The word for it in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::RelayDown(_) => "relay_down",
            Self::Dead(_) => "dead",
            Self::Elsewhere(_) => "elsewhere",
            Self::Unset => "unset",
            Self::ByHand(_) => "by_hand",
            Self::Immovable(_) => "immovable",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// What somebody has to know comes first.
    const fn rank(&self) -> u8 {
        match self {
            Self::Unreadable(_) | Self::Dead(_) => 0,
            Self::RelayDown(_) => 1,
            Self::Immovable(_) | Self::ByHand(_) | Self::Elsewhere(_) => 2,
            Self::Unset => 3,
            Self::Relay => 4,
        }
    }

    /// The same for a person.
    #[must_use]
    pub fn said(&self, lang: Lang) -> String {
        match self {
            Self::Relay => words::stands_at_relay(lang),
            Self::RelayDown(address) => words::stands_at_silent_relay(lang, address),
            Self::Dead(address) => words::stands_dead(lang, address),
            Self::Elsewhere(address) => words::stands_elsewhere(lang, address),
            Self::Unset => words::stands_unset(lang),
            Self::ByHand(_) => words::stands_by_hand(lang),
            Self::Immovable(why) => words::stands_immovable(lang, why),
            Self::Unreadable(bad) => words::stands_unreadable(lang, &bad.said(lang)),
        }
    }
}

impl Bad {
    /// Why, for a person.
    #[must_use]
    pub fn said(&self, lang: Lang) -> String {
        match self {
            Self::NoFile => words::bad_no_file(lang),
            Self::TooLarge => words::bad_too_large(lang),
            Self::Denied => words::bad_denied(lang),
            Self::Flaw(flaw) => {
                words::bad_flaw(lang, flaw.line, flaw.column, &settings::said(lang, &flaw.what))
            }
            Self::System(what) => settings::said(lang, what),
        }
    }
}

impl ClientState {
    /// As JSON.
    #[must_use]
    pub fn in_json(&self, lang: Lang) -> Value {
        let address = match &self.standing {
            Standing::RelayDown(address) | Standing::Dead(address) | Standing::Elsewhere(address) => {
                Some(address)
            }
            Standing::Relay
            | Standing::Unset
            | Standing::ByHand(_)
            | Standing::Immovable(_)
            | Standing::Unreadable(_) => None,
        };
        let by_hand = if let Standing::ByHand(steps) = &self.standing { steps.as_slice() } else { &[] };
        json!({
            "client": self.client.name(),
            "title": self.title,
            "side": side(&self.side),
            "file": (!self.file.as_os_str().is_empty()).then(|| self.file.display().to_string()),
            "key": self.key,
            "standing": self.standing.name(),
            "said": self.standing.said(lang),
            "address": address,
            "by_hand": by_hand,
            "notes": self.notes,
        })
    }
}

fn side(side: &Side) -> String {
    match side {
        Side::Here => "here".to_owned(),
        Side::Windows => "windows".to_owned(),
        Side::Wsl(distro) => format!("wsl:{distro}"),
    }
}

/// Looks at every client that is there, and at these env files. Nothing is written, and no file is read in any other way than `machine` does.
#[must_use]
pub fn survey(lang: Lang, machine: &Machine<'_>, relay: &RelayAt, env_files: &[PathBuf]) -> Vec<ClientState> {
    // Many clients name one address, and who says nothing takes a while.
    let known = RefCell::new(BTreeMap::new());
    let who = |at| *known.borrow_mut().entry(at).or_insert_with(|| (machine.who)(at));
    let machine = Machine { who: &who, ..machine.clone() };
    let look = Look { machine: &machine, relay, lang, named: &[] };
    let env_files = env_files.iter().map(|file| clients::env_file(look, file.clone()));
    clients::find(look).into_iter().chain(env_files).filter_map(|finding| state(look, finding)).collect()
}

/// Where an address leads that is told in another way than by a file.
#[must_use]
pub fn told(machine: &Machine<'_>, relay: &RelayAt, key: &str, url: &str) -> Told {
    let look = Look { machine, relay, lang: Lang::English, named: &[] };
    Told { key: key.to_owned(), shown: shown(url), standing: standing(look, Some(url)) }
}

/// `None` for a file that says nothing of an address.
pub(super) fn state(look: Look<'_>, finding: Finding) -> Option<ClientState> {
    let addresses: Vec<_> =
        finding.keys.iter().filter(|key| matches!(key.value, Wanted::Address(_))).collect();
    if addresses.is_empty() && finding.way == Way::Keys {
        return None;
    }
    let name = |path: &[String]| path.join(".");
    let document = match finding.way {
        Way::Bad(_) => None,
        Way::Keys | Way::ByHand(_) | Way::No(_) => look.peek(&finding.file, finding.format),
    };
    let value = |path: &[String]| {
        let value = document.as_ref()?.get(path).ok()??.as_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    let paths = addresses.iter().map(|key| &key.path).chain(&finding.others);
    let told = paths.filter_map(|path| Some(told(look.machine, look.relay, &name(path), &value(path)?)));
    let told: Vec<_> = told.collect();
    let mut key = addresses.first().map_or_else(String::new, |key| name(&key.path));
    let standing = match &finding.way {
        Way::ByHand(steps) => Standing::ByHand(steps.clone()),
        Way::No(why) => Standing::Immovable(why.clone()),
        Way::Bad(bad) => Standing::Unreadable(bad.clone()),
        Way::Keys => {
            let each = addresses.iter().map(|key| {
                let value = value(&key.path).or_else(|| finding.around.clone());
                (name(&key.path), standing(look, value.as_deref()))
            });
            // Of several keys, the one that somebody has to know of.
            let (of, standing) = each.min_by_key(|(_, standing)| standing.rank())?;
            key = of;
            standing
        }
    };
    Some(ClientState {
        client: finding.client,
        title: finding.title,
        side: finding.side,
        file: finding.file,
        key,
        standing,
        addresses: told,
        notes: finding.notes,
    })
}

fn standing(look: Look<'_>, value: Option<&str>) -> Standing {
    let Some(value) = value else { return Standing::Unset };
    let Some(url) = authority(value) else { return Standing::Elsewhere(shown(value)) };
    let who = || who_is_at(&url, look.machine.who);
    if look.relay.is(value) {
        return if who() == Who::Relay { Standing::Relay } else { Standing::RelayDown(shown(value)) };
    }
    if look.relay.is_here(&url) && who() == Who::Nobody {
        return Standing::Dead(shown(value));
    }
    Standing::Elsewhere(shown(value))
}

#[cfg(test)]
mod tests {
    use super::super::System;
    use super::*;
    use std::io;

    #[test]
    fn each_client_is_told_apart() {
        let files = [
            ("/home/u/.codex/config.toml", "openai_base_url = \"http://localhost:8787/v1\"\n"),
            (
                "/home/u/.claude/settings.json",
                "{\"env\": {\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:4000\"}}",
            ),
            ("/home/u/.config/opencode/opencode.json", "{ nonsense"),
            (
                "/home/u/.gemini/.env",
                "GEMINI_API_KEY=AIzaX\nGOOGLE_GEMINI_BASE_URL=https://me:pw@gw.example\n",
            ),
            ("/home/u/.continue/config.yaml", "models: []\n"),
        ];
        let machine = Machine {
            system: System::Linux,
            in_wsl: false,
            distros: Vec::new(),
            env: &|name| (name == "HOME").then(|| "/home/u".into()),
            read: &|path| {
                let found = files.iter().find(|(name, _)| std::path::Path::new(name) == path);
                found.map(|(_, text)| text.as_bytes().to_vec()).ok_or(io::ErrorKind::NotFound.into())
            },
            list: &|_| Vec::new(),
            exists: &|path| files.iter().any(|(name, _)| std::path::Path::new(name).starts_with(path)),
            who: &|at| if at.port() == 8787 { Who::Relay } else { Who::Nobody },
            folder: "/project".into(),
        };
        let found = survey(Lang::English, &machine, &RelayAt::local(8787), &[]);
        let seen: Vec<_> = found
            .iter()
            .map(|state| (state.client.name(), state.key.as_str(), state.standing.said(Lang::English)))
            .collect();
        let expected = [
            ("codex", "openai_base_url", "points to the relay".to_owned()),
            (
                "claude",
                "env.ANTHROPIC_BASE_URL",
                "points to http://127.0.0.1:4000, where nothing answers".to_owned(),
            ),
            (
                "opencode",
                "provider.openai.options.baseURL",
                "is left alone: line 1, column 3: Expected string for object property".to_owned(),
            ),
            (
                "gemini",
                "GOOGLE_GEMINI_BASE_URL",
                "points to https://…@gw.example, not to the relay".to_owned(),
            ),
            ("continue", "", "is set up by hand".to_owned()),
        ];
        assert_eq!(seen, expected);
    }
}
