//! A held turn of a person's says so within the client: Codex is told of a failure that it retries, and its next try
//! goes on where the first stood.

use relay_core::Config;
use relay_core::config::Fallback;
use relay_sim::fixtures::codex as wire;
use relay_sim::websocket::steps::{good, overloaded_failed};
use relay_sim::websocket::{WsClient, WsGot, WsScript, WsUpstream};
use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::lanes::{Busy, gated, in_line, of, sent, shut};
use crate::support::{Bench, CONTINUED, TURN, bounded, ms, towards};
use crate::websocket::{CODEX, FULL, GOES_ON, texts};

/// What interactive Codex asks in a thread of its user's, as it looks when it is sent for the `nth` time.
fn watched(turn: &str, nth: u32, body: &str) -> Request {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["client_metadata"] = json!({ "a": nth, "b": 1 });
    from("codex-tui", "user", turn, &body.to_string())
}

fn from(originator: &str, source: &str, turn: &str, body: &str) -> Request {
    let metadata = json!({ "turn_id": turn, "thread_source": source });
    Request::post("/v1/responses")
        .header("authorization", "Bearer sk-test")
        .header("originator", originator)
        .header("user-agent", "codex-tui/0.171.0 (Linux 6.1; x86_64) xterm")
        .header("thread-id", "thread-1")
        .header("x-codex-turn-metadata", metadata.to_string())
        .json(body)
}

/// Waits of so long, and a notice after so long.
fn noticing(url: &str, wait: u64, after: u64) -> Config {
    let mut config = bounded(url, |profile| {
        profile.curve.base = ms(wait);
        profile.curve.cap = ms(wait);
    });
    config.waiting.notice = Some(ms(after));
    config
}

fn full() -> Reply {
    let error = json!({ "code": "server_is_overloaded", "message": "Our servers are currently overloaded." });
    Reply::status(503).json(json!({ "error": error }))
}

