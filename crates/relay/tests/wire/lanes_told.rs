//! What a client is told whose turn in its lane does not come in time, and a pause that the service asks of all.

use std::time::Duration;

use relay_core::gate::Preset;
use relay_core::{ClientLimit, Config};
use relay_sim::fixtures::codex as wire;
use relay_sim::{Answer, Ending, Reply, Request, Script, Upstream};
use serde_json::Value;

use crate::lanes::{
    Busy, answer_to, asks, bytes_for, careful, in_line, of, page_until, sent, shut, waits, whose,
};
use crate::support::{Bench, SOON, TURN, bounded, claude, invents_no_time, ms, plain, sdk};

/// In one answer, an opening with `response.failed`.
const CODEX_ENDS: &str = "event: response.failed\ndata: ";

/// Everything to `url`, through the gate, where nobody waits for longer than `patience`.
fn impatient(url: &str, patience: Duration) -> Config {
    bounded(url, |profile| {
        careful(profile, SOON);
        profile.patience = patience;
        profile.client_limit = ClientLimit::Ignored;
    })
}

fn whole(text: &str) -> String {
    TURN.replace("\"stream\":true,", "").replace("hi", text)
}

/// Our own words to each client: the status, the content type, and where the message stands.
fn rows() -> [(Request, u16, &'static str, &'static str); 5] {
    let chat = Request::post("/v1/chat/completions").header("authorization", "Bearer sk-test");
    let chat = chat.json(r#"{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"hi"}]}"#);
    [
        (of("told"), 200, "text/event-stream", ""),
        (asks("told", &whole("hi")), 400, "text/plain; charset=utf-8", ""),
        (sdk(0, &whole("hi")), 503, "application/json", "/error/message"),
        (plain(TURN), 503, "application/json", "/error/message"),
        (chat, 503, "application/json", "/error/message"),
    ]
}

/// The words of an answer of our own, wherever this client looks for them.
fn words(answer: &Answer, pointer: &str) -> String {
    if answer.status == 200 {
        let (opening, data) =
            answer.text().split_once(CODEX_ENDS).map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(opening, "");
        let data: Value = serde_json::from_str(data.trim_end()).unwrap();
        assert_eq!(data["response"]["error"]["code"], "server_is_overloaded");
        return data["response"]["error"]["message"].as_str().unwrap().to_owned();
    }
    if pointer.is_empty() {
        answer.text()
    } else {
        answer.json().pointer(pointer).unwrap().as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_pause_that_one_is_told_is_kept_by_all_of_its_lane() {
    let up = Upstream::start(Script::by(|seen, number| match number {
        0 => Reply::status(503).header("retry-after-ms", "450").json(wire::overloaded_body()),
        _ => answer_to(seen),
    }))
    .await
    .unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.gate = Some(Preset::Interactive))).await;
    let mut a = sent(&bench, &of("a")).await;
    bench.faults(1, 1).await;
    let mut b = sent(&bench, &of("b")).await;
    in_line(&bench, 2).await;
    let lane = waits(&bench, 2).await;
    assert!(lane["held_for_s"].is_number(), "{lane}");
    assert_eq!(lane["state"], "open", "one refusal shuts nothing: {lane}");
    // What is no generation, and another model, are not meant.
    assert_eq!(bench.ask(&Request::get("/v1/models")).await.status, 200);
    assert_eq!(bench.ask(&asks("c", &TURN.replace("gpt-x", "gpt-y"))).await.status, 200);
    for (client, name) in [(&mut a, "a"), (&mut b, "b")] {
        crate::lanes::gets(client, &bytes_for(name)).await;
    }
    let seen = up.requests();
    let told = seen[0].answered_at.unwrap();
    for late in seen.iter().skip(1).filter(|it| it.path() == "/v1/responses" && it.text().contains("gpt-x")) {
        assert!(late.at - told >= ms(450), "sent {:?} after it was told", late.at - told);
    }
    assert_eq!(seen.iter().filter(|it| whose(it) == "b").count(), 1);
    assert_eq!(bench.story(2).await, "opened, line, send 1, 200, committed, served");
}

#[tokio::test]
async fn a_pause_beyond_a_calls_patience_is_told_at_once_in_its_clients_form() {
    for (request, status, kind, pointer) in rows() {
        let up = Upstream::start(Script::by(|_, _| {
            Reply::status(503).header("retry-after", "3600").json(wire::overloaded_body())
        }))
        .await
        .unwrap();
        let bench = Bench::with(impatient(&up.url(), Duration::from_secs(60))).await;
        // Whoever is told it gets the service's answer.
        let first = bench.ask(&plain(TURN)).await;
        assert_eq!((first.status, first.text()), (503, wire::overloaded_body()));
        let answer = bench.ask(&request).await;
        assert_eq!(
            (answer.status, answer.header("content-type"), answer.ending),
            (status, Some(kind), Ending::Complete)
        );
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        assert!(answer.ended_at.unwrap() < SOON / 2, "{:?}", answer.ended_at);
        invents_no_time(&answer);
        let words = words(&answer, pointer);
        if status != 200 {
            let start = format!("steady-relay: this call was not sent: {} ", up.addr());
            assert!(words.starts_with(&start), "{words}");
            assert!(words.contains("asked for a pause that outlasts the 60s that it may wait"), "{words}");
            assert!(words.contains("\nhint: "), "{words}");
        }
        let story = bench.story(2).await;
        assert!(story == "opened, line, gave_up" || story == "opened, gave_up", "{story}");
        assert_eq!(up.requests().len(), 1, "nothing is sent for it");
        let page = page_until(&bench, |page| page["open_calls"] == serde_json::json!([])).await;
        assert!(page["lanes"].as_array().unwrap().iter().all(|lane| lane["waiting"] == 0), "{page:#}");
    }
}

#[tokio::test]
async fn a_pause_that_comes_while_a_call_waits_is_told_at_once_where_it_outlasts_its_patience() {
    let up = Upstream::start(Script::by(|_, number| match number {
        0 => wire::overloaded_503(),
        _ => Reply::status(503).header("retry-after", "3600").json("{}"),
    }))
    .await
    .unwrap();
    let bench = Bench::with(impatient(&up.url(), Duration::from_secs(60))).await;
    let mut waiting = bench.client().await;
    waiting.send(&plain(TURN)).await.unwrap();
    bench.faults(1, 1).await;
    let told = bench.ask(&plain(TURN)).await;
    assert_eq!((told.status, told.text().as_str()), (503, "{}"));
    // Whoever waited for the lane gets what it was answered itself.
    let answer = waiting.read().await;
    assert_eq!((answer.status, answer.ending), (503, Ending::Complete));
    assert!(answer.ended_at.unwrap() < SOON, "{:?}", answer.ended_at);
    assert_eq!(bench.story(1).await.split(", ").last(), Some("gave_up"));
}

#[tokio::test]
async fn claude_code_is_told_of_a_pause_in_its_own_form() {
    let up = Upstream::start(Reply::status(529).header("retry-after", "3600").json("{}")).await.unwrap();
    let bench = Bench::with(impatient(&up.url(), Duration::from_secs(60))).await;
    let first = bench.ask(&claude().header("x-claude-code-session-id", "one")).await;
    assert_eq!(
        (first.status, first.text().as_str(), first.header("x-should-retry")),
        (529, "{}", Some("false"))
    );
    let answer = bench.ask(&claude().header("x-claude-code-session-id", "two")).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (503, Some("false")), "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["type"], "error");
    let words = body["error"]["message"].as_str().unwrap();
    assert!(words.contains("asked for a pause that outlasts the 60s that it may wait"), "{words}");
    invents_no_time(&answer);
    assert_eq!(up.requests().len(), 1);
}

fn told_at_length(length: usize) -> String {
    let padding = "x".repeat(length);
    format!(r#"{{"error":{{"code":"server_is_overloaded","message":"no room","param":"{padding}"}}}}"#)
}

/// A service at capacity that says so at some length.
fn refusal(length: usize) -> Reply {
    let reply = Reply::status(503).reason("Quite Full").header("X-Request-Id", "r-1").header("x-own", "kept");
    reply.json(told_at_length(length))
}

#[tokio::test]
async fn patience_that_ends_in_line_gives_the_upstreams_last_answer_back_untouched() {
    // Not more than is kept.
    let body = told_at_length(50 << 10);
    let script = Script::by(|_, _| refusal(50 << 10)).for_path("/v1/models", Reply::status(200).json("{}"));
    let up = Upstream::start(script).await.unwrap();
    let bench = Bench::with(impatient(&up.url(), ms(1500))).await;
    let mut clients = Vec::new();
    for (call, request) in [(1, sdk(0, TURN)), (2, plain(TURN))] {
        clients.push(sent(&bench, &request).await);
        bench.faults(call, 1).await;
    }
    waits(&bench, 2).await;
    // What is kept keeps no connection: others use it meanwhile.
    for _ in 0..3 {
        assert_eq!(bench.ask(&Request::get("/v1/models")).await.status, 200);
    }
    assert!(up.connections() <= 2, "{}", up.connections());
    for mut client in clients {
        let answer = client.read().await;
        assert_eq!((answer.status, answer.reason.as_str()), (503, "Quite Full"));
        let expected = [
            ("x-request-id", "r-1"),
            ("x-own", "kept"),
            ("content-type", "application/json"),
            ("content-length", &body.len().to_string()),
            ("x-should-retry", "false"),
        ];
        for (name, value) in expected {
            assert_eq!(answer.header(name), Some(value));
        }
        assert!(answer.body == body.as_bytes() && answer.ending == Ending::Complete, "{}", answer.body.len());
        invents_no_time(&answer);
    }
    for call in [1, 2] {
        let story = bench.story(call).await;
        assert!(story.ends_with("at_capacity refused, line, gave_up"), "{story}");
    }
}

#[tokio::test]
async fn an_answer_too_long_to_keep_is_told_of_in_our_words() {
    let up = Upstream::start(refusal(100 << 10)).await.unwrap();
    let bench = Bench::with(impatient(&up.url(), ms(900))).await;
    let answer = bench.ask(&sdk(0, TURN)).await;
    assert_eq!(
        (answer.status, answer.header("x-own"), answer.header("x-should-retry")),
        (503, None, Some("false"))
    );
    let words = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(words.starts_with("steady-relay: gave up after "), "{words}");
    assert!(words.contains(&format!("{} answered 503", up.addr())), "{words}");
    assert_eq!(answer.json()["error"]["code"], "patience_exhausted");
}

#[tokio::test]
async fn one_that_was_never_sent_is_told_so_in_its_clients_form() {
    for (request, status, kind, pointer) in rows() {
        let busy = Busy::start().await;
        let mut config = impatient(&busy.up.url(), SOON);
        let mut short = config.profiles["tested"].clone();
        short.patience = ms(300);
        config.profiles.insert("short".to_owned(), short);
        let bench = Bench::with(config).await;
        let _two = shut(&bench).await;
        let before = busy.up.requests().len();
        let answer = bench.ask(&request.header("x-steady-profile", "short")).await;
        assert_eq!(
            (answer.status, answer.header("content-type"), answer.ending),
            (status, Some(kind), Ending::Complete)
        );
        assert!(answer.head_at.unwrap() >= ms(300), "{:?}", answer.head_at);
        let words = words(&answer, pointer);
        if status == 200 {
            assert_eq!(words, wire::AT_CAPACITY);
        } else {
            assert!(words.contains("was short of capacity for all of the 300ms"), "{words}");
        }
        assert_eq!(bench.story(3).await, "opened, line, gave_up");
        assert_eq!(busy.after(before), Vec::<String>::new());
        waits(&bench, 2).await;
    }
}

#[tokio::test]
async fn codex_is_told_in_a_stream_when_its_patience_ends_in_line() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(impatient(&up.url(), ms(400))).await;
    let answer = bench.ask(&of("a")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(words(&answer, ""), wire::OVERLOADED);
    let answer = bench.ask(&asks("b", &whole("hi"))).await;
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("text/plain; charset=utf-8")));
    assert!(
        answer.text().contains(&format!("{} answered 503", up.addr()))
            && answer.text().ends_with("[patience_exhausted]")
    );
}
