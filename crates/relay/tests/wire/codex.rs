//! What is done for Codex alone: a turn whose stream ends in a fatal capacity event is cut, so that it resumes.

use relay_core::Config;
use relay_core::client::Kind;
use relay_core::config::Websocket;
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Ending, Event, Reply, Request, Script, Upstream};
use std::io::{Read as _, Write as _};
use tokio::time::Instant;

use crate::support::{Bench, CONTINUED, SOON, TURN, bounded, codex, invents_no_time, ms, plain, towards};

const FATAL: &str = "server_is_overloaded";

fn fatal_after_output(with_error: bool) -> Vec<Event> {
    let mut events = wire::partial("hello");
    if with_error {
        events.push(wire::error_event(FATAL, wire::OVERLOADED));
    }
    events.push(wire::failed(FATAL, wire::OVERLOADED));
    events
}

fn is_cut(ending: Ending) -> bool {
    matches!(ending, Ending::Truncated | Ending::Reset)
}

async fn asked(
    reply: Reply,
    request: &Request,
    change: impl FnOnce(&mut Config),
) -> (Bench, relay_sim::Answer) {
    let up = Upstream::start(reply).await.unwrap();
    let mut config = towards(&up.url());
    change(&mut config);
    let bench = Bench::with(config).await;
    let answer = bench.ask(request).await;
    assert_eq!(up.requests().len(), 1);
    (bench, answer)
}

#[tokio::test]
async fn a_fatal_capacity_event_after_output_is_withheld_and_the_connection_cut() {
    let before = stream_bytes(&wire::partial("hello"));
    let whole = |with_error| stream_bytes(&fatal_after_output(with_error));
    let at_half = before.len() + 40;
    let replies = [
        Reply::sse(fatal_after_output(false)),
        Reply::sse(fatal_after_output(true)),
        Reply::sse(fatal_after_output(true)).cut([at_half, 10_000]).spaced(ms(2)),
        Reply::sse(fatal_after_output(false)).cut([1]),
        // All at once: what is output and what is not lies in the same chunk.
        Reply::status(200).header("content-type", "text/event-stream").bytes(whole(true)),
        Reply::status(200).header("content-type", "text/event-stream").bytes(whole(false)).chunked(),
    ];
    for reply in replies {
        let shown = format!("{reply:?}");
        let pieces = !shown.contains(" cut: []");
        let (bench, answer) = asked(reply, &codex("turn-1", TURN), |_| {}).await;
        assert!(is_cut(answer.ending), "{:?} {shown}", answer.ending);
        // Of an event that comes in pieces the first may be gone already; without its end it is none.
        assert!(answer.body.starts_with(&before), "{shown}");
        assert!(answer.events().iter().all(|(name, _)| name != "error" && name != "response.failed"));
        assert!(pieces || answer.body.len() == before.len(), "{shown}");
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, cut 1, cut");
        assert_eq!(bench.totals().streams_cut, 1);
    }
}

/// What of a gzip stream can be read.
fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let _cut_short = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut text);
    text
}

#[tokio::test]
async fn of_an_encoded_stream_all_output_before_the_event_passes_and_the_event_does_not() {
    let (before, fatal) =
        (stream_bytes(&wire::partial("hello")), stream_bytes(&[wire::failed(FATAL, "busy")]));
    // With a flush between them, as services stream, and without one, where a match may reach from one into the other.
    for flushed in [true, false] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&before).unwrap();
        if flushed {
            encoder.flush().unwrap();
        }
        let cut = encoder.get_ref().len();
        encoder.write_all(&fatal).unwrap();
        let encoded = encoder.finish().unwrap();
        let (first, second) = encoded.split_at(cut);
        let (middle, last) = encoded.split_at(encoded.len() - 12);
        for pieces in [vec![first, second], vec![&encoded], vec![middle, last]] {
            let reply = Reply::status(200)
                .header("content-type", "text/event-stream")
                .header("content-encoding", "gzip")
                .bytes_stream(pieces.iter().map(|piece| piece.to_vec()).collect())
                .spaced(ms(5));
            let (bench, answer) = asked(reply, &codex("turn-1", TURN), |_| {}).await;
            assert!(is_cut(answer.ending));
            assert!(encoded.starts_with(&answer.body));
            let text = unzipped(&answer.body);
            assert!(text.starts_with(&before), "{flushed}: {}", String::from_utf8_lossy(&text));
            assert!(!text[before.len()..].windows(2).any(|end| end == b"\n\n"), "the event is whole");
            assert!(bench.story(1).await.ends_with("cut 1, cut"));
        }
    }
}

