//! What the pretend model service answers: good turns and the failures seen in the field, per dialect.

use std::sync::atomic::{AtomicUsize, Ordering};

use relay_sim::{Event, Reply, Script, Seen};
use serde_json::{Value, json};

/// The word that every good answer consists of.
pub(crate) const WORD: &str = "PONG";

/// Requests for an answer get `failures` in order, then `good` each; everything else is turned down:
/// WebSocket upgrades with 426, probes with 404.
pub(crate) fn script(failures: Vec<Reply>, good: fn(&Seen) -> Reply) -> Script {
    let number = AtomicUsize::new(0);
    Script::by(move |seen, _| {
        if seen.method != "POST" {
            return Reply::status(if seen.header("upgrade").is_some() { 426 } else { 404 });
        }
        let number = number.fetch_add(1, Ordering::Relaxed);
        failures.get(number).cloned().unwrap_or_else(|| good(seen))
    })
}

/// Every request for an answer gets this one.
pub(crate) fn always(reply: &Reply) -> Script {
    script(vec![reply.clone(); 100], |_| Reply::status(500))
}

/// The reply so many times.
pub(crate) fn times(count: usize, reply: &Reply) -> Vec<Reply> {
    vec![reply.clone(); count]
}

fn named(data: &Value) -> Event {
    Event::named(data["type"].as_str().unwrap_or_default(), data)
}

/// OpenAI Responses, as Codex and the `openai` SDK read it.
pub(crate) mod responses {
    use super::{Event, Reply, Seen, Value, WORD, json, named};

    fn response(status: &str, output: &[Value], error: &Value) -> Value {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "m",
            "output": output, "error": error, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
            "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}})
    }

    fn event(kind: &str, response: &Value) -> Event {
        named(&json!({"type": kind, "sequence_number": 0, "response": response}))
    }

    fn opening() -> Vec<Event> {
        let response = response("in_progress", &[], &Value::Null);
        vec![event("response.created", &response), event("response.in_progress", &response)]
    }

    fn failure(code: &str, message: &str) -> Vec<Event> {
        let error = json!({"code": code, "message": message});
        vec![
            named(
                &json!({"type": "error", "sequence_number": 2, "code": code, "message": message, "param": null}),
            ),
            event("response.failed", &response("failed", &[], &error)),
        ]
    }

    fn overload() -> Vec<Event> {
        failure("server_is_overloaded", "Our servers are currently overloaded. Please try again later.")
    }

    fn text() -> Vec<Event> {
        let item = json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": WORD, "annotations": []}]});
        let begun = json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "in_progress",
            "content": []});
        vec![
            named(&json!({"type": "response.output_item.added", "output_index": 0, "item": begun})),
            named(&json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                "content_index": 0, "delta": WORD})),
            named(&json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
            event("response.completed", &response("completed", &[item], &Value::Null)),
        ]
    }

    /// A whole turn that says [`WORD`].
    pub(crate) fn good(_: &Seen) -> Reply {
        Reply::sse([opening(), text()].concat())
    }

    /// Refused before any output, the way the service does it.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse([opening(), overload()].concat())
    }

    /// Asks Codex to run a shell command, then refuses.
    pub(crate) fn overloaded_after_tool(command: &str) -> Reply {
        let input = format!("text(await tools.exec_command({{cmd: '{command}'}}));");
        let call = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "status": "completed",
            "name": "exec", "namespace": "functions", "input": input});
        let output = vec![
            named(&json!({"type": "response.output_item.added", "output_index": 0, "item": call})),
            named(&json!({"type": "response.output_item.done", "output_index": 0, "item": call})),
        ];
        Reply::sse([opening(), output, overload()].concat())
    }

    /// 503 with the code for which Codex gives up soon.
    pub(crate) fn overloaded_status() -> Reply {
        Reply::status(503).json(json!({"error": {"type": "service_unavailable_error",
            "code": "server_is_overloaded", "param": null,
            "message": "Our servers are currently overloaded. Please try again later."}}))
    }

    /// Text, then a tidy end without a closing event.
    pub(crate) fn early_end() -> Reply {
        let begun = text().into_iter().take(2).collect();
        Reply::sse([opening(), begun].concat())
    }
}

/// OpenAI Chat Completions.
pub(crate) mod chat {
    use super::{Event, Reply, Seen, Value, WORD, json};

    fn chunk(delta: &Value, finish: &Value) -> Event {
        Event::data(json!({"id": "chatcmpl_1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    }

    fn text() -> Vec<Event> {
        let role = chunk(&json!({"role": "assistant", "content": ""}), &Value::Null);
        vec![role, chunk(&json!({"content": WORD}), &Value::Null)]
    }

    /// A whole answer that says [`WORD`].
    pub(crate) fn good(_: &Seen) -> Reply {
        let end = vec![chunk(&json!({}), &json!("stop")), Event::data("[DONE]")];
        Reply::sse([text(), end].concat())
    }

    /// Refused by the first event.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse([Event::data(error()), Event::data("[DONE]")])
    }

    /// What the service says when it is full.
    pub(crate) fn error() -> Value {
        json!({"error": {"message": "The server is currently overloaded with other requests. Sorry about that!",
            "type": "server_error", "param": null, "code": "server_is_overloaded"}})
    }

    /// Text, then a tidy end without a finish reason and `[DONE]`.
    pub(crate) fn early_end() -> Reply {
        Reply::sse(text())
    }
}

/// Anthropic Messages.
pub(crate) mod messages {
    use super::{Event, Reply, Seen, Value, WORD, json, named};

    fn message(content: &Value, stop: &Value) -> Value {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
    }

    fn start() -> Event {
        named(&json!({"type": "message_start", "message": message(&json!([]), &Value::Null)}))
    }

    fn text() -> Vec<Event> {
        vec![
            start(),
            named(&json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "text", "text": ""}})),
            named(&json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": WORD}})),
        ]
    }

    /// A whole answer that says [`WORD`], streamed or not as asked.
    pub(crate) fn good(seen: &Seen) -> Reply {
        if seen.json()["stream"] != true {
            let content = json!([{"type": "text", "text": WORD}]);
            return Reply::status(200).json(message(&content, &json!("end_turn")));
        }
        let end = vec![
            named(&json!({"type": "content_block_stop", "index": 0})),
            named(&json!({"type": "message_delta", "usage": {"output_tokens": 2},
                "delta": {"stop_reason": "end_turn", "stop_sequence": null}})),
            named(&json!({"type": "message_stop"})),
        ];
        Reply::sse([text(), end].concat())
    }

    /// What the service says when it is full.
    pub(crate) fn error() -> Value {
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"},
            "request_id": "req_1"})
    }

    /// The status for which Claude Code tries three times and no more.
    pub(crate) fn overloaded_status() -> Reply {
        Reply::status(529).reason("").json(error())
    }

    /// Refused by the first event.
    pub(crate) fn overloaded_in_stream() -> Reply {
        Reply::sse([named(&error())])
    }

    /// An opening, then a tidy end: nothing was said.
    pub(crate) fn empty() -> Reply {
        Reply::sse([start()])
    }

    /// Text, then a tidy end without a closing event.
    pub(crate) fn early_end() -> Reply {
        Reply::sse(text())
    }
}

/// 200 with an error for a body, in answer to a request for a stream.
pub(crate) fn error_in_200(error: Value) -> Reply {
    Reply::status(200).json(error)
}

/// 503 with nothing in it that names a cause.
pub(crate) fn unavailable() -> Reply {
    let error = json!({"error": {"message": "service unavailable", "type": "server_error"}});
    Reply::status(503).json(error)
}
