//! A service that is busy before it serves: what a person tries the relay with, without an account.
//!
//! Every request is refused a number of times and then answered, whatever else goes on, and then the count for
//! it starts anew. Two requests are the same if their bodies are, however their JSON keys are ordered (Codex
//! reorders them when it sends a request again).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::fixtures::{anthropic, chat, codex};
use crate::script::{Event, Reply, Script};
use crate::upstream::Seen;

/// How busy the service is.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// How often each request is refused before it is answered.
    pub times: usize,
    /// Whether a request that streams is refused inside a 200 stream, as the Responses service does it, or by
    /// status.
    pub in_stream: bool,
    /// Between two events of a stream.
    pub pace: Duration,
}

/// What is done to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Refused for the n-th time.
    Refused(usize),
    /// Answered.
    Served,
    /// Not a model call: a list of models, an unknown path, an upgrade.
    Aside,
}

/// The script of a busy service; `told` hears what is done to every request.
pub fn script(busy: Busy, told: impl Fn(&Seen, Turn) + Send + Sync + 'static) -> Script {
    let refusals: Mutex<BTreeMap<String, usize>> = Mutex::default();
    Script::by(move |seen, _| {
        let Some(dialect) = Dialect::of(seen) else {
            told(seen, Turn::Aside);
            return aside(seen);
        };
        let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let count = refusals.entry(format!("{} {}", seen.path(), seen.json())).or_default();
        let turn = if *count < busy.times { Turn::Refused(*count + 1) } else { Turn::Served };
        *count = if turn == Turn::Served { 0 } else { *count + 1 };
        drop(refusals);
        told(seen, turn);
        let streams = seen.json()["stream"] == Value::Bool(true);
        let reply = match turn {
            Turn::Served => dialect.good(streams, &answer(busy.times)),
            Turn::Refused(_) | Turn::Aside => dialect.refusal(streams && busy.in_stream),
        };
        if streams { paced(reply, busy.pace) } else { reply }
    })
}

fn answer(times: usize) -> String {
    format!("Hello from the pretend upstream, which was busy {times} times before it said this.")
}

fn aside(seen: &Seen) -> Reply {
    if seen.header("upgrade").is_some() {
        return Reply::status(426).text("no WebSocket here");
    }
    match seen.path() {
        "/v1/models" | "/models" => Reply::status(200).json(codex::models()),
        _ => Reply::status(404)
            .json(chat::error("invalid_request_error", "no such path in the pretend upstream")),
    }
}

fn paced(mut reply: Reply, pace: Duration) -> Reply {
    if !pace.is_zero() {
        let events = std::mem::take(&mut reply.body);
        reply.body = events.into_iter().flat_map(|event| [Event::pause(pace), event]).collect();
    }
    reply
}

#[derive(Clone, Copy)]
enum Dialect {
    Responses,
    Chat,
    Anthropic,
}

impl Dialect {
    fn of(seen: &Seen) -> Option<Self> {
        let path = seen.path();
        let ends = |end| seen.method == "POST" && path.ends_with(end);
        if ends("/responses") {
            Some(Self::Responses)
        } else if ends("/chat/completions") {
            Some(Self::Chat)
        } else {
            ends("/messages").then_some(Self::Anthropic)
        }
    }

    fn refusal(self, in_stream: bool) -> Reply {
        match (self, in_stream) {
            (Self::Responses, true) => Reply::sse(codex::overloaded_stream()),
            (Self::Responses, false) => codex::overloaded_503(),
            (Self::Chat, true) => {
                let error = chat::error_chunk("server_is_overloaded", codex::OVERLOADED);
                Reply::sse([error, Event::data("[DONE]")])
            }
            (Self::Chat, false) => Reply::status(503).json(codex::overloaded_body()),
            (Self::Anthropic, true) => Reply::sse([anthropic::overloaded_event()]),
            (Self::Anthropic, false) => anthropic::overloaded_529(),
        }
    }

    fn good(self, streams: bool, text: &str) -> Reply {
        match (self, streams) {
            (Self::Responses, true) => Reply::sse(codex::turn(text)),
            (Self::Responses, false) => Reply::status(200).json(codex::response(text)),
            (Self::Chat, true) => Reply::sse(chat::stream(text)),
            (Self::Chat, false) => Reply::status(200).json(chat::completion(text)),
            (Self::Anthropic, true) => Reply::sse(anthropic::stream(text)),
            (Self::Anthropic, false) => Reply::status(200).json(anthropic::message(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Request, Upstream};

    #[tokio::test]
    async fn every_dialect_is_refused_as_often_as_told_and_then_served() {
        for (path, status) in [("/v1/responses", 503), ("/v1/chat/completions", 503), ("/v1/messages", 529)] {
            for (stream, in_stream) in [(false, false), (true, false), (true, true)] {
                let busy = Busy { times: 2, in_stream, pace: Duration::ZERO };
                let up = Upstream::start(script(busy, |_, _| {})).await.unwrap();
                let mut client = Client::connect(up.addr()).await.unwrap();
                let orders = [r#"{"a":1,"stream":X}"#, r#"{"stream":X,"a":1}"#];
                for number in 0..6 {
                    let body = orders[number % 2].replace('X', &stream.to_string());
                    let answer = client.ask(&Request::post(path).json(body)).await.unwrap();
                    let served = number % 3 == 2;
                    assert_eq!(answer.status, if served || in_stream { 200 } else { status });
                    assert_eq!(
                        answer.text().to_lowercase().contains("overloaded"),
                        !served,
                        "{}",
                        answer.text()
                    );
                }
            }
        }
    }
}