/// The error of the one event that a notice is.
fn error_of(data: &str) -> (String, String) {
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["type"], &data["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    let error = &data["response"]["error"];
    let text = |name: &str| error[name].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

const WORDS: &str = "gpt-x is at capacity. Steady Relay holds this turn and sends it as soon as it may; Esc cancels. \
                     Please try again in 0.2s.";

#[tokio::test]
async fn a_held_turn_says_so_and_its_next_try_is_the_same_call() {
    let up = Upstream::start(Script::of([full(), full(), Reply::sse(good_turn())])).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 400, 100)).await;
    let began = Instant::now();
    let notice = bench.ask(&watched("turn-1", 1, TURN)).await;
    assert_eq!((notice.status, notice.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(notice.header("x-codex-turn-state"), None);
    let events = notice.events();
    assert_eq!((events.len(), events[0].0.as_str()), (1, "response.failed"));
    assert_eq!(error_of(&events[0].1), ("rate_limit_exceeded".to_owned(), WORDS.to_owned()));
    assert!(began.elapsed() < ms(400), "the wait was not over");
    let answer = bench.ask(&watched("turn-1", 2, TURN)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("only now"));
    assert!(began.elapsed() >= ms(800), "both waits were kept");
    assert_eq!(
        bench.story(1).await,
        "opened, send 1, 503, at_capacity refused, wait, notice 1, send 2, 503, at_capacity refused, wait, send 3, 200, \
         committed, served"
    );
    let totals = bench.totals();
    assert_eq!((totals.calls, totals.sends, totals.calls_saved, totals.calls_lost), (1, 3, 1, 0));
    // What is sent is what the client sends now.
    let sent: Vec<Value> =
        up.requests().iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect();
    assert_eq!([&sent[0], &sent[1]].map(|body| body["client_metadata"]["a"].clone()), [json!(1), json!(2)]);
}

fn good_turn() -> Vec<relay_sim::Event> {
    wire::turn("only now")
}

#[tokio::test]
async fn another_model_comes_in_in_time_however_often_its_client_asks_meanwhile() {
    let is_other = |seen: &relay_sim::Seen| seen.text().contains("gpt-y");
    let script = Script::by(move |seen, _| if is_other(seen) { Reply::sse(good_turn()) } else { full() });
    let up = Upstream::start(script).await.unwrap();
    let mut config = noticing(&up.url(), 60, 200);
    config.profiles.values_mut().for_each(|profile| profile.sends = None);
    let (model, to) = ("gpt-x".to_owned(), vec!["gpt-y".to_owned()]);
    config.fallbacks = vec![Fallback { model, to, after: ms(500), upstream: None }];
    let bench = Bench::with(config).await;
    let mut asked = 1;
    let answer = loop {
        let answer = bench.ask(&watched("turn-1", asked, TURN)).await;
        if !answer.text().contains("Steady Relay holds") || asked == 9 {
            break answer;
        }
        asked += 1;
    };
    assert_eq!(answer.header("x-steady-model"), Some("gpt-y; instead-of=gpt-x"), "{}", answer.text());
    assert!((2..9).contains(&asked), "{asked}");
    assert_eq!((bench.totals().calls, bench.totals().calls_saved), (1, 1));
}

#[tokio::test]
async fn in_line_it_keeps_its_place() {
    let busy = Busy::start().await;
    let mut config = gated(&busy.up.url(), ms(700));
    config.waiting.notice = Some(ms(100));
    let bench = Bench::with(config).await;
    let _others = shut(&bench).await;
    let notice = bench.ask(&watched("turn-1", 1, TURN)).await;
    assert!(notice.text().contains("Steady Relay holds"));
    // Who comes while its client is away stands behind it.
    let mut behind = sent(&bench, &of("z")).await;
    in_line(&bench, 4).await;
    let mut back = sent(&bench, &watched("turn-1", 2, TURN)).await;
    let before = busy.up.requests().len();
    busy.back.release();
    busy.door.release();
    assert_eq!((back.read().await.status, behind.read().await.status), (200, 200));
    let order = busy.after(before);
    let place = |thread: &str| order.iter().position(|whose| whose == thread);
    assert!(place("thread-1") < place("z"), "{order:?}");
    assert_eq!(bench.story(3).await, "opened, line, notice 1, send 1, 200, committed, served");
}

#[tokio::test]
async fn nobody_else_is_shown_anything() {
    for is_on in [true, false] {
        assert!(towards("http://127.0.0.1:9").waiting.notice.is_some(), "on by default");
        let requests = [
            from("codex_exec", "user", "t1", TURN),
            from("codex-tui", "thread_title", "t2", TURN),
            from("codex-tui", "user", "t3", CONTINUED),
            from("codex-tui", "user", "t4", &TURN.replace(r#""stream":true,"#, "")),
            from("codex-tui", "user", "t5", TURN).header("x-steady", "off"),
            crate::support::plain(TURN),
            watched("t6", 1, TURN),
        ];
        let shows = |nth: usize| is_on && nth == 6;
        for (nth, request) in requests.into_iter().enumerate() {
            let up = Upstream::start(Script::of([full(), Reply::sse(good_turn())])).await.unwrap();
            let mut config = noticing(&up.url(), 200, 50);
            config.waiting.notice = config.waiting.notice.filter(|_| is_on);
            let bench = Bench::with(config).await;
            let answer = bench.ask(&request).await;
            assert_eq!(answer.text().contains("Steady Relay holds"), shows(nth), "{is_on} {nth}");
        }
    }
}

#[tokio::test]
async fn the_next_one_is_due_in_minutes() {
    let up = Upstream::start(full()).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 60_000, 50)).await;
    let first = bench.ask(&watched("turn-1", 1, TURN)).await;
    assert!(first.text().contains("Steady Relay holds"));
    let mut second = sent(&bench, &watched("turn-1", 2, TURN)).await;
    assert!(tokio::time::timeout(ms(400), second.read()).await.is_err());
    assert_eq!(up.requests().len(), 1);
}

/// Codex counts them together, and ends the turn with the sixth.
#[tokio::test]
async fn what_cuts_have_taken_is_not_there_for_notices() {
    let mut broken = wire::partial("hello");
    broken.push(wire::failed("server_is_overloaded", wire::OVERLOADED));
    let script = Script::by(move |seen, _| match seen.header("x-codex-turn-metadata") {
        Some(turn) if turn.contains("turn-1") => Reply::sse(broken.clone()),
        Some(_) | None => full(),
    });
    let up = Upstream::start(script).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 200, 50)).await;
    let shown = |answer: &relay_sim::Answer| answer.text().contains("Steady Relay holds");
    let mut notices = Vec::new();
    for nth in 0..6 {
        notices.push(shown(&bench.ask(&watched("turn-1", nth, TURN)).await));
    }
    // After the first cut its wait is told of; what follows has taken too many tries of the client for another one.
    assert_eq!(notices, [false, true, false, false, false, false]);
    assert_eq!(bench.totals().streams_cut, 3);
}

