//! Walks a parsed TOML table against a list of keys: every key is declared once, every value knows its position,
//! and nothing stops at the first error. Not the keys themselves (those are `keys`).

use super::errors::{Findings, Place};
use relay_core::plain::is_unfit;
use relay_core::redact::holds_a_key;
use relay_core::units::{self, Invalid};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One key of the settings: its name, its reference text, and how its value reaches a `T`.
pub(super) struct Key<T> {
    pub(super) name: &'static str,
    /// What the value is, in one or two words.
    pub(super) shape: &'static str,
    /// The default as it would stand in the file; empty where there is none.
    pub(super) default: &'static str,
    /// What the key means: the paragraph of the reference page.
    pub(super) doc: &'static str,
    pub(super) set: fn(&mut T, &Given<'_>) -> Result<(), Invalid>,
}

impl<T: Default> Key<T> {
    /// What can be written, where it is a choice: the key itself says so to whoever writes something else.
    pub(super) fn choices(&self) -> Vec<String> {
        if self.shape != "choice" {
            return Vec::new();
        }
        let refused = (self.set)(&mut T::default(), &Given { value: &DeValue::String("\0".into()) });
        let allowed = refused.err().map(|error| error.allowed).unwrap_or_default();
        let names = allowed.strip_prefix(ONE_OF).unwrap_or_default();
        names.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

/// How a list of choices begins.
const ONE_OF: &str = "write one of: ";

/// Where the values of a section stand, by key; keys whose value is invalid included.
pub(super) type Spans = BTreeMap<&'static str, Range<usize>>;

/// A list of keys together with what they set.
pub(super) struct Into<'a, T>(pub(super) &'a [Key<T>], pub(super) &'a mut T);

/// What a section's keys set. A section may have several lists, such as a route's own keys and a profile's numbers.
pub(super) trait Target {
    /// The keys there are.
    fn names(&self) -> Vec<&'static str>;
    /// Sets the key of this name; `None` where there is none.
    fn set(&mut self, name: &str, given: &Given<'_>) -> Option<(&'static str, Result<(), Invalid>)>;
}

impl<T> Target for Into<'_, T> {
    fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|key| key.name).collect()
    }

    fn set(&mut self, name: &str, given: &Given<'_>) -> Option<(&'static str, Result<(), Invalid>)> {
        let key = self.0.iter().find(|key| key.name == name)?;
        Some((key.name, (key.set)(self.1, given)))
    }
}

/// Reads the sections of one file.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) found: Findings,
}

impl Reader<'_> {
    /// Reads one section into its targets. `at` is its name in messages.
    pub(super) fn section(
        &mut self,
        at: &str,
        value: &Spanned<DeValue<'_>>,
        targets: &mut [&mut dyn Target],
    ) -> Spans {
        let mut spans = Spans::new();
        let Some(table) = self.table(at, value) else {
            return spans;
        };
        for (name, value) in table {
            let given = Given { value: value.get_ref() };
            let set = targets.iter_mut().find_map(|target| target.set(name.get_ref(), &given));
            let Some((key, result)) = set else {
                let known: Vec<_> = targets.iter().flat_map(|target| target.names()).collect();
                self.unknown_key(at, (name.get_ref(), name.span()), value, &known);
                continue;
            };
            spans.insert(key, value.span());
            if let Err(error) = result {
                let shown = self.shown(value);
                self.found.invalid(
                    Place::File(value.span()),
                    &format!("{at}.{key}"),
                    shown.as_deref(),
                    error,
                );
            }
        }
        spans
    }

    /// The value as a table; where it is none, that is noted.
    pub(super) fn table<'v, 'i>(
        &mut self,
        at: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let kind = kind(value.get_ref());
            let hint = format!("write [{at}] and its keys below it");
            self.found.add(Place::File(value.span()), format!("`{at}` is {kind}, not a table"), hint);
        }
        table
    }

    /// Notes a key that does not exist, with the nearest that does. Its value may be a misnamed secret.
    pub(super) fn unknown_key(
        &mut self,
        at: &str,
        (name, span): (&str, Range<usize>),
        value: &Spanned<DeValue<'_>>,
        known: &[&str],
    ) {
        if !matches!(value.get_ref(), DeValue::Table(_)) || value.span().start > span.end {
            self.found.mask(value.span());
        }
        let place = if at.is_empty() { String::new() } else { format!(" in [{at}]") };
        let hint = if self.found.is_full() {
            String::new()
        } else {
            super::reference::home_of(at, name).unwrap_or_else(|| one_of(name, known, "keys here"))
        };
        let name = clipped(name);
        self.found.add(Place::File(span), format!("unknown key `{name}`{place}"), hint);
    }

    /// The value as it stands in the file, where it is short and no secret.
    fn shown(&self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let span = value.span();
        let text = self.text.get(span.clone())?;
        let is_short = text.chars().count() <= 60 && !text.contains(is_unfit);
        (is_short && !self.found.is_masked(&span)).then(|| text.to_owned())
    }
}

