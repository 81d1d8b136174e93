//! What is wrong with the settings, where, and how it is told: the place, the line with a caret, one hint.
//! Not the finding of it. No secret reaches a message: what may be one is masked by its position in the file.

use super::env_file::EnvPlace;
use super::reference::unknown_name;
use crate::words::{lang, settings as words};
use relay_core::Lang;
use relay_core::plain::is_unfit;
use relay_core::units::Invalid;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How many errors are shown: whoever has more mends these first, or has named the wrong file.
const SHOWN: usize = 20;
/// From this many errors on none is given a hint that has to be looked for.
const HINTED: usize = 200;

/// Everything that is wrong with the settings, in the order of the file, then of environment and flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The first of them, at least one.
    pub issues: Vec<Issue>,
    /// How many there are besides.
    pub more: usize,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where: `config.toml:3:11`, `relay.env:2: PORT`, `STEADY_RELAY_PORT` or `--port`.
    pub at: String,
    /// What is wrong.
    pub what: String,
    /// The line it stands in, with a caret below; none outside a file.
    pub excerpt: Option<String>,
    /// One thing to do.
    pub hint: String,
}

impl fmt::Display for Issue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.said(lang()))
    }
}

impl Issue {
    /// All of it in this language.
    fn said(&self, lang: Lang) -> String {
        let (what, hint) = (words::said(lang, &self.what), words::said(lang, &self.hint));
        let mut said = words::issue(lang, &self.at, &what);
        if let Some(excerpt) = &self.excerpt {
            said += &format!("\n{excerpt}");
        }
        if !hint.is_empty() {
            said += &format!("\n{}", words::hint(lang, &hint));
        }
        said
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, issue) in self.issues.iter().enumerate() {
            write!(out, "{}{issue}", if n == 0 { "" } else { "\n" })?;
        }
        if self.more > 0 {
            write!(out, "\n{}", words::more(lang(), self.more))?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsError {}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Bytes of the configuration file.
    File(Range<usize>),
    /// A whole file, which could not be read.
    WholeFile(PathBuf),
    /// A line of an env file.
    EnvFile(EnvPlace),
    /// A variable of the environment.
    Env(&'static str),
    /// A flag.
    Flag(&'static str),
    /// Nowhere: the default.
    Default,
}

/// Something found wrong, before it is made readable.
#[derive(Debug, Clone)]
struct Finding {
    place: Place,
    what: String,
    hint: String,
}

/// Collects what is found wrong, and which parts of the file must not be shown.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    masks: Masks,
}

impl Findings {
    /// Notes that something is wrong.
    pub(super) fn add(&mut self, place: Place, what: impl Into<String>, hint: impl Into<String>) {
        self.list.push(Finding { place, what: what.into(), hint: hint.into() });
    }

    /// Notes that a named value is invalid. `shown` is the value, where it may be shown.
    pub(super) fn invalid(&mut self, place: Place, key: &str, shown: Option<&str>, error: Invalid) {
        let subject = match (&place, shown) {
            (Place::File(_), Some(value)) => format!("`{key} = {value}`"),
            (Place::File(_), None) => format!("`{key}`"),
            (_, Some(value)) => format!("`{value}`"),
            (_, None) => "the value".to_owned(),
        };
        self.add(place, format!("{subject} {}", error.why), error.allowed);
    }

    /// Notes that these bytes of the file may be secret.
    pub(super) fn mask(&mut self, span: Range<usize>) {
        self.masks.add(span);
    }

    /// Whether these bytes may be secret.
    pub(super) fn is_masked(&self, span: &Range<usize>) -> bool {
        self.masks.touches(span)
    }

    /// Whether so much is wrong that a hint is not worth the search.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= HINTED
    }

    /// What to say of a name that is none of those that exist.
    pub(super) fn unknown(&self, name: &str, what: &str, known: &[&str]) -> Invalid {
        if self.is_full() {
            return Invalid::new(format!("names no {what}"), "");
        }
        unknown_name(name, what, known)
    }

    /// Whether anything was found in this part of the file.
    pub(super) fn has_in(&self, part: Range<usize>) -> bool {
        self.list
            .iter()
            .any(|finding| matches!(&finding.place, Place::File(span) if part.contains(&span.start)))
    }

    /// Drops what was found in the lines where `is_doubtful` holds.
    pub(super) fn drop_where(&mut self, is_doubtful: impl Fn(&Range<usize>) -> bool) {
        self.list.retain(|finding| match &finding.place {
            Place::File(span) => !is_doubtful(span),
            Place::WholeFile(_) | Place::EnvFile(_) | Place::Env(_) | Place::Flag(_) | Place::Default => true,
        });
    }

    /// All that is wrong, readable; `None` where nothing is.
    pub(super) fn into_error(mut self, path: &Path, text: &str) -> Option<SettingsError> {
        if self.list.is_empty() {
            return None;
        }
        self.list.sort_by_key(|finding| order(&finding.place));
        let mut issues: Vec<Issue> = Vec::new();
        let mut more = 0;
        for finding in self.list {
            if issues.len() == SHOWN {
                more += 1;
                continue;
            }
            let issue = shown(finding, path, text, &self.masks);
            // A parser that has lost its way says the same again where it cannot be told apart.
            if issues.last().is_none_or(|last| (&last.at, &last.what) != (&issue.at, &issue.what)) {
                issues.push(issue);
            }
        }
        Some(SettingsError { issues, more })
    }
}

/// Parts of the file that may be secret, as many as it has values: none lies over another.
#[derive(Debug, Default)]
struct Masks(BTreeMap<usize, usize>);

impl Masks {
    fn add(&mut self, span: Range<usize>) {
        let Range { mut start, mut end } = span;
        if start >= end {
            return;
        }
        while let Some((from, to)) = self.last_before(end).filter(|(_, to)| *to > start) {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    fn touches(&self, span: &Range<usize>) -> bool {
        self.last_before(span.end).is_some_and(|(_, to)| to > span.start)
    }

    /// The end of the one that covers `offset`.
    fn over(&self, offset: usize) -> Option<usize> {
        self.last_before(offset + 1).map(|(_, to)| to).filter(|to| *to > offset)
    }

    fn last_before(&self, end: usize) -> Option<(usize, usize)> {
        self.0.range(..end).next_back().map(|(from, to)| (*from, *to))
    }
}

/// The file from its top to its end, then env files, then the environment, then flags.
const fn order(place: &Place) -> (u8, usize) {
    match place {
        Place::WholeFile(_) => (0, 0),
        Place::File(span) => (1, span.start),
        Place::EnvFile(place) => (2, place.line),
        Place::Env(_) => (3, 0),
        Place::Flag(_) => (4, 0),
        Place::Default => (5, 0),
    }
}

fn shown(finding: Finding, path: &Path, text: &str, masks: &Masks) -> Issue {
    let (at, excerpt) = match finding.place {
        Place::File(span) => {
            let (line, column, excerpt) = excerpt(text, &span, masks);
            (format!("{}:{line}:{column}", path.display()), Some(excerpt))
        }
        Place::WholeFile(path) => (path.display().to_string(), None),
        Place::EnvFile(EnvPlace { path, line, name }) => {
            let name = if name.is_empty() { name } else { format!(": {name}") };
            (format!("{}:{line}{name}", path.display()), None)
        }
        Place::Env(name) | Place::Flag(name) => (name.to_owned(), None),
        Place::Default => ("settings".to_owned(), None),
    };
    Issue { at, what: finding.what, excerpt, hint: finding.hint }
}

/// The longest line that is shown whole.
const WIDTH: usize = 100;

/// Line and column (from 1, in characters) of a span, and its line with a caret below.
fn excerpt(text: &str, span: &Range<usize>, masks: &Masks) -> (usize, usize, String) {
    let line = line_around(text, span.start);
    let number = line_of(text, line.start);
    let whole = text.get(line.clone()).unwrap_or_default();
    let column = 1 + whole.char_indices().take_while(|(n, _)| line.start + n < span.start).count();
    let part = part_around(text, &line, span);
    let content = text.get(part.clone()).unwrap_or_default();
    let mut shown: Vec<char> = Vec::new();
    let (mut caret, mut length) = (None, 0);
    let mut masked_until = 0;
    for (offset, c) in content.char_indices().map(|(n, c)| (part.start + n, c)) {
        let mask = masks.over(offset);
        if mask.is_some() && offset < masked_until {
            continue;
        }
        let end = mask.unwrap_or(offset + c.len_utf8());
        masked_until = masked_until.max(mask.unwrap_or(0));
        if caret.is_none() && end > span.start {
            caret = Some(shown.len());
        }
        if caret.is_some() && offset < span.end {
            length += 1;
        }
        shown.push(match mask {
            Some(_) => '…',
            None if c == '\t' => ' ',
            None if is_unfit(c) => '?',
            None => c,
        });
    }
    let caret = caret.unwrap_or(shown.len());
    let from = if shown.len() > WIDTH { caret.saturating_sub(WIDTH / 2) } else { 0 };
    let part: String = shown.iter().skip(from).take(WIDTH).collect();
    let gutter = " ".repeat(number.to_string().len());
    let space = " ".repeat(caret - from);
    let carets = "^".repeat(length.clamp(1, WIDTH));
    (number, column, format!("  {number} | {}\n  {gutter} | {space}{carets}", part.trim_end()))
}

/// The part of a line from which `WIDTH` is cut. A line may be the whole of a large file.
fn part_around(text: &str, line: &Range<usize>, span: &Range<usize>) -> Range<usize> {
    const FAR: usize = 8 * WIDTH;
    let mut start = span.start.saturating_sub(FAR).max(line.start);
    let mut end = span.start.saturating_add(FAR).min(line.end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// The number of the line that holds `offset`, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or_default().bytes().filter(|b| *b == b'\n').count() + 1
}

/// The bytes of the line that holds `offset`, without its end.
pub(super) fn line_around(text: &str, offset: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let offset = offset.min(bytes.len());
    let start = bytes.iter().take(offset).rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    let end = bytes.iter().skip(offset).position(|b| *b == b'\n').map_or(bytes.len(), |n| offset + n);
    let end = if end > start && bytes.get(end - 1) == Some(&b'\r') { end - 1 } else { end };
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>, masked: &[Range<usize>]) -> String {
        let mut masks = Masks::default();
        masked.iter().for_each(|mask| masks.add(mask.clone()));
        let (line, column, excerpt) = excerpt(text, &span, &masks);
        format!("{line}:{column}\n{excerpt}")
    }

    #[test]
    fn a_span_is_shown_with_its_line_and_a_caret() {
        assert_eq!(shown("a = 1\nbb = 22\r\n", 11..13, &[]), "2:6\n  2 | bb = 22\n    |      ^^");
        assert_eq!(shown("ü = \"é\"\tx", 5..9, &[]), "1:5\n  1 | ü = \"é\" x\n    |     ^^^");
        assert_eq!(shown("", 0..0, &[]), "1:1\n  1 | \n    | ^");
        assert_eq!(shown("a", 5..9, &[]), "1:2\n  1 | a\n    |  ^");
    }

    #[test]
    fn what_is_masked_is_not_shown() {
        let text = "x = { token = \"abc\", port = 1 }";
        let token = 14..19;
        assert_eq!(
            shown(text, 28..29, std::slice::from_ref(&token)),
            "1:29\n  1 | x = { token = …, port = 1 }\n    |                         ^"
        );
        assert_eq!(
            shown(text, 14..19, &[token, 15..18]),
            "1:15\n  1 | x = { token = …, port = 1 }\n    |               ^"
        );
    }

    #[test]
    fn masks_that_lie_over_each_other_are_one() {
        let mut masks = Masks::default();
        for mask in [10..15, 20..25, 30..30, 13..22, 40..45, 41..44, 45..47] {
            masks.add(mask);
        }
        assert_eq!(masks.0.into_iter().collect::<Vec<_>>(), [(10, 25), (40, 45), (45, 47)]);
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(300), "b".repeat(300));
        let lines = shown(&text, 300..301, &[]);
        let widest = lines.lines().map(|line| line.chars().count()).max();
        assert!(lines.contains("aXb") && widest < Some(120), "{lines}");
    }
}
