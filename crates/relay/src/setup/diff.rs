//! The plan as a unified diff. Only what changes is shown, without the lines around it: those may hold secrets.

use std::fmt::Write as _;

use serde_json::Value;
use similar::TextDiff;

use super::address::shown;
use super::document::Document;
use super::plan::{FileEdit, Plan};

impl Plan {
    /// The changes to all files. Values other than those that are written are hidden, and of those what may be a secret.
    #[must_use]
    pub fn diff(&self) -> String {
        let mut out = String::new();
        for edit in &self.files {
            let name = edit.file.display().to_string();
            let before = edit.before.as_ref().map_or("/dev/null", |_| name.as_str());
            let (old, new) =
                (masked(edit, edit.before.as_deref().unwrap_or_default()), masked(edit, &edit.after));
            let diff = TextDiff::from_lines(&old, &new);
            let mut unified = diff.unified_diff();
            unified.context_radius(0).header(before, &name);
            // Writing to a text cannot fail.
            let _always = write!(out, "{unified}");
        }
        out
    }
}

fn masked(edit: &FileEdit, text: &str) -> String {
    let paths: Vec<Vec<String>> = edit.entries.iter().map(|entry| entry.path.clone()).collect();
    // Both texts were read before, so this cannot fail; if it did, nothing would be shown.
    Document::read(edit.format, text).map_or_else(|_| String::new(), |document| document.masked(&paths))
}

/// A value for the screen.
pub(super) fn seen(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), shown)
}
