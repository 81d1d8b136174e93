//! Each end against the other.

use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{self, good};
use super::*;
use crate::{Client, Request, Signal};

const SOON: Duration = Duration::from_secs(5);
const PATH: &str = "/v1/responses";

fn create(more: &Value) -> String {
    let mut create = json!({"type": "response.create", "model": "m", "input": []});
    for (name, value) in more.as_object().unwrap() {
        create[name] = value.clone();
    }
    create.to_string()
}

async fn open(up: &WsUpstream) -> WsClient {
    WsClient::connect(up.addr(), PATH, &[("Authorization", "Bearer sk-test")]).await.unwrap().patience(SOON)
}

/// One question on a new connection.
async fn ask(up: &WsUpstream) -> Vec<WsGot> {
    let mut client = open(up).await;
    client.send(create(&json!({}))).await.unwrap();
    client.answer().await
}

fn json_of(got: Option<&WsGot>) -> Value {
    let Some(WsGot::Text(text)) = got else { panic!("no text: {got:?}") };
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_turn_is_answered_and_everything_is_seen() {
    let up = WsUpstream::start(WsScript::good("PONG")).await.unwrap();
    let mut client = open(&up).await;
    client.send(create(&json!({"generate": false}))).await.unwrap();
    assert_eq!(client.answer().await.len(), 2);
    client.send(create(&json!({}))).await.unwrap();
    let answer = client.answer().await;
    let text = |step| if let WsStep::Raw(text) = step { WsGot::Text(text) } else { WsGot::Gone };
    let texts: Vec<_> = good("PONG").into_iter().map(text).collect();
    assert_eq!(answer, texts);
    client.ping("hi").await.unwrap();
    assert_eq!(client.next().await, WsGot::Pong("hi".into()));
    client.close(1000).await.unwrap();
    assert_eq!(client.next().await, WsGot::Close(Some((1000, String::new()))));
    assert_eq!(client.next().await, WsGot::Gone);
    drop(client);
    assert!(up.wait_for(SOON, |seen| seen.last().unwrap().what == WsWhat::Gone).await);
    assert_eq!((up.creates().len(), up.prewarms().len(), up.messages().len()), (1, 1, 2));
    let upgrade = &up.upgrades()[0].what;
    assert_eq!(upgrade.header("authorization"), Some("Bearer sk-test"));
    let kinds: Vec<_> = up.seen().into_iter().map(|seen| seen.what).skip(3).collect();
    let expected = [WsWhat::Ping("hi".into()), WsWhat::Close(Some((1000, String::new()))), WsWhat::Gone];
    assert_eq!(kinds, expected);
    assert!(up.bytes_in() > up.messages().concat().len() as u64);
}

#[tokio::test]
async fn upgrades_follow_the_script() {
    let script = WsScript::good("PONG").upgrades([
        Upgrade::overloaded(),
        Upgrade::Reset,
        Upgrade::accept_with(&[("X-Turn", "a")]),
    ]);
    let up = WsUpstream::start(script).await.unwrap();
    let refused = WsClient::connect(up.addr(), PATH, &[]).await.unwrap_err();
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("server_is_overloaded")));
    assert_eq!(WsClient::connect(up.addr(), PATH, &[]).await.unwrap_err().status, 0);
    for _ in 0..2 {
        assert_eq!(open(&up).await.header("x-turn"), Some("a"));
    }
    assert_eq!(up.upgrades().len(), 4);
}

#[tokio::test]
async fn who_falls_silent_is_left() {
    let script = WsScript::good("PONG").upgrades([Upgrade::Silent, Upgrade::accept()]);
    let up = WsUpstream::start(script.creates([vec![WsStep::Silent]])).await.unwrap();
    let gone = |number: usize| {
        move |seen: &[WsSeen]| seen.iter().any(|seen| seen.connection == number && seen.what == WsWhat::Gone)
    };
    let waiting = tokio::spawn({
        let addr = up.addr();
        async move { WsClient::connect(addr, PATH, &[]).await.map(drop) }
    });
    assert!(up.wait_for_upgrades(1, SOON).await);
    waiting.abort();
    assert!(up.wait_for(SOON, gone(0)).await);

    let mut client = open(&up).await;
    client.send(create(&json!({}))).await.unwrap();
    assert!(up.wait_for_creates(1, SOON).await);
    client.abort().unwrap();
    assert!(up.wait_for(SOON, gone(1)).await);
}

