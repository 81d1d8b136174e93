//! Gemini and Ollama on the wire: refused before output, served after, byte for byte. And a rule of the user's.

use relay_core::Fault;
use relay_core::config::OwnRule;
use relay_core::dialect::{Rule, Sign, Statuses};
use relay_core::evidence::Says;
use relay_sim::fixtures::{gemini, ollama};
use relay_sim::{Event, Reply, Request, Script, Upstream};

use crate::support::{Bench, towards};

const CONTENTS: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
const MESSAGES: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn lines(pieces: Vec<Vec<u8>>) -> Reply {
    Reply::status(200).header("content-type", "application/x-ndjson").bytes_stream(pieces)
}

async fn asked(path: &str, body: &str, refused: Reply, served: Reply) -> (Vec<u8>, String) {
    let up = Upstream::start(Script::of([refused, served])).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&Request::post(path).json(body)).await;
    assert_eq!((answer.status, up.requests().len()), (200, 2));
    (answer.body.to_vec(), bench.story(1).await)
}

#[tokio::test]
async fn a_stream_of_gemini_that_begins_with_an_error_is_asked_for_again() {
    let stream = gemini::stream("pong");
    let refused = Reply::sse([Event::data(gemini::overloaded())]);
    let path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
    let (body, story) = asked(path, CONTENTS, refused, Reply::sse(stream.clone())).await;
    assert_eq!(body, relay_sim::script::stream_bytes(&stream));
    assert!(story.contains("at_capacity refused"), "{story}");
}

#[tokio::test]
async fn a_list_of_gemini_that_begins_with_an_error_is_asked_for_again() {
    let list = format!("[{}\n,\r\n{}]", gemini::answer("po"), gemini::answer("ng"));
    let refused = Reply::status(200).json(format!("[{}]", gemini::overloaded()));
    let path = "/v1beta/models/gemini-3-pro:streamGenerateContent";
    let (body, story) = asked(path, CONTENTS, refused, Reply::status(200).json(list.clone())).await;
    assert_eq!(body, list.as_bytes());
    assert!(story.contains("at_capacity refused"), "{story}");
}

#[tokio::test]
async fn a_stream_of_ollama_that_begins_with_an_error_is_asked_for_again() {
    let refused = lines(vec![ollama::error_line("model runner has unexpectedly stopped")]);
    let (body, story) = asked("/api/chat", MESSAGES, refused, lines(ollama::lines("pong"))).await;
    assert_eq!(body, ollama::lines("pong").concat());
    assert!(story.contains("server_failed failed"), "{story}");
    let busy = Reply::status(503).json(ollama::busy());
    let (_, story) = asked("/api/chat", MESSAGES, busy, lines(ollama::lines("pong"))).await;
    assert!(story.contains("at_capacity refused"), "{story}");
}

#[tokio::test]
async fn a_rule_of_the_users_own_is_heeded() {
    let refused = Reply::status(422).json(r#"{"error":{"message":"Cold start in progress"}}"#);
    let served = Reply::status(200).json(r#"{"choices":[{"message":{"content":"hi"}}]}"#);
    let up = Upstream::start(Script::of([refused, served])).await.unwrap();
    let rule = Rule {
        sign: Sign::Sentence("cold start".into()),
        on: Statuses::Chosen { among: vec![422..=422], inside: false },
        fault: Fault::ModelLoading,
        says: Says::Refused,
        floor: std::time::Duration::ZERO,
        source: "[[rule]] number 1".into(),
    };
    let mut config = towards(&up.url());
    config.rules.push(OwnRule { dialect: None, upstream: None, rule: rule.into(), alert: false });
    let bench = Bench::with(config).await;
    let answer = bench.ask(&Request::post("/v1/chat/completions").json(MESSAGES)).await;
    assert_eq!((answer.status, up.requests().len()), (200, 2));
    let story = bench.story(1).await;
    assert!(story.contains("model_loading refused"), "{story}");
}
