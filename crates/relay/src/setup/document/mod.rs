//! A settings file of a client, as its text and where the values in it stand.
//!
//! An edit is one [`Splice`]: the bytes that were there, and what stands in their place around the new value. All else
//! in the file stays as it is, byte for byte, and so does what a later edit by hand adds. Each edit is proven before it
//! is believed: the text is read again, and must say what it said before with this one key changed.
//!
//! What differs between formats (how a key is put in, how it is taken out) is in a file for each.

mod comments;
mod env;
mod json;
mod toml;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// TOML.
    Toml,
    /// JSON; comments and commas at the end of a list are read, too.
    Json,
    /// `NAME=value` lines.
    Env,
}

/// Why a text cannot be read, and where; counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// What is wrong there. Nothing of the file's text is in it: that may be a secret.
    pub what: String,
}

impl Flaw {
    pub(super) fn at(text: &str, offset: usize, what: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before.get(line_start..).map_or(0, |line| line.chars().count()) + 1;
        Self { line: before.matches('\n').count() + 1, column, what: what.into() }
    }
}

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    span: Range<usize>,
    node: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Scalar(Value),
    Table(Vec<Entry>),
    List(Vec<Item>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    key: String,
    /// From the key to the end of the value, where both stand together.
    span: Range<usize>,
    item: Item,
}

impl Item {
    fn table(&self) -> Option<&[Entry]> {
        match &self.node {
            Node::Table(entries) => Some(entries),
            Node::Scalar(_) | Node::List(_) => None,
        }
    }

    /// The value of this step below this one. `[NAME]` is the element of a list that has this `name`, a step that leads
    /// to its `value`.
    fn step(&self, step: &str) -> Option<Below<'_>> {
        match (&self.node, element(step)) {
            (Node::Table(entries), None) => {
                let mut found = entries.iter().filter(|entry| entry.key == step);
                let entry = found.next()?;
                Some(Below { whole: &entry.span, item: &entry.item, twice: found.next() })
            }
            (Node::List(items), Some(name)) => {
                let named = |item: &&Self| {
                    let entry = item.table().and_then(|entries| entries.iter().find(|one| one.key == "name"));
                    entry.is_some_and(
                        |entry| matches!(&entry.item.node, Node::Scalar(Value::String(text)) if text == name),
                    )
                };
                let item = items.iter().find(named)?;
                let value = item.table()?.iter().find(|entry| entry.key == "value")?;
                Some(Below { whole: &item.span, item: &value.item, twice: None })
            }
            (Node::Scalar(_) | Node::Table(_) | Node::List(_), _) => None,
        }
    }

    /// What a whole file says. One without anything in it says what an empty table does.
    fn said(&self) -> Value {
        let said = self.bare();
        if said.is_null() { Value::Object(Map::new()) } else { said }
    }

    /// What it says, without where.
    fn bare(&self) -> Value {
        match &self.node {
            Node::Scalar(value) => value.clone(),
            Node::List(items) => items.iter().map(Self::bare).collect(),
            Node::Table(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.item.bare())).collect()
            }
        }
    }
}

/// One step down.
struct Below<'a> {
    /// The whole of it: key and value, or the element of a list.
    whole: &'a Range<usize>,
    item: &'a Item,
    /// The same key once more.
    twice: Option<&'a Entry>,
}

/// The name in a step `[NAME]`.
fn element(step: &str) -> Option<&str> {
    step.strip_prefix('[')?.strip_suffix(']')
}

/// What an edit did to the text: `was` gave way to `lead`, the new value, and `tail`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Splice {
    /// What stood there.
    pub was: String,
    /// What stands before the value now.
    pub lead: String,
    /// What stands behind it.
    pub tail: String,
    /// How many tables around the value were made with it.
    pub made: usize,
}

/// Where a splice goes.
struct Place {
    at: Range<usize>,
    splice: Splice,
}

/// Why an edit cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// The text cannot be read.
    Flaw(Flaw),
    /// The key is written in a way that is not ours to edit.
    Shape,
}

