//! OpenAI Responses, as api.openai.com and the ChatGPT backend of Codex speak it.

use super::{Dialect, Heard, Parts, Rule};
use crate::fault::Fault;
use crate::json;
use crate::sse;

/// The dialect.
#[derive(Debug)]
pub(super) struct OpenAiResponses;

/// Events that carry no output (Codex CLI 0.171.0: they may stand before any output and be repeated).
const LIFECYCLE: &[&str] = &[
    "response.created",
    "response.in_progress",
    "response.queued",
    "codex.rate_limits",
    "codex.response.metadata",
    "keepalive",
];

impl Dialect for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn speaks_websocket(&self) -> bool {
        true
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    fn hear(&self, event: &sse::Event<'_>, _parts: &mut Parts) -> Heard {
        match event.data.trim_ascii() {
            b"" => return Heard::Lifecycle,
            b"[DONE]" => return Heard::End,
            _ => {}
        }
        let kind = super::generic::kind(event);
        match kind.as_deref() {
            Some("response.completed" | "response.incomplete") => Heard::End,
            Some("response.failed" | "error") => Heard::Fault,
            Some(kind) if LIFECYCLE.contains(&kind) => Heard::Lifecycle,
            // A server that is not OpenAI's may speak of its failures without a type (vLLM).
            None if json::is_top_level_error(event.data) => Heard::Fault,
            Some(_) | None => Heard::Output,
        }
    }

    fn names_its_end(&self) -> bool {
        true
    }

    fn error_event(&self, error: &serde_json::Value) -> String {
        let word = |key: &str| error.get("error").and_then(|error| error.get(key)?.as_str());
        failed_event(word("code").unwrap_or("server_error"), word("message").unwrap_or("the service failed"))
    }

    fn error_body(&self, _status: u16, fault: Fault, code: &str, message: &str) -> serde_json::Value {
        super::generic::openai_error(fault, code, message)
    }
}

/// Whether an event says that the answer is complete: not an incomplete one, and not merely the end of the stream.
pub(crate) fn is_completed(event: &sse::Event<'_>) -> bool {
    super::generic::kind(event).as_deref() == Some("response.completed")
}

/// A `response.failed` event: the one way to end a Codex turn with its own words for being at capacity.
#[must_use]
pub fn failed_event(code: &str, message: &str) -> String {
    format!("event: response.failed\ndata: {}\n\n", failed_message(code, message))
}

/// The data of such an event, which is a message on a WebSocket.
#[must_use]
pub fn failed_message(code: &str, message: &str) -> String {
    let data = serde_json::json!({
        "type": "response.failed",
        "sequence_number": 0,
        "response": {
            "id": "resp_steady_relay",
            "object": "response",
            "status": "failed",
            "error": { "code": code, "message": message },
        },
    });
    data.to_string()
}
