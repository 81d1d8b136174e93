//! Protocol families: how each is recognised, heard and spoken. A dialect is data first: rows of
//! [`Rule`] and a few lines that read its events. Dialects know faults and JSON, and never each other.

mod anthropic;
mod behind;
mod escapes;
mod gemini;
mod generic;
mod ollama;
mod openai_chat;
mod openai_responses;
mod parts;
pub mod responses_socket;
mod rule;
mod services;
mod shared;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method};

use crate::evidence::{Operation, Says};
use crate::failure::{Failure, Told, code};
use crate::fault::Fault;
use crate::json::{ErrorFields, error_fields, refusal_fields};
use crate::quota;
use crate::retry_after::{Advice, advice, bucket_is_empty};
use crate::sse;
use crate::usage::usage;

pub use escapes::unescaped;
pub use gemini::model_of;
pub(crate) use openai_responses::is_completed;
pub use openai_responses::{failed_event, failed_message};
pub use parts::Parts;
pub use rule::{Rule, Sign, Statuses, Test, amount};

/// What one event of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Says that the answer lives; carries no output.
    Lifecycle,
    /// Output, or anything that is not known.
    Output,
    /// The same, of an event too large to be kept: it may have been the last.
    Unread,
    /// Tells of a failure.
    Fault,
    /// The last word of the whole answer: nothing comes after it.
    End,
}

/// A protocol family.
pub trait Dialect: Sync + std::fmt::Debug {
    /// The name in logs, settings and events.
    fn name(&self) -> &'static str;

    /// The rows that hold in this dialect alone; they come before the shared ones.
    fn rules(&self) -> &'static [Rule];

    /// What an event is, and what it says of the answer's `parts`.
    fn hear(&self, event: &sse::Event<'_>, parts: &mut Parts) -> Heard;

    /// Whether a stream that ends without [`Heard::End`], and before all its parts are finished, was cut.
    fn names_its_end(&self) -> bool;

    /// A sign of life for a stream that has begun and has nothing to say; `None` where clients bear none.
    fn heartbeat(&self) -> Option<&'static str> {
        // A comment: every client of the OpenAI dialects skips it.
        Some(": steady-relay waits\n\n")
    }

    /// Whether comments in a stream harm none of its clients.
    fn bears_comments(&self) -> bool {
        true
    }

    /// An error as an event of a stream; `error` is the body that an HTTP answer would have had.
    fn error_event(&self, error: &serde_json::Value) -> String {
        format!("data: {error}\n\n")
    }

    /// Whether its requests may come as the messages of a WebSocket, as [`responses_socket`] has them.
    fn speaks_websocket(&self) -> bool {
        false
    }

    /// Whether its streams may be JSON values one after another, rather than events.
    fn streams_values(&self) -> bool {
        false
    }

    /// Whether an answer streams where the request leaves it open.
    fn streams_unless_told(&self) -> bool {
        false
    }

    /// An error of our own in this dialect's words, as the body of an HTTP answer with this status.
    fn error_body(&self, status: u16, fault: Fault, code: &str, message: &str) -> serde_json::Value;
}

/// What a request's method and path say.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The dialect.
    pub dialect: &'static dyn Dialect,
    /// What the request does.
    pub operation: Operation,
    /// Whether the path says that the answer streams; `None`: that is said elsewhere.
    pub streams: Option<bool>,
}

impl Route {
    /// Whether the answer of a generation streams, given what the request's body says.
    #[must_use]
    pub fn streams(&self, body: Option<bool>) -> bool {
        self.operation == Operation::Generation
            && self.streams.or(body).unwrap_or_else(|| self.dialect.streams_unless_told())
    }
}

/// The dialect of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Dialect> {
    ALL.into_iter().find(|dialect| dialect.name() == name)
}

/// The name of the dialect of whatever has none of its own.
pub const GENERIC: &str = "generic";

/// Every dialect.
pub const ALL: [&dyn Dialect; 6] = [
    &openai_responses::OpenAiResponses,
    &openai_chat::OpenAiChat,
    &anthropic::Anthropic,
    &gemini::Gemini,
    &ollama::Ollama,
    &generic::Generic,
];

/// Reads method and path. The dialect is told by the end of the path, since gateways put prefixes before it, and
/// whatever of it is escaped without need.
#[must_use]
pub fn route(method: &Method, path: &str) -> Route {
    let path = unescaped(path);
    let path = path.trim_end_matches('/');
    let (dialect, posted, streams) = posted(path);
    let operation = match *method {
        Method::GET | Method::HEAD => Operation::Pure,
        Method::POST => posted,
        _ => Operation::Other,
    };
    Route { dialect, operation, streams }
}

