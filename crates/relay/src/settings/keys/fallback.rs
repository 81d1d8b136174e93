//! The keys of a `[[fallback]]`.

use std::ops::RangeInclusive;
use std::time::Duration;

use relay_core::config::FALLBACK_AFTER;
use relay_core::units::Invalid;

use super::model;
use crate::settings::read::{Given, Key};

/// More than anybody lists by hand.
const MOST_MODELS: usize = 16;
/// Below a second a refusal is no lasting one, and beyond a week nobody waits.
const AFTER: RangeInclusive<Duration> = Duration::from_secs(1)..=super::WEEK;

/// What a `[[fallback]]` says.
#[derive(Debug)]
pub(in crate::settings) struct FallbackDraft {
    pub(in crate::settings) model: Option<String>,
    pub(in crate::settings) to: Option<Vec<String>>,
    pub(in crate::settings) after: Duration,
    pub(in crate::settings) upstream: Option<String>,
}

impl Default for FallbackDraft {
    fn default() -> Self {
        Self { model: None, to: None, after: FALLBACK_AFTER, upstream: None }
    }
}

/// `[[fallback]]`.
pub(in crate::settings) const FALLBACK: &[Key<FallbackDraft>] = &[
    Key {
        name: "model",
        shape: "text",
        default: "",
        doc: "The model that a client asks for; a `*` at the end stands for any rest. Needed.",
        set: |fallback, given| model(given).map(|value| fallback.model = Some(value)),
    },
    Key {
        name: "to",
        shape: "list of names",
        default: "",
        doc: "The models that may answer in its place, in the order of preference, at the same upstream. Needed.",
        set: |fallback, given| models(given).map(|value| fallback.to = Some(value)),
    },
    Key {
        name: "after",
        shape: "time",
        default: "\"10min\"",
        doc: "How long the model that was asked for has to take no calls before, without a break.",
        set: |fallback, given| given.duration(AFTER).map(|value| fallback.after = value),
    },
    Key {
        name: "upstream",
        shape: "name",
        default: "",
        doc: "Only for calls that go to this `[upstream.NAME]` or `[pool.NAME]`. Not set: to any.",
        set: |fallback, given| given.text().map(|text| fallback.upstream = Some(text.to_owned())),
    },
];

fn models(given: &Given<'_>) -> Result<Vec<String>, Invalid> {
    const FORM: &str = "list the names of models: to = [\"gpt-y\"]";
    let names = given.texts()?;
    if names.is_empty() {
        return Err(Invalid::new("is empty", FORM));
    }
    if names.len() > MOST_MODELS {
        return Err(Invalid::new("is too long", format!("list at most {MOST_MODELS} names")));
    }
    if names.iter().any(|name| name.is_empty() || name.contains('*')) {
        return Err(Invalid::new("holds what is no model", "write each name whole, without *"));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}
