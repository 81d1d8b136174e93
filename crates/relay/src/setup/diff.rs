//! The plan as a unified diff. Only what changes is shown, without the lines around it: those may hold secrets.

use relay_core::redact::redact;
use serde_json::Value;
use similar::TextDiff;

use super::address::shown;
use super::document::{Document, token};
use super::plan::{FileEdit, Plan};

impl Plan {
    /// The changes to all files. Values other than those that are written are hidden, and of those what may be a secret.
    #[must_use]
    pub fn diff(&self) -> String {
        self.files.iter().map(of).collect()
    }
}

fn of(edit: &FileEdit) -> String {
    let name = edit.file.display().to_string();
    let before = edit.before.as_ref().map_or("/dev/null", |_| name.as_str());
    let (old, new) = (masked(edit, edit.before.as_deref().unwrap_or_default()), masked(edit, &edit.after));
    let diff = TextDiff::from_lines(&old, &new);
    let mut unified = diff.unified_diff();
    unified.context_radius(0).header(before, &name);
    let ours: Vec<String> =
        edit.entries.iter().filter_map(|entry| Some(token(edit.format, entry.ours.last()?))).collect();
    let mut out = String::new();
    for line in unified.to_string().split_inclusive('\n') {
        // What is ours is no secret, and beside it are keys alone; a key of another line may be odd.
        let is_shown = ["@@", "--- ", "+++ "].iter().any(|head| line.starts_with(head))
            || ours.iter().any(|value| line.contains(value));
        match is_shown {
            true => out += line,
            false => out += &redact(line),
        }
    }
    out
}

fn masked(edit: &FileEdit, text: &str) -> String {
    let paths: Vec<Vec<String>> = edit.entries.iter().map(|entry| entry.path.clone()).collect();
    let comments: Vec<&str> = edit.entries.iter().map(|entry| entry.comment.trim()).collect();
    // Both texts were read before, so this cannot fail; if it did, nothing would be shown.
    let read = Document::read(edit.format, text);
    let mut text = read.map_or_else(|_| String::new(), |document| document.masked(&paths, &comments));
    // A last line that only gets its end is no change to be shown.
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A value for the screen.
pub(super) fn seen(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), shown)
}
