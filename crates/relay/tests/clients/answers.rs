//! What the pretend model service answers: which request gets which fixture, and the broken ones beside them.

use std::sync::atomic::{AtomicUsize, Ordering};

use relay_sim::fixtures::{anthropic, chat as completions, codex, gemini as google, ollama as models};
use relay_sim::{Reply, Script, Seen};
use serde_json::json;

/// The word that every good answer consists of.
pub(crate) const WORD: &str = "PONG";

/// Requests for an answer get `failures` in order, then `good` each. WebSocket upgrades are turned down with 426,
/// the list of models is empty, other probes find nothing.
pub(crate) fn script(failures: Vec<Reply>, good: fn(&Seen) -> Reply) -> Script {
    let number = AtomicUsize::new(0);
    Script::by(move |seen, _| match (seen.method.as_str(), seen.path()) {
        ("POST", _) => {
            let number = number.fetch_add(1, Ordering::Relaxed);
            failures.get(number).cloned().unwrap_or_else(|| good(seen))
        }
        _ if seen.header("upgrade").is_some() => Reply::status(426),
        ("GET", "/v1/models") => Reply::status(200).json(codex::models()),
        _ => Reply::status(404),
    })
}

/// Every request for an answer gets this one.
pub(crate) fn always(reply: &Reply) -> Script {
    script(times(100, reply), |_| Reply::status(500))
}

/// The reply so many times.
pub(crate) fn times(count: usize, reply: &Reply) -> Vec<Reply> {
    vec![reply.clone(); count]
}

/// OpenAI Responses, as Codex and the `openai` SDK read it.
pub(crate) mod responses {
    use super::{Reply, Seen, WORD, codex, json};

    /// A whole turn.
    pub(crate) fn good(_: &Seen) -> Reply {
        Reply::sse(codex::turn(WORD))
    }

    /// Refused before any output, the way the service does it.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse(codex::overloaded_stream())
    }

    /// The same with the flat `error` event of the public interface, which the `openai` SDK takes for an item;
    /// a nested one it raises.
    pub(crate) fn overloaded_flat_in_stream() -> Reply {
        let (code, message) = ("server_is_overloaded", codex::OVERLOADED);
        let failure = [codex::flat_error_event(code, message), codex::failed(code, message)];
        Reply::sse([codex::created(), codex::in_progress()].into_iter().chain(failure))
    }

    /// Asks Codex to run a shell command, then refuses.
    pub(crate) fn overloaded_after_tool(command: &str) -> Reply {
        let refusal = codex::overloaded_stream().into_iter().skip(2);
        let arguments = json!({"cmd": command}).to_string();
        let call = codex::tool_call_unfinished("call_1", "exec_command", &arguments);
        Reply::sse(call.into_iter().chain(refusal))
    }

    /// Text, then a tidy end without a closing event.
    pub(crate) fn early_end() -> Reply {
        Reply::sse(codex::partial(WORD))
    }
}

/// OpenAI Chat Completions.
pub(crate) mod chat {
    use super::{Reply, Seen, WORD, completions};

    const BUSY: &str = "The server is currently overloaded with other requests. Sorry about that!";

    /// A whole answer.
    pub(crate) fn good(_: &Seen) -> Reply {
        Reply::sse(completions::stream(WORD))
    }

    /// Refused by the first event.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse([completions::error_chunk("server_is_overloaded", BUSY)])
    }

    /// What the service says when it is full.
    pub(crate) fn error() -> String {
        completions::error("service_unavailable_error", BUSY)
    }

    /// Text, then a tidy end without a finish reason and `[DONE]`.
    pub(crate) fn early_end() -> Reply {
        Reply::sse(completions::stream(WORD).into_iter().take(2))
    }
}

/// Anthropic Messages.
pub(crate) mod messages {
    use super::{Reply, Seen, WORD, anthropic, json};

    /// A whole answer, streamed or not as asked.
    pub(crate) fn good(seen: &Seen) -> Reply {
        if seen.json()["stream"] == true {
            Reply::sse(anthropic::stream(WORD))
        } else {
            Reply::status(200).json(anthropic::message(WORD))
        }
    }

    /// Refused by the first event.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse([anthropic::overloaded_event()])
    }

    /// What the service says when it is full.
    pub(crate) fn error() -> String {
        anthropic::error("overloaded_error", "Overloaded")
    }

    /// Asks Claude Code to run a shell command, then refuses.
    pub(crate) fn overloaded_after_tool(command: &str) -> Reply {
        let input = json!({"command": command, "description": "a test"}).to_string();
        let call = anthropic::tool_use_stream("toolu_1", "Bash", &input).into_iter().take(5);
        Reply::sse(call.chain([anthropic::overloaded_event()]))
    }

    /// An opening, then a tidy end: nothing was said.
    pub(crate) fn empty() -> Reply {
        Reply::sse([anthropic::message_start()])
    }

    /// Text, then a tidy end without a closing event.
    pub(crate) fn early_end() -> Reply {
        Reply::sse(anthropic::stream(WORD).into_iter().take(4))
    }
}

/// Gemini, as its SDK and Gemini CLI read it.
pub(crate) mod gemini {
    use super::{Reply, Seen, WORD, google};

    /// A whole answer, streamed or not as asked.
    pub(crate) fn good(seen: &Seen) -> Reply {
        if seen.path().ends_with(":streamGenerateContent") {
            Reply::sse(google::stream(WORD))
        } else {
            Reply::status(200).json(google::answer(WORD))
        }
    }

    /// Refused by the first event.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse([relay_sim::Event::data(google::overloaded())])
    }

    /// 503, in the service's words.
    pub(crate) fn overloaded() -> Reply {
        Reply::status(503).json(google::overloaded())
    }

    /// 429 that says in its body when to come back.
    pub(crate) fn throttled(delay: &str) -> Reply {
        Reply::status(429).json(google::quota_error(delay, "PerMinute"))
    }
}

/// Ollama.
pub(crate) mod ollama {
    use super::{Reply, Seen, WORD, models};

    fn lines(lines: Vec<Vec<u8>>) -> Reply {
        Reply::status(200).header("content-type", "application/x-ndjson").bytes_stream(lines)
    }

    /// A whole stream.
    pub(crate) fn good(_: &Seen) -> Reply {
        lines(models::lines(WORD))
    }

    /// Failed by the first line.
    pub(crate) fn failed_in_stream() -> Reply {
        lines(vec![models::error_line("model runner has unexpectedly stopped")])
    }

    /// Text, then a tidy end without a closing line.
    pub(crate) fn early_end() -> Reply {
        lines(models::lines(WORD).into_iter().take(1).collect())
    }

    /// 503: the queue is full.
    pub(crate) fn busy() -> Reply {
        Reply::status(503).json(models::busy())
    }
}

/// 200 with an error for a body, in answer to a request for a stream.
pub(crate) fn error_in_200(error: String) -> Reply {
    Reply::status(200).json(error)
}

/// 503 with nothing in it that names a cause.
pub(crate) fn unavailable() -> Reply {
    Reply::status(503).text("upstream connect error")
}
