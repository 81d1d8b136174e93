//! WebSockets that the relay speaks: a call is a message, and what holds over HTTP holds here.

use relay_sim::Signal;
use relay_sim::websocket::steps::{
    created, good, limit_reached, overloaded_failed, overloaded_wrapped, previous_not_found,
    tool_call_unfinished, wrapped,
};
use relay_sim::websocket::{Upgrade, WsClient, WsGot, WsScript, WsSeen, WsStep, WsUpstream, WsWhat};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::*;

/// A turn with all of its input.
pub(crate) const FULL: &str =
    r#"{"type":"response.create","model":"gpt-x","input":[{"role":"user","content":"hi"}],"stream":true}"#;
/// One that goes on from an answer which the service keeps with the connection.
pub(crate) const GOES_ON: &str = r#"{"type":"response.create","model":"gpt-x","previous_response_id":"resp_1","store":false,"input":[{"role":"user"}],"stream":true}"#;
pub(crate) const PREWARM: &str =
    r#"{"type":"response.create","model":"gpt-x","input":[],"generate":false,"stream":true}"#;

/// The message of Codex within a turn of its one thread.
pub(crate) fn in_turn(turn: &str, message: &str) -> String {
    let mut message: Value = serde_json::from_str(message).unwrap();
    message["client_metadata"] =
        json!({"x-codex-turn-metadata": json!({ "turn_id": turn }).to_string(), "sent": turn.len()});
    message.to_string()
}

pub(crate) async fn plain(bench: &Bench) -> WsClient {
    WsClient::connect(bench.addr(), "/v1/responses", &[("Authorization", "Bearer sk-test")]).await.unwrap()
}

