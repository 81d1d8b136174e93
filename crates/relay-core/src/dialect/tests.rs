//! Answers as services give them, against what they mean. The numbers of the rows are those of the catalogue of
//! refusals that the rules were made from.

#[rustfmt::skip]
mod answers;
#[rustfmt::skip]
mod events;

use std::time::UNIX_EPOCH;

use super::*;
use crate::evidence::Evidence;
use crate::json::error_fields;

const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const CLAUDE: &str = "/v1/messages";
const OTHER: &str = "/v1/other";

/// Where the answer was given, and to whom.
#[derive(Clone, Copy)]
enum At {
    /// An error status.
    Status(u16),
    /// A JSON body with status 200.
    Body,
    /// An event of a stream with status 200.
    Stream,
}

fn dialect(path: &str) -> &'static dyn Dialect {
    route(&Method::POST, path).dialect
}

fn headers(lines: &str) -> HeaderMap {
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse::<http::HeaderName>().unwrap(), value.parse::<http::HeaderValue>().unwrap())
    };
    lines.lines().map(|line| header(line.trim())).collect()
}

fn judged(path: &str, at: At, lines: &str, body: &str, took: u64) -> Failure {
    let (told, status) = match at {
        At::Status(status) => (Told::ByStatus, status),
        At::Body => (Told::InBody, 200),
        At::Stream => (Told::InStream, 200),
    };
    let wall = UNIX_EPOCH + Duration::from_secs(1_795_977_660);
    let (headers, took) = (headers(lines), Duration::from_secs(took));
    let body = body.as_bytes();
    judge(dialect(path), &Reply { told, status, headers: &headers, body, took, wall, rules: &[] })
}

/// Evidence of a prompt and of a slow answer, in a word.
fn grades(prompt: &Failure, slow: &Failure) -> &'static str {
    match (prompt.evidence, slow.evidence) {
        (None, None) => "final",
        (Some(Evidence::Refused), Some(Evidence::Refused)) => "refused",
        (Some(Evidence::Refused), Some(Evidence::MaybeRan)) => "refused if prompt",
        (Some(Evidence::Failed), Some(Evidence::MaybeRan)) => "failed",
        (Some(Evidence::MaybeRan), Some(Evidence::MaybeRan)) => "maybe ran",
        other => panic!("{other:?}"),
    }
}

fn in_words(advice: Advice) -> String {
    match advice {
        Advice::Silent => "-".to_owned(),
        Advice::Useless => "useless".to_owned(),
        Advice::Wait(told) => format!("{told:?}"),
    }
}

struct Row {
    row: &'static str,
    path: &'static str,
    at: At,
    headers: &'static str,
    body: &'static str,
    means: &'static str,
}

/// A row; `means` is fault, evidence and advice.
const fn row(
    row: &'static str,
    path: &'static str,
    at: At,
    told: [&'static str; 2],
    means: &'static str,
) -> Row {
    let [headers, body] = told;
    Row { row, path, at, headers, body, means }
}

fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for Row { row, path, at, headers, body, means } in rows {
        let (prompt, slow) = (judged(path, *at, headers, body, 2), judged(path, *at, headers, body, 100));
        assert_eq!(prompt.fault, slow.fault);
        let says =
            format!("{}, {}, {}", prompt.fault.name(), grades(&prompt, &slow), in_words(prompt.advice));
        if says != *means {
            wrong.push(format!("row {row}: {says}, not {means}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_code_is_shown_as_a_label_without_secrets() {
    let code = |body: &str| judged(CHAT, At::Status(400), "", body, 1).code.unwrap_or_default();
    assert_eq!(&*code(r#"{"error":{"code":"a b\nc","message":"m"}}"#), "abc");
    assert_eq!(&*code(r#"{"error":{"code":"sk-proj-abcdefgh12345678","message":"m"}}"#), "redacted");
    assert_eq!(&*code(r#"{"error":{"code":429,"message":"m"}}"#), "429");
    assert_eq!(
        &*code(r#"{"error":{"type":"MODEL_CAPACITY_EXHAUSTED_FOR_THIS_PLAN"}}"#),
        "MODEL_CAPACITY_EXHAUSTED_FOR_THIS_PLAN"
    );
}

#[test]
fn routes() {
    for (method, path, dialect, operation) in [
        ("POST", "/v1/responses", "openai_responses", Operation::Generation),
        ("POST", "/responses/", "openai_responses", Operation::Generation),
        ("POST", "/backend-api/codex/responses", "openai_responses", Operation::Generation),
        ("POST", "/v1/responses/compact", "openai_responses", Operation::Other),
        ("POST", "/v1/responses/input_tokens", "openai_responses", Operation::Pure),
        ("POST", "/v1/responses/resp_1/cancel", "openai_responses", Operation::Other),
        ("GET", "/v1/responses/resp_1", "openai_responses", Operation::Pure),
        ("DELETE", "/v1/responses/resp_1", "openai_responses", Operation::Other),
        ("GET", "/v1/responses", "openai_responses", Operation::Pure),
        ("POST", "/v1/chat/completions", "openai_chat", Operation::Generation),
        ("POST", "/openai/deployments/x/chat/completions", "openai_chat", Operation::Generation),
        ("POST", "/v1/completions", "openai_chat", Operation::Generation),
        ("POST", "/v1/messages", "anthropic", Operation::Generation),
        ("POST", "/v1/messages/count_tokens", "anthropic", Operation::Pure),
        ("POST", "/v1/messages/batches", "anthropic", Operation::Other),
        ("GET", "/v1/messages/batches/b", "anthropic", Operation::Pure),
        ("POST", "/v1/threads/t/messages", "generic", Operation::Other),
        ("POST", "/v1/embeddings", "generic", Operation::Pure),
        ("POST", "/v1/moderations", "generic", Operation::Pure),
        ("POST", "/v1/rerank", "generic", Operation::Pure),
        ("POST", "/v1/files", "generic", Operation::Other),
        ("POST", "/v1/batches", "generic", Operation::Other),
        ("POST", "/v1/images/generations", "generic", Operation::Other),
        ("POST", "/v1/myresponses", "generic", Operation::Other),
        ("GET", "/v1/models", "generic", Operation::Pure),
        ("HEAD", "/", "generic", Operation::Pure),
        ("PUT", "/v1/embeddings", "generic", Operation::Other),
        ("OPTIONS", "/v1/responses", "openai_responses", Operation::Other),
        ("POST", "", "generic", Operation::Other),
    ] {
        let route = route(&method.parse().unwrap(), path);
        assert_eq!((route.dialect.name(), route.operation), (dialect, operation), "{method} {path}");
    }
}

#[test]
fn every_dialect_speaks_of_every_fault_in_its_own_shape() {
    for path in [RESPONSES, CHAT, CLAUDE, OTHER] {
        for fault in Fault::ALL {
            let body = dialect(path).error_body(503, fault, "sends_exhausted", "words").to_string();
            let fields = error_fields(body.as_bytes()).unwrap_or_else(|| panic!("{path} {body}"));
            assert_eq!(fields.message.as_deref(), Some("words"), "{body}");
            assert_eq!(fields.code.as_deref(), Some("sends_exhausted"), "{body}");
            assert!(fields.kind.is_some(), "{body}");
        }
    }
}
