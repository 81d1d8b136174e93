//! The settings as a reader meets them: every section, every key, and where a misplaced one belongs.
//! Made from the lists in `keys`; nothing is said twice.

use super::keys::{
    ALERTS, BODIES, BREAKER, CLIENT, CODEX, CREDENTIAL, FALLBACK, HISTORY, HOLD, LIMITS, LOG, OTLP, POOL,
    PROFILE, RELAY, ROUTE, SNAPSHOTS, TIMEOUTS, UPSTREAM, WAITING,
};
use super::numbers::NUMBERS;
use super::read::{Key, one_of};
use super::rules::RULE;
use relay_core::units::Invalid;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// One section of the reference page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionDoc {
    /// How it is written: `[timeouts]`.
    pub head: &'static str,
    /// What it is about.
    pub doc: &'static str,
    /// Its keys, in order.
    pub keys: Vec<KeyDoc>,
}

/// One key of the reference page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDoc {
    /// Its name.
    pub name: &'static str,
    /// What the value is, in one or two words.
    pub shape: &'static str,
    /// The default as it would stand in the file; empty where there is none.
    pub default: &'static str,
    /// What it means, in Markdown.
    pub doc: &'static str,
    /// What can be written, where it is a choice.
    pub choices: Vec<String>,
}

fn docs<T: Default>(keys: &[Key<T>]) -> Vec<KeyDoc> {
    keys.iter()
        .map(|key| {
            let Key { name, shape, default, doc, set: _ } = key;
            KeyDoc { name, shape, default, doc, choices: key.choices() }
        })
        .collect()
}

/// Every section with every key: what the reference page is made from.
#[must_use]
pub fn reference() -> Vec<SectionDoc> {
    let mut all = of_the_relay();
    all.extend(entries());
    all
}

const fn section(head: &'static str, doc: &'static str, keys: Vec<KeyDoc>) -> SectionDoc {
    SectionDoc { head, doc, keys }
}

/// Those of the relay as a whole.
fn of_the_relay() -> Vec<SectionDoc> {
    vec![
        section(
            "[relay]",
            "The relay itself: where it listens, whom it trusts, where it sends.",
            docs(RELAY),
        ),
        section("[timeouts]", "How long each step of a send may take.", docs(TIMEOUTS)),
        section("[waiting]", "What a client is shown while it waits.", docs(WAITING)),
        section("[hold]", "What is held back of an answer before it is the client's.", docs(HOLD)),
        section("[bodies]", "What is kept of the requests for a resend.", docs(BODIES)),
        section("[limits]", "What clients may ask of the relay itself.", docs(LIMITS)),
        section("[log]", "What is logged.", docs(LOG)),
        section("[history]", "What is kept of calls that are over.", docs(HISTORY)),
        section("[alerts]", "What a person is told of, and how; `docs/alerts.md` has more.", docs(ALERTS)),
        section(
            "[otlp]",
            "Traces and metrics for a collector of OpenTelemetry; `docs/otlp.md` has more. In a program that was built \
             without the feature `otlp` an `endpoint` is an error.",
            docs(OTLP),
        ),
        section(
            "[snapshots]",
            "What is kept of calls that end badly; `docs/snapshots.md` has more.",
            docs(SNAPSHOTS),
        ),
    ]
}

