//! What a pretend WebSocket service does: which upgrades it accepts, and the steps each question gets.
//!
//! Only values; [`super::WsUpstream`] carries them out.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::owned;
use crate::script::{Event, Signal, Step};

/// What becomes of a connection that asks to be a WebSocket.
#[derive(Debug, Clone)]
pub enum Upgrade {
    /// 101, with these headers besides those of the handshake.
    Accept(Vec<(String, String)>),
    /// This status with these headers and this body instead, and the connection is closed.
    Refuse(u16, Vec<(String, String)>, String),
    /// The connection is reset.
    Reset,
    /// No answer, until the client leaves.
    Silent,
}

impl Upgrade {
    /// 101 and nothing more.
    #[must_use]
    pub const fn accept() -> Self {
        Self::Accept(Vec::new())
    }

    /// 101 with these headers.
    #[must_use]
    pub fn accept_with(headers: &[(&str, &str)]) -> Self {
        Self::Accept(owned(headers))
    }

    /// This status, with an empty body.
    #[must_use]
    pub const fn refuse(status: u16) -> Self {
        Self::Refuse(status, Vec::new(), String::new())
    }

    /// This status with a JSON body.
    #[must_use]
    pub fn refuse_with(status: u16, headers: &[(&str, &str)], json: impl ToString) -> Self {
        let mut headers = owned(headers);
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        Self::Refuse(status, headers, json.to_string())
    }

    /// 503 `server_is_overloaded`, which is fatal to Codex.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::refuse_with(503, &[], crate::fixtures::codex::overloaded_body())
    }
}

/// One step of an answer.
#[derive(Debug, Clone)]
pub enum WsStep {
    /// A text frame of this JSON.
    Send(Value),
    /// A text frame of this text, to the byte.
    Raw(String),
    /// A binary frame.
    Binary(Bytes),
    /// A ping; the pong is seen as [`super::WsWhat::Pong`].
    Ping(Bytes),
    /// Says nothing for this long.
    Wait(Duration),
    /// Says nothing until the test releases the signal.
    Gate(Signal),
    /// Releases the signal: everything before it is written.
    Tell(Signal),
    /// A close frame, after which the connection ends in order.
    Close(u16, String),
    /// Resets the connection (RST). What the client has not received by then is lost; where that matters, put a
    /// [`WsStep::Gate`] before it.
    Reset,
    /// Closes the connection (FIN) without a close frame.
    Drop,
    /// Says nothing more on this connection, until the client leaves it.
    Silent,
}

/// Everything a pretend service does. The last entry of each list repeats.
#[derive(Debug, Clone)]
pub struct WsScript {
    pub(super) upgrades: Vec<Upgrade>,
    pub(super) creates: Vec<Vec<WsStep>>,
    pub(super) prewarms: Vec<Vec<WsStep>>,
    pub(super) fallback: Vec<Event>,
    pub(super) remembers: bool,
}

impl WsScript {
    /// Accepts every upgrade, finishes every prewarm, and answers everything else with `word`, over HTTP too.
    #[must_use]
    pub fn good(word: &str) -> Self {
        Self {
            upgrades: vec![Upgrade::accept()],
            creates: vec![steps::good(word)],
            prewarms: vec![steps::prewarmed()],
            fallback: crate::fixtures::codex::turn(word),
            remembers: false,
        }
    }

    /// What each upgrade gets, in order.
    #[must_use]
    pub fn upgrades(mut self, upgrades: impl IntoIterator<Item = Upgrade>) -> Self {
        self.upgrades = upgrades.into_iter().collect();
        self
    }

    /// What each `response.create` gets that is not a prewarm, in order over all connections.
    #[must_use]
    pub fn creates(mut self, answers: impl IntoIterator<Item = Vec<WsStep>>) -> Self {
        self.creates = answers.into_iter().collect();
        self
    }

    /// What each prewarm (`response.create` with `"generate":false`) gets, in order over all connections.
    #[must_use]
    pub fn prewarms(mut self, answers: impl IntoIterator<Item = Vec<WsStep>>) -> Self {
        self.prewarms = answers.into_iter().collect();
        self
    }

    /// Makes it remember, as the service does: each response has an id of its own, and a `previous_response_id` that
    /// was not completed on the same connection gets [`steps::previous_not_found`] and uses up no answer.
    #[must_use]
    pub const fn remembering(mut self) -> Self {
        self.remembers = true;
        self
    }
}

