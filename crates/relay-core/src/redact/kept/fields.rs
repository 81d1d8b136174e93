//! JSON that stands within a longer text, whole or in part, with its quotes as they are or escaped: the values of names
//! that tell of a secret or a person go. What is JSON as a whole is read as such; this is for what is not.

use std::borrow::Cow;
use std::ops::Range;

use super::{GONE, is_telling};

/// No name of a field is longer.
const LONGEST_NAME: usize = 64;

/// The text without such values.
pub(super) fn without_fields(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut from = 0;
    for (colon, _) in text.match_indices(':') {
        if colon < from {
            continue;
        }
        let Some(name) = name_before(&text[from..colon]).filter(|name| is_telling(name)) else { continue };
        let after = text[colon + 1..].trim_start();
        let start = text.len() - after.len();
        if let Some(value) = value(name, after) {
            out.push_str(&text[from..start + value.start]);
            out.push_str(GONE);
            from = start + value.end;
        }
    }
    if from == 0 {
        return text.into();
    }
    out.push_str(&text[from..]);
    out.into()
}

/// The name in quotes that a text ends with.
fn name_before(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let quote = text.chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
    let text = text[..text.len() - 1].trim_end_matches('\\');
    let near = &text[text.ceil_char_boundary(text.len().saturating_sub(LONGEST_NAME))..];
    near.rfind(quote).map(|at| &near[at + 1..])
}

/// Where the value stands that a text begins with; `None` where it tells nothing.
fn value(name: &str, text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start_matches('\\').len();
    let is_of_count = name.to_ascii_lowercase().contains("tokens");
    match text[start..].chars().next()? {
        quote @ ('"' | '\'') => {
            let start = start + 1;
            let end = start + closing(&text[start..], quote, start - 1);
            (start < end).then_some(start..end)
        }
        '0'..='9' | '-' if !is_of_count => {
            let is_in = |c: char| c.is_ascii_alphanumeric() || ".+-_".contains(c);
            Some(0..text.find(|c| !is_in(c)).unwrap_or(text.len()))
        }
        '[' => Some(0..bracketed(text, '[', ']')),
        '{' if !is_of_count => Some(0..bracketed(text, '{', '}')),
        _ => None,
    }
}

/// Where a text in quotes ends: at a quote that is escaped no more than the first one was, or never.
fn closing(text: &str, quote: char, escapes: usize) -> usize {
    let ends = text.match_indices(quote).map(|(at, _)| text[..at].trim_end_matches('\\').len()..at);
    ends.into_iter().find(|end| end.len() <= escapes).map_or(text.len(), |end| end.start)
}

/// How long a list or an object is, with its brackets. Those within texts are counted, too: it may be longer than it is.
fn bracketed(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in text.char_indices() {
        if sign == open {
            depth += 1;
        } else if sign == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
    }
    text.len()
}
