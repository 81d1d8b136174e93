//! Reading the files in which clients keep their settings, in the forms that several of them share. How they are written
//! is known where they are edited, too: [`crate::setup::document`].

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::Surroundings;
use crate::setup::document::{Flaw, Format, said};
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
    tell(notices, notice);
    None
}

pub(super) fn parsed_jsonc(text: &str) -> Option<Value> {
    said(Format::Json, text).ok()
}

/// The variables in a file of `NAME=value` lines; none of one that cannot be read, with a notice. `None` where there is
/// no such file.
pub(super) fn dot_env(around: Surroundings<'_>, file: &Path, notices: &mut Vec<String>) -> Option<Variables> {
    let why = match around.text(file) {
        Ok(None) => return None,
        Ok(Some(text)) => match said(Format::Env, &text) {
            Ok(Value::Object(all)) => return Some(Variables(all)),
            Ok(_) => return Some(Variables::default()),
            Err(Flaw { line, what, .. }) => format!("{line}: {what}"),
        },
        // Some keep a Python environment under that name.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => return None,
        Err(error) => error.to_string(),
    };
    tell(notices, run::unreadable(words::lang(), &file.display().to_string(), &why));
    Some(Variables::default())
}

/// What such a file sets.
#[derive(Default)]
pub(super) struct Variables(Map<String, Value>);

impl Variables {
    /// The value of this one, where it is set to something.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().filter(|value| !value.is_empty()).map(str::to_owned)
    }
}

fn tell(notices: &mut Vec<String>, notice: String) {
    if !notices.contains(&notice) {
        notices.push(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Machine;
    use super::*;

    #[test]
    fn comments_and_last_commas_are_read_and_depth_is_bounded() {
        let value = parsed_jsonc("// a\n{\"a\": [1, /* b */ 2,],}").unwrap();
        assert_eq!(value["a"][1], 2);
        assert_eq!(parsed_jsonc("{"), None);
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parsed_jsonc(&deep(100)).is_some());
        assert_eq!(parsed_jsonc(&deep(500_000)), None);
        // What stands in a text nests nothing.
        let value = parsed_jsonc(&format!("{{\"a\": \"{}\", \"b\": 1}}", "{".repeat(1000))).unwrap();
        assert_eq!(value["b"], 1);
    }

    #[test]
    fn variables_are_read_as_where_they_are_edited() {
        let text = "A=1\nexport B = \"x y\"\n#A=3\nA='2' # two\nAA=5\nC=\nE=e # five\n";
        let machine = Machine::new().file("/a/.env", text).file("/b/.env", "A=1\nB=\"x\n");
        let mut notices = Vec::new();
        let mut read = |file: &str| machine.around(|around| dot_env(around, Path::new(file), &mut notices));
        let all = read("/a/.env").unwrap();
        let of = |name| all.get(name);
        assert_eq!(
            (of("A").as_deref(), of("B").as_deref(), of("E").as_deref()),
            (Some("2"), Some("x y"), Some("e"))
        );
        assert_eq!((of("C"), of("D")), (None, None));
        assert!(read("/none").is_none());
        assert_eq!(read("/b/.env").unwrap().get("A"), None);
        assert_eq!(notices, ["/b/.env cannot be read: 2: the quote is not closed"]);
    }
}
