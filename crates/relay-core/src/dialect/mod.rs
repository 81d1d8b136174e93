//! Protocol families: how each is recognised, heard and spoken. A dialect is data first: rows of
//! [`Rule`] and a few lines that read its events. Dialects know faults and JSON, and never each other.

mod anthropic;
mod generic;
mod openai_chat;
mod openai_responses;
mod rule;
mod shared;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method};

use crate::evidence::{Operation, Says};
use crate::failure::{Failure, Told, label};
use crate::fault::Fault;
use crate::json::ErrorFields;
use crate::redact::redact;
use crate::retry_after::{Advice, advice};
use crate::sse;

pub use openai_responses::failed_event;
pub use rule::{Rule, Sign, Statuses};

/// What one event of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Says that the answer lives; carries no output.
    Lifecycle,
    /// Output, or anything that is not known.
    Output,
    /// Tells of a failure.
    Fault,
    /// The end that the protocol asks for.
    End,
}

/// A protocol family.
pub trait Dialect: Sync + std::fmt::Debug {
    /// The name in logs, settings and events.
    fn name(&self) -> &'static str;

    /// The rows that hold in this dialect alone; they come before the shared ones.
    fn rules(&self) -> &'static [Rule];

    /// What an event is.
    fn hear(&self, event: &sse::Event<'_>) -> Heard;

    /// Whether a stream that ends without [`Heard::End`] was cut.
    fn names_its_end(&self) -> bool;

    /// A sign of life for a stream that has begun and has nothing to say; `None` where clients bear none.
    fn heartbeat(&self) -> Option<&'static str> {
        // A comment: every client of the OpenAI dialects skips it.
        Some(": steady-relay waits\n\n")
    }

    /// An error as an event of a stream; `error` is the body that an HTTP answer would have had.
    fn error_event(&self, error: &serde_json::Value) -> String {
        format!("data: {error}\n\n")
    }

    /// An error of our own in this dialect's words, as the body of an HTTP answer.
    fn error_body(&self, fault: Fault, code: &str, message: &str) -> serde_json::Value;
}

/// What a request's method and path say.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The dialect.
    pub dialect: &'static dyn Dialect,
    /// What the request does.
    pub operation: Operation,
}

/// Reads method and path. The dialect is told by the end of the path, since gateways put prefixes before it.
#[must_use]
pub fn route(method: &Method, path: &str) -> Route {
    let path = path.trim_end_matches('/');
    let ends = |end: &str| path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || !rest.ends_with('/'));
    let (dialect, posted): (&'static dyn Dialect, Operation) = if ends("/responses") {
        (&openai_responses::OpenAiResponses, Operation::Generation)
    } else if ends("/responses/input_tokens") {
        (&openai_responses::OpenAiResponses, Operation::Pure)
    } else if path.contains("/responses/") {
        (&openai_responses::OpenAiResponses, Operation::Other)
    } else if ends("/chat/completions") || ends("/completions") {
        (&openai_chat::OpenAiChat, Operation::Generation)
    } else if ends("/messages") && !path.contains("/threads/") {
        (&anthropic::Anthropic, Operation::Generation)
    } else if ends("/messages/count_tokens") {
        (&anthropic::Anthropic, Operation::Pure)
    } else if path.contains("/messages/") {
        (&anthropic::Anthropic, Operation::Other)
    } else if ends("/embeddings") || ends("/moderations") || ends("/rerank") {
        (&generic::Generic, Operation::Pure)
    } else {
        (&generic::Generic, Operation::Other)
    };
    let operation = match *method {
        Method::GET | Method::HEAD => Operation::Pure,
        Method::POST => posted,
        _ => Operation::Other,
    };
    Route { dialect, operation }
}

/// A failure as an answer tells it, before it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// Where it was told.
    pub told: Told,
    /// The answer's status.
    pub status: u16,
    /// The answer's headers.
    pub headers: &'a HeaderMap,
    /// The error object, if one was found.
    pub fields: Option<&'a ErrorFields>,
    /// From the start of the send to the failure.
    pub took: Duration,
    /// The wall clock, for dates.
    pub wall: SystemTime,
}

/// What an answer that tells of a failure means.
#[must_use]
pub fn judge(dialect: &dyn Dialect, reply: &Reply<'_>) -> Failure {
    let inside = match reply.told {
        Told::ByStatus | Told::ByTransport => false,
        Told::InBody | Told::InStream => true,
    };
    let (fault, mut says, by_code) = classify(dialect, reply, inside);
    let word = |value: &str| reply.headers.get("x-should-retry").is_some_and(|found| found == value);
    match (fault, says) {
        _ if word("false") => says = Says::Final,
        // The upstream's own word lifts a status that would go back, but spent is spent and a key stays wrong.
        (Fault::QuotaSpent | Fault::Authentication, _) => {}
        (_, Says::Final) if word("true") && !inside => says = Says::Failed,
        _ => {}
    }
    let fields = reply.fields;
    let advice = advice(
        reply.headers,
        fields.and_then(|fields| fields.message.as_deref()),
        fields.and_then(|fields| fields.retry_delay),
        reply.wall,
    );
    Failure {
        fault,
        evidence: says.after(reply.took, matches!(advice, Advice::Wait(_))),
        advice,
        told: reply.told,
        status: Some(reply.status),
        by_code,
        code: fields
            .and_then(|fields| fields.code.as_deref().or(fields.kind.as_deref()))
            .map(|code| label(&redact(code))),
        message: fields.and_then(|fields| fields.message.as_deref()).map(Into::into),
        barred: None,
        earlier: None,
    }
}

fn classify(dialect: &dyn Dialect, reply: &Reply<'_>, inside: bool) -> (Fault, Says, bool) {
    if reply.headers.get("cf-mitigated").is_some_and(|value| value == "challenge") {
        return (Fault::Challenge, Says::Final, false);
    }
    let signs = rule::Signs {
        status: if inside { reply.fields.and_then(|fields| fields.http) } else { Some(reply.status) },
        headers: reply.headers,
        fields: reply.fields,
    };
    if let Some(row) = rule::first(&[dialect.rules(), shared::RULES], &signs) {
        let by_code = match row.sign {
            Sign::Code(_) | Sign::CodeAnd(..) | Sign::Header(..) => true,
            Sign::Phrase(_) => false,
        };
        return (row.fault, row.says, by_code);
    }
    if inside {
        // An error object that gives a status as its code ("code": 503) means what the status means, and it is
        // the service's own word, whenever it came.
        let numbered = reply.fields.and_then(|fields| fields.http).and_then(shared::by_status);
        return match numbered {
            Some((fault, Says::RefusedIfPrompt)) => (fault, Says::Refused, true),
            Some((fault, says)) => (fault, says, true),
            // Nothing known speaks for a wait: a definite error goes back.
            None => (Fault::ServerFailed, Says::Final, false),
        };
    }
    let (fault, says) = shared::by_status(reply.status).unwrap_or((Fault::ServerFailed, Says::Final));
    (fault, says, false)
}

#[cfg(test)]
mod tests;
