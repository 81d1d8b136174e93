//! JSON, with the comments and commas that editors allow: where its values stand, where a key goes, how it is taken out.

use std::ops::Range;

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::{Below, Document, Entry, Flaw, Item, Node, Place, Splice, element, line_start, newline};

pub(super) fn read(text: &str) -> Result<Item, Flaw> {
    // Comments and a comma at the end are what editors read in their settings; all else is a mistake.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| Flaw::at(text, error.range().start, error.kind().to_string()))?;
    match parsed.value {
        Some(value) => Ok(item(&value)),
        None => Ok(Item { span: 0..text.len(), node: Node::Scalar(Value::Null) }),
    }
}

fn item(value: &Ast<'_>) -> Item {
    let node = match value {
        Ast::StringLit(text) => Node::Scalar(Value::String(text.value.to_string())),
        Ast::NumberLit(number) => {
            Node::Scalar(serde_json::from_str(number.value).unwrap_or_else(|_| number.value.into()))
        }
        Ast::BooleanLit(truth) => Node::Scalar(Value::Bool(truth.value)),
        Ast::NullKeyword(_) => Node::Scalar(Value::Null),
        Ast::Array(list) => Node::List(list.elements.iter().map(item).collect()),
        Ast::Object(object) => {
            let entry = |prop: &jsonc_parser::ast::ObjectProp<'_>| {
                let key = match &prop.name {
                    ObjectPropName::String(name) => name.value.to_string(),
                    ObjectPropName::Word(name) => name.value.to_owned(),
                };
                Entry { key, span: prop.range.start..prop.range.end, item: item(&prop.value) }
            };
            Node::Table(object.properties.iter().map(entry).collect())
        }
    };
    let range = value.range();
    Item { span: range.start..range.end, node }
}

/// Behind the last one of the innermost object or list that is there, in the manner of its neighbours.
pub(super) fn place(document: &Document, path: &[String], comment: &str) -> Option<Place> {
    let text = document.text.as_str();
    let style = Style { nl: newline(text), unit: unit(document), comment };
    if matches!(document.root.node, Node::Scalar(Value::Null)) && document.root.span == (0..text.len()) {
        return Some(in_nothing(text, path, &style));
    }
    let mut here = &document.root;
    let mut depth = 0;
    while let Some(Below { item, .. }) = path.get(depth).and_then(|step| here.step(step)) {
        (here, depth) = (item, depth + 1);
    }
    let rest = path.get(depth..)?;
    let inside: Vec<&Range<usize>> = match (&here.node, element(rest.first()?)) {
        (Node::Table(entries), None) => entries.iter().map(|entry| &entry.span).collect(),
        (Node::List(items), Some(_)) => items.iter().map(|item| &item.span).collect(),
        (Node::Scalar(_) | Node::Table(_) | Node::List(_), _) => return None,
    };
    let made = rest.len() - 1;
    let close = here.span.end.checked_sub(1)?;
    let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
        let open = here.span.start + 1;
        let was = text.get(open..close)?.to_owned();
        let outer = indent_at(text, here.span.start);
        let (head, foot) = style.around(rest, &format!("{outer}{}", style.unit));
        let lead = format!("{}{}{head}", was.trim_end(), style.nl);
        let tail = format!("{foot}{}{outer}", style.nl);
        return Some(Place { at: open..close, splice: Splice { was, lead, tail, made } });
    };
    let one_line = !text.get(here.span.start..first.start)?.contains('\n');
    let comma = comma_in(text, last.end..close);
    let behind = comma.map_or(last.end, |comma| comma + 1);
    let again = if comma.is_some() { "," } else { "" };
    if one_line {
        let (head, foot) = style.in_line(rest);
        let was = text.get(last.end..behind)?.to_owned();
        let before_comma = was.strip_suffix(',').unwrap_or(&was);
        let lead = format!("{before_comma}, {head}");
        return Some(Place { at: last.end..behind, splice: Splice { was, lead, tail: foot + again, made } });
    }
    let end = behind + comment_behind(text.get(behind..close)?);
    let was = text.get(last.end..end)?.to_owned();
    let (head, foot) = style.around(rest, &indent_at(text, first.start));
    let comma = if comma.is_some() { "" } else { "," };
    let lead = format!("{comma}{was}{}{head}", style.nl);
    Some(Place { at: last.end..end, splice: Splice { was, lead, tail: foot + again, made } })
}

/// A file without a value: the first object is ours.
fn in_nothing(text: &str, path: &[String], style: &Style<'_>) -> Place {
    let (head, foot) = style.around(path, &style.unit);
    let nl = style.nl;
    // Comments stay as they are; blanks alone are nothing.
    let kept = if text.trim().is_empty() { "" } else { text };
    let gap = if kept.is_empty() || kept.ends_with('\n') { "" } else { nl };
    let lead = format!("{kept}{gap}{{{nl}{head}");
    let splice =
        Splice { was: text.to_owned(), lead, tail: format!("{foot}{nl}}}{nl}"), made: path.len() - 1 };
    Place { at: 0..text.len(), splice }
}

struct Style<'a> {
    nl: &'a str,
    unit: String,
    comment: &'a str,
}

