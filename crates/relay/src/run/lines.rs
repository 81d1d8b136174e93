//! What a program that holds a session says and hears: `steady-relay session` reads these as lines of JSON, and answers
//! each by one. For programs in any language: the package for Python is one. See `docs/python.md`, "By lines".

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sessions::said::{Held, Sums};

/// The version of everything that is said here.
pub const VERSION: u32 = 1;

/// The first line: which relay it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// The version of this form.
    pub v: u32,
    /// The program's version.
    pub version: &'static str,
    #[serde(flatten)]
    /// Where it is.
    pub place: Placed,
    /// What a person should know of the settings.
    pub notices: Vec<String>,
}

/// The last line, where somebody stops it while its input goes on: nothing more is answered, and calls that are under way
/// come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stopping {
    /// Always true.
    pub stopping: bool,
}

/// Where the relay of a session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Its base URL for this session, by which a request goes where its credential belongs.
    pub url: String,
    /// Whether it is one that ran already, which others use.
    pub joined: bool,
}

/// What is asked: the id of the question comes back with the answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Asked {
    /// The base URL by which requests reach a service, whose own URL is this one.
    Base {
        /// Comes back, whatever it is.
        #[serde(default)]
        id: Value,
        /// `https://api.example.com`, with a path or without.
        url: String,
    },
    /// Nobody listens at the relay's address any more: where is it now?
    Lost {
        /// Comes back, whatever it is.
        #[serde(default)]
        id: Value,
    },
    /// What the calls of this session came to, and which are held.
    Stats {
        /// Comes back, whatever it is.
        #[serde(default)]
        id: Value,
    },
}

/// An answer.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// That of the question; null where there was none.
    pub id: Value,
    #[serde(flatten)]
    /// What is said.
    pub said: Said,
}

/// What is said to a question.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Said {
    /// The base URL that was asked for.
    Base {
        /// Paths are appended to it as they are.
        base: String,
    },
    /// The relay itself was named: it is asked without another in between.
    Itself {
        /// Always true.
        itself: bool,
    },
    /// Where the relay is; base URLs that were told before hold no more.
    Placed(Placed),
    /// The statistics.
    Stats {
        /// How many calls are open.
        open: usize,
        /// Those of them that are held.
        held: Vec<Held>,
        /// What those that ended came to.
        sums: Sums,
    },
    /// It cannot be done.
    Error {
        /// In words.
        error: String,
    },
}

/// Reads a question. The error has the id, where there is one, and what is wrong.
///
/// # Errors
/// [`Answer`] to be given in its place.
pub fn read(line: &str) -> Result<Asked, Box<Answer>> {
    serde_json::from_str(line).map_err(|error| {
        let asked = serde_json::from_str::<Value>(line).unwrap_or_default();
        let id = asked.get("id").cloned().unwrap_or_default();
        Box::new(Answer { id, ..unread(error) })
    })
}

/// The answer to a line that is no question.
pub fn unread(why: impl Display) -> Answer {
    Answer { id: Value::Null, said: Said::Error { error: format!("this is no question: {why}") } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_and_what_is_none_is_told_with_its_id() {
        let asked = read(r#"{"id":1,"ask":"base","url":"https://a.example"}"#).unwrap();
        assert_eq!(asked, Asked::Base { id: 1.into(), url: "https://a.example".to_owned() });
        assert_eq!(read(r#"{"id":3,"ask":"stats"}"#).unwrap(), Asked::Stats { id: 3.into() });
        assert_eq!(read(r#"{"id":"x","ask":"stats"}"#).unwrap(), Asked::Stats { id: "x".into() });
        for (line, id) in [
            ("", Value::Null),
            ("{}", Value::Null),
            (r#"{"id":2}"#, 2.into()),
            (r#"{"id":"x","ask":"more"}"#, "x".into()),
        ] {
            assert_eq!(read(line).unwrap_err().id, id, "{line}");
        }
    }

    #[test]
    fn answers_are_one_flat_object() {
        let line = |said| serde_json::to_string(&Answer { id: 1.into(), said }).unwrap();
        assert_eq!(line(Said::Base { base: "http://x".to_owned() }), r#"{"id":1,"base":"http://x"}"#);
        let placed = Placed { url: "http://x".to_owned(), joined: true };
        assert_eq!(line(Said::Placed(placed)), r#"{"id":1,"url":"http://x","joined":true}"#);
    }
}