/// What is to be put back.
pub(super) struct Back<'a> {
    pub(super) path: &'a [String],
    /// The value before, as the file had it; `None`: the key was not there.
    pub(super) old: Option<&'a Value>,
    /// The text of that value.
    pub(super) raw: &'a str,
    pub(super) splice: &'a Splice,
    /// The line that was written above it.
    pub(super) comment: &'a str,
}

/// What a text says, for those who change nothing in it. Of a name that is set twice, the last one counts.
pub(crate) fn said(format: Format, text: &str) -> Result<Value, Flaw> {
    Ok(Document::read(format, text)?.root.said())
}

/// A text that was read.
#[derive(Debug, Clone)]
pub(super) struct Document {
    format: Format,
    text: String,
    root: Item,
}

impl Document {
    pub(super) fn read(format: Format, text: &str) -> Result<Self, Flaw> {
        let root = match format {
            Format::Toml => toml::read(text)?,
            Format::Json => json::read(text)?,
            Format::Env => env::read(text)?,
        };
        Ok(Self { format, text: text.to_owned(), root })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The value at this path, as far as it is neither a table nor a list.
    pub(super) fn get(&self, path: &[String]) -> Result<Option<&Value>, Flaw> {
        Ok(self.item(path)?.and_then(|below| match &below.item.node {
            Node::Scalar(value) => Some(value),
            Node::Table(_) | Node::List(_) => None,
        }))
    }

    /// The text at this path; `None` where there is none that can be read.
    pub(super) fn at(&self, path: &[&str]) -> Option<&str> {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        self.get(&path).ok().flatten().and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The names below this path.
    pub(super) fn keys(&self, path: &[&str]) -> Vec<&str> {
        let found = path.iter().try_fold(&self.root, |here, step| here.step(step).map(|below| below.item));
        let entries = found.and_then(Item::table).unwrap_or_default();
        entries.iter().map(|entry| entry.key.as_str()).collect()
    }

    /// Whether there is anything at this path.
    pub(super) fn has(&self, path: &[String]) -> bool {
        self.item(path).is_ok_and(|found| found.is_some())
    }

    /// The text of the value at this path.
    pub(super) fn raw(&self, path: &[String]) -> Option<&str> {
        self.text.get(self.item(path).ok()??.item.span.clone())
    }

    fn item(&self, path: &[String]) -> Result<Option<Below<'_>>, Flaw> {
        let mut here = &self.root;
        let mut found = None;
        for step in path {
            let Some(below) = here.step(step) else { return Ok(None) };
            if let Some(twice) = below.twice {
                let what = format!("`{step}` is set a second time");
                return Err(Flaw::at(&self.text, twice.span.start, what));
            }
            here = below.item;
            found = Some(below);
        }
        Ok(found)
    }

    /// Sets the value at this path. `comment` is the line above it, where there is to be one.
    pub(super) fn put(&self, path: &[String], value: &Value, comment: &str) -> Result<(Self, Splice), Stuck> {
        let place = match self.item(path).map_err(Stuck::Flaw)? {
            Some(below) => {
                if !matches!(below.item.node, Node::Scalar(_)) {
                    return Err(Stuck::Shape);
                }
                self.in_place(&below, comment)
            }
            None => match self.format {
                Format::Toml => toml::place(self, path, comment),
                Format::Json => json::place(self, path, comment),
                Format::Env => env::place(self, path, comment),
            }
            .ok_or(Stuck::Shape)?,
        };
        let Splice { lead, tail, .. } = &place.splice;
        let after =
            self.with(&[(place.at.clone(), [lead, token(self.format, value).as_str(), tail].concat())]);
        let expected = changed(self.root.said(), path, Some(value)).ok_or(Stuck::Shape)?;
        match Self::read(self.format, &after) {
            Ok(after) if after.root.said() == expected => Ok((after, place.splice)),
            Ok(_) | Err(_) => Err(Stuck::Shape),
        }
    }

    /// In place of a value that is there; with the comment above it, where its line begins with its key.
    fn in_place(&self, below: &Below<'_>, comment: &str) -> Place {
        let value = &below.item.span;
        let line = line_start(&self.text, value.start);
        let before = self.text.get(line..value.start).unwrap_or_default();
        let own_line = before.trim_start().len() == value.start.saturating_sub(below.whole.start);
        if comment.is_empty() || !own_line {
            let was = self.text.get(value.clone()).unwrap_or_default().to_owned();
            return Place { at: value.clone(), splice: Splice { was, ..Splice::default() } };
        }
        let indent = before.get(..before.len() - before.trim_start().len()).unwrap_or_default();
        let was = self.text.get(line..value.end).unwrap_or_default().to_owned();
        let lead = format!("{indent}{comment}{}{before}", newline(&self.text));
        Place { at: line..value.end, splice: Splice { was, lead, ..Splice::default() } }
    }

    /// Undoes an edit: the bytes before, where what was written still stands there as it was written; otherwise the old
    /// value, or the key and what was made with it out.
    pub(super) fn put_back(&self, back: &Back<'_>) -> Result<Self, Stuck> {
        let below = self.item(back.path).map_err(Stuck::Flaw)?.ok_or(Stuck::Shape)?;
        let value = below.item.span.clone();
        let Splice { was, lead, tail, made } = back.splice;
        let as_written = self.text.get(..value.start).is_some_and(|before| before.ends_with(lead))
            && self.text.get(value.end..).is_some_and(|after| after.starts_with(tail));
        if as_written {
            let at = value.start - lead.len()..value.end + tail.len();
            if let Some(done) = self.proven(&self.with(&[(at, was.clone())]), back) {
                return Ok(done);
            }
        }
        let cuts = match (back.old, self.format) {
            (Some(_), _) => vec![(value, back.raw.to_owned())],
            (None, Format::Toml) => toml::without(self, back.path, *made),
            (None, Format::Json) => json::without(self, back.path, *made),
            (None, Format::Env) => vec![(self.whole_lines(below.whole.clone()), String::new())],
        };
        let mut with_comment = cuts.clone();
        with_comment.extend(self.comment_above(below.whole.start, back.comment));
        let done = self.proven(&self.with(&with_comment), back);
        done.or_else(|| self.proven(&self.with(&cuts), back)).ok_or(Stuck::Shape)
    }

    /// The cut that takes out the line above this place, if it is this comment.
    fn comment_above(&self, offset: usize, comment: &str) -> Option<(Range<usize>, String)> {
        let end = line_start(&self.text, offset);
        let start = line_start(&self.text, end.checked_sub(1)?);
        let line = self.text.get(start..end)?;
        (!comment.is_empty() && line.trim() == comment).then(|| (start..end, String::new()))
    }

    /// The text, if it says what is to be said once the edit is undone.
    fn proven(&self, text: &str, back: &Back<'_>) -> Option<Self> {
        let after = Self::read(self.format, text).ok()?;
        let mut expected = changed(self.root.said(), back.path, back.old)?;
        let found = after.root.said();
        if found == expected {
            return Some(after);
        }
        // Tables that were made with it go with it, as far as nothing else came into them. In TOML one that no header
        // names goes with the last one in it, whoever made it.
        let made = if self.format == Format::Toml { back.path.len() } else { back.splice.made };
        for level in (1..back.path.len()).rev().take(made) {
            expected = pruned(expected, back.path.get(..level)?)?;
            if found == expected {
                return Some(after);
            }
        }
        None
    }

    /// The text with other bytes in these places.
    fn with(&self, cuts: &[(Range<usize>, String)]) -> String {
        let mut cuts: Vec<_> = cuts.iter().collect();
        cuts.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
        let mut text = self.text.clone();
        for (at, fresh) in cuts {
            text.replace_range(at.clone(), fresh);
        }
        text
    }

    /// This range, with the lines that would be empty without it.
    fn whole_lines(&self, range: Range<usize>) -> Range<usize> {
        let blank = |text: Option<&str>| text.is_some_and(|text| text.trim().is_empty());
        let start = line_start(&self.text, range.start);
        let end = line_end(&self.text, range.end);
        if blank(self.text.get(start..range.start)) && blank(self.text.get(range.end..end)) {
            start..end
        } else {
            range
        }
    }

    /// The text for a screen: every value but those at these paths is hidden, and of those what is secret in an address;
    /// every comment, too, but these.
    pub(super) fn masked(&self, shown: &[Vec<String>], comments: &[&str]) -> String {
        let names: Vec<_> = shown.iter().flatten().filter_map(|step| element(step)).collect();
        let spans = shown.iter().filter_map(|path| Some(self.item(path).ok()??.item.span.clone())).collect();
        let mut mask = Mask { names, spans, cuts: Vec::new(), values: Vec::new() };
        mask.over(&self.root);
        mask.values.sort_by_key(|value| value.start);
        mask.cuts.extend(comments::hidden(self.format, &self.text, &mask.values, comments));
        self.with(&mask.cuts)
    }
}

/// What is hidden of a document.
struct Mask<'a> {
    /// Texts that are ours by what they say.
    names: Vec<&'a str>,
    /// Values that are shown by where they stand.
    spans: Vec<Range<usize>>,
    cuts: Vec<(Range<usize>, String)>,
    /// Every value that is neither a table nor a list.
    values: Vec<Range<usize>>,
}

