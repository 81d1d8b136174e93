//! What passes over https is what passes over http.

use std::time::Duration;

use bytes::Bytes;
use relay_sim::fixtures::codex as wire;
use relay_sim::websocket::{WsClient, WsGot, WsScript, WsUpstream};
use relay_sim::{Client, Ending, Reply, Request, Script, Upstream};

use crate::support::{Folder, SOON, relay, secured, soon, through_tls, towards, trusting};

const TURN: &str = r#"{"model":"gpt-x","stream":true,"input":[{"role":"user","content":"hi"}]}"#;

fn turn() -> Request {
    Request::post("/v1/responses").header("authorization", "Bearer sk-test").json(TURN)
}

#[tokio::test]
async fn http_and_https_are_spoken_on_one_port_and_calls_wait_over_both() {
    let busy = || Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded","message":"busy"}}"#);
    let good = |word| Reply::sse(wire::turn(word));
    let script = Script::of([busy(), good("a"), good("a"), busy(), good("b"), good("b")]);
    let up = Upstream::start(script).await.unwrap();
    let folder = Folder::new();
    let at = relay(&folder, towards(&up.url())).await;
    for (door, word) in [(at, "a"), (through_tls(&folder, at).await, "b")] {
        let mut client = Client::connect(door).await.unwrap().patience(SOON);
        // The connection goes on after an answer.
        for _ in 0..2 {
            let answer = client.ask(&turn()).await.unwrap();
            assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{}", answer.text());
            assert!(answer.text().contains(&format!("\"{word}\"")), "{}", answer.text());
        }
    }
    assert_eq!(up.requests().len(), 6);
}

#[tokio::test]
async fn each_own_name_is_vouched_for_and_no_other() {
    let folder = Folder::new();
    let mut config = towards("http://127.0.0.1:9");
    config.names = vec!["relay.lan".to_owned()];
    let at = relay(&folder, config).await;
    let by = trusting(&folder, &["http/1.1"]);
    for name in ["localhost", "127.0.0.1", "::1", "relay.lan"] {
        assert!(soon(secured(&by, at, name)).await.is_ok(), "{name}");
    }
    assert!(soon(secured(&by, at, "example.com")).await.is_err());
    let foreign = Folder::new();
    relay(&foreign, towards("http://127.0.0.1:9")).await;
    assert!(soon(secured(&trusting(&foreign, &[]), at, "localhost")).await.is_err(), "another authority");
}

#[tokio::test]
async fn http2_is_agreed_on_by_alpn() {
    let up = Upstream::start(Reply::status(200).json(r#"{"id":"x","choices":[]}"#)).await.unwrap();
    let folder = Folder::new();
    let at = relay(&folder, towards(&up.url())).await;
    let stream = secured(&trusting(&folder, &["h2", "http/1.1"]), at, "localhost").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post(format!("https://localhost:{}/v1/chat/completions", at.port()))
        .header("authorization", "Bearer sk-test")
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    let (answer, mut body) = sender.clone().ready().await.unwrap().send_request(request, false).unwrap();
    body.send_data(Bytes::from_static(br#"{"model":"gpt-x","messages":[]}"#), true).unwrap();
    assert_eq!(soon(answer).await.unwrap().status(), 200);
    let own = http::Request::get(format!("https://localhost:{}/healthz", at.port())).body(()).unwrap();
    let (answer, _) = sender.ready().await.unwrap().send_request(own, true).unwrap();
    assert_eq!(soon(answer).await.unwrap().status(), 200);
    let plain = secured(&trusting(&folder, &["http/1.1"]), at, "localhost").await.unwrap();
    assert_eq!(plain.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn interim_answers_come_while_a_client_waits() {
    let up = Upstream::start(Script::of([
        Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded","message":"busy"}}"#),
        Reply::status(200).json("{}").after(Duration::from_millis(300)),
    ]))
    .await
    .unwrap();
    let folder = Folder::new();
    let mut config = towards(&up.url());
    config.waiting.interim = Some(Duration::from_millis(20));
    let door = through_tls(&folder, relay(&folder, config).await).await;
    let mut client = Client::connect(door).await.unwrap().patience(SOON);
    let answer = client.ask(&turn().header("x-stainless-lang", "js")).await.unwrap();
    assert_eq!((answer.status, answer.ending), (200, Ending::Complete));
    assert!(answer.interim.len() >= 3, "{:?}", answer.interim);
}

#[tokio::test]
async fn a_broken_stream_looks_broken() {
    let up = Upstream::start(Reply::sse(wire::partial("begun")).reset()).await.unwrap();
    let folder = Folder::new();
    let door = through_tls(&folder, relay(&folder, towards(&up.url())).await).await;
    let answer = Client::connect(door).await.unwrap().patience(SOON).ask(&turn()).await.unwrap();
    assert!(answer.text().contains("begun"), "{}", answer.text());
    assert!(matches!(answer.ending, Ending::Truncated | Ending::Reset), "{:?}", answer.ending);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let up = Upstream::start(Reply::sse(wire::partial("begun")).hang()).await.unwrap();
    let folder = Folder::new();
    let door = through_tls(&folder, relay(&folder, towards(&up.url())).await).await;
    let mut client = Client::connect(door).await.unwrap().patience(SOON);
    client.send(&turn()).await.unwrap();
    assert!(client.read_until(b"begun").await);
    client.leave().await;
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

#[tokio::test]
async fn websockets_are_spoken() {
    let up = WsUpstream::start(WsScript::good("word")).await.unwrap();
    let folder = Folder::new();
    let door = through_tls(&folder, relay(&folder, towards(&up.url())).await).await;
    let key = [("Authorization", "Bearer sk-test")];
    let mut client = WsClient::connect(door, "/v1/responses", &key).await.unwrap();
    let request = r#"{"type":"response.create","model":"gpt-x","input":[{"role":"user","content":"hi"}],"stream":true}"#;
    client.send(request).await.unwrap();
    let came = client.answer().await;
    let has_word = |got: &WsGot| matches!(got, WsGot::Text(text) if text.contains("word"));
    assert!(came.iter().any(has_word), "{came:?}");
}