#[tokio::test]
async fn a_client_that_does_not_come_back_has_left() {
    let up = Upstream::start(full()).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 60_000, 50)).await;
    let notice = bench.ask(&watched("turn-1", 1, TURN)).await;
    assert!(notice.text().contains("Steady Relay holds"));
    assert_eq!(bench.page().await["open_calls"][0]["state"], "waiting");
    assert!(bench.story(1).await.ends_with("wait, notice 1, client_left"));
    // What comes now goes on from what it has spent, as after every call that ended like this.
    let _later = tokio::time::timeout(ms(300), bench.ask(&watched("turn-1", 2, TURN))).await;
    assert!(bench.recorder().story(2).starts_with("opened after 1"), "{}", bench.recorder().story(2));
}

#[tokio::test]
async fn other_requests_of_the_turn_are_other_calls() {
    let up = Upstream::start(Script::of([full(), Reply::sse(good_turn())])).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 400, 50)).await;
    bench.ask(&watched("turn-1", 1, TURN)).await;
    // Neither does one of another kind take the held call up.
    let other = bench.ask(&watched("turn-1", 1, &TURN.replace("gpt-x", "gpt-y"))).await;
    assert!(other.text().contains("only now"));
    let continued = bench.ask(&watched("turn-1", 1, CONTINUED)).await;
    assert!(continued.text().contains("only now"));
    let served = "opened, send 1, 200, committed, served";
    assert_eq!([bench.story(2).await, bench.story(3).await], [served, served]);
    // It waits for its own request all the while.
    let back = bench.ask(&watched("turn-1", 2, TURN)).await;
    assert!(back.text().contains("only now"));
    assert!(bench.story(1).await.ends_with("notice 1, send 2, 200, committed, served"));
}

#[tokio::test]
async fn a_relay_that_stops_waits_for_no_client_to_come_back() {
    let up = Upstream::start(full()).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 60_000, 50)).await;
    bench.ask(&watched("turn-1", 1, TURN)).await;
    let (seen, began) = (bench.recorder(), Instant::now());
    bench.drain().await;
    assert!(began.elapsed() < ms(2000));
    drop(seen);
}

/// The message of interactive Codex in a thread of its user's.
fn in_watched_turn(message: &str) -> String {
    let mut message: Value = serde_json::from_str(message).unwrap();
    let metadata = json!({ "turn_id": "turn-1", "thread_source": "user" });
    message["client_metadata"] = json!({ "x-codex-turn-metadata": metadata.to_string() });
    message.to_string()
}

#[tokio::test]
async fn on_a_websocket_the_first_is_not_seen_and_followed_by_another() {
    let script = WsScript::good("").creates([overloaded_failed(), good("word")]);
    let up = WsUpstream::start(script).await.unwrap();
    let bench = Bench::with(noticing(&up.url(), 600, 100)).await;
    let began = Instant::now();
    for nth in 1..=2 {
        let mut client = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.unwrap();
        client.send(&in_watched_turn(if nth == 1 { GOES_ON } else { FULL })).await.unwrap();
        let answer = client.answer().await;
        let [WsGot::Text(text)] = &answer[..] else { panic!("{answer:?}") };
        assert_eq!(error_of(text), ("rate_limit_exceeded".to_owned(), WORDS.to_owned()));
    }
    let mut client = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.unwrap();
    client.send(&in_watched_turn(FULL)).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert!(began.elapsed() >= ms(600));
    // The service was asked twice, the second time with all of the input.
    assert_eq!(up.creates(), [GOES_ON, FULL].map(in_watched_turn));
    let story = bench.story(1).await;
    assert!(story.ends_with("wait, notice 1, notice 2, send 2, 200, committed, served"), "{story}");
    assert_eq!((bench.totals().calls, bench.totals().calls_saved), (1, 1));
}