/// Masks all that may be secret below a table: by its key, or by how it looks.
pub(super) fn mask_secrets(found: &mut Findings, table: &DeTable<'_>) {
    const TELLING: [&str; 9] =
        ["token", "headers", "proxy", "secret", "password", "api_key", "authorization", "webhook", "command"];
    for (name, value) in table {
        let name = name.get_ref().to_ascii_lowercase();
        mask_value(found, value, name == "key" || TELLING.iter().any(|part| name.contains(part)));
    }
}

fn mask_value(found: &mut Findings, value: &Spanned<DeValue<'_>>, is_secret: bool) {
    match value.get_ref() {
        DeValue::Table(table) if is_secret => {
            for (_, inner) in table {
                mask_value(found, inner, true);
            }
        }
        DeValue::Table(table) => mask_secrets(found, table),
        DeValue::Array(array) => {
            for inner in array {
                mask_value(found, inner, is_secret);
            }
        }
        DeValue::String(text) if looks_secret(text) => found.mask(value.span()),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {
            if is_secret {
                found.mask(value.span());
            }
        }
    }
}

/// Whether a text looks like a credential, or like an address that holds one.
pub(crate) fn looks_secret(text: &str) -> bool {
    ["@", "?", "sk-", "eyJ"].iter().any(|part| text.contains(part)) || holds_a_key(text)
}

/// "did you mean", or the whole choice where nothing is near.
pub(super) fn one_of(name: &str, known: &[&str], what: &str) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let (first, rest) = known.split_at(known.len().min(LISTED));
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            format!("{what}: {}{more}", first.join(", "))
        }
    }
}

/// How many names a hint lists; no section has so many keys, but a file may have any number of upstreams.
const LISTED: usize = 60;