pub(crate) const CODEX: [(&str, &str); 5] = [
    ("Authorization", "Bearer sk-test"),
    ("originator", "codex_cli_rs"),
    ("user-agent", "codex_cli_rs/0.171.0 (Linux 6.1; x86_64) xterm"),
    ("thread-id", "thread-1"),
    ("x-codex-turn-metadata", r#"{"turn_id":""}"#),
];

pub(crate) async fn codex(bench: &Bench) -> WsClient {
    WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.unwrap()
}

pub(crate) async fn start(script: WsScript) -> (WsUpstream, Bench) {
    let up = WsUpstream::start(script).await.unwrap();
    let bench = Bench::with(towards(&up.url())).await;
    (up, bench)
}

/// All of a good answer but its last word.
pub(crate) fn begun(word: &str) -> Vec<WsStep> {
    let mut answer = good(word);
    answer.pop();
    answer
}

pub(crate) fn texts(steps: &[WsStep]) -> Vec<WsGot> {
    let text = |step: &WsStep| {
        if let WsStep::Raw(text) = step {
            return Some(WsGot::Text(text.clone()));
        }
        let WsStep::Send(value) = step else { return None };
        Some(WsGot::Text(value.to_string()))
    };
    steps.iter().filter_map(text).collect()
}

pub(crate) fn gone(seen: &[WsSeen]) -> bool {
    seen.iter().any(|seen| seen.what == WsWhat::Gone)
}

pub(crate) fn code(came: &[WsGot]) -> Option<u16> {
    match came.last() {
        Some(WsGot::Close(Some((code, _)))) => Some(*code),
        _ => None,
    }
}

#[tokio::test]
async fn messages_pass_as_they_came_and_each_request_is_a_call() {
    let script = WsScript::good("word").upgrades([Upgrade::accept_with(&[("X-Codex-Turn-State", "s1")])]);
    let (up, bench) = start(script).await;
    let mut client = codex(&bench).await;
    assert_eq!(client.header("x-codex-turn-state"), Some("s1"));
    // Blanks and the order of keys are nobody's business.
    let spaced =
        "{ \"input\" : [ {\"role\":\"user\"} ],\n\t\"model\":\"gpt-x\", \"type\":\"response.create\" }";
    for (at, request) in [FULL, spaced].into_iter().enumerate() {
        client.send(request).await.unwrap();
        assert_eq!(client.answer().await, texts(&good("word")));
        assert_eq!(up.creates()[at], request);
        assert_eq!(bench.story(at as u64 + 1).await, "opened, send 1, 200, committed, served");
    }
    assert_eq!((up.upgrades().len(), up.connections()), (1, 1));
    assert_eq!((bench.totals().calls, bench.totals().sends), (2, 2));
}

#[tokio::test]
async fn a_refusal_before_output_is_waited_out_on_the_same_connection() {
    for refusal in [overloaded_failed(), overloaded_wrapped(None), overloaded_wrapped(Some("0"))] {
        let script = WsScript::good("").creates([refusal.clone(), refusal, good("word")]);
        let (up, bench) = start(script).await;
        let mut client = codex(&bench).await;
        client.send(GOES_ON).await.unwrap();
        assert_eq!(client.answer().await, texts(&good("word")));
        assert_eq!(up.creates(), [GOES_ON; 3]);
        assert_eq!(up.connections(), 1);
        let story = bench.story(1).await;
        assert!(story.ends_with("wait, send 3, 200, committed, served"), "{story}");
    }
}

#[tokio::test]
async fn a_time_to_come_back_in_the_error_is_a_floor() {
    let (up, bench) = start(WsScript::good("").creates([overloaded_wrapped(Some("1")), good("word")])).await;
    let mut client = plain(&bench).await;
    let began = Instant::now();
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert!(began.elapsed() >= ms(1000));
    assert_eq!(up.creates().len(), 2);
}

#[tokio::test]
async fn where_the_connection_is_lost_whole_input_goes_over_a_new_one() {
    let refused = [overloaded_failed(), vec![WsStep::Close(1013, "later".to_owned())]].concat();
    for lost in [refused, limit_reached()] {
        let (up, bench) = start(WsScript::good("").creates([lost, good("word")])).await;
        let mut client = codex(&bench).await;
        client.send(FULL).await.unwrap();
        assert_eq!(client.answer().await, texts(&good("word")));
        assert_eq!((up.creates(), up.upgrades().len()), (vec![FULL.to_owned(); 2], 2));
    }
}

#[tokio::test]
async fn where_what_it_goes_on_from_is_lost_the_client_is_made_to_send_all() {
    let refused = [overloaded_failed(), vec![WsStep::Close(1013, "later".to_owned())]].concat();
    for lost in [refused, limit_reached(), previous_not_found("resp_1")] {
        let (up, bench) = start(WsScript::good("").creates([lost, good("word")])).await;
        let mut client = codex(&bench).await;
        client.send(in_turn("t", GOES_ON)).await.unwrap();
        let came = client.answer().await;
        assert_eq!((code(&came), came.len()), (Some(1013), 1), "{came:?}");
        assert!(bench.story(1).await.ends_with("cut 1, cut"));
        let mut client = codex(&bench).await;
        client.send(in_turn("t", FULL)).await.unwrap();
        assert_eq!(client.answer().await, texts(&good("word")));
        assert_eq!((up.creates().len(), up.upgrades().len()), (2, 2));
        // There the turn waits as it would have here.
        assert_eq!(bench.story(2).await, "opened after 1, wait, send 1, 200, committed, served");
    }
}

#[tokio::test]
async fn that_is_done_as_often_as_a_turn_may_be_cut() {
    let up = WsUpstream::start(WsScript::good("").creates([limit_reached()])).await.unwrap();
    let mut config = towards(&up.url());
    config.clients.get_mut(&relay_core::client::Kind::Codex).unwrap().cuts = 1;
    let bench = Bench::with(config).await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        let mut client = codex(&bench).await;
        client.send(in_turn("t", GOES_ON)).await.unwrap();
        let first = client.answer().await;
        codes.push((first.len(), code(&first)));
        if code(&first).is_none() {
            assert_eq!(first, texts(&limit_reached()));
        }
    }
    assert_eq!(codes, [(1, Some(1013)), (1, None)]);
}

#[tokio::test]
async fn other_clients_hear_of_a_lost_answer_themselves() {
    let (_up, bench) = start(WsScript::good("").creates([previous_not_found("resp_1")])).await;
    let mut client = plain(&bench).await;
    client.send(GOES_ON).await.unwrap();
    assert_eq!(client.answer().await, texts(&previous_not_found("resp_1")));
    assert_eq!(bench.story(1).await, "opened, send 1, bad_request final, passed");
}

