//! The report for a bug tracker: Markdown, in English. What is in it was made for others to read: settings are masked,
//! calls hold labels and numbers alone, and at the end secrets, home folders and the name of the user are taken out.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use relay_core::redact::redact;
use relay_core::{Lang, plain};

use super::Verdict;
use super::facts::Facts;
use super::report;
use super::votes::{failures, went_well};
use crate::doctor::facts::Here;
use crate::history::record::{CallRecord, SendRecord, WaitRecord, WaitWhy};
use crate::private;
use crate::running::text::span;
use crate::settings::Shown;

/// The most calls whose story is told.
const MOST: usize = 10;
/// Keys whose values are nobody's business, whatever else masks them.
const PRIVATE: &[&str] = &["headers", "token", "names", "allowed_origins"];
/// A name that is shorter may stand for anything.
const SHORTEST: usize = 3;

/// What must not be in a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Home folders.
    pub homes: Vec<String>,
    /// Names of the user.
    pub users: Vec<String>,
}

impl Hidden {
    /// What the surroundings say of the user.
    pub fn found(variable: impl Fn(&str) -> Option<String>) -> Self {
        let all = |names: &[&str]| {
            let values = names.iter().filter_map(|name| variable(name));
            values.filter(|value| value.len() >= SHORTEST).collect::<Vec<_>>()
        };
        let homes = all(&["HOME", "USERPROFILE"]);
        let mut users = all(&["USER", "LOGNAME", "USERNAME"]);
        let last = |home: &String| Some(Path::new(home).file_name()?.to_str()?.to_owned());
        users.extend(homes.iter().filter_map(last).filter(|name| name.len() >= SHORTEST));
        Self { homes, users }
    }

    /// The text without them, and without secrets.
    fn taken_out(&self, text: &str) -> String {
        // Whoever opens the file, or the page that it is pasted into, sees all that is there.
        let mut text = plain::text(text).into_owned();
        for home in self.homes.iter().filter(|home| home.len() > 1) {
            text = text.replace(home.as_str(), "~");
            // In JSON and in TOML a backslash is written twice.
            text = text.replace(&home.replace('\\', "\\\\"), "~");
        }
        // What is assigned on one line says nothing of the next.
        let mut text: String = text.split_inclusive('\n').map(redact).collect();
        for user in &self.users {
            text = without_word(&text, user);
        }
        text
    }
}

/// The text with `[user]` wherever this word stands by itself.
fn without_word(text: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_part =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let begins = before.chars().next_back().or_else(|| out.chars().next_back());
        out += before;
        out += if is_part(begins) || is_part(after.chars().next()) { word } else { "[user]" };
        rest = after;
    }
    out + rest
}

/// The report.
#[must_use]
pub fn markdown(verdict: &Verdict, facts: &Facts, shown: &[Shown], hidden: &Hidden) -> String {
    let running = match &facts.way.here {
        Here::Relay(page) => page["version"].as_str().unwrap_or("unknown").to_owned(),
        Here::Locked => "one that asks for a token".to_owned(),
        Here::Free | Here::Taken(_) | Here::Held(_) => "none".to_owned(),
    };
    let mut out = format!(
        "## Steady Relay: {}\n\n\
         - version: {} ({} {})\n- relay that runs: {running}\n- made: {}\n\n\
         ### Verdict\n\n```text\n{}\n```\n\n### Settings that are not the defaults\n\n```toml\n{}```\n",
        verdict.line(Lang::English),
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        utc(facts.now),
        report::text(Lang::English, verdict),
        settings(shown),
    );
    let calls = chosen(&facts.calls);
    if calls.is_empty() {
        out += "\n### Calls\n\nNone was seen.\n";
        return hidden.taken_out(&out);
    }
    out += "\n### The last calls\n";
    for call in &calls {
        out += &story(call);
    }
    out += "\n### The same for `steady-relay replay`\n\n```jsonl\n";
    for call in &calls {
        // A record is made of text and numbers.
        out += &(plain::json(&serde_json::to_string(call).unwrap_or_default()).into_owned() + "\n");
    }
    out += "```\n";
    hidden.taken_out(&out)
}

/// Writes it, readable by the user alone.
///
/// # Errors
/// Where that fails.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    private::replace(path, text.as_bytes())
}

