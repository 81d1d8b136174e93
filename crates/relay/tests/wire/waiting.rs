//! What a client sees while its answer is not there: interim answers, and a stream that begins early.

use std::time::Duration;

use relay_core::Config;
use relay_sim::fixtures::{anthropic, chat, codex as responses, gemini, ollama};
use relay_sim::script::stream_bytes;
use relay_sim::{Answer, Client, Ending, Event, Reply, Request, Script, Upstream};

use crate::encoded::gzip;
use crate::support::{A_WHILE, Bench, SOON, TURN, bounded, claude, codex, ms, plain, sdk, towards};

const MESSAGES: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const CONTENTS: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;

/// Everything to `url`; a client that waits sees an interim answer every 50 ms.
fn with_interim(url: &str) -> Config {
    let mut config = towards(url);
    config.waiting.interim = Some(ms(50));
    config
}

/// Everything to `url`; a stream begins after 80 ms and beats every 40 ms.
fn with_early(mut config: Config) -> Config {
    config.waiting.interim = None;
    config.waiting.early_commit = Some(ms(80));
    config.waiting.heartbeat = ms(40);
    config
}

/// From a client that is known to skip interim answers.
fn skips(request: Request) -> Request {
    request.header("x-stainless-lang", "python")
}

fn turn() -> Reply {
    Reply::sse(responses::turn("pong"))
}

/// The answer with and without interim answers; all that is not interim is the same.
async fn asked_both_ways(request: &Request, replies: &[Reply]) -> Answer {
    let ask = async |interim: Option<Duration>| {
        let up = Upstream::start(Script::of(replies.to_vec())).await.unwrap();
        let mut config = towards(&up.url());
        config.waiting.interim = interim;
        let answer = Bench::with(config).await.ask(request).await;
        assert_eq!(answer.ending, Ending::Complete);
        answer
    };
    let (without, with) = (ask(None).await, ask(Some(ms(50))).await);
    assert!(without.interim.is_empty(), "{without:?}");
    assert_eq!(dateless(&with), dateless(&without));
    assert_eq!(with.body, without.body);
    with
}

/// The head without the moment it names.
fn dateless(answer: &Answer) -> String {
    let head = String::from_utf8_lossy(&answer.raw_head);
    head.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("date:")).collect()
}

#[tokio::test]
async fn a_client_that_waits_sees_interim_answers_and_then_the_answer_to_the_byte() {
    let events = responses::turn("pong");
    let late = [Reply::sse(events.clone()).header("X-Request-Id", "r 1").after(ms(330))];
    let answer = asked_both_ways(&skips(plain(TURN)), &late).await;
    let seen: Vec<_> = answer.interim.iter().map(|interim| (interim.status, interim.headers.len())).collect();
    assert!((4..=6).contains(&seen.len()), "one every 50 ms: {seen:?}");
    assert!(seen.iter().all(|each| *each == (102, 0)), "{seen:?}");
    assert_eq!(answer.body, stream_bytes(&events));
    let head_at = answer.head_at.unwrap();
    assert!(answer.interim.iter().all(|interim| interim.at <= head_at), "{answer:?}");
}

#[tokio::test]
async fn the_waits_between_sends_are_kept_company_too() {
    let up = Upstream::start(Script::of([responses::overloaded_503(), responses::overloaded_503(), turn()]));
    let up = up.await.unwrap();
    let mut config = bounded(&up.url(), |profile| {
        profile.curve.base = ms(160);
        profile.curve.cap = ms(160);
    });
    config.waiting.interim = Some(ms(50));
    let answer = Bench::with(config).await.ask(&skips(plain(TURN))).await;
    assert_eq!((answer.status, up.requests().len()), (200, 3));
    assert!(answer.interim.len() >= 4, "{:?}", answer.interim);
}

#[tokio::test]
async fn an_answer_that_comes_soon_is_alone() {
    let answer = asked_both_ways(&skips(plain(TURN)), &[turn()]).await;
    assert!(answer.interim.is_empty(), "{:?}", answer.interim);
}

