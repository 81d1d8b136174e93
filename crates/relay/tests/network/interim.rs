//! Interim answers of upstreams: some are a sign of life, and no end of them is no answer.

use std::task::Poll;

use h2::server::SendResponse;
use relay_core::config::{Config, Http2};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::{
    A_WHILE, accept, answer, exchange, ms, read_message, relay, secured, service, soon, towards, turn,
};

const OK: &str = r#"{"id":"x","choices":[{"message":{"content":"hello"}}]}"#;
const INTERIM: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";

async fn plain() -> (TcpListener, Config) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, towards(&url))
}

/// What may have run is told so that no client sends it again.
fn may_have_run(told: &str) {
    assert!(told.starts_with("HTTP/1.1 429 ") && told.contains("x-should-retry: false"), "{told}");
    assert!(told.contains("may have run"), "{told}");
}

#[tokio::test]
async fn an_upstream_that_sends_no_other_is_cut_and_not_asked_again() {
    let (listener, mut config) = plain().await;
    config.timeouts.first_byte = Some(std::time::Duration::from_secs(60));
    let at = relay(config).await;
    let began = Instant::now();
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    let many = INTERIM.repeat(100);
    let mut sent: u32 = 0;
    // Until the relay has hung up.
    while soon(socket.write_all(&many)).await.is_ok() {
        sent += 100;
    }
    may_have_run(&soon(client).await.unwrap());
    assert!(sent >= 10_000 && began.elapsed().as_secs() < 10, "{sent} in {:?}", began.elapsed());
    assert!(tokio::time::timeout(A_WHILE, listener.accept()).await.is_err(), "it may have run");
}

#[tokio::test]
async fn so_is_one_over_http2() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    config.timeouts.first_byte = Some(std::time::Duration::from_secs(60));
    let at = relay(config).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (_request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    soon(babble(respond, u32::MAX)).await;
    may_have_run(&soon(client).await.unwrap());
    assert!(tokio::time::timeout(A_WHILE, listener.accept()).await.is_err(), "it may have run");
}

/// Sends so many interim answers, as long as the stream stands; gives back what the answer goes by.
async fn babble(mut respond: SendResponse<bytes::Bytes>, count: u32) -> Option<SendResponse<bytes::Bytes>> {
    for number in 0..count {
        let interim = http::Response::builder().status(102).body(()).unwrap();
        let is_reset = std::future::poll_fn(|cx| Poll::Ready(respond.poll_reset(cx).is_ready())).await;
        if is_reset || respond.send_informational(interim).is_err() {
            return None;
        }
        if number % 64 == 0 {
            // What was said has to leave.
            tokio::time::sleep(ms(1)).await;
        }
    }
    Some(respond)
}

#[tokio::test]
async fn many_are_a_sign_of_life() {
    let (listener, config) = plain().await;
    let at = relay(config).await;
    // Each request may have as many, on one connection.
    for _ in 0..2 {
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let (mut socket, _) = soon(listener.accept()).await.unwrap();
        read_message(&mut socket).await.unwrap();
        socket.write_all(&INTERIM.repeat(9000)).await.unwrap();
        let whole =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{OK}", OK.len());
        socket.write_all(whole.as_bytes()).await.unwrap();
        assert!(soon(client).await.unwrap().contains("hello"));
    }
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (_request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    answer(soon(babble(respond, 1000)).await.unwrap(), 200, OK);
    assert!(soon(client).await.unwrap().contains("hello"));
}

#[tokio::test]
async fn a_proxy_that_sends_no_other_has_let_nothing_through() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let secured = secured(&["http/1.1"]);
    let mut config = towards("https://api.test");
    config.proxy = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    config.ca_files = vec![secured.ca.clone()];
    let at = relay(config).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    let many = INTERIM.repeat(100);
    let began = Instant::now();
    while soon(socket.write_all(&many)).await.is_ok() {}
    assert!(began.elapsed().as_secs() < 5, "sooner than a connection may take: {:?}", began.elapsed());
    // Nothing was sent, so it is asked again.
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    socket.write_all(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let mut socket = secured.acceptor.accept(socket).await.unwrap();
    read_message(&mut socket).await.unwrap();
    let whole = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{OK}", OK.len());
    socket.write_all(whole.as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    let _closed = soon(socket.read_to_end(&mut rest)).await;
    assert!(soon(client).await.unwrap().contains("hello"));
}