#[tokio::test]
async fn the_call_that_resumes_a_cut_turn_waits_and_a_turn_is_cut_three_times_at_most() {
    let up = Upstream::start(Reply::sse(fatal_after_output(true))).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| {
        profile.curve.base = ms(150);
        profile.curve.cap = ms(150);
    }))
    .await;
    for cuts in 1..=3 {
        let answer = bench.ask(&codex("turn-1", TURN)).await;
        assert!(is_cut(answer.ending));
        assert!(
            bench.story(cuts).await.ends_with(&format!("cut {cuts}, cut")),
            "{}",
            bench.story(cuts).await
        );
    }
    let fourth = bench.ask(&codex("turn-1", TURN)).await;
    assert_eq!((fourth.ending, fourth.body), (Ending::Complete, stream_bytes(&fatal_after_output(true))));
    // Another turn is another count.
    assert!(is_cut(bench.ask(&codex("turn-2", TURN)).await.ending));
    let seen = up.requests();
    assert_eq!(seen.len(), 5);
    for pair in seen[..4].windows(2) {
        let since = pair[1].at - pair[0].answered_at.unwrap();
        assert!(since >= ms(149), "resumed after {since:?}");
    }
    let since = seen[4].at - seen[3].answered_at.unwrap();
    assert!(since < ms(140), "a turn of its own waited {since:?}");
}

