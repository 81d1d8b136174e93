//! WebSockets on which a side does what it should not, or what the other did not wait for.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use relay_core::Fault;
use relay_core::config::{OwnRule, Route};
use relay_core::dialect::{Rule, Sign, Statuses, Test};
use relay_core::evidence::Says;
use relay_sim::Signal;
use relay_sim::websocket::steps::{created, good, overloaded_failed, overloaded_wrapped};
use relay_sim::websocket::{Upgrade, WsClient, WsGot, WsScript, WsSeen, WsStep, WsUpstream, WsWhat};
use serde_json::json;
use steady_relay::clock::{RatedClock, SystemClock};
use steady_relay::observe::Notice;

use crate::support::*;
use crate::websocket::{CODEX, FULL, GOES_ON, PREWARM, code, codex, gone, in_turn, plain, start, texts};

fn raw(text: &str) -> WsStep {
    WsStep::Raw(text.to_owned())
}

/// `response.created` of an answer with this name, and its failure.
fn named(id: &str) -> (WsStep, WsStep) {
    let response = |kind: &str, status: &str| {
        let error = json!({"code": "server_is_overloaded", "message": "m"});
        WsStep::Send(json!({"type": kind, "response": {"id": id, "status": status, "error": error}}))
    };
    (response("response.created", "in_progress"), response("response.failed", "failed"))
}

#[tokio::test]
async fn what_a_service_says_of_an_answer_that_has_failed_is_not_taken_for_the_next_one() {
    let (begins, fails) = named("resp_a");
    let error = overloaded_wrapped(None).pop().unwrap();
    let go = Signal::new();
    let twice = vec![begins, error, WsStep::Gate(go.clone()), fails];
    let (up, bench) = start(WsScript::good("").creates([twice, good("word")])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    // The second word comes when the call has waited and was sent again.
    assert!(up.wait_for_creates(2, SOON).await);
    go.release();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.creates().len(), 2, "it was paid for once");
}

/// Some services give every answer the same name, or an empty one.
#[tokio::test]
async fn an_answer_with_the_name_of_the_last_is_an_answer_when_nothing_else_comes() {
    for name in ["r", ""] {
        let (_, fails) = named(name);
        let up =
            WsUpstream::start(WsScript::good("").creates([vec![fails.clone()], vec![fails], good("word")]))
                .await;
        let up = up.unwrap();
        let clock = RatedClock::new(Arc::new(SystemClock), NonZeroU32::new(100).unwrap());
        let bench = Bench::by(Arc::new(clock), towards(&up.url())).await;
        let mut client = codex(&bench).await;
        client.send(FULL).await.unwrap();
        assert_eq!(client.answer().await, texts(&good("word")), "{name:?}");
        assert_eq!(up.creates().len(), 3);
    }
}

#[tokio::test]
async fn that_holds_for_the_next_call_too() {
    let (begins, fails) = named("resp_a");
    let bad = json!({"type":"error","status":400,"error":{"type":"invalid_request_error","message":"m"}});
    let go = Signal::new();
    let twice = vec![begins, WsStep::Send(bad.clone()), WsStep::Gate(go.clone()), fails];
    let (up, bench) = start(WsScript::good("").creates([twice, good("word")])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await.last(), Some(&WsGot::Text(bad.to_string())));
    client.send(FULL).await.unwrap();
    assert!(up.wait_for_creates(2, SOON).await);
    go.release();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!((up.creates().len(), up.connections()), (2, 1));
}

#[tokio::test]
async fn an_answer_that_goes_on_behind_what_a_rule_calls_a_failure_is_left() {
    let busy = raw(r#"{"type":"response.queued","state":"BUSY"}"#);
    let goes_on = [vec![busy], good("first")].concat();
    let up = WsUpstream::start(WsScript::good("").creates([goes_on, good("word")])).await.unwrap();
    let mut config = towards(&up.url());
    let rule = Rule {
        sign: Sign::Path("state".into(), Test::Is("BUSY".into())),
        on: Statuses::Any,
        fault: Fault::AtCapacity,
        says: Says::Refused,
        floor: Duration::ZERO,
        source: "the user".into(),
    };
    config.rules.push(OwnRule { dialect: None, upstream: None, rule: rule.into(), alert: false });
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.connections(), 2, "the first answer has a connection of its own");
}