/// The known name, in lower case, that this one is probably meant to be.
pub(super) fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let name = clipped(&name.to_ascii_lowercase().replace('-', "_"));
    // A name that is only begun may be far from the whole.
    let mut begun = known.iter().filter(|candidate| name.len() >= 3 && candidate.starts_with(&*name));
    if let (Some(whole), None) = (begun.next(), begun.next()) {
        return Some(whole);
    }
    let near = known
        .iter()
        .map(|candidate| (strsim::osa_distance(&name, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4 && *distance < candidate.len())
        .min();
    near.map(|(_, candidate)| candidate)
}

/// A name as it may be shown.
pub(super) fn clipped(name: &str) -> String {
    name.chars().take(40).map(|c| if is_unfit(c) { '?' } else { c }).collect()
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A value of the file, to be taken as what its key needs.
pub(super) struct Given<'a> {
    value: &'a DeValue<'a>,
}

impl<'a> Given<'a> {
    /// A text.
    pub(super) fn text(&self) -> Result<&'a str, Invalid> {
        self.value.as_str().ok_or_else(|| self.is_not("text", "put it in quotes"))
    }

    /// A text that its type can read.
    pub(super) fn parsed<T: std::str::FromStr<Err = Invalid>>(&self) -> Result<T, Invalid> {
        self.text()?.parse()
    }

    /// True or false.
    pub(super) fn flag(&self) -> Result<bool, Invalid> {
        self.value
            .as_bool()
            .ok_or_else(|| self.is_not("true or false", "write true or false, without quotes"))
    }

    /// A whole number within limits.
    pub(super) fn count(&self, allowed: RangeInclusive<u32>) -> Result<u32, Invalid> {
        let (least, most) = (allowed.start(), allowed.end());
        let limits = format!("a whole number from {least} to {most}");
        let DeValue::Integer(number) = self.value else {
            return Err(self.is_not("a whole number", &limits));
        };
        match i64::from_str_radix(number.as_str(), number.radix()).map(u32::try_from) {
            Ok(Ok(count)) if allowed.contains(&count) => Ok(count),
            _ => Err(Invalid::new("is out of range", limits)),
        }
    }

    /// A number, whole or not, within limits.
    pub(super) fn number(&self, allowed: RangeInclusive<f64>) -> Result<f64, Invalid> {
        let limits = format!("a number from {} to {}", allowed.start(), allowed.end());
        let number = match self.value {
            DeValue::Integer(number) => number.as_str().parse::<f64>(),
            DeValue::Float(number) => number.as_str().parse::<f64>(),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => return Err(self.is_not("a number", &limits)),
        };
        match number {
            Ok(number) if allowed.contains(&number) => Ok(number),
            Ok(_) | Err(_) => Err(Invalid::new("is out of range", limits)),
        }
    }

    /// A length of time within limits.
    pub(super) fn duration(&self, allowed: RangeInclusive<Duration>) -> Result<Duration, Invalid> {
        let text = match self.value {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            DeValue::String(text) => text,
            DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                return Err(
                    self.is_not("a length of time", "write it as text with its unit, such as \"30s\"")
                );
            }
        };
        let time = units::duration(text)?;
        if allowed.contains(&time) {
            return Ok(time);
        }
        let [least, most] = [allowed.start(), allowed.end()].map(|limit| units::show_duration(*limit));
        let why = if time < *allowed.start() { "is too short" } else { "is too long" };
        Err(Invalid::new(why, format!("allowed is {least} to {most}")))
    }

    /// A length of time within limits, or `off`.
    pub(super) fn time_or_off(&self, allowed: RangeInclusive<Duration>) -> Result<Option<Duration>, Invalid> {
        match self.value {
            DeValue::String(text) if text == "off" => Ok(None),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => self.duration(allowed).map(Some),
        }
    }

    /// A size within limits.
    pub(super) fn size(&self, allowed: RangeInclusive<u64>) -> Result<u64, Invalid> {
        let count = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => units::bytes(number.as_str())?,
            DeValue::String(text) => units::bytes(text)?,
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => {
                let hint = "write it as text with its unit, such as \"8MiB\", or as a plain count of bytes";
                return Err(self.is_not("a size", hint));
            }
        };
        if allowed.contains(&count) {
            return Ok(count);
        }
        let [least, most] = [allowed.start(), allowed.end()].map(|limit| units::show_bytes(*limit));
        let why = if count < *allowed.start() { "is too small" } else { "is too large" };
        Err(Invalid::new(why, format!("allowed is {least} to {most}")))
    }

    /// One of the named choices.
    pub(super) fn choice<C: Copy>(&self, among: &[(&str, C)]) -> Result<C, Invalid> {
        let names =
            || format!("{ONE_OF}{}", among.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
        let name = self.text().map_err(|invalid| Invalid { allowed: names(), ..invalid })?;
        let found = among.iter().find(|(candidate, _)| *candidate == name);
        found.map(|(_, choice)| *choice).ok_or_else(|| Invalid::new("is none of the choices", names()))
    }

    /// A list of texts.
    pub(super) fn texts(&self) -> Result<Vec<&'a str>, Invalid> {
        let is_no_list = || self.is_not("a list of texts", "write it as [\"one\", \"two\"]");
        let list = self.value.as_array().ok_or_else(is_no_list)?;
        list.iter().map(|item| item.get_ref().as_str().ok_or_else(is_no_list)).collect()
    }

    /// A number, or true or false, as it is written; a text without its quotes.
    pub(super) fn plain(&self) -> Result<String, Invalid> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(value) => Ok(value.to_string()),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                Err(self.is_not("a text or a number", "put it in quotes"))
            }
        }
    }

    /// The items of a list, or the one value that it is.
    pub(super) fn each_or_one(&self) -> Vec<Self> {
        match self.value {
            DeValue::Array(list) => list.iter().map(|item| Self { value: item.get_ref() }).collect(),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Table(_) => vec![Self { value: self.value }],
        }
    }

    /// The members of a table.
    pub(super) fn members(&self, hint: &str) -> Result<Vec<(&'a str, Self)>, Invalid> {
        let table = self.value.as_table().ok_or_else(|| self.is_not("a table", hint))?;
        let members =
            table.iter().map(|(name, value)| (name.get_ref().as_ref(), Self { value: value.get_ref() }));
        Ok(members.collect())
    }

    /// Named texts, each one or a list of them.
    pub(super) fn named_texts(&self) -> Result<Vec<(&'a str, &'a str)>, Invalid> {
        let hint = "write it as { \"name\" = \"value\" }, or \"name\" = [\"one\", \"two\"]";
        let table = self.value.as_table().ok_or_else(|| self.is_not("a table of texts", hint))?;
        let mut pairs = Vec::new();
        for (name, value) in table {
            let given = Given { value: value.get_ref() };
            let texts = if value.get_ref().is_array() { given.texts()? } else { vec![given.text()?] };
            pairs.extend(texts.into_iter().map(|text| (name.get_ref().as_ref(), text)));
        }
        Ok(pairs)
    }

    /// Says that the value is of another type than needed.
    pub(super) fn is_not(&self, needed: &str, hint: &str) -> Invalid {
        Invalid::new(format!("is {}, not {needed}", kind(self.value)), hint)
    }
}