#[tokio::test]
async fn a_completed_answer_starts_the_count_of_cuts_anew() {
    let up = Upstream::start(Script::by(|_, number| {
        if number == 2 { Reply::sse(wire::turn("hi")) } else { Reply::sse(fatal_after_output(false)) }
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    let mut ends = Vec::new();
    for call in 1..=4 {
        bench.ask(&codex("turn-1", TURN)).await;
        ends.push(bench.story(call).await.rsplit(", ").take(2).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(ends, ["cut cut 1", "cut cut 2", "served committed", "cut cut 1"]);
}

/// An answer that failed in another way, or with the event that was passed on, completed nothing.
#[tokio::test]
async fn only_a_completed_answer_starts_the_count_of_cuts_anew() {
    let up = Upstream::start(Script::by(|_, number| {
        let mut events = wire::partial("hello");
        events.push(wire::failed(if number == 2 { "server_error" } else { FATAL }, "m"));
        Reply::sse(events)
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    let mut cuts = Vec::new();
    for _ in 1..=6 {
        cuts.push(is_cut(bench.ask(&codex("turn-1", TURN)).await.ending));
    }
    assert_eq!(cuts, [true, true, false, true, false, false]);
}

#[tokio::test]
async fn a_floor_in_the_withheld_event_holds_for_the_call_that_resumes() {
    let mut events = wire::partial("hello");
    events.push(wire::failed(FATAL, "Busy. Please try again in 150ms."));
    let up = Upstream::start(Script::of([Reply::sse(events), Reply::sse(wire::turn("hi"))])).await.unwrap();
    let bench = Bench::to(&up).await;
    assert!(is_cut(bench.ask(&codex("turn-1", TURN)).await.ending));
    assert_eq!(bench.ask(&codex("turn-1", TURN)).await.ending, Ending::Complete);
    let seen = up.requests();
    let since = seen[1].at - seen[0].answered_at.unwrap();
    assert!(since >= ms(149), "resumed after {since:?}");
}

#[tokio::test]
async fn what_cannot_resume_safely_is_not_cut() {
    let hosted = r#"{"stream":true,"input":[{"role":"user"}],"tools":[{"type":"code_interpreter"}]}"#;
    let compaction = r#"{"stream":true,"input":[{"role":"user"},{"type":"compaction_trigger"}]}"#;
    let stored = r#"{"stream":true,"input":[{"role":"user"},{"type":"item_reference","id":"x"}]}"#;
    let without_turn = Request::post("/v1/responses").header("originator", "codex_exec").json(TURN);
    let rows = [
        codex("t", hosted),
        codex("t", CONTINUED),
        codex("t", compaction),
        codex("t", stored),
        without_turn,
        plain(TURN),
    ];
    for request in rows {
        let (bench, answer) = asked(Reply::sse(fatal_after_output(true)), &request, |_| {}).await;
        assert_eq!((answer.ending, answer.body), (Ending::Complete, stream_bytes(&fatal_after_output(true))));
        assert_eq!(bench.totals().streams_cut, 0);
    }
    let off = |config: &mut Config| config.clients.entry(Kind::Codex).or_default().cut_fatal = false;
    let (_, answer) = asked(Reply::sse(fatal_after_output(true)), &codex("t", TURN), off).await;
    assert_eq!(answer.ending, Ending::Complete);
}

#[tokio::test]
async fn slow_down_is_fatal_to_old_versions_alone() {
    let mut events = wire::partial("hello");
    events.push(wire::failed("slow_down", "slower"));
    let old = Request::post("/v1/responses")
        .header("originator", "codex_cli_rs")
        .header("user-agent", "codex_cli_rs/0.144.6 (Linux)")
        .header("thread-id", "t")
        .header("x-codex-turn-metadata", r#"{"turn_id":"u"}"#)
        .json(TURN);
    let (_, answer) = asked(Reply::sse(events.clone()), &old, |_| {}).await;
    assert!(is_cut(answer.ending));
    let (_, answer) = asked(Reply::sse(events), &codex("t", TURN), |_| {}).await;
    assert_eq!(answer.ending, Ending::Complete);
}

#[tokio::test]
async fn at_the_end_of_the_budget_codex_hears_of_capacity_in_its_own_words_and_once() {
    for reply in [wire::overloaded_503(), Reply::sse(wire::overloaded_stream()), Reply::status(503).text("")]
    {
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(3))).await;
        let answer = bench.ask(&codex("t", TURN)).await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let (name, data) = answer.events().pop().unwrap();
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        assert_eq!((name.as_str(), &data["response"]["error"]["code"]), ("response.failed", &FATAL.into()));
        invents_no_time(&answer);
        assert_eq!(up.requests().len(), 3);
        assert!(bench.story(1).await.ends_with("at_capacity refused, gave_up"), "{}", bench.story(1).await);
    }
}

#[tokio::test]
async fn refusals_of_our_own_reach_codex_as_the_text_of_a_400() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.first_byte = Some(ms(80));
    let bench = Bench::with(config).await;
    let answer = bench.ask(&codex("t", TURN)).await;
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("text/plain; charset=utf-8")));
    let words = format!("steady-relay: {} did not answer in time (1 send, ", up.addr());
    assert!(answer.text().starts_with(&words));
    assert!(answer.text().ends_with(" [upstream_no_response]"));
    assert!(answer.text().lines().count() <= 3);
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn where_they_are_refused_a_websocket_on_a_path_that_generates_is_turned_away_at_once() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let mut config = towards(&up.url());
    config.websocket = Websocket::Refuse;
    let bench = Bench::with(config).await;
    let escaped = "/v1/%72espon%73es";
    for path in ["/v1/responses", "/responses", "/backend-api/codex/responses", escaped] {
        let began = Instant::now();
        let upgrade = Request::get(path)
            .header("authorization", "Bearer sk-test")
            .header("Connection", "keep-alive, Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        let answer = bench.ask(&upgrade).await;
        assert_eq!((answer.status, answer.ending), (426, Ending::Complete));
        assert!(began.elapsed() < ms(500));
    }
    // Among others, and by its longer name.
    for wished in ["x, WebSocket", "websocket/13"] {
        let upgrade = Request::get("/v1/responses").header("Connection", "Upgrade").header("Upgrade", wished);
        assert_eq!(bench.ask(&upgrade).await.status, 426, "{wished}");
    }
    assert_eq!(up.connections(), 0);
}

#[tokio::test]
async fn a_handshake_that_is_none_is_answered_with_what_is_wrong() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let bench = Bench::to(&up).await;
    let upgrade = |version: &str, key: &str| {
        Request::get("/v1/responses")
            .header("authorization", "Bearer sk-test")
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", version)
            .header("Sec-WebSocket-Key", key)
    };
    let old = bench.ask(&upgrade("8", "dGhlIHNhbXBsZSBub25jZQ==")).await;
    assert_eq!((old.status, old.header("sec-websocket-version")), (426, Some("13")));
    for key in ["", "short", "dGhlIHNhbXBsZSBub25jZQ", "!!!!!!!!!!!!!!!!!!!!!!=="] {
        let answer = bench.ask(&upgrade("13", key)).await;
        assert_eq!(answer.status, 400, "{key}");
        assert!(answer.text().contains("Sec-WebSocket-Key"), "{}", answer.text());
    }
    assert_eq!(up.connections(), 0);
}

#[tokio::test]
async fn any_other_upgrade_is_a_tunnel() {
    let reply = Reply::status(101)
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
        .header("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        .echo();
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    let upgrade = Request::get("/v1/realtime?model=m")
        .header("Authorization", "Bearer sk-test")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    client.send(&upgrade).await.unwrap();
    assert!(client.read_head().await);
    assert_eq!((client.answer().status, client.answer().header("upgrade")), (101, Some("websocket")));
    assert_eq!(client.answer().header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    client.send_bytes(&every_byte).await.unwrap();
    while client.answer().body.len() < every_byte.len() {
        assert!(client.read_some().await);
    }
    assert_eq!(client.answer().body, every_byte);
    let seen = up.requests().remove(0);
    assert_eq!((seen.header("upgrade"), seen.header("connection")), (Some("websocket"), Some("Upgrade")));
    client.leave().await;
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

#[tokio::test]
async fn an_upgrade_that_is_refused_is_an_answer() {
    let up =
        Upstream::start(Reply::status(403).reason("No").header("X-Why", "because").text("no")).await.unwrap();
    let bench = Bench::to(&up).await;
    let upgrade = Request::get("/v1/realtime").header("Connection", "Upgrade").header("Upgrade", "websocket");
    let answer = bench.ask(&upgrade).await;
    assert_eq!((answer.status, answer.reason.as_str(), answer.text().as_str()), (403, "No", "no"));
    assert_eq!(answer.header("x-why"), Some("because"));
}

#[tokio::test]
async fn an_upgrade_that_nobody_answers_ends() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.first_byte = Some(ms(80));
    let bench = Bench::with(config).await;
    let upgrade = Request::get("/v1/realtime").header("Connection", "Upgrade").header("Upgrade", "websocket");
    let answer = bench.ask(&upgrade).await;
    assert_eq!(answer.status, 504, "{}", answer.text());
    assert!(answer.text().contains("no answer within 0.08 s"), "{}", answer.text());
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

#[tokio::test]
async fn an_upgrade_that_nobody_needs_is_ignored() {
    // Java's client offers HTTP/2 with every first request to a plain address; a body cannot go into a tunnel.
    for upgrade in ["h2c", "TLS/1.0", "websocket"] {
        let up = Upstream::start(Script::of([wire::overloaded_503(), Reply::sse(wire::turn("hi"))]))
            .await
            .unwrap();
        let bench = Bench::to(&up).await;
        let request = plain(TURN)
            .header("Connection", "Upgrade, HTTP2-Settings")
            .header("Upgrade", upgrade)
            .header("HTTP2-Settings", "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA");
        let answer = bench.ask(&request).await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{upgrade}");
        for seen in up.requests() {
            assert_eq!(
                (seen.text().as_str(), seen.header("upgrade"), seen.header("http2-settings")),
                (TURN, None, None)
            );
        }
    }
    let up =
        Upstream::start(Script::of([wire::overloaded_503(), Reply::status(200).json("{}")])).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer =
        bench.ask(&Request::get("/v1/models").header("Connection", "Upgrade").header("Upgrade", "h2c")).await;
    assert_eq!((answer.status, up.requests().len()), (200, 2));
    // Of HTTP/1.0 it is no wish.
    let mut old = bench.client().await;
    old.send_bytes(b"GET /v1/models HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n").await.unwrap();
    assert_eq!((old.read().await.status, up.requests()[2].header("upgrade")), (200, None));
}