/// The last calls that met trouble, or else the last ones.
fn chosen(calls: &[CallRecord]) -> Vec<&CallRecord> {
    let ill: Vec<_> = calls.iter().filter(|call| !went_well(call)).collect();
    let all = if ill.is_empty() { calls.iter().collect() } else { ill };
    let from = all.len().saturating_sub(MOST);
    all.into_iter().skip(from).collect()
}

/// What somebody has set.
fn settings(shown: &[Shown]) -> String {
    let mut out = String::new();
    let mut section = None;
    for Shown { section: its, nth, key, value, origin } in shown {
        let (Some(value), true) = (value, origin != "default") else { continue };
        if section.replace((its, nth)) != Some((its, nth)) {
            let _never_fails = writeln!(out, "{its}");
        }
        let value = if PRIVATE.contains(&key.as_str()) { "\"…\"" } else { value };
        let _never_fails = writeln!(out, "{key} = {value}");
    }
    if out.is_empty() { "# none\n".to_owned() } else { out }
}

/// A moment in UTC.
fn utc(ms: u64) -> String {
    // Beyond the year 9999 there is no such date.
    let ms = ms.min(253_370_764_800_000);
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
}

fn time(ms: u64) -> String {
    span(Lang::English, Some(ms as f64 / 1000.0))
}

/// What happened to a call, line by line.
fn story(call: &CallRecord) -> String {
    let run = call.run.map(|run| format!("{run}-")).unwrap_or_default();
    let model = call.model.as_deref().unwrap_or("-");
    let ended = match &call.closed {
        None => "open".to_owned(),
        Some(closed) => {
            let why = closed.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!(
                "{}{why}, {} sends, {} waited, {} in all",
                closed.outcome,
                closed.sends,
                time(closed.waited),
                time(closed.took)
            )
        }
    };
    let mut out = format!(
        "\n**{run}{}**, {}: {} ({}, {}) to {} {model}, profile {}: {ended}\n\n",
        call.call,
        utc(call.opened),
        call.client,
        call.dialect,
        call.transport,
        call.upstream,
        call.profile
    );
    for of in &call.sends {
        out += &send(of);
    }
    if call.left_out > 0 {
        let _never_fails = writeln!(out, "- ({} sends in the middle are left out)", call.left_out);
    }
    if failures(call).next().is_none() && call.sends.is_empty() {
        out += "- no send\n";
    }
    out
}

fn send(of: &SendRecord) -> String {
    let mut out = String::new();
    if let Some(WaitRecord { why, began, planned, took, waiting, .. }) = &of.wait {
        let why = match why {
            WaitWhy::Told => "as the upstream asked",
            WaitWhy::Backoff => "on its curve",
            WaitWhy::Line => "in its lane",
            WaitWhy::Parked => "for a quota",
            WaitWhy::Circuit => "since every breaker was open",
            WaitWhy::Credential => "for a credential",
            WaitWhy::Cut => "after a cut",
        };
        let planned = planned.map(|planned| format!(", planned {}", time(planned))).unwrap_or_default();
        let took = took.map(|took| format!(", took {}", time(took))).unwrap_or_default();
        let waiting = waiting.map(|many| format!(", {many} in line")).unwrap_or_default();
        let _never_fails = writeln!(out, "- +{}: waits {why}{planned}{took}{waiting}", time(*began));
    }
    let twice = if of.may_run_twice { ", may run twice" } else { "" };
    if let Some(began) = of.began {
        let _never_fails = writeln!(out, "- +{}: send {}{twice}", time(began), of.send);
    }
    let id = of.request_id.as_ref().map(|id| format!(", request id `{id}`")).unwrap_or_default();
    let status = of.status.map(|status| format!("{status} ")).unwrap_or_default();
    match (&of.failed, of.head) {
        (Some(failed), _) => {
            let more = [("code", failed.code.as_ref()), ("rule", failed.rule.as_ref())];
            let more: String =
                more.iter().filter_map(|(name, it)| Some(format!(", {name} {}", (*it)?))).collect();
            let told = failed.told.map(|told| format!(", asks to wait {}", time(told))).unwrap_or_default();
            let evidence = failed.evidence.as_deref().unwrap_or("final");
            let at = time(failed.at);
            let _never_fails = writeln!(out, "- +{at}: {status}{}, {evidence}{more}{told}{id}", failed.fault);
        }
        (None, Some(head)) => {
            let _never_fails = writeln!(out, "- +{}: {status}is answered{id}", time(head));
        }
        (None, None) => {}
    }
    out
}