/// Those of which there may be several, each with a name or a place of its own.
fn entries() -> Vec<SectionDoc> {
    vec![
        section(
            "[client.NAME]",
            "One kind of client: `codex`, `claude_code`, `stainless`, `gemini_cli`, `google_genai`, `ollama` or `other`.",
            docs(CLIENT),
        ),
        section("[client.codex]", "What Codex has besides.", docs(CODEX)),
        section(
            "[upstream.NAME]",
            "One upstream. `openai`, `chatgpt`, `anthropic` and `gemini` ship and can be changed key by \
             key.",
            docs(UPSTREAM),
        ),
        section(
            "[credential.NAME]",
            "A credential of the relay's own, so that clients need none; an `[upstream.NAME]` names it. Its key comes from one \
             of `key`, `key_env`, `key_file` and `key_command`, or is a token that is issued at `token_url`. \
             `docs/credentials.md` has more.",
            docs(CREDENTIAL),
        ),
        section(
            "[pool.NAME]",
            "Several upstreams that stand in for each other; `docs/pools.md` has more. Its name is no upstream's.",
            docs(POOL),
        ),
        section(
            "[breaker]",
            "When an upstream is cut off for a while because it fails, so that calls go to others of its pool at once.",
            docs(BREAKER),
        ),
        section(
            "[profile.NAME]",
            "How hard and how long the relay tries. `interactive`, `batch`, `patient` and `strict` ship, \
             and `codex-retry` and `opencodex`, named after the tools whose numbers they carry. Each can be changed \
             key by key. The defaults shown are those of `interactive`.",
            [docs(PROFILE), docs(NUMBERS)].concat(),
        ),
        section(
            "[[route]]",
            "What is different for some calls; the first route that fits holds. Each number of a profile is a key \
             here too, in place of the profile's. A route that names neither `path`, `client` nor `model` fits every \
             call, so it can only be the last; one that no call reaches is an error.",
            docs(ROUTE),
        ),
        section(
            "[[rule]]",
            "What an answer means, in your own words; the first rule that fits an answer holds, before all that ship. \
             All that a rule asks for must hold. `docs/rules.md` has examples.",
            docs(RULE),
        ),
        section(
            "[[fallback]]",
            "Another model in place of one that has no capacity, where you agree to that; the first that fits a call holds. \
             Its answers say which model gave them. `docs/pools.md` has more.",
            docs(FALLBACK),
        ),
    ]
}

/// The names of the sections at the top of the file.
pub(super) const SECTIONS: [&str; 20] = [
    "relay",
    "timeouts",
    "waiting",
    "hold",
    "bodies",
    "limits",
    "log",
    "history",
    "alerts",
    "otlp",
    "snapshots",
    "client",
    "upstream",
    "pool",
    "breaker",
    "credential",
    "profile",
    "route",
    "rule",
    "fallback",
];

/// Where a key that stands in the wrong section belongs.
pub(super) fn home_of(at: &str, name: &str) -> Option<String> {
    let name = name.replace('-', "_");
    if at.starts_with("client.") && CODEX.iter().any(|key| key.name == name) {
        return Some(format!("`{name}` is a key of [client.codex] alone"));
    }
    if at.is_empty() && SECTIONS.contains(&name.as_str()) {
        return None;
    }
    let home = reference().into_iter().find(|section| section.keys.iter().any(|key| key.name == name))?;
    let is_here = home.head.trim_matches(['[', ']']) == at;
    (!is_here).then(|| format!("`{name}` is a key of {}: write it below that line", home.head))
}

/// Whether the value of a key of this name may be shown: it is known, and never a secret.
pub(super) fn is_public(name: &str) -> bool {
    // Asked for each line of a file that is no TOML at all.
    static KNOWN: LazyLock<BTreeSet<&str>> =
        LazyLock::new(|| reference().iter().flat_map(|section| &section.keys).map(|key| key.name).collect());
    KNOWN.contains(name)
        && !matches!(
            name,
            "token"
                | "headers"
                | "api_key"
                | "url"
                | "endpoint"
                | "upstream"
                | "proxy"
                | "webhook"
                | "command"
                | "key"
                | "key_command"
                | "refresh_token"
                | "token_url"
                | "client_secret"
        )
}

/// What to say of a name that is none of those that exist.
pub(super) fn unknown_name(name: &str, what: &str, known: &[&str]) -> Invalid {
    Invalid::new(format!("names no {what}"), one_of(name, known, &format!("{what}s")))
}
