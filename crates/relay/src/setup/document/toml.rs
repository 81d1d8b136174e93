//! TOML: where its values stand, where a key goes, and how it is taken out.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Document, Entry, Flaw, Item, Node, Place, Splice, line_end, line_start, newline};

pub(super) fn read(text: &str) -> Result<Item, Flaw> {
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Flaw::at(text, at, error.message())
    })?;
    Ok(Item { span: 0..text.len(), node: table(root.get_ref()) })
}

fn table(table: &DeTable<'_>) -> Node {
    Node::Table(
        table
            .iter()
            .map(|(key, value)| {
                let span = key.span().start..value.span().end.max(key.span().end);
                Entry { key: key.get_ref().to_string(), span, item: item(value) }
            })
            .collect(),
    )
}

fn item(value: &Spanned<DeValue<'_>>) -> Item {
    let node = match value.get_ref() {
        DeValue::String(text) => Node::Scalar(Value::String(text.to_string())),
        DeValue::Boolean(truth) => Node::Scalar(Value::Bool(*truth)),
        DeValue::Integer(number) => Node::Scalar(integer(number.as_str(), number.radix())),
        // Compared only, never written.
        DeValue::Float(number) => Node::Scalar(serde_json::json!({"float": number.as_str()})),
        DeValue::Datetime(time) => Node::Scalar(serde_json::json!({"time": time.to_string()})),
        DeValue::Array(items) => Node::List(items.iter().map(item).collect()),
        DeValue::Table(inner) => table(inner),
    };
    Item { span: value.span(), node }
}

fn integer(digits: &str, radix: u32) -> Value {
    i64::from_str_radix(&digits.replace('_', ""), radix)
        .map_or_else(|_| serde_json::json!({"digits": digits, "radix": radix}), Value::from)
}

/// Where a key goes that is not there: at the top behind the other keys without a table, below the header of its table,
/// or at the end with a header of its own.
pub(super) fn place(document: &Document, path: &[String], comment: &str) -> Option<Place> {
    let text = document.text.as_str();
    let nl = newline(text);
    let (key, above) = path.split_last()?;
    let said = if comment.is_empty() { String::new() } else { format!("{comment}{nl}") };
    let line = format!("{said}{} = ", name(key));
    let splice = |lead: String, tail: String, made| Splice { was: String::new(), lead, tail, made };
    if above.is_empty() {
        let scalars =
            document.root.table()?.iter().filter(|entry| matches!(entry.item.node, Node::Scalar(_)));
        return Some(match scalars.map(|entry| entry.item.span.end).max() {
            Some(last) => behind_line(text, last, &line),
            None => {
                let gap = if text.is_empty() || text.starts_with(['\n', '\r']) { "" } else { nl };
                Place { at: 0..0, splice: splice(line, format!("{nl}{gap}"), 0) }
            }
        });
    }
    if let Some(header) = header(text, above) {
        return Some(behind_line(text, header.start, &line));
    }
    let gap = match text {
        "" => String::new(),
        _ if text.ends_with('\n') => nl.to_owned(),
        _ => format!("{nl}{nl}"),
    };
    let names: Vec<String> = above.iter().map(|step| name(step)).collect();
    let lead = format!("{gap}[{}]{nl}{line}", names.join("."));
    let made = (1..=above.len()).filter(|level| above.get(..*level).is_some_and(|path| !document.has(path)));
    Some(Place { at: text.len()..text.len(), splice: splice(lead, nl.to_owned(), made.count()) })
}

fn behind_line(text: &str, offset: usize, line: &str) -> Place {
    let end = line_end(text, offset);
    let nl = newline(text);
    let ended = text.get(..end).is_some_and(|before| before.ends_with('\n'));
    let (lead, tail) = match ended {
        true => (line.to_owned(), nl.to_owned()),
        false => (format!("{nl}{line}"), String::new()),
    };
    Place { at: end..end, splice: Splice { was: String::new(), lead, tail, made: 0 } }
}

/// A key as it is written.
fn name(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { Value::from(key).to_string() }
}

/// The line of the header of this table. What looks like one inside a text is found out when the edit is proven.
fn header(text: &str, path: &[String]) -> Option<Range<usize>> {
    let names: Vec<String> = path.iter().map(|step| name(step)).collect();
    let wanted = format!("[{}]", names.join("."));
    let mut start = 0;
    text.split_inclusive('\n').find_map(|line| {
        let range = start..start + line.len();
        start = range.end;
        let rest = line.trim_start().strip_prefix(&wanted)?.trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(range)
    })
}

/// The cuts that take the key out, and the header that was made for it, if nothing stands below it any more.
pub(super) fn without(document: &Document, path: &[String], made: usize) -> Vec<(Range<usize>, String)> {
    let text = document.text.as_str();
    let Ok(Some(below)) = document.item(path) else { return Vec::new() };
    let line = document.whole_lines(below.whole.clone());
    let mut cuts = vec![(line.clone(), String::new())];
    let above = path.split_last().map_or(&[][..], |(_, above)| above);
    if made > 0
        && let Some(header) = header(text, above)
    {
        let after = text.get(line.end..).unwrap_or_default();
        let between = text.get(header.end..line.start).unwrap_or("x");
        let alone = after.trim_start().is_empty() || after.trim_start().starts_with('[');
        // A comment of ours may stand between; it goes with its key.
        let only_ours = between.lines().all(|line| line.trim().is_empty() || line.trim().starts_with("# "));
        if alone && only_ours && between.lines().count() <= 1 {
            let blank = text.get(..header.start).is_some_and(|before| before.ends_with("\n\n"));
            let blank_crlf = text.get(..header.start).is_some_and(|before| before.ends_with("\r\n\r\n"));
            let gap = if blank_crlf { 2 } else { usize::from(blank) };
            let start = line_start(text, header.start) - gap;
            cuts.push((start..header.end, String::new()));
        }
    }
    cuts
}