impl Mask<'_> {
    fn over(&mut self, item: &Item) {
        if matches!(item.node, Node::Scalar(_)) {
            self.values.push(item.span.clone());
        }
        match &item.node {
            Node::Table(entries) => entries.iter().for_each(|entry| self.over(&entry.item)),
            Node::List(items) => items.iter().for_each(|item| self.over(item)),
            Node::Scalar(Value::String(text)) if self.names.contains(&text.as_str()) => {}
            Node::Scalar(Value::String(text)) => {
                let fresh = match self.spans.contains(&item.span) {
                    true => super::address::shown(text),
                    false => "…".to_owned(),
                };
                if fresh != *text {
                    self.cuts.push((item.span.clone(), format!("\"{fresh}\"")));
                }
            }
            // An empty file says nothing where nothing stands.
            Node::Scalar(_) if self.spans.contains(&item.span) || item.span.is_empty() => {}
            Node::Scalar(_) => self.cuts.push((item.span.clone(), "…".to_owned())),
        }
    }
}

/// A value as it stands in a file.
pub(super) fn token(format: Format, value: &Value) -> String {
    match (format, value) {
        (Format::Env, Value::String(text)) => env::token(text),
        // What JSON escapes in a text, TOML reads alike.
        _ => value.to_string(),
    }
}