/// What a POST to the path is.
fn posted(path: &str) -> (&'static dyn Dialect, Operation, Option<bool>) {
    let ends = |end: &str| path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || !rest.ends_with('/'));
    let any = |ends_of: &[&str]| ends_of.iter().any(|end| ends(end));
    // Claude on Vertex AI: Anthropic's bodies on Google's paths.
    if path.contains("/publishers/anthropic/")
        && let Some(streams) = [":rawPredict", ":streamRawPredict"].iter().position(|end| path.ends_with(end))
    {
        return (&anthropic::Anthropic, Operation::Generation, (streams == 1).then_some(true));
    }
    if let Some((operation, streams)) = gemini::method(path) {
        return (&gemini::Gemini, operation, Some(streams));
    }
    let (dialect, operation): (&'static dyn Dialect, Operation) = if ends("/responses") {
        (&openai_responses::OpenAiResponses, Operation::Generation)
    } else if ends("/responses/input_tokens") {
        (&openai_responses::OpenAiResponses, Operation::Pure)
    } else if path.contains("/responses/") {
        (&openai_responses::OpenAiResponses, Operation::Other)
    } else if any(&["/chat/completions", "/completions"]) {
        (&openai_chat::OpenAiChat, Operation::Generation)
    } else if ends("/messages") && !path.contains("/threads/") {
        (&anthropic::Anthropic, Operation::Generation)
    } else if ends("/messages/count_tokens") {
        (&anthropic::Anthropic, Operation::Pure)
    } else if path.contains("/messages/") {
        (&anthropic::Anthropic, Operation::Other)
    } else if any(&["/api/chat", "/api/generate"]) {
        (&ollama::Ollama, Operation::Generation)
    } else if any(&["/api/embed", "/api/embeddings", "/api/show"]) {
        (&ollama::Ollama, Operation::Pure)
    } else if any(&["/api/pull", "/api/push", "/api/create", "/api/copy"]) {
        (&ollama::Ollama, Operation::Other)
    } else if any(&["/embeddings", "/moderations", "/rerank"]) {
        (&generic::Generic, Operation::Pure)
    } else {
        (&generic::Generic, Operation::Other)
    };
    (dialect, operation, None)
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
    /// The body, or the data of the event.
    pub body: &'a [u8],
    /// From the start of the send to the failure.
    pub took: Duration,
    /// The wall clock, for dates.
    pub wall: SystemTime,
    /// The user's own rows, which come first.
    pub rules: &'a [Arc<Rule>],
}

impl Reply<'_> {
    const fn is_inside(&self) -> bool {
        match self.told {
            Told::ByStatus | Told::ByTransport => false,
            Told::InBody | Told::InStream => true,
        }
    }

    fn fields(&self) -> Option<ErrorFields> {
        if self.is_inside() { error_fields(self.body) } else { refusal_fields(self.body) }
    }

    fn signs<'s>(&'s self, fields: Option<&'s ErrorFields>) -> rule::Signs<'s> {
        let inside = self.is_inside();
        rule::Signs {
            status: if inside { fields.and_then(|fields| fields.http) } else { Some(self.status) },
            inside,
            headers: self.headers,
            body: self.body,
            fields,
        }
    }
}

/// Why an answer means what it means.
#[derive(Debug, Clone, PartialEq)]
pub enum Because {
    /// A row of the user's.
    Yours(Rule),
    /// A row that ships.
    Row(Rule),
    /// An edge asks for a browser check.
    Challenge,
    /// The status of the answer, or the one that an error inside it names as its code.
    Status,
    /// It is an error of which nothing is known.
    Nothing,
}

impl fmt::Display for Because {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yours(row) => write!(out, "own rule: {}", row.sign),
            Self::Row(row) => row.sign.fmt(out),
            Self::Challenge => out.write_str("browser check"),
            Self::Status => out.write_str("the status"),
            Self::Nothing => out.write_str("nothing known"),
        }
    }
}

struct Class {
    fault: Fault,
    says: Says,
    by_code: bool,
    because: Because,
}

/// What an answer that tells of a failure means.
#[must_use]
pub fn judge(dialect: &dyn Dialect, reply: &Reply<'_>) -> Failure {
    judge_and_tell(dialect, reply).0
}

