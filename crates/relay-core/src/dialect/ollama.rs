//! Ollama: answers stream as lines of JSON unless the request says `"stream": false`.
//!
//! A model that is not in memory is loaded first. That takes 20 to 60 seconds of silence before the head, and no
//! line tells of it; an answer with `"done_reason":"load"` is that of a request that asked for nothing else.

use serde_json::Value;

use super::{Dialect, Heard, Parts, Rule};
use crate::fault::Fault;
use crate::json;
use crate::sse;

/// The dialect.
#[derive(Debug)]
pub(super) struct Ollama;

/// What decides about a line, in the order in which Ollama writes it; a last line may hold a long `context` after.
const LINE: &[&str] = &["error", "message", "response", "thinking", "done", "status"];
const MESSAGE: &[&str] = &["content", "thinking", "tool_calls", "images"];

impl Dialect for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    fn hear(&self, event: &sse::Event<'_>, _parts: &mut Parts) -> Heard {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Heard::Lifecycle;
        }
        let line = json::beginning(data, LINE);
        if line.is_full("error") {
            return Heard::Fault;
        }
        // `done` of an answer; `success` of a download.
        if line.get("done") == Some("true") || line.get("status") == Some("\"success\"") {
            return Heard::End;
        }
        let is_silent = line.get("done") == Some("false")
            && !line.is_full("response")
            && !line.is_full("thinking")
            && line.get("message").is_none_or(|message| {
                let message = json::beginning(message.as_bytes(), MESSAGE);
                MESSAGE.iter().all(|name| !message.is_full(name))
            });
        if is_silent { Heard::Lifecycle } else { Heard::Output }
    }

    fn names_its_end(&self) -> bool {
        true
    }

    fn heartbeat(&self) -> Option<&'static str> {
        // Ollama's Python client takes every line for JSON, a blank one too.
        None
    }

    fn bears_comments(&self) -> bool {
        // Its streams are values, one in each line.
        false
    }

    fn error_event(&self, error: &Value) -> String {
        format!("{error}\n")
    }

    fn streams_values(&self) -> bool {
        true
    }

    fn streams_unless_told(&self) -> bool {
        true
    }

    fn error_body(&self, _status: u16, fault: Fault, code: &str, message: &str) -> Value {
        // The text is all that its clients read.
        serde_json::json!({ "error": message, "code": code, "type": fault.name() })
    }
}
