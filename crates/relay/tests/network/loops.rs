//! Relays that have relays for upstreams: in a row, which is fine, and in a ring, which is noticed at once.

use std::net::SocketAddr;

use relay_core::config::Config;
use relay_sim::{Answer, Client, Reply, Request, Script, Upstream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::{SOON, TURN, exchange, ms, read_message, relay, relay_on, service, soon, towards, turn};

const OK: &str = r#"{"id":"x","choices":[{"message":{"content":"hello"}}]}"#;

/// So many relays, each of which has the next one for its upstream, and the last one the first.
async fn ring(length: usize) -> Vec<SocketAddr> {
    let mut sockets = Vec::new();
    for _ in 0..length {
        sockets.push(TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
    }
    let at: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
    let next = at.iter().cycle().skip(1);
    for (socket, next) in sockets.into_iter().zip(next) {
        // Nothing that may be spent stands in the way of a storm.
        let mut config: Config = towards(&format!("http://{next}"));
        config.profiles.values_mut().for_each(|profile| (profile.sends, profile.failed_sends) = (None, 99));
        relay_on(socket, config);
    }
    at
}

async fn ask(at: SocketAddr, request: &Request) -> Answer {
    Client::connect(at).await.unwrap().patience(SOON).ask(request).await.unwrap()
}

/// How many sends a relay has made.
async fn sends(at: SocketAddr) -> u64 {
    ask(at, &Request::get("/__steady/status")).await.json()["totals"]["sends"].as_u64().unwrap()
}

#[tokio::test]
async fn relays_that_name_each_other_notice_it_at_once_and_say_so() {
    for (length, words) in
        [(1, "to itself"), (2, "another relay sent it back"), (3, "2 others sent it round")]
    {
        let ring = ring(length).await;
        let began = Instant::now();
        let answer = ask(ring[0], &Request::post("/v1/chat/completions").json(TURN)).await;
        assert!(began.elapsed() < ms(1000), "{:?}", began.elapsed());
        assert_eq!((answer.status, answer.header("x-should-retry")), (508, Some("false")), "{length}");
        let error = &answer.json()["error"];
        let told = error["message"].as_str().unwrap();
        assert_eq!(error["code"], "loop_detected");
        assert!(told.starts_with("steady-relay: ") && told.contains(words), "{told}");
        assert!(told.contains("\nhint: ") && told.contains("upstream"), "{told}");
        for at in ring {
            assert_eq!(sends(at).await, 1, "no storm");
        }
    }
}

/// Codex and Gemini CLI send a 5xx again, whatever stands beside it.
#[tokio::test]
async fn each_client_hears_of_a_ring_in_its_own_form() {
    let ring = ring(2).await;
    let codex = Request::post("/v1/responses").header("originator", "codex_cli_rs").json(TURN);
    let answer = ask(ring[0], &codex).await;
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("text/plain; charset=utf-8")));
    assert!(answer.text().contains("another relay sent it back"), "{}", answer.text());
    let claude = ask(ring[0], &Request::post("/v1/messages").json(TURN)).await;
    assert_eq!((claude.status, &claude.json()["type"]), (508, &"error".into()));
    let gemini = Request::post("/v1beta/models/g:generateContent").json(TURN);
    let gemini = ask(ring[0], &gemini.header("user-agent", "GeminiCLI/0.9.0/gemini-3 (linux; x64)")).await;
    assert_eq!((gemini.status, &gemini.json()["error"]["code"]), (400, &400.into()));
    assert_eq!((sends(ring[0]).await, sends(ring[1]).await), (3, 3));
}

#[tokio::test]
async fn an_upgrade_that_goes_round_is_noticed_too() {
    let ring = ring(2).await;
    let upgrade = Request::get("/v1/realtime").header("connection", "upgrade").header("upgrade", "x");
    let answer = ask(ring[0], &upgrade).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (508, &"loop_detected".into()));
}

#[tokio::test]
async fn relays_in_a_row_serve_and_only_who_is_asked_in_the_clear_sees_the_mark() {
    let up = Upstream::start(Script::of([Reply::status(200).json(OK)])).await.unwrap();
    let last = relay(towards(&up.url())).await;
    let first = relay(towards(&format!("http://{last}"))).await;
    let request = Request::post("/v1/chat/completions").json(TURN);
    for _ in 0..2 {
        assert_eq!(ask(first, &request).await.text(), OK);
    }
    // One number for each relay, and the same for every request.
    let seen = up.requests();
    let marks = seen[0].header_values("x-steady-hop");
    assert_eq!((marks.len(), marks[0].split(", ").count()), (1, 2), "{marks:?}");
    assert_eq!(seen[1].header_values("x-steady-hop"), marks);
    // What a client makes up is nobody's number.
    assert_eq!(ask(first, &request.header("x-steady-hop", "a, 1, xyz")).await.status, 200);
    assert_eq!(up.requests()[2].header_values("x-steady-hop"), marks);
}

#[tokio::test]
async fn a_service_behind_tls_never_sees_the_mark() {
    let (listener, secured, config) = service(&["http/1.1"]).await;
    let last = relay(config).await;
    let first = relay(towards(&format!("http://{last}"))).await;
    for at in [last, first] {
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let (socket, _) = soon(listener.accept()).await.unwrap();
        let mut socket = secured.acceptor.accept(socket).await.unwrap();
        let request = soon(read_message(&mut socket)).await.unwrap().to_ascii_lowercase();
        assert!(
            request.contains("authorization: bearer sk-case") && !request.contains("steady"),
            "{request}"
        );
        let whole =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{OK}", OK.len());
        socket.write_all(whole.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        assert!(soon(client).await.unwrap().contains("hello"));
    }
}
