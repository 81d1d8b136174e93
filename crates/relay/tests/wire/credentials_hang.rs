//! Issuers of tokens that are slow, or whose answers are none: who waits for them, how long, and what is told of it.

use relay_core::config::{Config, Websocket};
use relay_core::event::{Event, HeldBy};
use relay_sim::websocket::{Upgrade, WsClient, WsGot, WsScript, WsUpstream};
use relay_sim::{Reply, Script, Seen, Signal, Upstream};
use tokio::time::timeout;

use crate::credentials::{WHO, bare, first_token, service, with};
use crate::credentials_awaited::{in_haste, silent};
use crate::started::Folder;
use crate::support::{Bench, SOON, ms};

const AWAITED: &str = "credential `mine`: its renewal still goes on";
const CREATE: &str = r#"{"type":"response.create","model":"gpt-x","input":"hi"}"#;

#[tokio::test]
async fn an_answer_that_is_too_long_and_one_that_breaks_off_are_told_apart() {
    let long = || Reply::status(200).json("x".repeat(70_000));
    let cut = || Reply::status(200).json(r#"{"access_token":"at-1"}"#).chunked().fin_without_terminator();
    let service = service(&["at-1"], 401).await;
    for (is_long, words) in [(true, "is longer than 64 KiB"), (false, "the answer of http")] {
        let reply = move |_: &Seen, _| if is_long { long() } else { cut() };
        let issuer = Upstream::start(Script::by(reply)).await.unwrap();
        let folder = Folder::new();
        let mut config = with(&service.url(), first_token(&issuer), &folder);
        in_haste(&mut config);
        let bench = Bench::with(config).await;
        let told = bench.ask(&bare()).await.text();
        assert!(told.contains(words) && !told.contains("was not reached"), "{told}");
    }
}

/// Settings by which all goes to this service, by way of WebSockets as they say.
fn by(websocket: Websocket, service: &WsUpstream, issuer: &Upstream, folder: &Folder) -> Config {
    Config { websocket, ..with(&service.url(), first_token(issuer), folder) }
}

#[tokio::test]
async fn a_call_on_a_websocket_waits_as_long_as_its_patience_and_counts_no_send() {
    let (service, issuer) = (WsUpstream::start(WsScript::good("word")).await.unwrap(), silent().await);
    let folder = Folder::new();
    let mut config = by(Websocket::Speak, &service, &issuer, &folder);
    in_haste(&mut config);
    let bench = Bench::with(config).await;
    let mut client = WsClient::connect(bench.addr(), "/v1/responses", &[]).await.unwrap().patience(SOON);
    client.send(CREATE).await.unwrap();
    let WsGot::Text(told) = client.next().await else { panic!("no words") };
    assert!(told.contains(AWAITED) && told.contains("raise `patience`"), "{told}");
    assert_eq!(bench.story(1).await, "opened, gave_up");
    let took = bench.recorder().closing(1).took;
    assert!(took >= ms(600) && took < SOON, "{took:?}");
    // Of the service, which nobody asked, no failure is told: no breaker hears of one.
    assert_eq!((service.upgrades().len(), bench.totals().sends), (0, 0));
}

#[tokio::test]
async fn a_call_on_a_websocket_goes_on_when_the_credential_is_there() {
    let door = Signal::new();
    let held = door.clone();
    let reply = move |_: &Seen, _| Reply::status(200).json(r#"{"access_token":"at-1"}"#).when(held.clone());
    let issuer = Upstream::start(Script::by(reply)).await.unwrap();
    let service = WsUpstream::start(WsScript::good("word")).await.unwrap();
    let folder = Folder::new();
    let mut config = by(Websocket::Speak, &service, &issuer, &folder);
    // The door waits no longer than this, and the call as long as its patience.
    config.timeouts.connect = ms(200);
    let bench = Bench::with(config).await;
    let mut client = WsClient::connect(bench.addr(), "/v1/responses", &[]).await.unwrap().patience(SOON);
    client.send(CREATE).await.unwrap();
    let is_told = |event: &Event| matches!(event, Event::HeldBack { by: HeldBy::Credential, .. });
    bench.until(|events| events.iter().any(|(_, event)| is_told(event))).await;
    door.release();
    assert!(client.answer().await.len() > 1);
    assert_eq!(bench.totals().sends, 1);
}

#[tokio::test]
async fn a_401_to_a_handshake_goes_back_where_the_issuer_hangs() {
    let reply = |_: &Seen, number: usize| match number {
        0 => Reply::status(200).json(r#"{"access_token":"at-1","expires_in":3600}"#),
        _ => Reply::status(200).json("{}").when(Signal::new()),
    };
    for websocket in [Websocket::Speak, Websocket::Tunnel] {
        let issuer = Upstream::start(Script::by(reply)).await.unwrap();
        let refused = Upgrade::refuse_with(401, &[], WHO);
        let script = WsScript::good("word").upgrades([Upgrade::accept(), refused]);
        let service = WsUpstream::start(script).await.unwrap();
        let folder = Folder::new();
        let mut config = by(websocket, &service, &issuer, &folder);
        config.timeouts.connect = ms(200);
        let first = Bench::with(config.clone()).await;
        drop(WsClient::connect(first.addr(), "/v1/responses", &[]).await.unwrap());
        let bench = Bench::with(config).await;
        let told = WsClient::connect(bench.addr(), "/v1/responses", &[]).await.err().unwrap();
        assert_eq!((told.status, issuer.requests().len()), (401, 2), "{websocket:?}");
    }
}

#[tokio::test]
async fn a_tunnel_waits_no_longer_than_its_client() {
    let (service, issuer) = (WsUpstream::start(WsScript::good("word")).await.unwrap(), silent().await);
    let folder = Folder::new();
    let config = by(Websocket::Tunnel, &service, &issuer, &folder);
    let bench = Bench::with(config).await;
    let began = tokio::time::Instant::now();
    let asked = WsClient::connect(bench.addr(), "/v1/realtime", &[("x-steady-patience", "100ms")]);
    let told = asked.await.err().unwrap();
    assert!(began.elapsed() < ms(5000), "{:?}", began.elapsed());
    assert!(told.status == 502 && told.body.contains(AWAITED), "{told:?}");
}

#[tokio::test]
async fn a_tunnel_that_is_not_open_yet_does_not_keep_the_relay_from_ending() {
    let (service, door) = (WsUpstream::start(WsScript::good("word")).await.unwrap(), Signal::new());
    let held = door.clone();
    let reply = move |_: &Seen, _| Reply::status(200).json(r#"{"access_token":"at-1"}"#).when(held.clone());
    let issuer = Upstream::start(Script::by(reply)).await.unwrap();
    let folder = Folder::new();
    let mut config = by(Websocket::Tunnel, &service, &issuer, &folder);
    config.timeouts.connect = 10 * SOON;
    let bench = Bench::with(config).await;
    let addr = bench.addr();
    let asks = tokio::spawn(async move { WsClient::connect(addr, "/v1/realtime", &[]).await.err().unwrap() });
    assert!(issuer.wait_for_requests(1, SOON).await);
    let ends = tokio::spawn(bench.drain());
    let told = timeout(SOON, asks).await.unwrap().unwrap();
    assert!(told.status == 503 && told.body.contains("being stopped"), "{told:?}");
    door.release();
    timeout(SOON, ends).await.unwrap().unwrap();
}