#[tokio::test]
async fn nothing_comes_between_the_parts_of_an_answer() {
    let pieces = responses::turn("pong").into_iter();
    let slow: Vec<Event> = pieces.flat_map(|piece| [piece, Event::pause(ms(70))]).collect();
    let answer = asked_both_ways(&skips(plain(TURN)), &[Reply::sse(slow.clone())]).await;
    assert!(answer.ended_at.unwrap() > ms(300), "it took several beats");
    let head_at = answer.head_at.unwrap();
    assert!(answer.interim.iter().all(|interim| interim.at <= head_at), "only while the opening was held");
    assert!(answer.body == stream_bytes(&slow), "{}", answer.text());
}

/// RFC 9110, section 15.2: a server must not send an interim answer to a client of HTTP/1.0.
#[tokio::test]
async fn a_client_of_http_1_0_sees_none() {
    let up = Upstream::start(Reply::status(200).text("pong").after(ms(250))).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    for (version, least) in [("HTTP/1.0", 0), ("HTTP/1.1", 3)] {
        let mut client = bench.client().await;
        let head =
            format!("GET /v1/models {version}\r\nhost: {}\r\nx-stainless-lang: python\r\n\r\n", bench.addr());
        client.send_bytes(head.as_bytes()).await.unwrap();
        let answer = client.read().await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "pong"));
        assert_eq!(
            (answer.interim.is_empty(), answer.interim.len() >= least),
            (least == 0, true),
            "{answer:?}"
        );
    }
}

/// Python's own HTTP library takes a 102 for the answer.
#[tokio::test]
async fn a_client_that_nobody_knows_sees_none() {
    let up = Upstream::start(turn().after(ms(250))).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    let request = plain(TURN).header("user-agent", "python-requests/2.34.2");
    let answer = bench.ask(&request).await;
    assert_eq!((answer.status, answer.interim.len()), (200, 0));
}

#[tokio::test]
async fn a_call_that_wants_no_help_sees_none() {
    let up = Upstream::start(turn().after(ms(250))).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    let answer = bench.ask(&skips(plain(TURN)).header("x-steady", "off")).await;
    assert_eq!((answer.status, answer.interim.len()), (200, 0));
}

/// The second request waits while the first answer still lies in our buffers.
#[tokio::test]
async fn a_pipelined_answer_that_nobody_has_read_yet_is_not_broken_into() {
    let big = vec![b'x'; 2 << 20];
    let replies = [Reply::status(200).bytes(big.clone()), Reply::status(200).text("second").after(ms(400))];
    let up = Upstream::start(Script::of(replies)).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    let mut client = Client::connect_narrow(bench.addr(), 8 << 10).await.unwrap().patience(SOON);
    let request = skips(Request::get("/v1/models"));
    client.send(&request).await.unwrap();
    client.send_bytes(&request.head_bytes(&bench.addr().to_string())).await.unwrap();
    tokio::time::sleep(A_WHILE).await;
    let first = client.read().await;
    assert_eq!((first.ending, first.interim.len()), (Ending::Complete, 0));
    assert!(first.body == big, "{} bytes", first.body.len());
    let second = client.read().await;
    assert_eq!((second.status, second.text().as_str()), (200, "second"));
    assert!(second.interim.len() >= 3, "{:?}", second.interim);
}

#[tokio::test]
async fn a_client_that_reads_late_finds_all_in_order() {
    let big = vec![b'x'; 2 << 20];
    let up = Upstream::start(Reply::status(200).bytes(big.clone()).after(ms(330))).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    let mut client = Client::connect_narrow(bench.addr(), 4 << 10).await.unwrap().patience(SOON);
    client.send(&skips(Request::get("/v1/models"))).await.unwrap();
    tokio::time::sleep(ms(500)).await;
    let answer = client.read().await;
    assert_eq!((answer.ending, answer.body == big), (Ending::Complete, true));
    assert!(answer.interim.len() >= 3, "{:?}", answer.interim);
}

#[tokio::test]
async fn whoever_asks_to_be_asked_for_the_body_hears_that_first() {
    let up = Upstream::start(turn().after(ms(200))).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    let answer = bench.ask(&skips(plain(TURN)).header("expect", "100-continue")).await;
    let seen: Vec<u16> = answer.interim.iter().map(|interim| interim.status).collect();
    assert_eq!((answer.status, &seen[..3]), (200, &[100, 102, 102][..]), "{seen:?}");
}