#[tokio::test]
async fn failures_come_in_order_and_the_last_one_repeats() {
    let script = WsScript::good("PONG").creates([
        steps::overloaded_failed(),
        steps::overloaded_wrapped(Some("1")),
        steps::limit_reached(),
    ]);
    let up = WsUpstream::start(script).await.unwrap();
    let failed = ask(&up).await;
    assert_eq!(json_of(failed.first())["type"], "response.created");
    assert_eq!(json_of(failed.last())["response"]["error"]["code"], "server_is_overloaded");
    let wrapped = json_of(ask(&up).await.last());
    assert_eq!((&wrapped["status"], &wrapped["headers"]["retry-after"]), (&json!(503), &json!("1")));
    for _ in 0..2 {
        let limit = json_of(ask(&up).await.last());
        assert_eq!(limit["error"]["code"], "websocket_connection_limit_reached");
        assert!(limit.get("headers").is_none());
    }
}

#[tokio::test]
async fn every_ending_is_told_apart() {
    let cases = [
        (WsStep::Close(1011, "no".to_owned()), WsGot::Close(Some((1011, "no".to_owned())))),
        (WsStep::Reset, WsGot::Gone),
        (WsStep::Drop, WsGot::Gone),
        (WsStep::Silent, WsGot::Silence),
    ];
    for (step, expected) in cases {
        let received = Signal::new();
        let answer = [steps::created(), vec![WsStep::Gate(received.clone()), step]].concat();
        let up = WsUpstream::start(WsScript::good("PONG").creates([answer])).await.unwrap();
        let mut client = open(&up).await;
        client.send(create(&json!({}))).await.unwrap();
        assert!(matches!(client.next().await, WsGot::Text(_)));
        received.release();
        let mut client = client.patience(Duration::from_millis(60));
        assert_eq!(client.next().await, expected);
    }
}

#[tokio::test]
async fn frames_of_every_kind_are_sent_and_pongs_are_seen() {
    let written = Signal::new();
    let answer = vec![
        WsStep::Send(json!({"type": "keepalive"})),
        WsStep::Binary("raw".into()),
        WsStep::Ping("hi".into()),
        WsStep::Tell(written.clone()),
        WsStep::Raw(r#"{"type":"error" }"#.to_owned()),
    ];
    let up = WsUpstream::start(WsScript::good("PONG").creates([answer])).await.unwrap();
    let came = ask(&up).await;
    assert!(written.released());
    let expected = [
        WsGot::Text(r#"{"type":"keepalive"}"#.to_owned()),
        WsGot::Binary("raw".into()),
        WsGot::Ping("hi".into()),
        WsGot::Text(r#"{"type":"error" }"#.to_owned()),
    ];
    assert_eq!(came, expected);
    assert!(up.wait_for(SOON, |seen| seen.iter().any(|seen| seen.what == WsWhat::Pong("hi".into()))).await);
}

#[tokio::test]
async fn one_that_remembers_knows_its_own_responses_on_their_connection_only() {
    let up = WsUpstream::start(WsScript::good("PONG").remembering()).await.unwrap();
    let follow = |id: &str| create(&json!({"previous_response_id": id}));
    let mut first = open(&up).await;
    first.send(create(&json!({"generate": false}))).await.unwrap();
    assert_eq!(json_of(first.answer().await.last())["response"]["id"], "resp_1");
    first.send(follow("resp_1")).await.unwrap();
    assert_eq!(json_of(first.answer().await.last())["response"]["id"], "resp_2");
    let mut second = open(&up).await;
    second.send(follow("resp_2")).await.unwrap();
    assert_eq!(json_of(second.answer().await.last())["error"]["code"], "previous_response_not_found");
    first.send(follow("resp_2")).await.unwrap();
    assert_eq!(json_of(first.answer().await.last())["type"], "response.completed");
}

#[tokio::test]
async fn plain_requests_are_answered_too() {
    let up = WsUpstream::start(WsScript::good("PONG")).await.unwrap();
    let mut client = Client::connect(up.addr()).await.unwrap().patience(SOON);
    let answer = client.ask(&Request::post(PATH).json(json!({"model": "m"}))).await.unwrap();
    assert!(answer.text().contains("PONG") && answer.text().ends_with("\n\n"));
    assert_eq!(client.ask(&Request::get("/v1/models?a=b")).await.unwrap().status, 200);
    assert_eq!(client.ask(&Request::get("/other")).await.unwrap().status, 404);
    assert_eq!(up.posts(), [br#"{"model":"m"}"#.to_vec()]);
    assert_eq!((up.connections(), up.seen().len()), (1, 3));
}