/// The same, and why.
#[must_use]
pub fn judge_and_tell(dialect: &dyn Dialect, reply: &Reply<'_>) -> (Failure, Because) {
    let fields = reply.fields();
    let fields = fields.as_ref();
    let Class { fault, mut says, by_code, because } = classify(dialect, reply, fields);
    let words = reply.headers.get_all("x-should-retry");
    let word = |value: &str| {
        words.iter().any(|found| found.as_bytes().trim_ascii().eq_ignore_ascii_case(value.as_bytes()))
    };
    let (floor, is_yours) = match &because {
        Because::Yours(row) => (row.floor, true),
        Because::Row(row) => (row.floor, false),
        Because::Challenge | Because::Status | Because::Nothing => (Duration::ZERO, false),
    };
    match (fault, says) {
        _ if word("false") => says = Says::Final,
        // The upstream's own word lifts a status that would go back, but spent is spent and a key stays wrong.
        (Fault::QuotaSpent | Fault::Authentication, _) => {}
        (_, Says::Final) if word("true") && !reply.is_inside() && !is_yours => says = Says::Failed,
        _ => {}
    }
    let told = advice(
        reply.headers,
        fields.and_then(|fields| fields.message.as_deref()),
        fields.and_then(|fields| fields.retry_delay),
        reply.wall,
    );
    let code = fields
        .and_then(|fields| [&fields.code, &fields.kind].into_iter().flatten().find_map(|told| code(told)));
    let spent = quota::Spent { code: code.as_deref(), reply, fields, advice: told };
    let failure = Failure {
        fault,
        evidence: says.after(reply.took, matches!(told, Advice::Wait(_))),
        advice: told.at_least(floor),
        told: reply.told,
        status: Some(reply.status),
        by_code,
        bucket_empty: bucket_is_empty(reply.headers),
        renews: (fault == Fault::QuotaSpent).then(|| quota::renews(&spent)).flatten(),
        code,
        message: fields.and_then(|fields| fields.message.as_deref()).map(Into::into),
        barred: None,
        earlier: None,
        rule: Some(because.to_string().into()),
        usage: usage(reply.body),
        renewed: false,
    };
    (failure, because)
}

/// Whether one of the user's rows finds a failure in an answer, or an event, that has no shape of one.
#[must_use]
pub fn is_failure_by(reply: &Reply<'_>) -> bool {
    let signs = rule::Signs { inside: true, ..reply.signs(None) };
    reply.rules.iter().any(|row| row.finds_inside(&signs))
}

fn classify(dialect: &dyn Dialect, reply: &Reply<'_>, fields: Option<&ErrorFields>) -> Class {
    let signs = reply.signs(fields);
    let by_row = |row: &Rule, because: fn(Rule) -> Because| Class {
        fault: row.fault,
        says: row.says,
        by_code: row.sign.is_code(),
        because: because(row.clone()),
    };
    if let Some(row) = rule::first_of_users(reply.rules, &signs) {
        return by_row(row, Because::Yours);
    }
    let class = |(fault, says), by_code, because| Class { fault, says, by_code, because };
    if reply.headers.get("cf-mitigated").is_some_and(|value| value == "challenge") {
        return class((Fault::Challenge, Says::Final), false, Because::Challenge);
    }
    let [clouds, gateways, china, local] = services::TABLES;
    let tables = [dialect.rules(), clouds, gateways, china, local, shared::RULES];
    // The service's own words say more than a gateway's name for them.
    let behind = fields.and_then(behind::behind);
    let by_service = behind
        .as_ref()
        .and_then(|fields| rule::first(&tables, &rule::Signs { fields: Some(fields), ..signs }));
    if let Some(row) = by_service.or_else(|| rule::first(&tables, &signs)) {
        return by_row(row, Because::Row);
    }
    if reply.is_inside() {
        // An error object that gives a status as its code ("code": 503) means what the status means, and it is
        // the service's own word, whenever it came.
        let numbered = fields.and_then(|fields| fields.http).and_then(shared::by_status);
        return match numbered {
            Some((fault, Says::RefusedIfPrompt)) => class((fault, Says::Refused), true, Because::Status),
            Some(known) => class(known, true, Because::Status),
            // Nothing known speaks for a wait: a definite error goes back.
            None => class((Fault::ServerFailed, Says::Final), false, Because::Nothing),
        };
    }
    let known = shared::by_status(reply.status).unwrap_or((Fault::ServerFailed, Says::Final));
    class(known, false, Because::Status)
}

#[cfg(test)]
mod tests;