#[tokio::test]
async fn a_client_that_leaves_while_it_is_kept_company_ends_its_call() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let bench = Bench::with(with_interim(&up.url())).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    tokio::time::sleep(A_WHILE).await;
    client.leave().await;
    assert_eq!(bench.story(1).await, "opened, send 1, client_left");
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

/// A request that streams, its dialect's sign of life, and a stream of that dialect.
fn streams() -> [(&'static str, Request, &'static str, Vec<Event>); 4] {
    const COMMENT: &str = ": steady-relay waits\n\n";
    let gemini_path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
    [
        ("chat", Request::post("/v1/chat/completions").json(MESSAGES), COMMENT, chat::stream("pong")),
        ("responses", sdk(0, TURN), COMMENT, responses::turn("pong")),
        ("anthropic", claude(), "event: ping\ndata: {\"type\": \"ping\"}\n\n", anthropic::stream("pong")),
        ("gemini", Request::post(gemini_path).json(CONTENTS), "\n", gemini::stream("pong")),
    ]
}

/// How often the body begins with the sign, and the rest.
fn beats<'a>(answer: &'a Answer, sign: &str) -> (usize, &'a [u8]) {
    let mut rest = answer.body.as_slice();
    let mut count = 0;
    while let Some(after) = rest.strip_prefix(sign.as_bytes()) {
        (count, rest) = (count + 1, after);
    }
    (count, rest)
}

#[tokio::test]
async fn a_stream_begins_early_and_the_real_one_follows_untouched() {
    for (name, request, sign, events) in streams() {
        let up = Upstream::start(Reply::sse(events.clone()).header("x-request-id", "r1").after(ms(330)));
        let up = up.await.unwrap();
        let bench = Bench::with(with_early(towards(&up.url()))).await;
        let answer = bench.ask(&request.header("accept-encoding", "gzip, br")).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/event-stream")),
            "{name}"
        );
        assert!(answer.head_at.unwrap() < ms(250), "{name}: {:?}", answer.head_at);
        let (count, rest) = beats(&answer, sign);
        assert!((4..=8).contains(&count), "{name}: {count} beats\n{}", answer.text());
        assert_eq!(rest, stream_bytes(&events), "{name}");
        assert_eq!(answer.ending, Ending::Complete, "{name}");
        assert_eq!(up.requests()[0].header_values("accept-encoding"), ["identity"], "{name}");
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, served", "{name}");
    }
}

/// Some services answer with the head alone, and let the request queue behind it.
#[tokio::test]
async fn a_head_without_anything_behind_it_does_not_end_the_signs_of_life() {
    let slow = Event::pause(ms(600));
    let up = Upstream::start(Reply::sse([vec![slow], responses::turn("pong")].concat())).await.unwrap();
    let mut config = with_early(towards(&up.url()));
    // The answer is committed long before its first byte.
    config.hold.time = ms(100);
    let answer = Bench::with(config).await.ask(&sdk(0, TURN)).await;
    let (count, rest) = beats(&answer, ": steady-relay waits\n\n");
    assert!((10..=16).contains(&count), "{count} beats\n{}", answer.text());
    assert_eq!((answer.ending, rest), (Ending::Complete, &stream_bytes(&responses::turn("pong"))[..]));
}

#[tokio::test]
async fn refusals_are_waited_out_behind_an_early_stream() {
    let up = Upstream::start(Script::of([responses::overloaded_503(), responses::overloaded_503(), turn()]));
    let up = up.await.unwrap();
    let config = bounded(&up.url(), |profile| {
        profile.curve.base = ms(150);
        profile.curve.cap = ms(150);
    });
    let bench = Bench::with(with_early(config)).await;
    let answer = bench.ask(&sdk(0, TURN)).await;
    let (count, rest) = beats(&answer, ": steady-relay waits\n\n");
    assert!(count >= 3 && rest == stream_bytes(&responses::turn("pong")), "{}", answer.text());
    assert_eq!(up.requests().len(), 3);
}

