//! Env files: `NAME=value` lines, also with `export`, quotes, and values of several lines.

use serde_json::Value;

use super::{Document, Entry, Flaw, Item, Node, Place, Splice, newline};

pub(super) fn read(text: &str) -> Result<Item, Flaw> {
    let mut entries = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let line_length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let line = rest.get(..line_length).unwrap_or(rest);
        let mut next = start + line_length;
        if let Some((key, at)) = assigned(line) {
            let begins = start + at;
            let (length, value) = value_of(text.get(begins..).unwrap_or_default())
                .ok_or_else(|| Flaw::at(text, begins, "the quote is not closed"))?;
            let span = begins..begins + length;
            if span.end > next {
                next = super::line_end(text, span.end);
            }
            let key_start = start + (line.len() - line.trim_start().len());
            let item = Item { span: span.clone(), node: Node::Scalar(Value::String(value)) };
            entries.push(Entry { key: key.to_owned(), span: key_start..span.end, item });
        }
        start = next;
    }
    Ok(Item { span: 0..text.len(), node: Node::Table(entries) })
}

/// The name that this line sets, and where its value begins.
fn assigned(line: &str) -> Option<(&str, usize)> {
    let equals = line.find('=')?;
    let name = line.get(..equals)?.trim();
    let name =
        name.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t'])).unwrap_or(name).trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let after = line.get(equals + 1..)?;
    let blank = after.len() - after.trim_start_matches([' ', '\t']).len();
    is_name.then_some((name, equals + 1 + blank))
}

/// The length of the value that the text begins with, and what it says.
fn value_of(text: &str) -> Option<(usize, String)> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'));
    let Some(quote) = quote else {
        let line = text.lines().next().unwrap_or_default();
        let comment = line.find(" #").unwrap_or(line.len());
        let value = line.get(..comment).unwrap_or(line).trim_end();
        return Some((value.len(), value.to_owned()));
    };
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => {
                let (_, escaped) = letters.next()?;
                value.push(match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                });
            }
            _ if letter == quote => return Some((at + 1, value)),
            _ => value.push(letter),
        }
    }
    None
}

/// A value as it stands behind the `=`.
pub(super) fn token(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/._-~[]@%+,".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { Value::from(text).to_string() }
}

/// At the end, as a line of its own.
pub(super) fn place(document: &Document, path: &[String], comment: &str) -> Option<Place> {
    let [key] = path else { return None };
    let text = document.text.as_str();
    let nl = newline(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { nl };
    let said = if comment.is_empty() { String::new() } else { format!("{comment}{nl}") };
    let splice =
        Splice { was: String::new(), lead: format!("{gap}{said}{key}="), tail: nl.to_owned(), made: 0 };
    Some(Place { at: text.len()..text.len(), splice })
}
