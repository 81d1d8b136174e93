//! How a WebSocket opens: who is let in, who waits, and who is sent to HTTP.

use std::time::Duration;

use relay_core::config::{ProxyChoice, ProxyList, Websocket};
use relay_sim::websocket::steps::{good, overloaded_failed};
use relay_sim::websocket::{Upgrade, WsClient, WsScript, WsUpstream};
use tokio::time::Instant;

use crate::support::*;
use crate::websocket::{CODEX, FULL, codex, start, texts};

#[tokio::test]
async fn the_handshake_is_the_relays_own_on_either_side() {
    let (up, bench) = start(WsScript::good("word")).await;
    let headers = [
        ("Authorization", "Bearer sk-test"),
        ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
        ("OpenAI-Beta", "responses_websockets=2026-02-06"),
        ("x-steady-profile", "batch"),
    ];
    let client = WsClient::connect(bench.addr(), "/v1/responses", &headers).await.unwrap();
    assert_eq!(client.header("sec-websocket-extensions"), None);
    let upgrade = &up.upgrades()[0].what;
    assert_eq!(upgrade.header("openai-beta"), Some("responses_websockets=2026-02-06"));
    assert_eq!(upgrade.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(upgrade.header("host"), Some(up.addr().to_string().as_str()));
    for absent in ["sec-websocket-extensions", "x-steady-profile"] {
        assert_eq!(upgrade.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn a_refused_upgrade_is_waited_out_while_the_client_has_its_own() {
    let busy = Upgrade::refuse_with(503, &[("Retry-After", "1")], "busy");
    let (up, bench) = start(WsScript::good("word").upgrades([busy, Upgrade::accept()])).await;
    let began = Instant::now();
    let mut client = codex(&bench).await;
    assert!(began.elapsed() < ms(500));
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert!(began.elapsed() >= ms(1000));
    assert_eq!(up.upgrades().len(), 2);
    // Meanwhile nobody else asks, either.
    assert_eq!(bench.story(1).await, "opened, wait, send 1, 200, committed, served");
}

#[cfg(not(windows))]
#[tokio::test]
async fn a_connection_by_another_way_than_the_first_is_told_of_its_call() {
    let busy = Upgrade::refuse_with(503, &[("Retry-After", "1")], "busy");
    let up = WsUpstream::start(WsScript::good("word").upgrades([busy, Upgrade::accept()])).await.unwrap();
    // Under this address nothing takes it for this machine, to which no proxy ever leads.
    let mut config = towards(&format!("http://0.0.0.0:{}", up.addr().port()));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = format!("http://{nobody}").parse().unwrap();
    config.proxy = ProxyList::of(vec![dead, ProxyChoice::Direct]).unwrap();
    let bench = Bench::with(config).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(bench.story(1).await, "opened, wait, send 1, by direct, 200, committed, served");
}

#[tokio::test]
async fn an_upgrade_that_is_refused_again_and_again_is_a_refused_call() {
    let (up, bench) = start(WsScript::good("word").upgrades([
        Upgrade::overloaded(),
        Upgrade::overloaded(),
        Upgrade::accept(),
    ]))
    .await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&good("word")));
    assert_eq!(up.upgrades().len(), 3);
    assert_eq!(
        bench.story(1).await,
        "opened, wait, send 1, at_capacity refused, wait, send 2, 200, committed, served"
    );
}

#[tokio::test]
async fn an_upstream_that_speaks_none_is_remembered() {
    for status in [404, 405, 426, 400, 200, 501] {
        let refusal = Upgrade::refuse_with(status, &[], "no");
        let (up, bench) = start(WsScript::good("word").upgrades([refusal])).await;
        for _ in 0..2 {
            let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
            assert_eq!(refused.status, 426, "{status}");
        }
        assert_eq!(up.upgrades().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_as_it_is() {
    let wrong =
        Upgrade::refuse_with(401, &[("x-request-id", "r1")], r#"{"error":{"code":"invalid_api_key"}}"#);
    let (up, bench) = start(WsScript::good("word").upgrades([wrong])).await;
    for _ in 0..2 {
        let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
        assert_eq!((refused.status, refused.header("x-request-id")), (401, Some("r1")));
        assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
    }
    assert_eq!(up.upgrades().len(), 2);
}

#[tokio::test]
async fn an_upgrade_that_is_not_answered_does_not_keep_the_client_and_two_are_no_chance() {
    let (_up, bench) = start(WsScript::good("word").upgrades([Upgrade::Silent])).await;
    let began = Instant::now();
    drop(codex(&bench).await);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(8), "{took:?}");
    let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
    assert_eq!(refused.status, 426);
    let again = Instant::now();
    let refused = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await.err().unwrap();
    assert!(refused.status == 426 && again.elapsed() < ms(500));
}

#[tokio::test]
async fn the_choice_of_the_settings_holds_and_that_of_the_upstream_before_it() {
    for (all, one, spoken) in [
        (Websocket::Refuse, None, "refuse"),
        (Websocket::Speak, Some(Websocket::Refuse), "refuse"),
        (Websocket::Tunnel, None, "tunnel"),
        (Websocket::Refuse, Some(Websocket::Tunnel), "tunnel"),
    ] {
        let up = WsUpstream::start(WsScript::good("").creates([overloaded_failed()])).await.unwrap();
        let mut config = towards(&up.url());
        config.websocket = all;
        if let Some(relay_core::config::UpstreamChoice::Url(entry)) = &mut config.upstream {
            entry.websocket = one;
        }
        let bench = Bench::with(config).await;
        let opened = WsClient::connect(bench.addr(), "/v1/responses", &CODEX).await;
        match (spoken, opened) {
            ("refuse", Err(refused)) => assert_eq!((refused.status, up.connections()), (426, 0)),
            ("tunnel", Ok(mut client)) => {
                client.send(FULL).await.unwrap();
                assert_eq!(client.answer().await, texts(&overloaded_failed()));
                assert_eq!(bench.totals().calls, 0);
            }
            (_, other) => panic!("{spoken}: {:?}", other.map(|_| "opened")),
        }
    }
}

#[tokio::test]
async fn a_client_that_wants_nothing_of_it_gets_a_tunnel() {
    let (up, bench) = start(WsScript::good("").creates([overloaded_failed()])).await;
    let headers = [("Authorization", "Bearer sk-test"), ("x-steady", "off")];
    let mut client = WsClient::connect(bench.addr(), "/v1/responses", &headers).await.unwrap();
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&overloaded_failed()));
    assert_eq!((up.creates().len(), bench.totals().calls), (1, 0));
}
