//! What a client is told of its own call, where it asks for that with `x-steady-report: call`: how it ended, whose words
//! the answer is, and each send, as JSON in a header of the same name. Programs that raise errors of their own need to know
//! a service's answer from the relay's.
//!
//! It is an observer of one call, like those of all calls: nothing is counted here that no event tells.

use http::{HeaderMap, HeaderValue};
use relay_core::Moment;
use relay_core::event::{CallId, Closing, Event};
use serde::Serialize;

use crate::history::Single;
use crate::history::record::CallRecord;
use crate::wishes::{REPORT, Wishes};

/// The version of what is told.
const VERSION: u32 = 1;
/// The most sends that are told, the last ones: a line of a head has to be short enough for every client.
const MOST: usize = 16;

/// Whose words an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// The service's.
    Service,
    /// The relay's own.
    Relay,
}

/// What is told.
#[derive(Debug, Serialize)]
struct Told<'a> {
    v: u32,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    by: By,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallRecord>,
}

/// What is known of an open call whose client wants to be told.
#[derive(Debug, Default)]
pub(crate) struct CallReport {
    seen: Single,
}

impl CallReport {
    /// Where the client wants one.
    pub(crate) fn wanted(wishes: &Wishes) -> Option<Box<Self>> {
        wishes.report.then(Box::default)
    }

    /// Something happened to the call.
    pub(crate) fn see(&self, call: CallId, at: Moment, event: &Event) {
        self.seen.see(call, at, event);
    }

    /// Tells it in the head of the answer.
    pub(crate) fn tell(self, call: CallId, closing: &Closing, by: By, head: &mut HeaderMap) {
        let mut record = self.seen.record(call);
        if let Some(record) = &mut record {
            let over = record.sends.len().saturating_sub(MOST);
            record.sends.drain(..over);
            record.left_out += u32::try_from(over).unwrap_or(u32::MAX);
        }
        let waited_ms = u64::try_from(closing.waited.as_millis()).ok();
        let outcome = closing.outcome.name();
        put(&Told { v: VERSION, outcome, why: closing.why, by, waited_ms, call: record }, head);
    }
}

/// Tells a client that its request was turned away before it was a call.
pub(crate) fn turned_away(code: &str, asked: &HeaderMap, head: &mut HeaderMap) {
    if asked.contains_key(REPORT) {
        let told = Told {
            v: VERSION,
            outcome: "turned_away",
            why: Some(code),
            by: By::Relay,
            waited_ms: None,
            call: None,
        };
        put(&told, head);
    }
}

/// A head holds ASCII: the rest is escaped, as JSON may.
fn put(told: &Told<'_>, head: &mut HeaderMap) {
    let mut line = String::new();
    for letter in serde_json::to_string(told).unwrap_or_default().chars() {
        if letter.is_ascii() {
            line.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    if let Ok(value) = HeaderValue::try_from(line) {
        head.insert(REPORT, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_ascii_and_reads_as_it_was() {
        let mut head = HeaderMap::new();
        let told = Told {
            v: 1,
            outcome: "gave_up",
            why: Some("模型 𝄞"),
            by: By::Relay,
            waited_ms: None,
            call: None,
        };
        put(&told, &mut head);
        let line = head[REPORT].to_str().unwrap();
        assert!(line.is_ascii() && line.contains(r"\u6a21"), "{line}");
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&read["why"], &read["by"]), (&"模型 𝄞".into(), &"relay".into()));
    }

    #[test]
    fn who_does_not_ask_is_told_nothing() {
        let mut head = HeaderMap::new();
        turned_away("no_upstream", &HeaderMap::new(), &mut head);
        assert!(head.is_empty());
        assert!(CallReport::wanted(&Wishes::default()).is_none());
    }
}
