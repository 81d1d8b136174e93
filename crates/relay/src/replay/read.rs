//! Reads recorded calls: JSON lines, one call each, as `/__steady/calls` and exports have them, or the lines of a report of
//! `diagnose`.

use std::io::{self, Read};

use relay_core::redact::in_one_line;

use crate::history::record::CallRecord;
use crate::words::{lang, replay as words};

/// The longest file that is read.
pub const LONGEST: u64 = 256 << 20;

/// The most letters of what is wrong with a line.
const SAID: usize = 200;

/// Why a file holds no recorded calls.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system gives none.
    #[error("{}", words::unreadable(lang(), &.0.to_string()))]
    Io(#[from] io::Error),
    /// It is too long.
    #[error("{}", words::too_long(lang(), LONGEST >> 20))]
    TooLong,
    /// It is no text.
    #[error("{}", words::no_text(lang()))]
    NoText,
    /// A line is no call.
    #[error("{}", words::no_call(lang(), *line, why))]
    Line {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// There is no call in it.
    #[error("{}", words::no_calls(lang()))]
    Empty,
}

/// The calls in it.
///
/// # Errors
/// Where it is no such file.
pub fn calls(from: impl Read) -> Result<Vec<CallRecord>, Unreadable> {
    let mut bytes = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Unreadable::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|_other| Unreadable::NoText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // In a report, only what stands between its fences is JSON.
    let is_report = text.lines().any(|line| line.trim_end() == FENCE);
    let mut calls = Vec::new();
    let mut is_inside = !is_report;
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        if is_report && line.starts_with("```") {
            is_inside = line == FENCE;
            continue;
        }
        if line.is_empty() || !is_inside {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(call) => calls.push(call),
            // What an export says of itself is no call.
            Err(_) if is_head(line) => {}
            // It quotes the line, which may be of any file.
            Err(why) => {
                let why = in_one_line(&why.to_string(), SAID);
                return Err(Unreadable::Line { line: nth as u64 + 1, why });
            }
        }
    }
    if calls.is_empty() { Err(Unreadable::Empty) } else { Ok(calls) }
}

/// How the calls of a report begin.
const FENCE: &str = "```jsonl";

/// Whether a line says which version of a form follows, and nothing else.
fn is_head(line: &str) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_str(line).ok();
    value.is_some_and(|value| value["v"].is_u64() && value["call"].is_null())
}
