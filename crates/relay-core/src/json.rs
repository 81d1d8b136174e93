//! Looking at a few fields of a JSON text without keeping the rest.
//!
//! What it is not: a model of anybody's API. It finds the fields that decide whether and when a call may be
//! sent again; what they mean is the dialects' business. No tree is ever built: what is not looked for is
//! skipped, what is looked for is borrowed until it turns out to matter. A request may be a hundred megabytes
//! of conversation.
//!
//! Everything is read by structure, never searched for: a model may well talk about errors.

mod binding;
mod error;
mod hash;
mod model;
mod numbers;
mod path;
mod peek;

pub use binding::{Binds, Unreadable, binding_member, is_key};
pub use error::{ErrorFields, error_fields, is_kept_thing, is_top_level_error, refusal_fields};
pub use hash::canonical_hash;
pub use model::{model_places, model_value};
pub(crate) use numbers::without_odd_numbers;
pub use path::texts_at;
pub use peek::{Peek, peek};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The `type` of the object that `data` is, or that it is the beginning of: an event may be longer than what is
/// kept of it, and its type stands at its head.
#[must_use]
pub fn type_of(data: &[u8]) -> Option<Cow<'_, str>> {
    let mut found = None;
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    match deserializer.deserialize_map(TypeOf(&mut found)) {
        // What comes after the type may be missing.
        Ok(()) | Err(_) => found,
    }
}

/// Reads up to the member `type`.
struct TypeOf<'f, 'de>(&'f mut Option<Cow<'de, str>>);

impl<'de> Visitor<'de> for TypeOf<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(NameIn(&["type"]))? {
            if name.is_some() {
                let Ok(value) = serde_json::from_str(map.next_value::<&RawValue>()?.get()) else { break };
                *self.0 = Some(value);
                break;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// The members `names` of the object that `data` is, or that it is the beginning of, as far as they came.
#[must_use]
pub(crate) fn beginning<'a>(data: &'a [u8], names: &'static [&'static str]) -> Members<'a> {
    let mut members = Members::default();
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    match deserializer.deserialize_map(Beginning(names, &mut members)) {
        // The rest may be missing.
        Ok(()) | Err(_) => members,
    }
}

/// Reads members until there are no more.
struct Beginning<'m, 'de>(&'static [&'static str], &'m mut Members<'de>);

impl<'de> Visitor<'de> for Beginning<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while self.1.read_one(self.0, &mut map)? {}
        Ok(())
    }
}

/// The members of an object that were looked for. One that is `null` is absent.
#[derive(Default)]
pub(crate) struct Members<'a> {
    known: BTreeMap<&'static str, &'a RawValue>,
    /// There is something else: a member that was not looked for, or this is no object at all.
    pub(crate) has_others: bool,
    /// One that was looked for is there twice: which of them holds is for each reader to choose.
    pub(crate) is_ambiguous: bool,
}

impl<'a> Members<'a> {
    /// The members `names` of the object that `text` is; `None` where it is none.
    ///
    /// Of a member that is there twice the last one counts, as it does for most readers.
    fn of(text: &'a str, names: &'static [&'static str]) -> Option<Self> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = Wanted(names).deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(members)
    }

    /// Reads the next member; answers whether there was one.
    fn read_one<A: MapAccess<'a>>(
        &mut self,
        names: &'static [&'static str],
        map: &mut A,
    ) -> Result<bool, A::Error> {
        let Some(name) = map.next_key_seed(NameIn(names))? else { return Ok(false) };
        self.read_value(name, map)?;
        Ok(true)
    }

    /// Reads the value of a member whose name was read: one that is looked for, or any other.
    fn read_value<A: MapAccess<'a>>(
        &mut self,
        name: Option<&'static str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if let Some(name) = name {
            self.is_ambiguous |= self.known.contains_key(name);
            match map.next_value::<Option<&RawValue>>()? {
                Some(value) => self.known.insert(name, value),
                None => self.known.remove(name),
            };
        } else {
            self.has_others |= map.next_value::<Option<IgnoredAny>>()?.is_some();
        }
        Ok(())
    }

    /// Adds those of another object, which come before its own.
    fn add(&mut self, other: Self) {
        self.known.extend(other.known);
        self.has_others |= other.has_others;
        self.is_ambiguous |= other.is_ambiguous;
    }

    /// A member as it is written.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.known.get(name).map(|value| value.get())
    }

    /// A member that is a text and not an empty one.
    fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(text)
    }

    /// A member that holds anything.
    pub(crate) fn is_full(&self, name: &str) -> bool {
        self.get(name).is_some_and(is_full)
    }
}

/// The text that a JSON value is, unless it is empty.
fn text(value: &str) -> Option<String> {
    if !value.starts_with('"') {
        return None;
    }
    serde_json::from_str(value).ok().filter(|text: &String| !text.is_empty())
}

/// Whether a JSON value holds anything: not `null`, `false`, `""`, `[]` or `{}`.
fn is_full(value: &str) -> bool {
    match value.as_bytes() {
        [b'{' | b'[', inner @ .., _] => !inner.trim_ascii().is_empty(),
        [b'"', inner @ .., _] => !inner.is_empty(),
        [first, ..] => !matches!(first, b'n' | b'f'),
        [] => false,
    }
}

/// Hands over the members `names` of each item of the array that `text` is. An item that is no object has
/// none.
fn each_item<'a>(text: &'a str, names: &'static [&'static str], each: impl FnMut(Members<'a>)) -> Option<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let shape = Items { names, each }.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    matches!(shape, Shape::Array { .. }).then_some(())
}

/// The first item of the array that `text` is.
fn first_item(text: &str) -> Option<&str> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    items.first().map(|item| item.get())
}

/// Reads the members with these names out of whatever comes.
struct Wanted(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = Members<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Wanted {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members::default();
        while members.read_one(self.0, &mut map)? {}
        Ok(members)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Members<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        no_object()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Members<'de>, E> {
        no_object()
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Members<'de>, E> {
        no_object()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Members<'de>, E> {
        no_object()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Members<'de>, E> {
        no_object()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Members<'de>, E> {
        no_object()
    }

    fn visit_unit<E: de::Error>(self) -> Result<Members<'de>, E> {
        no_object()
    }
}

fn no_object<'a, E>() -> Result<Members<'a>, E> {
    Ok(Members { has_others: true, ..Members::default() })
}

/// Reads an object's key as the one of these names that it is, without keeping it.
struct NameIn(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for NameIn {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameIn {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|name| **name == key).copied())
    }
}

/// Reads an array item by item.
struct Items<F> {
    names: &'static [&'static str],
    each: F,
}

/// What was there to be read item by item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// An array.
    Array {
        /// It has no items.
        empty: bool,
    },
    /// `null`.
    Nothing,
    /// Anything else.
    Other {
        /// It holds something; see [`is_full`].
        full: bool,
    },
}

impl<'de, F: FnMut(Members<'de>)> DeserializeSeed<'de> for Items<F> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Members<'de>)> Visitor<'de> for Items<F> {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Shape, A::Error> {
        let mut empty = true;
        while let Some(members) = seq.next_element_seed(Wanted(self.names))? {
            empty = false;
            (self.each)(members);
        }
        Ok(Shape::Array { empty })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut full = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            full = true;
        }
        Ok(Shape::Other { full })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Other { full: !text.is_empty() })
    }

    fn visit_bool<E: de::Error>(self, full: bool) -> Result<Shape, E> {
        Ok(Shape::Other { full })
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Other { full: true })
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Other { full: true })
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Other { full: true })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }
}
