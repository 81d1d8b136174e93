//! Gemini, as the Gemini API, Vertex AI and Code Assist speak it. The path names the model and whether the answer
//! streams; with `alt=sse` a stream is one of events, without it one JSON list.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Dialect, Heard, Parts, Rule};
use crate::evidence::Operation;
use crate::fault::Fault;
use crate::json;
use crate::sse;

/// The dialect.
#[derive(Debug)]
pub(super) struct Gemini;

/// What the method at the end of a path does, after its colon, and whether its answer streams; `None`: not Gemini's.
pub(super) fn method(path: &str) -> Option<(Operation, bool)> {
    let (_, last) = path.rsplit_once('/').unwrap_or(("", path));
    let (_, method) = split_method(last)?;
    Some(match method {
        "generateContent" => (Operation::Generation, false),
        "streamGenerateContent" => (Operation::Generation, true),
        "countTokens" | "embedContent" | "batchEmbedContents" => (Operation::Pure, false),
        _ => return None,
    })
}

/// The model that a path names: `gemini-2.5-pro` of `…/models/gemini-2.5-pro:generateContent`.
#[must_use]
pub fn model_of(path: &str) -> Option<&str> {
    let path = path.split('?').next().unwrap_or(path).trim_end_matches('/');
    let (before, last) = path.rsplit_once('/')?;
    let (model, _) = split_method(last)?;
    let is_model =
        method(path).is_some() && before.rsplit('/').next().is_some_and(|it| it.ends_with("odels"));
    (is_model && !model.is_empty()).then_some(model)
}

fn split_method(last: &str) -> Option<(&str, &str)> {
    if !last.contains(['%', ':']) {
        return None;
    }
    ["%3A", "%3a"].iter().find_map(|colon| last.rsplit_once(colon)).or_else(|| last.rsplit_once(':'))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    error: Option<IgnoredAny>,
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    // What tells of the answer without being any of it.
    usage_metadata: IgnoredAny,
    model_version: IgnoredAny,
    response_id: IgnoredAny,
    create_time: IgnoredAny,
    model_status: IgnoredAny,
    trace_id: IgnoredAny,
    /// Code Assist puts all that into one more object.
    response: Option<Box<Self>>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
    index: Value,
    token_count: IgnoredAny,
    safety_ratings: IgnoredAny,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    parts: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Feedback {
    block_reason: Option<String>,
}

/// A name of an enumeration that says something.
fn is_said(name: Option<&String>) -> bool {
    name.is_some_and(|name| !name.is_empty() && !name.ends_with("_UNSPECIFIED"))
}

impl Chunk {
    /// There is no last word: the answer is whole where all candidates are finished and its bytes end tidily.
    fn heard(&self, parts: &mut Parts) -> Heard {
        if let Some(response) = &self.response {
            return response.heard(parts);
        }
        if is_said(self.prompt_feedback.as_ref().and_then(|it| it.block_reason.as_ref())) {
            parts.finish();
            return Heard::Output;
        }
        for candidate in &self.candidates {
            parts.hear(candidate.index.as_u64().unwrap_or(0), candidate.is_finished());
        }
        let is_silent = |it: &Candidate| it.is_silent() && !it.is_finished();
        if self.rest.is_empty() && self.candidates.iter().all(is_silent) {
            Heard::Lifecycle
        } else {
            Heard::Output
        }
    }
}

impl Candidate {
    fn is_finished(&self) -> bool {
        is_said(self.finish_reason.as_ref())
    }

    /// An opening one has a role, or a part with an empty text.
    fn is_silent(&self) -> bool {
        let parts = self.content.as_ref().map_or(&[][..], |content| &content.parts);
        let is_empty =
            |part: &Value| *part == serde_json::json!({ "text": "" }) || *part == serde_json::json!({});
        self.rest.is_empty() && parts.iter().all(is_empty)
    }
}

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    fn hear(&self, event: &sse::Event<'_>, parts: &mut Parts) -> Heard {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Heard::Lifecycle;
        }
        if event.name == b"error" {
            return Heard::Fault;
        }
        match serde_json::from_slice::<Chunk>(data) {
            Ok(chunk) if chunk.error.is_some() && json::is_top_level_error(data) => Heard::Fault,
            Ok(chunk) => chunk.heard(parts),
            Err(_) if event.cut_short => Heard::Unread,
            Err(_) if json::is_top_level_error(data) => Heard::Fault,
            Err(_) => Heard::Output,
        }
    }

    fn names_its_end(&self) -> bool {
        true
    }

    fn heartbeat(&self) -> Option<&'static str> {
        // google-genai and Gemini CLI fail on comments and on events without an answer; both skip a blank line.
        Some("\n")
    }

    fn bears_comments(&self) -> bool {
        // google-genai and Gemini CLI fail on them.
        false
    }

    fn streams_values(&self) -> bool {
        true
    }

    fn error_body(&self, status: u16, fault: Fault, code: &str, message: &str) -> Value {
        // The names that Google gives to its statuses. What may have run is none that its clients send again.
        let name = match fault {
            Fault::AtCapacity | Fault::Overloaded | Fault::ModelLoading => "UNAVAILABLE",
            Fault::Throttled | Fault::QuotaSpent => "RESOURCE_EXHAUSTED",
            Fault::Authentication => "UNAUTHENTICATED",
            Fault::BadRequest | Fault::TooLong | Fault::ContentRefused => "INVALID_ARGUMENT",
            Fault::Challenge => "PERMISSION_DENIED",
            Fault::ServerFailed | Fault::NeverSent => "INTERNAL",
            Fault::BrokenStream | Fault::EmptyAnswer | Fault::NoAnswer => "ABORTED",
        };
        serde_json::json!({ "error": {
            "code": status,
            "message": message,
            "status": name,
            "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": code,
                "domain": "steady-relay",
            }],
        } })
    }
}