#[tokio::test]
async fn a_service_that_refuses_what_it_was_sent_is_not_sent_it_again() {
    for told in [1002, 1003, 1007, 1008, 1009] {
        let close = vec![WsStep::Close(told, "no".to_owned())];
        let (up, bench) = start(WsScript::good("").creates([close])).await;
        let mut client = codex(&bench).await;
        client.send(FULL).await.unwrap();
        assert_eq!(code(&client.answer().await), Some(told));
        assert_eq!((up.creates().len(), up.upgrades().len()), (1, 1), "{told}");
        assert!(bench.story(1).await.ends_with("final, passed"));
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_passed_on_is_told_in_words_and_not_asked_for_again() {
    let large = vec![WsStep::Raw("x".repeat(100 << 10))];
    for (client, words) in [(&CODEX[..], "invalid_prompt"), (&CODEX[..1], "\"status\":429")] {
        for request in [FULL, GOES_ON] {
            let up = WsUpstream::start(WsScript::good("").creates([large.clone()])).await.unwrap();
            let mut config = towards(&up.url());
            config.limits.message = 64 << 10;
            let bench = Bench::with(config).await;
            let mut client = WsClient::connect(bench.addr(), "/v1/responses", client).await.unwrap();
            client.send(request).await.unwrap();
            let WsGot::Text(told) = client.next().await else { panic!("no words") };
            assert!(told.contains(words) && told.contains("64KiB (limits.message)"), "{told}");
            assert_eq!(up.creates().len(), 1);
            assert_eq!(bench.story(1).await, "opened, send 1, broken_stream maybe_ran, refused");
        }
    }
}

#[tokio::test]
async fn a_prewarm_waits_no_longer_than_a_handshake_may_take() {
    let up = WsUpstream::start(WsScript::good("").upgrades([Upgrade::Silent])).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.connect = ms(100);
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(PREWARM).await.unwrap();
    let ends = async {
        loop {
            let came = client.next().await;
            if came != WsGot::Silence {
                break came;
            }
        }
    };
    let came = tokio::time::timeout(Duration::from_secs(15), ends).await.unwrap();
    assert!(matches!(came, WsGot::Close(Some((1013, _)))), "{came:?}");
    // The second silence: the network swallows handshakes.
    let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
    assert_eq!((refused.status, up.upgrades().len()), (426, 2));
}

#[tokio::test]
async fn where_websocket_proves_unspoken_only_then_the_client_is_sent_to_http() {
    let upgrades = [Upgrade::overloaded(), Upgrade::refuse(404)];
    let (up, bench) = start(WsScript::good("").upgrades(upgrades)).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(code(&client.answer().await), Some(1013));
    assert_eq!(bench.story(1).await, "opened, wait, send 1, returned");
    let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
    assert_eq!((refused.status, up.upgrades().len()), (426, 2));
    let told = bench.recorder().notices();
    let told = told.iter().filter(|notice| format!("{notice:?}").contains("does not speak WebSocket"));
    assert_eq!(told.count(), 1);
}

#[tokio::test]
async fn a_wrong_credential_in_the_middle_is_told_and_is_no_want_of_capacity() {
    let denied = json!({"error":{"code":"invalid_api_key","message":"who are you"}});
    let upgrades = [Upgrade::accept(), Upgrade::refuse_with(401, &[], &denied), Upgrade::accept()];
    let script = WsScript::good("").upgrades(upgrades).creates([vec![WsStep::Drop], good("word")]);
    let (up, bench) = start(script).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    let WsGot::Text(told) = client.next().await else { panic!("no words") };
    assert!(told.contains("invalid_api_key") && told.contains("401"), "{told}");
    // The next connection is the service's own again, not one that is held open for it.
    let mut client = codex(&bench).await;
    assert_eq!(up.upgrades().len(), 3);
    client.send(in_turn("t", FULL)).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
}

#[tokio::test]
async fn where_the_body_says_where_to_clients_use_http() {
    let up = WsUpstream::start(WsScript::good("word")).await.unwrap();
    let mut config = towards(&up.url());
    config.routes = vec![Route {
        model: Some("other-*".to_owned()),
        upstream: Some("openai".to_owned()),
        ..Route::default()
    }];
    let bench = Bench::with(config).await;
    let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
    assert_eq!((refused.status, up.upgrades().len()), (426, 0));
}

#[tokio::test]
async fn a_websocket_where_no_dialect_has_one_is_a_tunnel() {
    let (up, bench) = start(WsScript::good("word")).await;
    let mut client = WsClient::connect(bench.addr(), "/v1/messages", &CODEX[..1]).await.unwrap();
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!((up.creates().len(), bench.totals().calls), (1, 0));
}

#[tokio::test]
async fn messages_that_announce_are_held_up_to_the_limit_however_small_they_are() {
    let (go, begins) = (Signal::new(), created());
    let limits = raw(r#"{"type":"codex.rate_limits","rate_limits":{}}"#);
    let metadata = raw(r#"{"type":"codex.response.metadata","headers":{}}"#);
    let announced = [vec![limits, metadata], begins].concat();
    // Held, and told once, by the answer that counts.
    let refused = [announced.clone(), overloaded_failed()[1..].to_vec()].concat();
    let served = [announced.clone(), good("word")[1..].to_vec()].concat();
    let (_up, bench) = start(WsScript::good("").creates([refused, served.clone()])).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&served));
    // Not for ever.
    let empty = vec![raw(""); 300];
    let endless = [empty, vec![WsStep::Gate(go.clone())], good("word")].concat();
    let up = WsUpstream::start(WsScript::good("").creates([endless])).await.unwrap();
    let mut config = towards(&up.url());
    config.hold.bytes = 8 << 10;
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.next().await, WsGot::Text(String::new()));
    go.release();
}

#[tokio::test]
async fn what_a_client_says_beside_a_request_arrives_before_there_is_an_answer() {
    let go = Signal::new();
    let slow = [created(), vec![WsStep::Gate(go.clone())], good("word")[1..].to_vec()].concat();
    let (up, bench) = start(WsScript::good("").creates([slow])).await;
    let mut client = plain(&bench).await;
    client.send(FULL).await.unwrap();
    assert!(up.wait_for_creates(1, SOON).await);
    let cancel = r#"{"type":"response.cancel"}"#;
    client.send(cancel).await.unwrap();
    let is_there = |seen: &[WsSeen]| seen.iter().any(|seen| seen.what == WsWhat::Message(cancel.to_owned()));
    assert!(up.wait_for(SOON, is_there).await);
    go.release();
    assert_eq!(client.answer().await, texts(&good("word")));
}

#[tokio::test]
async fn a_stored_answer_is_gone_on_from_over_any_connection() {
    let stored = GOES_ON.replace(r#","store":false"#, "");
    for upgrades in [vec![Upgrade::overloaded(), Upgrade::accept()], vec![Upgrade::accept()]] {
        let asked = upgrades.len();
        let script = WsScript::good("word").upgrades(upgrades);
        let (up, bench) = start(script).await;
        let mut client = plain(&bench).await;
        client.send(&stored).await.unwrap();
        assert_eq!(client.answer().await, texts(&good("word")));
        assert_eq!((up.creates(), up.upgrades().len()), (vec![stored.clone()], asked));
    }
    // One that only a connection knows is not, and the client is told.
    let (up, bench) =
        start(WsScript::good("word").upgrades([Upgrade::overloaded(), Upgrade::accept()])).await;
    let mut client = plain(&bench).await;
    client.send(GOES_ON).await.unwrap();
    assert_eq!(code(&client.answer().await), Some(1013));
    assert!(up.creates().is_empty());
}

#[tokio::test]
async fn the_wait_that_the_service_asked_for_holds_for_the_turn_that_resumes() {
    let told = overloaded_wrapped(Some("2"));
    let lost = [told, vec![WsStep::Wait(ms(100)), WsStep::Drop]].concat();
    let up = WsUpstream::start(WsScript::good("").creates([lost, good("word")])).await.unwrap();
    let mut config = towards(&up.url());
    config.gate = false;
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(in_turn("t", GOES_ON)).await.unwrap();
    assert_eq!(code(&client.answer().await), Some(1013));
    let mut client = codex(&bench).await;
    client.send(in_turn("t", FULL)).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    let at: Vec<_> = up
        .seen()
        .into_iter()
        .filter(|seen| matches!(seen.what, WsWhat::Message(_)))
        .map(|seen| seen.at)
        .collect();
    assert!(at.len() == 2 && at[1] - at[0] >= Duration::from_secs(2), "{at:?}");
}

#[tokio::test]
async fn a_session_goes_by_the_settings_that_hold_when_it_asks() {
    let up = WsUpstream::start(WsScript::good("").creates([overloaded_failed()])).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(3))).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    client.answer().await;
    assert_eq!(up.creates().len(), 3);
    bench.reload(bounded(&up.url(), |profile| profile.sends = Some(1)));
    client.send(in_turn("t", FULL)).await.unwrap();
    client.answer().await;
    assert_eq!(up.creates().len(), 4);
}