#[tokio::test]
async fn after_output_a_fatal_event_is_withheld_from_codex_and_the_socket_closed() {
    let fails = [tool_call_unfinished("c1", "shell", "{}"), overloaded_failed()[1..].to_vec()].concat();
    for request in [FULL, GOES_ON] {
        let (up, bench) = start(WsScript::good("").creates([fails.clone(), good("word")])).await;
        let mut client = codex(&bench).await;
        client.send(in_turn("t", request)).await.unwrap();
        let came = client.answer().await;
        let (end, output) = came.split_last().unwrap();
        assert_eq!(output, texts(&fails[..fails.len() - 1]));
        assert!(matches!(end, WsGot::Close(Some((1013, _)))), "{end:?}");
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, cut 1, cut");
        assert_eq!(up.creates().len(), 1);
    }
    let (_up, bench) = start(WsScript::good("").creates([fails.clone()])).await;
    let mut client = plain(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&fails));
}

#[tokio::test]
async fn a_definite_error_goes_back_at_once_and_the_connection_serves_on() {
    let wrong = wrapped(400, "invalid_request_error", ("bad_input", "no"), &[]);
    let (up, bench) = start(WsScript::good("").creates([wrong.clone(), good("word")])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&wrong));
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.connections(), 1);
    assert_eq!(bench.story(1).await, "opened, send 1, bad_request final, passed");
}

#[tokio::test]
async fn a_spent_budget_is_told_in_the_clients_words() {
    for retry_after in [None, Some("0")] {
        let refusal = overloaded_wrapped(retry_after);
        let up = WsUpstream::start(WsScript::good("").creates([refusal.clone()])).await.unwrap();
        let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(2))).await;
        let mut client = plain(&bench).await;
        client.send(FULL).await.unwrap();
        assert_eq!(client.answer().await, texts(&refusal));
        let mut client = codex(&bench).await;
        client.send(FULL).await.unwrap();
        let came = client.answer().await;
        assert_eq!(up.creates().len(), 4);
        if retry_after.is_none() {
            // This ends its turn by itself.
            assert_eq!(came, texts(&refusal));
            continue;
        }
        let WsGot::Text(text) = &came[0] else { panic!("{came:?}") };
        let told: Value = serde_json::from_str(text).unwrap();
        assert_eq!(told["type"], "response.failed");
        assert_eq!(told["response"]["error"]["code"], "server_is_overloaded");
    }
}

#[tokio::test]
async fn what_may_have_run_is_not_sent_again_and_codex_reads_why() {
    let lost = [created(), vec![WsStep::Reset]].concat();
    let up = WsUpstream::start(WsScript::good("").creates([lost])).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.ambiguous_resends = 0)).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    let came = client.answer().await;
    let WsGot::Text(text) = &came[0] else { panic!("{came:?}") };
    let told: Value = serde_json::from_str(text).unwrap();
    assert_eq!(told["response"]["error"]["code"], "invalid_prompt");
    assert!(text.contains("may have run"), "{text}");
    assert_eq!(up.creates().len(), 1);
}

#[tokio::test]
async fn by_a_grant_it_is_sent_again() {
    let lost = [created(), vec![WsStep::Reset]].concat();
    let (up, bench) = start(WsScript::good("").creates([lost, good("word")])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.creates().len(), 2);
    assert!(bench.story(1).await.contains("broken_stream maybe_ran, grant, wait, send 2"));
}

#[tokio::test]
async fn a_prewarm_passes_and_is_no_call() {
    let (up, bench) = start(WsScript::good("word")).await;
    let mut client = codex(&bench).await;
    client.send(PREWARM).await.unwrap();
    assert_eq!(client.answer().await, texts(&relay_sim::websocket::steps::prewarmed()));
    assert_eq!((up.prewarms(), bench.totals().calls), (vec![PREWARM.to_owned()], 0));
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!((up.connections(), bench.totals().calls), (1, 1));
}