impl Style<'_> {
    /// What stands before and behind a value at these steps, each level on lines of its own.
    fn around(&self, steps: &[String], indent: &str) -> (String, String) {
        let said = if self.comment.is_empty() {
            String::new()
        } else {
            format!("{indent}{}{}", self.comment, self.nl)
        };
        let (mut head, mut foot) = (format!("{said}{indent}"), String::new());
        let mut indent = indent.to_owned();
        for (at, step) in steps.iter().enumerate() {
            if let Some(name) = element(step) {
                head += &format!("{{ \"name\": {}, \"value\": ", Value::from(name));
                foot = format!(" }}{foot}");
                continue;
            }
            head += &format!("{}: ", Value::from(step.as_str()));
            if let Some(next) = steps.get(at + 1) {
                let (open, close) = if element(next).is_some() { ('[', ']') } else { ('{', '}') };
                foot = format!("{}{indent}{close}{foot}", self.nl);
                indent += &self.unit;
                head += &format!("{open}{}{indent}", self.nl);
            }
        }
        (head, foot)
    }

    /// The same in one line.
    fn in_line(&self, steps: &[String]) -> (String, String) {
        let (mut head, mut foot) = (String::new(), String::new());
        for (at, step) in steps.iter().enumerate() {
            if let Some(name) = element(step) {
                head += &format!("{{\"name\": {}, \"value\": ", Value::from(name));
                foot = format!("}}{foot}");
                continue;
            }
            head += &format!("{}: ", Value::from(step.as_str()));
            if let Some(next) = steps.get(at + 1) {
                let (open, close) = if element(next).is_some() { ('[', ']') } else { ('{', '}') };
                head.push(open);
                foot = format!("{close}{foot}");
            }
        }
        (head, foot)
    }
}

/// By how much one level is set in: as the first line of the outermost object is.
fn unit(document: &Document) -> String {
    let first = document.root.table().and_then(|entries| entries.first());
    let indent = first.map(|entry| indent_at(&document.text, entry.span.start)).unwrap_or_default();
    if indent.is_empty() { "  ".to_owned() } else { indent }
}

/// The blanks that the line of this place begins with.
fn indent_at(text: &str, offset: usize) -> String {
    let line = text.get(line_start(text, offset)..offset).unwrap_or_default();
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// The length of a comment that stands alone behind a value, in its line.
fn comment_behind(text: &str) -> usize {
    let line = text.lines().next().unwrap_or_default();
    let comment = line.trim_start();
    let whole = comment.starts_with("//")
        || comment.starts_with("/*")
            && comment.find("*/").is_some_and(|end| end + 2 == comment.trim_end().len());
    // Without a line's end behind it, the comment would swallow what follows.
    if whole && text.len() > line.len() { line.trim_end().len() } else { 0 }
}

/// The comma in a range in which there is nothing else but blanks and comments.
fn comma_in(text: &str, range: Range<usize>) -> Option<usize> {
    let mut at = range.start;
    while let Some(rest) = text.get(at..range.end).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(',') {
            return Some(at);
        }
        at += if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    None
}

/// The cuts that take the key out, with the objects around it that were made for it and hold nothing else.
pub(super) fn without(document: &Document, path: &[String], made: usize) -> Vec<(Range<usize>, String)> {
    let text = document.text.as_str();
    // From the outermost object to the value: the container, and what in it leads on.
    let mut chain = Vec::new();
    let mut here = &document.root;
    for step in path {
        let Some(below) = here.step(step) else { return Vec::new() };
        chain.push((here, below.whole.clone()));
        here = below.item;
    }
    let mut levels = chain.into_iter().rev().peekable();
    let mut left = made;
    while let Some((container, whole)) = levels.next() {
        let inside: Vec<Range<usize>> = match &container.node {
            Node::Table(entries) => entries.iter().map(|entry| entry.span.clone()).collect(),
            Node::List(items) => items.iter().map(|item| item.span.clone()).collect(),
            Node::Scalar(_) => return Vec::new(),
        };
        if inside.len() == 1 && left > 0 && levels.peek().is_some() && !has_comment(text, container, &whole) {
            left -= 1;
            continue;
        }
        let Some(at) = inside.iter().position(|span| *span == whole) else { return Vec::new() };
        let limit = inside.get(at + 1).map_or(container.span.end - 1, |next| next.start);
        if let Some(comma) = comma_in(text, whole.end..limit) {
            return vec![(document.whole_lines(whole.start..comma + 1), String::new())];
        }
        let mut cuts = Vec::new();
        let before = at.checked_sub(1).and_then(|before| inside.get(before));
        if let Some(comma) = before.and_then(|before| comma_in(text, before.end..whole.start)) {
            cuts.push((comma..comma + 1, String::new()));
        }
        cuts.push((document.whole_lines(whole), String::new()));
        return cuts;
    }
    Vec::new()
}

/// Whether somebody wrote something beside the only key of an object.
fn has_comment(text: &str, container: &Item, only: &Range<usize>) -> bool {
    let around = [container.span.start + 1..only.start, only.end..container.span.end - 1];
    around.into_iter().any(|range| text.get(range).is_some_and(|text| text.contains('/')))
}
