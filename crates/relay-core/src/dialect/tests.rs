//! Answers as services give them, against what they mean. The numbers of the rows are those of the catalogue of
//! refusals that the rules were made from.

#[rustfmt::skip]
mod answers;
#[rustfmt::skip]
mod events;
#[rustfmt::skip]
mod services;

use std::time::UNIX_EPOCH;

use super::*;
use crate::evidence::Evidence;
use crate::json::error_fields;

const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const CLAUDE: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/gemini-3-pro:streamGenerateContent";
const OLLAMA: &str = "/api/chat";
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
    assert_eq!(&*code(r#"{"error":{"code":"a\u001b[1m","message":"m"}}"#), "a[1m");
    // A sentence is no code, and may be anybody's; the type beside it may be one.
    assert_eq!(&*code(r#"{"error":{"code":"the secret plan\nof","message":"m"}}"#), "");
    assert_eq!(&*code(r#"{"error":{"code":"a b","type":"server_error","message":"m"}}"#), "server_error");
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
        // Escaped without need; a slash that is escaped parts nothing.
        ("POST", "/v1/%72esponses", "openai_responses", Operation::Generation),
        ("POST", "/%761/chat/completion%73", "openai_chat", Operation::Generation),
        ("POST", "/v1beta/models/gemini%2D3:%67enerateContent", "gemini", Operation::Generation),
        ("POST", "/v1%2Fresponses", "generic", Operation::Other),
        ("POST", "/v1beta/models/gemini-3-pro:generateContent", "gemini", Operation::Generation),
        ("POST", "/v1/models/gemini-3-pro:streamGenerateContent", "gemini", Operation::Generation),
        ("POST", "/gw/v1beta/models/gemini-3-pro%3AstreamGenerateContent/", "gemini", Operation::Generation),
        (
            "POST",
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
            "gemini",
            Operation::Generation,
        ),
        ("POST", "/v1internal:streamGenerateContent", "gemini", Operation::Generation),
        ("POST", "/v1internal:countTokens", "gemini", Operation::Pure),
        ("POST", "/v1beta/models/m:countTokens", "gemini", Operation::Pure),
        ("POST", "/v1beta/models/m:embedContent", "gemini", Operation::Pure),
        ("POST", "/v1beta/models/m:batchEmbedContents", "gemini", Operation::Pure),
        ("POST", "/v1beta/models/m:batchGenerateContent", "generic", Operation::Other),
        ("GET", "/v1beta/models/m", "generic", Operation::Pure),
        ("POST", "/v1beta/openai/chat/completions", "openai_chat", Operation::Generation),
        (
            "POST",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
            "anthropic",
            Operation::Generation,
        ),
        ("POST", "/api/chat", "ollama", Operation::Generation),
        ("POST", "/ollama/api/generate", "ollama", Operation::Generation),
        ("POST", "/api/embed", "ollama", Operation::Pure),
        ("POST", "/api/embeddings", "ollama", Operation::Pure),
        ("POST", "/api/show", "ollama", Operation::Pure),
        ("POST", "/api/pull", "ollama", Operation::Other),
        ("POST", "/api/chat/completions", "openai_chat", Operation::Generation),
        ("GET", "/api/tags", "generic", Operation::Pure),
        ("HEAD", "/api/hello", "generic", Operation::Pure),
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
fn whether_an_answer_streams_is_said_by_path_body_or_dialect() {
    for (path, body, streams) in [
        (CHAT, None, false),
        (CHAT, Some(true), true),
        (OLLAMA, None, true),
        (OLLAMA, Some(false), false),
        ("/api/embed", None, false),
        (GEMINI, None, true),
        (GEMINI, Some(false), true),
        ("/v1beta/models/m:generateContent", Some(true), false),
        ("/publishers/anthropic/models/m:streamRawPredict", None, true),
        ("/publishers/anthropic/models/m:rawPredict", Some(true), true),
        (OTHER, Some(true), false),
    ] {
        assert_eq!(route(&Method::POST, path).streams(body), streams, "{path} {body:?}");
    }
}

#[test]
fn a_path_may_name_the_model() {
    for (path, model) in [
        (GEMINI, Some("gemini-3-pro")),
        ("/v1beta/tunedModels/mine:generateContent?alt=sse", Some("mine")),
        ("/v1/models/m%3AcountTokens", Some("m")),
        ("/v1internal:generateContent", None),
        ("/v1/models/m", None),
        ("/v1/chat/completions", None),
        ("/v1/models/:generateContent", None),
    ] {
        assert_eq!(model_of(path), model, "{path}");
    }
}

#[test]
fn every_dialect_has_a_name_by_which_it_is_found() {
    for dialect in ALL {
        assert_eq!(named(dialect.name()).map(Dialect::name), Some(dialect.name()));
    }
    assert!(named("grpc").is_none());
}

#[test]
fn every_dialect_speaks_of_every_fault_in_its_own_shape() {
    for path in [RESPONSES, CHAT, CLAUDE, GEMINI, OLLAMA, OTHER] {
        for fault in Fault::ALL {
            let body = dialect(path).error_body(503, fault, "sends_exhausted", "words").to_string();
            let fields = error_fields(body.as_bytes()).unwrap_or_else(|| panic!("{path} {body}"));
            assert_eq!(fields.message.as_deref(), Some("words"), "{body}");
            let code = if path == GEMINI { fields.reason } else { fields.code };
            assert_eq!(code.as_deref(), Some("sends_exhausted"), "{body}");
            assert!(fields.kind.or(fields.status).is_some(), "{body}");
        }
    }
}