#[tokio::test]
async fn a_prewarm_that_fails_passes_too_and_one_without_a_connection_is_sent_away() {
    let (_up, bench) = start(WsScript::good("word").prewarms([overloaded_failed()])).await;
    let mut client = codex(&bench).await;
    client.send(PREWARM).await.unwrap();
    assert_eq!(client.answer().await, texts(&overloaded_failed()));

    let (up, bench) =
        start(WsScript::good("word").upgrades([Upgrade::overloaded(), Upgrade::accept()])).await;
    let mut client = codex(&bench).await;
    client.send(PREWARM).await.unwrap();
    let answer = client.answer().await;
    assert_eq!(code(&answer), Some(1013), "{answer:?}");
    // The next connection is there at once, and nobody asks the upstream for one more before the wait is over.
    let mut client = codex(&bench).await;
    assert_eq!(up.upgrades().len(), 1);
    client.send(in_turn("t", FULL)).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.upgrades().len(), 2);
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_upstream_work_along() {
    // While it is answered, while nothing has been said yet, and while it waits.
    let streaming = [begun("word"), vec![WsStep::Silent]].concat();
    for script in [vec![streaming], vec![vec![WsStep::Silent]]] {
        let (up, bench) = start(WsScript::good("").creates(script)).await;
        let mut client = codex(&bench).await;
        client.send(FULL).await.unwrap();
        assert!(up.wait_for_creates(1, SOON).await);
        client.abort().unwrap();
        assert!(up.wait_for(SOON, gone).await);
        assert!(bench.story(1).await.ends_with("client_left"));
    }
    let (up, bench) = start(WsScript::good("").creates([overloaded_wrapped(Some("60"))])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    bench.faults(1, 1).await;
    client.abort().unwrap();
    assert!(up.wait_for(SOON, gone).await);
    assert_eq!(bench.story(1).await, "opened, send 1, at_capacity refused, wait, client_left");
    assert_eq!(up.creates().len(), 1);
}

#[tokio::test]
async fn a_waiting_client_sees_signs_of_life() {
    let script = || WsScript::good("").creates([overloaded_wrapped(Some("1")), good("word")]);
    let up = WsUpstream::start(script()).await.unwrap();
    let mut config = towards(&up.url());
    config.waiting.interim = Some(ms(200));
    let bench = Bench::with(config.clone()).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    let came = client.answer().await;
    let keepalive = WsGot::Text(r#"{"type":"keepalive"}"#.to_owned());
    let signs = came.iter().take_while(|got| **got == keepalive).count();
    assert!((3..=6).contains(&signs), "{came:?}");
    assert_eq!(came[signs..], texts(&good("word")));
    // Who is not known to skip an event gets none.
    let up = WsUpstream::start(script()).await.unwrap();
    config.upstream = towards(&up.url()).upstream;
    let bench = Bench::with(config.clone()).await;
    let mut client = plain(&bench).await;
    client.send(FULL).await.unwrap();
    let came = client.answer().await;
    let (pings, rest): (Vec<_>, Vec<_>) = came.into_iter().partition(|got| matches!(got, WsGot::Ping(_)));
    assert!((3..=6).contains(&pings.len()) && rest == texts(&good("word")), "{rest:?}");
    // Nor anybody where they are off.
    let up = WsUpstream::start(script()).await.unwrap();
    config.upstream = towards(&up.url()).upstream;
    config.waiting.interim = None;
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
}

#[tokio::test]
async fn a_message_beyond_the_limit_closes_with_the_code_for_it() {
    let large = "x".repeat(100 << 10);
    let up = WsUpstream::start(WsScript::good("").creates([vec![WsStep::Raw(large.clone())]])).await.unwrap();
    let mut config = towards(&up.url());
    config.limits.message = 64 << 10;
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(&large).await.unwrap();
    let WsGot::Close(Some((told, why))) = client.next().await else { panic!("no close") };
    assert!(told == 1009 && why.contains("64KiB") && why.contains("limits.message"), "{told} {why}");
    assert!(up.wait_for(SOON, gone).await);
    assert_eq!(up.messages(), Vec::<String>::new());
}

#[tokio::test]
async fn long_messages_arrive_whole_either_way() {
    let long = format!(r#"{{"type":"response.output_text.delta","delta":"{}"}}"#, "é".repeat(2 << 20));
    let answer = [vec![WsStep::Raw(long.clone())], good("word")].concat();
    let (up, bench) = start(WsScript::good("").creates([answer.clone()])).await;
    let mut client = codex(&bench).await;
    let request = FULL.replace("hi", &"ä".repeat(3 << 20));
    client.send(&request).await.unwrap();
    assert_eq!(client.answer().await, texts(&answer));
    assert_eq!(up.creates(), [request]);
}

#[tokio::test]
async fn silence_ends_a_send_and_its_connection() {
    let up =
        WsUpstream::start(WsScript::good("").creates([vec![WsStep::Silent], good("word")])).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.idle = ms(300);
    config.timeouts.first_byte_unknown = ms(300);
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    let came = client.answer().await;
    let WsGot::Text(text) = &came[0] else { panic!("{came:?}") };
    assert!(text.contains("still running") && text.contains("invalid_prompt"), "{text}");
    assert!(up.wait_for(SOON, gone).await);
    // What the silent one might still say is not taken for the next answer.
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.upgrades().len(), 2);
}

#[tokio::test]
async fn silence_after_output_is_a_break() {
    let stops = [begun("word"), vec![WsStep::Silent]].concat();
    let up = WsUpstream::start(WsScript::good("").creates([stops])).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.idle = ms(300);
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    let came = client.answer().await;
    assert_eq!(came.last(), Some(&WsGot::Gone), "{came:?}");
    assert!(bench.story(1).await.ends_with("committed, broken"));
    assert!(up.wait_for(SOON, gone).await);
}

#[tokio::test]
async fn closes_pass_with_their_code_and_reason() {
    // By the upstream, when nothing is asked, and in the middle of an answer.
    let after = [good("word"), vec![WsStep::Close(4001, "so be it".to_owned())]].concat();
    let middle = [begun("word"), vec![WsStep::Close(1011, "broke".to_owned())]].concat();
    for (script, told, outcome) in
        [(after, (4001, "so be it"), "served"), (middle, (1011, "broke"), "broken")]
    {
        let (_up, bench) = start(WsScript::good("").creates([script])).await;
        let mut client = codex(&bench).await;
        client.send(FULL).await.unwrap();
        let mut last = client.next().await;
        while matches!(last, WsGot::Text(_)) {
            last = client.next().await;
        }
        assert_eq!(last, WsGot::Close(Some((told.0, told.1.to_owned()))));
        assert!(bench.story(1).await.ends_with(outcome));
    }
    // By the client.
    let (up, bench) = start(WsScript::good("word")).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    client.answer().await;
    client.close(4002).await.unwrap();
    let closed =
        |seen: &[WsSeen]| seen.iter().any(|seen| matches!(&seen.what, WsWhat::Close(Some((4002, _)))));
    assert!(up.wait_for(SOON, closed).await, "{:?}", up.seen());
}

#[tokio::test]
async fn a_second_request_waits_for_the_end_of_the_first_and_other_messages_do_not() {
    let (begun, go) = (Signal::new(), Signal::new());
    let answer = good("one");
    let slow = [
        answer[..answer.len() - 1].to_vec(),
        vec![WsStep::Tell(begun.clone()), WsStep::Gate(go.clone())],
        answer[answer.len() - 1..].to_vec(),
    ]
    .concat();
    let (up, bench) = start(WsScript::good("").creates([slow, good("two")])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    begun.wait().await;
    client.send(r#"{"type":"response.cancel"}"#).await.unwrap();
    client.send(GOES_ON).await.unwrap();
    let cancelled = |seen: &[WsSeen]| {
        seen.iter().any(|seen| matches!(&seen.what, WsWhat::Message(text) if text.contains("cancel")))
    };
    assert!(up.wait_for(SOON, cancelled).await);
    assert_eq!(up.creates().len(), 1);
    go.release();
    assert_eq!(client.answer().await, texts(&answer));
    assert_eq!(client.answer().await, texts(&good("two")));
    assert_eq!(up.creates(), [FULL, GOES_ON]);
}

#[tokio::test]
async fn pages_show_what_a_call_came_by() {
    let (up, bench) = start(WsScript::good("").creates([vec![WsStep::Silent]])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert!(up.wait_for_creates(1, SOON).await);
    let page = bench.page().await;
    assert_eq!(page["open_calls"][0]["transport"], "websocket");
}

#[tokio::test]
async fn a_relay_that_stops_says_goodbye_and_finishes_what_it_serves() {
    let go = Signal::new();
    let answer = good("word");
    let last = answer.len() - 1;
    let slow = [begun("word"), vec![WsStep::Gate(go.clone())], answer[last..].to_vec()].concat();
    let (up, bench) = start(WsScript::good("").creates([slow])).await;
    let (mut idle, mut busy) = (codex(&bench).await, codex(&bench).await);
    busy.send(FULL).await.unwrap();
    assert!(up.wait_for_creates(1, SOON).await);
    for text in texts(&answer[..last]) {
        assert_eq!(busy.next().await, text);
    }
    let draining = tokio::spawn(bench.drain());
    assert!(matches!(idle.next().await, WsGot::Close(Some((1001, _)))));
    go.release();
    assert_eq!(busy.answer().await, texts(&answer[last..]));
    assert!(matches!(busy.next().await, WsGot::Close(Some((1001, _)))));
    draining.await.unwrap();
}