/// The entry with this number, or the last one.
pub(super) fn nth<T: Clone>(list: &[T], number: usize) -> Option<T> {
    list.get(number).or(list.last()).cloned()
}

/// Answers and failures, made of the same texts as their event streams.
pub mod steps {
    use serde_json::Value;

    use super::{Event, Step, WsStep};
    use crate::fixtures::codex::{self, OVERLOADED};

    const OVERLOADED_CODE: &str = "server_is_overloaded";

    /// The events of a stream as text frames; what waits there waits here. Comments and raw bytes have no counterpart.
    #[must_use]
    pub fn frames(events: impl IntoIterator<Item = Event>) -> Vec<WsStep> {
        let step = |event: Event| match event.0 {
            Step::Fields { data, .. } => Some(WsStep::Raw(data)),
            Step::Pause(span) => Some(WsStep::Wait(span)),
            Step::WaitFor(signal) => Some(WsStep::Gate(signal)),
            Step::Tell(signal) => Some(WsStep::Tell(signal)),
            Step::Comment(_) | Step::Raw(_) => None,
        };
        events.into_iter().filter_map(step).collect()
    }

    /// A whole turn that says `word`.
    #[must_use]
    pub fn good(word: &str) -> Vec<WsStep> {
        frames(codex::turn(word))
    }

    /// A whole turn that calls a function.
    #[must_use]
    pub fn tool_call(call_id: &str, name: &str, arguments: &str) -> Vec<WsStep> {
        frames(codex::tool_call(call_id, name, arguments))
    }

    /// The same without its end.
    #[must_use]
    pub fn tool_call_unfinished(call_id: &str, name: &str, arguments: &str) -> Vec<WsStep> {
        frames(codex::tool_call_unfinished(call_id, name, arguments))
    }

    /// What a prewarm gets: created, completed, nothing said.
    #[must_use]
    pub fn prewarmed() -> Vec<WsStep> {
        frames(codex::nothing())
    }

    /// `response.created`, which says nothing yet.
    #[must_use]
    pub fn created() -> Vec<WsStep> {
        frames([codex::created()])
    }

    /// `response.created`, then `response.failed` with this code.
    #[must_use]
    pub fn failed(code: &str, message: &str) -> Vec<WsStep> {
        frames([codex::created(), codex::failed(code, message)])
    }

    /// Out of capacity before any output, inside the response.
    #[must_use]
    pub fn overloaded_failed() -> Vec<WsStep> {
        failed(OVERLOADED_CODE, OVERLOADED)
    }

    /// An error frame that stands for an HTTP answer with this status.
    #[must_use]
    pub fn wrapped(
        status: u16,
        kind: &str,
        (code, message): (&str, &str),
        headers: &[(&str, &str)],
    ) -> Vec<WsStep> {
        let quoted = |text: &str| Value::from(text).to_string();
        let fields: Vec<_> =
            headers.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))).collect();
        let headers =
            if fields.is_empty() { String::new() } else { format!(r#","headers":{{{}}}"#, fields.join(",")) };
        let (kind, code, message) = (quoted(kind), quoted(code), quoted(message));
        let error = format!(r#"{{"type":{kind},"code":{code},"message":{message}}}"#);
        vec![WsStep::Raw(format!(r#"{{"type":"error","status":{status},"error":{error}{headers}}}"#))]
    }

    /// Out of capacity, as a wrapped 503; with a time to come back Codex waits, without one it gives up.
    #[must_use]
    pub fn overloaded_wrapped(retry_after: Option<&str>) -> Vec<WsStep> {
        let headers: Vec<_> = retry_after.into_iter().map(|value| ("retry-after", value)).collect();
        wrapped(503, "service_unavailable_error", (OVERLOADED_CODE, OVERLOADED), &headers)
    }

    /// The connection has become too old: the client is to open another one.
    #[must_use]
    pub fn limit_reached() -> Vec<WsStep> {
        let message = "Responses websocket connection limit reached (60 minutes). Create a new websocket \
                       connection to continue.";
        wrapped(400, "invalid_request_error", ("websocket_connection_limit_reached", message), &[])
    }

    /// The named response is not known on this connection.
    #[must_use]
    pub fn previous_not_found(id: &str) -> Vec<WsStep> {
        let message = format!("Previous response with id '{id}' not found.");
        wrapped(400, "invalid_request_error", ("previous_response_not_found", &message), &[])
    }
}