/// The values with this one set, or taken out.
fn changed(mut all: Value, path: &[String], value: Option<&Value>) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let mut here = &mut all;
    for (at, step) in above.iter().enumerate() {
        let is_list = path.get(at + 1).is_some_and(|next| element(next).is_some());
        let fresh = || if is_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        here = here.as_object_mut()?.entry(step).or_insert_with(fresh);
    }
    match element(last) {
        None => {
            let table = here.as_object_mut()?;
            match value {
                Some(value) => drop(table.insert(last.clone(), value.clone())),
                None => drop(table.remove(last)),
            }
        }
        Some(name) => {
            let list = here.as_array_mut()?;
            let found = list.iter().position(|one| one.get("name").and_then(Value::as_str) == Some(name));
            match (found, value) {
                (Some(at), Some(value)) => *list.get_mut(at)?.get_mut("value")? = value.clone(),
                (Some(at), None) => drop(list.remove(at)),
                (None, Some(value)) => list.push(serde_json::json!({"name": name, "value": value})),
                (None, None) => {}
            }
        }
    }
    Some(all)
}

/// The values without this table or list, which has to be empty.
fn pruned(mut all: Value, path: &[String]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let mut here = &mut all;
    for step in above {
        here = here.as_object_mut()?.get_mut(step)?;
    }
    let table = here.as_object_mut()?;
    let empty = match table.get(last)? {
        Value::Object(inner) => inner.is_empty(),
        Value::Array(inner) => inner.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if empty {
        table.remove(last);
    }
    Some(all)
}

/// How lines end in this text.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        Some(_) | None => "\n",
    }
}

fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1)
}

/// Behind the line's end.
fn line_end(text: &str, offset: usize) -> usize {
    let end = text.get(offset..).and_then(|after| after.find('\n'));
    end.map_or(text.len(), |end| offset + end + 1)
}

#[cfg(test)]
mod tests;
