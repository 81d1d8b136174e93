//! What single events are.

use super::*;

/// Each event of a stream, heard.
fn heard(path: &str, stream: &str) -> Vec<Heard> {
    let mut splitter = sse::Splitter::new(64 * 1024);
    let mut heard = Vec::new();
    splitter.push(stream.as_bytes(), |event| heard.push(dialect(path).hear(&event, &mut Parts::default())));
    heard
}

use Heard::{End, Fault as Failed, Lifecycle, Output};

#[test]
fn events_of_responses() {
    for (event, is) in [
        (r#"{"type":"response.created","response":{"id":"r","status":"in_progress","error":null}}"#, Lifecycle),
        (r#"{"type":"response.in_progress","response":{"id":"r","error":null}}"#, Lifecycle),
        (r#"{"type":"response.queued","response":{}}"#, Lifecycle),
        (r#"{"type":"codex.rate_limits","plan_type":"plus"}"#, Lifecycle),
        (r#"{"type":"response.output_item.added","item":{"type":"message"}}"#, Output),
        (r#"{"type":"response.output_text.delta","delta":"{\"error\":{\"code\":503}}"}"#, Output),
        (r#"{"type":"response.reasoning_summary_text.delta","delta":"x"}"#, Output),
        (r#"{"type":"response.brand_new"}"#, Output),
        (r#"{"type":"response.completed","response":{"error":null}}"#, End),
        (r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#, End),
        (r#"{"type":"response.failed","response":{"error":{"code":"server_error"}}}"#, Failed),
        (r#"{"type":"error","code":"server_is_overloaded","message":"m"}"#, Failed),
    ] {
        let kind =
            serde_json::from_str::<serde_json::Value>(event).unwrap()["type"].as_str().unwrap().to_owned();
        let named = format!("event: {kind}\ndata: {event}\n\n");
        let message = format!("event: message\ndata: {event}\n\n");
        let bare = format!("data: {event}\n\n");
        for stream in [named, message, bare] {
            assert_eq!(heard(RESPONSES, &stream), [is], "{stream}");
        }
    }
    for (stream, is) in [
        ("data: {\"error\":{\"message\":\"engine died\",\"code\":500}}\n\n", Failed),
        ("data: {\"error\":null}\n\n", Output),
        ("data: plain words\n\n", Output),
        ("data:\n\n", Lifecycle),
        ("data: \n\n", Lifecycle),
        ("event: keepalive\ndata: {}\n\n", Lifecycle),
        ("data: [DONE]\n\n", End),
        ("data: [DONE] \n\n", End),
    ] {
        assert_eq!(heard(RESPONSES, stream), [is], "{stream}");
    }
    assert_eq!(heard(RESPONSES, ": keepalive\n\nevent: ping\n\n\n"), [], "comments are no events");
}

#[test]
fn an_event_too_large_to_be_read_whole_is_still_known_by_its_type() {
    let big = "x".repeat(100_000);
    let completed =
        format!("data: {{\"type\":\"response.completed\",\"response\":{{\"output\":\"{big}\"}}}}\n\n");
    assert_eq!(heard(RESPONSES, &completed), [End]);
    let delta = format!("data: {{\"type\":\"response.output_text.done\",\"text\":\"{big}\"}}\n\n");
    assert_eq!(heard(RESPONSES, &delta), [Output]);
    let late = format!("data: {{\"text\":\"{big}\",\"type\":\"response.completed\"}}\n\n");
    assert_eq!(heard(RESPONSES, &late), [Output]);
}

#[test]
fn events_of_chat() {
    for (data, is) in [
        (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}"#, Lifecycle),
        (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"finish_reason":null}]}"#, Lifecycle),
        (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[]},"content_filter_results":{},"finish_reason":null}]}"#, Lifecycle),
        (r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#, Lifecycle),
        (r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c"}]},"finish_reason":null}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{"refusal":"no"},"finish_reason":null}]}"#, Output),
        (r#"{"choices":[{"index":0,"text":"hi","finish_reason":null}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"hi"}]},"finish_reason":null}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#, Output),
        (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":""}]}"#, Lifecycle),
        (r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":""}]}"#, Output),
        (r#"{"id":"g","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"m"}}"#, Failed),
        (r#"{"error":{"message":"m","code":503}}"#, Failed),
        (r#"{"error":"server busy"}"#, Failed),
        (r#"{"error":{"message":"m","code":503,"wait":NaN}}"#, Failed),
        (r#"{"choices":[{"index":0,"delta":{"content":"hi"},"logprobs":NaN}]}"#, Output),
        (r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#, Failed),
        (r#"{"error":null,"choices":[{"index":0,"delta":{"content":"hi"}}]}"#, Output),
        (r#"{"error":[],"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#, Lifecycle),
        (r#"{"error":{"code":502},"choices":[{"index":0,"delta":{"content":"half"}}]}"#, Output),
        (r#"{"something":"new"}"#, Output),
        ("plain words", Output),
        ("[DONE]", End),
        ("", Lifecycle),
    ] {
        assert_eq!(heard(CHAT, &format!("data: {data}\n\n")), [is], "{data}");
    }
    assert_eq!(heard(CHAT, ": OPENROUTER PROCESSING\n\n"), []);
    assert_eq!(heard(CHAT, "event: error\ndata: {\"message\":\"m\"}\n\n"), [Failed]);
}

#[test]
fn events_of_anthropic() {
    for (kind, data, is) in [
        ("message_start", r#"{"type":"message_start","message":{"content":[]}}"#, Lifecycle),
        ("ping", r#"{"type": "ping"}"#, Lifecycle),
        ("content_block_start", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, Output),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"text":"error"}}"#, Output),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"refusal"}}"#, Output),
        ("message_stop", r#"{"type":"message_stop"}"#, End),
        ("error", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Failed),
        ("brand_new", r#"{"type":"brand_new"}"#, Output),
    ] {
        assert_eq!(heard(CLAUDE, &format!("event: {kind}\ndata: {data}\n\n")), [is], "{kind}");
        assert_eq!(heard(CLAUDE, &format!("data: {data}\n\n")), [is], "{kind}, without a name");
    }
    assert_eq!(heard(CLAUDE, "data: {\"error\":{\"message\":\"m\"}}\n\n"), [Failed]);
    assert_eq!(heard(CLAUDE, "data:\n\n"), [Lifecycle]);
}

#[test]
fn events_of_what_is_not_known() {
    for (data, is) in [
        (r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, Failed),
        (r#"{"error":null,"text":"x"}"#, Output),
        (r#"{"text":"error"}"#, Output),
        ("[DONE]", End),
        (" ", Lifecycle),
    ] {
        assert_eq!(heard(OTHER, &format!("data: {data}\n\n")), [is], "{data}");
    }
    assert_eq!(heard(OTHER, "event: error\ndata: x\n\n"), [Failed]);
}

#[test]
fn events_of_gemini() {
    for (data, is) in [
        (r#"{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}],"usageMetadata":{},"modelVersion":"m","responseId":"r"}"#, Lifecycle),
        (r#"{"candidates":[{"content":{"role":"model"},"safetyRatings":[],"index":0}]}"#, Lifecycle),
        (r#"{"usageMetadata":{"promptTokenCount":1},"modelVersion":"m"}"#, Lifecycle),
        (r#"{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}]}"#, Output),
        (r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]}}]}"#, Output),
        (r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#, Output),
        (r#"{"candidates":[{"content":{"parts":[]},"groundingMetadata":{}}]}"#, Output),
        (r#"{"candidates":[{"content":{"parts":[{"text":"end"}]},"finishReason":"STOP"}]}"#, Output),
        (r#"{"candidates":[{"finishReason":"SAFETY"}]}"#, Output),
        (r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"FINISH_REASON_UNSPECIFIED"}]}"#, Output),
        (r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#, Output),
        (r#"{"promptFeedback":{"safetyRatings":[]}}"#, Lifecycle),
        (r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, Failed),
        (r#"{"error":null,"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#, Output),
        (r#"{"response":{"candidates":[{"content":{"parts":[{"text":""}]}}]},"traceId":"t"}"#, Lifecycle),
        (r#"{"response":{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}}"#, Output),
        (r#"{"something":"new"}"#, Output),
        ("words", Output),
        ("", Lifecycle),
    ] {
        assert_eq!(heard(GEMINI, &format!("data: {data}\n\n")), [is], "{data}");
    }
    let image = "x".repeat(100_000);
    let event = format!(r#"{{"candidates":[{{"content":{{"parts":[{{"inlineData":"{image}"}}]}},"finishReason":"STOP"}}]}}"#);
    assert_eq!(heard(GEMINI, &format!("data: {event}\n\n")), [Heard::Unread], "it may have been the last");
}

#[test]
fn lines_of_ollama() {
    let long = "1,".repeat(60_000);
    let last = format!(r#"{{"model":"m","response":"","done":true,"done_reason":"stop","context":[{long}1]}}"#);
    for (line, is) in [
        (r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done":false}"#, Lifecycle),
        (r#"{"model":"m","response":"","done":false}"#, Lifecycle),
        (r#"{"model":"m","message":{"role":"assistant","content":"hi"},"done":false}"#, Output),
        (r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#, Output),
        (r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{}]},"done":false}"#, Output),
        (r#"{"model":"m","response":"hi","done":false}"#, Output),
        (r#"{"model":"m","response":"","thinking":"hm","done":false}"#, Output),
        (r#"{"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true}"#, End),
        (r#"{"model":"m","response":"","done":true,"done_reason":"load"}"#, End),
        (last.as_str(), End),
        (r#"{"error":"an error was encountered while running the model"}"#, Failed),
        (r#"{"status":"pulling manifest"}"#, Output),
        (r#"{"status":"success"}"#, End),
        (r#"{"message":{"content":"{\"error\":\"x\"}"},"done":false}"#, Output),
    ] {
        let mut splitter = crate::ndjson::Splitter::new(64 * 1024);
        let mut heard = Vec::new();
        splitter.push(format!("{line}\n").as_bytes(), |event| heard.push(dialect(OLLAMA).hear(&event, &mut Parts::default())));
        assert_eq!(heard, [is], "{}", &line[..line.len().min(200)]);
    }
}