#[tokio::test]
async fn a_relay_that_stops_sends_away_those_that_wait() {
    let (up, bench) = start(WsScript::good("").creates([overloaded_wrapped(Some("60"))])).await;
    let (mut waiting, mut warming) = (codex(&bench).await, plain(&bench).await);
    waiting.send(FULL).await.unwrap();
    bench.faults(1, 1).await;
    warming.send(r#"{"type":"session.update"}"#).await.unwrap();
    let seen = bench.recorder();
    bench.drain().await;
    assert_eq!(code(&waiting.answer().await), Some(1012));
    assert_eq!(code(&warming.answer().await), Some(1001));
    assert!(seen.story(1).ends_with("gave_up") && up.wait_for(SOON, gone).await);
}

#[tokio::test]
async fn a_message_takes_its_room_while_it_is_there_and_one_without_room_is_sent_away() {
    let go = Signal::new();
    let slow = [created(), vec![WsStep::Gate(go.clone())], good("word")[1..].to_vec()].concat();
    let up = WsUpstream::start(WsScript::good("").creates([slow])).await.unwrap();
    let mut config = towards(&up.url());
    config.limits.message = 256 << 10;
    (config.bodies.each, config.bodies.total) = (256 << 10, 256 << 10);
    let bench = Bench::with(config).await;
    let long = FULL.replace("\"hi\"", &format!("\"{}\"", "x".repeat(200 << 10)));
    let (mut first, mut second) = (codex(&bench).await, codex(&bench).await);
    first.send(&long).await.unwrap();
    assert!(up.wait_for_creates(1, SOON).await);
    second.send(&long).await.unwrap();
    let WsGot::Close(Some((told, why))) = second.next().await else { panic!("no close") };
    assert!(told == 1013 && why.contains("bodies.total"), "{told} {why}");
    go.release();
    assert_eq!(first.answer().await, texts(&good("word")));
    let mut third = codex(&bench).await;
    third.send(&long).await.unwrap();
    assert_eq!(third.answer().await, texts(&good("word")));
}

#[tokio::test]
async fn where_there_is_never_room_for_a_message_clients_use_http() {
    let up = WsUpstream::start(WsScript::good("word")).await.unwrap();
    let mut config = towards(&up.url());
    (config.bodies.each, config.bodies.total) = (1 << 20, 1 << 20);
    let bench = Bench::with(config).await;
    let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
    assert_eq!((refused.status, up.upgrades().len()), (426, 0));
}

#[tokio::test]
async fn a_call_that_goes_over_to_http_goes_on_from_what_it_has_spent() {
    let up = WsUpstream::start(WsScript::good("").creates([overloaded_failed()])).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(2))).await;
    let mut client = codex(&bench).await;
    client.send(in_turn("t", FULL)).await.unwrap();
    client.answer().await;
    assert!(bench.story(1).await.ends_with("gave_up"));
    let body = FULL.replace(r#""type":"response.create","#, "");
    assert_eq!(bench.ask(&crate::support::codex("t", &body)).await.status, 200);
    assert!(bench.story(2).await.starts_with("opened after 2"));
}

#[tokio::test]
async fn until_an_answer_begins_its_own_limit_holds_and_not_that_on_silence() {
    let slow = [vec![WsStep::Wait(ms(900))], good("word")].concat();
    let up = WsUpstream::start(WsScript::good("").creates([slow, vec![WsStep::Silent]])).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.idle = ms(300);
    config.timeouts.first_byte_unknown = ms(1500);
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    client.send(in_turn("t", FULL)).await.unwrap();
    let WsGot::Text(told) = client.next().await else { panic!("no words") };
    assert!(told.contains("did not answer in time"), "{told}");
    assert_eq!(up.creates().len(), 2);
}

#[tokio::test]
async fn what_a_client_does_wrong_is_told_to_the_log_too() {
    let up = WsUpstream::start(WsScript::good("")).await.unwrap();
    let mut config = towards(&up.url());
    config.limits.message = 64 << 10;
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send("x".repeat(70 << 10)).await.unwrap();
    assert_eq!(code(&client.answer().await), Some(1009));
    let told = bench.recorder().notices();
    let is_it = |notice: &Notice| matches!(notice, Notice::TurnedAway { status: 413, code: "message_too_long", path } if &**path == "/v1/responses");
    assert!(told.iter().any(is_it), "{told:?}");
}