#[tokio::test]
async fn an_answer_in_time_keeps_its_own_head() {
    for (name, request, _, events) in streams() {
        let up = Upstream::start(Reply::sse(events.clone()).header("x-request-id", "r1")).await.unwrap();
        let answer = Bench::with(with_early(towards(&up.url()))).await.ask(&request).await;
        assert_eq!(
            (answer.header("x-request-id"), &answer.body),
            (Some("r1"), &stream_bytes(&events)),
            "{name}"
        );
    }
}

/// Codex waits for a head for ever, clients of Ollama fail on any sign of life, and what is one whole has no place
/// for one.
#[tokio::test]
async fn whoever_gains_nothing_gets_no_early_stream() {
    let whole = MESSAGES.replace("true", "false");
    let list = "/v1beta/models/gemini-3-pro:streamGenerateContent";
    let lines =
        Reply::status(200).header("content-type", "application/x-ndjson").bytes_stream(ollama::lines("hi"));
    let rows = [
        ("codex", codex("t", TURN), turn()),
        ("ollama", Request::post("/api/chat").json(MESSAGES), lines),
        (
            "whole",
            Request::post("/v1/chat/completions").json(whole),
            Reply::status(200).json(r#"{"choices":[]}"#),
        ),
        (
            "list",
            Request::post(list).json(CONTENTS),
            Reply::status(200).json(format!("[{}]", gemini::answer("hi"))),
        ),
        ("off", plain(TURN).header("x-steady", "off"), turn()),
        ("other", Request::get("/v1/models"), Reply::status(200).json("{}")),
    ];
    for (name, request, reply) in rows {
        let up = Upstream::start(reply.header("x-request-id", "r1").after(ms(250))).await.unwrap();
        let bench = Bench::with(with_early(towards(&up.url()))).await;
        let answer = bench.ask(&request.header("accept-encoding", "gzip")).await;
        assert_eq!((answer.status, answer.header("x-request-id")), (200, Some("r1")), "{name}");
        assert!(answer.head_at.unwrap() >= ms(250), "{name}");
        assert_eq!(up.requests()[0].header("accept-encoding"), Some("gzip"), "{name}");
    }
}

#[tokio::test]
async fn a_failure_is_told_as_an_event_of_the_stream_that_was_begun() {
    for (name, request, sign, _) in streams() {
        let refused = match name {
            "anthropic" => anthropic::error("overloaded_error", "no room"),
            "gemini" => gemini::error(503, "UNAVAILABLE", "no room"),
            _ => r#"{"error":{"code":"server_is_overloaded","message":"no room","type":"server_error"}}"#
                .into(),
        };
        let up = Upstream::start(Reply::status(503).json(&refused)).await.unwrap();
        let config = bounded(&up.url(), |profile| {
            profile.sends = Some(2);
            for curve in [&mut profile.curve, &mut profile.overloaded] {
                curve.base = ms(200);
                curve.cap = ms(200);
            }
        });
        let bench = Bench::with(with_early(config)).await;
        let answer = bench.ask(&request).await;
        assert_eq!((answer.status, up.requests().len(), answer.ending), (200, 2, Ending::Complete), "{name}");
        let (count, rest) = beats(&answer, sign);
        let told = String::from_utf8_lossy(rest).into_owned();
        assert!(count >= 2, "{name}: {}", answer.text());
        let start = match name {
            "anthropic" => "event: error\ndata: {",
            "responses" => "event: response.failed\ndata: {",
            _ => "data: {",
        };
        assert!(
            told.starts_with(start) && told.ends_with("}\n\n") && told.contains("no room"),
            "{name}: {told}"
        );
        let (_, data) = answer.events().pop().unwrap();
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        let error = if name == "responses" { &data["response"]["error"] } else { &data["error"] };
        assert!(error["message"].as_str().unwrap().contains("no room"), "{name}: {data}");
        assert_eq!(told.matches("data: ").count(), 1, "{name}: {told}");
    }
}

#[tokio::test]
async fn a_break_behind_an_early_stream_is_a_break() {
    let up = Upstream::start(Script::of([Reply::reset_after_request(), Reply::reset_after_request()]));
    let up = up.await.unwrap();
    let config = bounded(&up.url(), |profile| {
        profile.ambiguous_resends = 1;
        profile.curve.base = ms(200);
        profile.curve.cap = ms(200);
    });
    let answer = Bench::with(with_early(config)).await.ask(&sdk(0, TURN)).await;
    assert_eq!((answer.status, up.requests().len()), (200, 2));
    assert!(matches!(answer.ending, Ending::Truncated | Ending::Reset), "{answer:?}");
}

/// What is told of an answer that ran and cannot go into the stream that was begun: one event, in the dialect's form,
/// which nobody takes for a failure that heals.
async fn is_lost(name: &str, request: &Request, sign: &str, reply: Reply) -> String {
    let up = Upstream::start(reply.after(ms(250))).await.unwrap();
    let bench = Bench::with(with_early(towards(&up.url()))).await;
    let answer = bench.ask(request).await;
    assert_eq!((answer.status, up.requests().len(), answer.ending), (200, 1, Ending::Complete), "{name}");
    assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, broken", "{name}");
    let (count, rest) = beats(&answer, sign);
    let told = String::from_utf8_lossy(rest).into_owned();
    assert!(count >= 2 && told.ends_with("}\n\n"), "{name}: {}", answer.text());
    let start = match name {
        "anthropic" => "event: error\ndata: {",
        "responses" => "event: response.failed\ndata: {",
        _ => "data: {",
    };
    assert!(told.trim_start().starts_with(start) && told.matches("data: ").count() == 1, "{name}: {told}");
    let (_, data) = answer.events().pop().unwrap();
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    let error = if name == "responses" { &data["response"]["error"] } else { &data["error"] };
    let code = if name == "gemini" { &error["details"][0]["reason"] } else { &error["code"] };
    assert_eq!(code, "answer_not_streamed", "{name}: {data}");
    let words = error["message"].as_str().unwrap().to_owned();
    for part in ["steady-relay: the service answered 200", "may have been billed", "not sent again", "hint: "]
    {
        assert!(words.contains(part), "{name}: {words}");
    }
    words
}

/// The head named no encoding, so bytes in one would be noise to the client.
#[tokio::test]
async fn an_upstream_that_encodes_nonetheless_is_told_as_a_failure() {
    let encoded =
        Reply::status(200).header("content-type", "text/event-stream").header("content-encoding", "gzip");
    let reply = encoded.bytes(gzip(&stream_bytes(&responses::turn("pong"))));
    let words = is_lost("responses", &sdk(0, TURN), ": steady-relay waits\n\n", reply).await;
    assert!(words.contains("in gzip, unasked"), "{words}");
}

/// It ran, so it is not asked again; it has no place in a stream; and to pass it for an end would hide it.
#[tokio::test]
async fn an_answer_that_is_whole_behind_an_early_stream_is_told_to_be_lost() {
    for (name, request, sign, _) in streams() {
        let whole = match name {
            "chat" => r#"{"id":"x","choices":[{"message":{"content":"pong"}}]}"#.to_owned(),
            "responses" => r#"{"id":"resp_1","output":[{"type":"message","content":"pong"}]}"#.to_owned(),
            "anthropic" => r#"{"type":"message","content":[{"type":"text","text":"pong"}]}"#.to_owned(),
            _ => gemini::answer("pong"),
        };
        // A long one is not held whole either, and the label says what it likes.
        let long = whole.replace("pong", &"pong".repeat(100_000));
        for (label, body) in [
            ("application/json", whole.as_bytes().to_vec()),
            ("application/json", long.into_bytes()),
            ("text/event-stream", [b"\n ", whole.as_bytes()].concat()),
            ("text/plain", whole.into_bytes()),
        ] {
            let reply = Reply::status(200).header("content-type", label).bytes(body);
            let words = is_lost(name, &request, sign, reply).await;
            assert!(
                words.contains("whole and not as a stream") && !words.contains("pong"),
                "{name}: {words}"
            );
        }
    }
}

/// A login page, a redirect: no answer of a model, and nothing that a stream could hold.
#[tokio::test]
async fn what_is_no_answer_behind_an_early_stream_is_told_as_a_failure() {
    let html = |status: u16| Reply::status(status).header("content-type", "text/html; charset=utf-8");
    for (reply, sends, words, end) in [
        (html(200).bytes("\r\n<!doctype html><p>log in"), 3, "answered 200 with a page", "failed, returned"),
        (html(302).header("location", "/login").bytes("<p>moved"), 1, "answered 302", "committed, broken"),
        (Reply::status(204), 1, "answered 204", "committed, broken"),
    ] {
        for (name, request, sign, _) in streams() {
            let up = Upstream::start(reply.clone().after(ms(250))).await.unwrap();
            let bench = Bench::with(with_early(towards(&up.url()))).await;
            let answer = bench.ask(&request).await;
            assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{name}");
            assert_eq!(up.requests().len(), sends, "{name}");
            let story = bench.story(1).await;
            assert!(story.ends_with(end), "{name}: {story}");
            let (_, rest) = beats(&answer, sign);
            let told = String::from_utf8_lossy(rest);
            assert!(told.contains(words) && told.matches("data: ").count() == 1, "{name}: {told}");
            assert!(!told.contains("<p>") && told.ends_with("}\n\n"), "{name}: {told}");
        }
    }
}

/// Some gateways label a stream as plain text. What is asked for decides, early or not.
#[tokio::test]
async fn a_stream_behind_an_early_one_may_be_labelled_as_anything() {
    for label in ["text/plain", "application/octet-stream"] {
        let events = responses::turn("pong");
        let reply = Reply::status(200).header("content-type", label).bytes(stream_bytes(&events));
        let up = Upstream::start(reply.after(ms(250))).await.unwrap();
        let answer = Bench::with(with_early(towards(&up.url()))).await.ask(&sdk(0, TURN)).await;
        let (_, rest) = beats(&answer, ": steady-relay waits\n\n");
        assert_eq!(rest, stream_bytes(&events), "{label}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_an_early_stream_ends_its_call() {
    for waits in [false, true] {
        let refusal = if waits { responses::overloaded_503() } else { Reply::silence() };
        let up = Upstream::start(refusal).await.unwrap();
        let config = bounded(&up.url(), |profile| {
            profile.curve.base = SOON;
            profile.curve.cap = SOON;
        });
        let bench = Bench::with(with_early(config)).await;
        let mut client = bench.client().await;
        client.send(&sdk(0, TURN)).await.unwrap();
        assert!(client.read_until(b"waits\n\n: steady").await, "it has begun and beats");
        client.leave().await;
        let story = bench.story(1).await;
        assert!(story.ends_with("client_left"), "{story}");
        if !waits {
            assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
        }
    }
}

#[tokio::test]
async fn interim_answers_go_before_an_early_stream_and_not_into_it() {
    let up = Upstream::start(turn().after(ms(400))).await.unwrap();
    let mut config = with_early(towards(&up.url()));
    config.waiting.interim = Some(ms(50));
    config.waiting.early_commit = Some(ms(180));
    let answer = Bench::with(config).await.ask(&sdk(0, TURN)).await;
    assert!((2..=3).contains(&answer.interim.len()), "{:?}", answer.interim);
    let (_, rest) = beats(&answer, ": steady-relay waits\n\n");
    assert_eq!(rest, stream_bytes(&responses::turn("pong")));
}

/// In Python each byte restarts the limit that is stated, in Claude Code nothing does.
#[tokio::test]
async fn interim_answers_lift_the_limit_of_a_client_that_restarts_it() {
    let rows =
        [(sdk(0, TURN), Some(ms(50)), true), (sdk(0, TURN), None, false), (claude(), Some(ms(50)), false)];
    for (request, interim, waits) in rows {
        let up = Upstream::start(turn().after(ms(700))).await.unwrap();
        let mut config = towards(&up.url());
        config.waiting.interim = interim;
        let answer = Bench::with(config).await.ask(&request.header("x-stainless-timeout", "0.6")).await;
        assert_eq!((answer.status == 200, up.requests().len()), (waits, 1), "{interim:?} {}", answer.text());
        assert_eq!(answer.text().contains("upstream_no_response"), !waits, "{}", answer.text());
        assert_eq!(answer.head_at.unwrap() < ms(600), !waits, "{interim:?}: before it hangs up");
    }
}
