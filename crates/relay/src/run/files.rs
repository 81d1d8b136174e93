//! Reading the files in which clients keep their settings, in the forms that several of them share.

use std::path::Path;

use serde_json::Value;

use super::Surroundings;
use crate::words::{self, run};

/// The object in a settings file that may hold comments; what is none is left to its client, with a notice.
pub(super) fn jsonc(around: Surroundings<'_>, file: &Path, notices: &mut Vec<String>) -> Option<Value> {
    let shown = file.display().to_string();
    let notice = match around.text(file) {
        Ok(None) => return None,
        Ok(Some(text)) if text.trim().is_empty() => return None,
        Ok(Some(text)) => match parsed_jsonc(&text) {
            Some(value @ Value::Object(_)) => return Some(value),
            Some(_) | None => run::left_alone(words::lang(), &shown),
        },
        Err(error) => run::unreadable(words::lang(), &shown, &error.to_string()),
    };
    if !notices.contains(&notice) {
        notices.push(notice);
    }
    None
}

/// No settings file nests as deep as this; the parser goes down by calling itself.
const DEEPEST: usize = 100;

pub(super) fn parsed_jsonc(text: &str) -> Option<Value> {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > DEEPEST {
        return None;
    }
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default()).ok()
}

/// A variable in a file of `NAME=value` lines, as the clients here read them.
pub(super) fn dot_env(text: &str, name: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| {
        let line = line.trim();
        let (set, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        (set.trim() == name).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    values.next_back().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_read_and_depth_is_bounded() {
        let value = parsed_jsonc("// a\n{\"a\": [1, /* b */ 2,],}").unwrap();
        assert_eq!(value["a"][1], 2);
        assert_eq!(parsed_jsonc("{"), None);
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parsed_jsonc(&deep(DEEPEST)).is_some());
        assert_eq!(parsed_jsonc(&deep(500_000)), None);
    }

    #[test]
    fn the_last_line_of_a_variable_counts() {
        let text = "A=1\nexport B = \"x y\"\n#A=3\nA='2'\nAA=5\nC=\n";
        let read = |name| dot_env(text, name);
        assert_eq!((read("A").as_deref(), read("B").as_deref()), (Some("2"), Some("x y")));
        assert_eq!((read("C"), read("D")), (None, None));
    }
}
