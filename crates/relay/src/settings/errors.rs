//! What is wrong with the settings, where, and how it is told: the place, the line with a caret, one hint.
//! Not the finding of it. No secret reaches a message: what may be one is masked by its position in the file.

use super::env_file::EnvPlace;
use relay_core::units::Invalid;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Everything that is wrong with the settings, in the order of the file, then of environment and flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// At least one.
    pub issues: Vec<Issue>,
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
        write!(out, "error: {}: {}", self.at, self.what)?;
        if let Some(excerpt) = &self.excerpt {
            write!(out, "\n{excerpt}")?;
        }
        if self.hint.is_empty() { Ok(()) } else { write!(out, "\nhint: {}", self.hint) }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, issue) in self.issues.iter().enumerate() {
            write!(out, "{}{issue}", if n == 0 { "" } else { "\n" })?;
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
    masks: Vec<Range<usize>>,
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
        self.masks.push(span);
    }

    /// Whether these bytes may be secret.
    pub(super) fn is_masked(&self, span: &Range<usize>) -> bool {
        self.masks.iter().any(|mask| mask.start < span.end && span.start < mask.end)
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
        let masks = self.masks;
        let shown = self.list.into_iter().map(|finding| shown(finding, path, text, &masks));
        let mut issues: Vec<Issue> = shown.collect();
        // A parser that has lost its way says the same again where it cannot be told apart.
        issues.dedup_by(|next, before| (&next.at, &next.what) == (&before.at, &before.what));
        Some(SettingsError { issues })
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

fn shown(finding: Finding, path: &Path, text: &str, masks: &[Range<usize>]) -> Issue {
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
fn excerpt(text: &str, span: &Range<usize>, masks: &[Range<usize>]) -> (usize, usize, String) {
    let line = line_around(text, span.start);
    let number = line_of(text, line.start);
    let content = text.get(line.clone()).unwrap_or_default();
    let mut shown: Vec<char> = Vec::new();
    let (mut column, mut caret, mut length) = (1, None, 0);
    let mut masked_until = 0;
    for (offset, c) in content.char_indices().map(|(n, c)| (line.start + n, c)) {
        if offset < span.start {
            column += 1;
        }
        let mask = masks.iter().filter(|mask| mask.contains(&offset)).map(|mask| mask.end).max();
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
            None if c.is_control() => '?',
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

/// The number of the line that holds `offset`, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or_default().matches('\n').count() + 1
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

    fn shown(text: &str, span: Range<usize>, masks: &[Range<usize>]) -> String {
        let (line, column, excerpt) = excerpt(text, &span, masks);
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
    fn a_long_line_is_cut_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(300), "b".repeat(300));
        let lines = shown(&text, 300..301, &[]);
        let widest = lines.lines().map(|line| line.chars().count()).max();
        assert!(lines.contains("aXb") && widest < Some(120), "{lines}");
    }
}
