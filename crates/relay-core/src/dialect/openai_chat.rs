//! OpenAI Chat Completions, which most gateways and own servers speak.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Dialect, Heard, Parts, Rule};
use crate::fault::Fault;
use crate::json;
use crate::sse;

/// The dialect.
#[derive(Debug)]
pub(super) struct OpenAiChat;

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Value,
    #[serde(flatten)]
    rest: Rest,
}

/// A first chunk names the role and nothing else.
#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    role: Option<IgnoredAny>,
    #[serde(default)]
    refusal: Option<IgnoredAny>,
    #[serde(flatten)]
    rest: Rest,
}

/// Keys that are not known; any but those that never carry output counts as output.
#[derive(Deserialize)]
struct Rest(std::collections::BTreeMap<String, Value>);

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Rest {
    fn is_silent(&self) -> bool {
        self.0.iter().all(|(key, value)| is_empty(value) || key == "index" || key == "logprobs")
    }
}

impl Choice {
    fn number(&self) -> u64 {
        self.rest.0.get("index").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Some services write an empty reason where others write none.
    fn is_finished(&self) -> bool {
        !is_empty(&self.finish_reason)
    }

    fn is_silent(&self) -> bool {
        self.rest.is_silent()
            && self.delta.as_ref().is_none_or(|delta| {
                // The role is the only word of an opening chunk.
                let _opening = &delta.role;
                delta.refusal.is_none()
                    && delta.content.as_deref().unwrap_or("").is_empty()
                    && delta.rest.is_silent()
            })
    }
}

impl Dialect for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    fn hear(&self, event: &sse::Event<'_>, parts: &mut Parts) -> Heard {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Heard::Lifecycle;
        }
        if data == b"[DONE]" {
            return Heard::End;
        }
        if event.name == b"error" {
            return Heard::Fault;
        }
        let Ok(chunk) = serde_json::from_slice::<Chunk>(data) else {
            // An error may be readable where a chunk is not.
            return if json::is_top_level_error(data) { Heard::Fault } else { Heard::Output };
        };
        let Some(choices) = chunk.choices else {
            return if json::is_top_level_error(data) { Heard::Fault } else { Heard::Output };
        };
        let failed = chunk.error.is_some() && json::error_fields(data).is_some();
        let is_silent = choices.iter().all(Choice::is_silent);
        if failed && is_silent {
            return Heard::Fault;
        }
        // Not every service says [DONE]: without it, every choice has to be finished.
        for choice in &choices {
            parts.hear(choice.number(), choice.is_finished());
        }
        let is_lifecycle = is_silent && !choices.iter().any(Choice::is_finished);
        if is_lifecycle { Heard::Lifecycle } else { Heard::Output }
    }

    fn names_its_end(&self) -> bool {
        true
    }

    fn error_body(&self, _status: u16, fault: Fault, code: &str, message: &str) -> serde_json::Value {
        super::generic::openai_error(fault, code, message)
    }
}
