//! Values that a shell offers, where others may be given as well.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// The profiles that ship.
pub(crate) const PROFILES: Suggested =
    Suggested(&["auto", "interactive", "batch", "patient", "strict", "codex-retry", "opencodex"]);
/// What is on or off.
pub(crate) const ON_OFF: Suggested = Suggested(&["on", "off"]);
/// What is logged.
pub(crate) const LEVELS: Suggested = Suggested(&["error", "warn", "info", "debug", "trace"]);
/// How log lines look.
pub(crate) const FORMATS: Suggested = Suggested(&["text", "json"]);
/// What `setup` points at the relay.
pub(crate) const CLIENTS: Suggested =
    Suggested(&["codex", "claude", "vscode", "opencode", "gemini", "continue", "cline", "env-file"]);
/// What `undo` takes back.
pub(crate) const UNDONE: Suggested =
    Suggested(&["codex", "claude", "vscode", "opencode", "gemini", "continue", "cline", "env-file", "relay"]);

/// Takes any text; what it is worth, the settings say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suggested(pub(crate) &'static [&'static str]);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Client;

    #[test]
    fn every_client_is_offered() {
        let mut known: Vec<_> = Client::ALL.iter().map(|client| client.name()).collect();
        known.push(Client::EnvFile.name());
        assert_eq!(CLIENTS.0, known);
        known.push(Client::Relay.name());
        assert_eq!(UNDONE.0, known);
    }

    #[test]
    fn whatever_else_is_given_is_taken() {
        let read = |line: &str| super::super::Cli::read(line.split(' ')).unwrap().flags.profile;
        for name in PROFILES.0.iter().chain(&["of-ones-own"]) {
            assert_eq!(read(&format!("steady-relay --profile {name}")).as_deref(), Some(*name));
        }
    }
}
