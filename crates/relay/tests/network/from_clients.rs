//! HTTP/2 from clients, by prior knowledge, on the port that HTTP/1.1 is spoken on.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http::{Method, Request, Version};
use relay_core::config::Http2;
use relay_sim::{Event, Reply, Script, Signal, Upstream};
use tokio::net::TcpStream;

use crate::support::{
    A_WHILE, SOON, TURN, accept, answer, exchange, ms, relay, service, soon, towards, turn as plain_turn,
};

async fn speak(at: SocketAddr) -> SendRequest<Bytes> {
    let socket = TcpStream::connect(at).await.unwrap();
    let (sender, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// The same, on a connection whose client gives signs of life: whenever some arrive, the relay flushes what it has.
async fn speak_on(at: SocketAddr) -> SendRequest<Bytes> {
    let socket = TcpStream::connect(at).await.unwrap();
    let (sender, mut connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(async move {
        for doubled in 17..31 {
            if tokio::time::timeout(ms(25), &mut connection).await.is_ok() {
                return;
            }
            connection.set_target_window_size(1 << doubled);
        }
        let _ended = connection.await;
    });
    sender
}

fn request(at: SocketAddr, method: &Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(format!("http://{at}{path}")).version(Version::HTTP_2)
}

/// Sends a turn; the answer is still to come.
async fn turn(sender: &SendRequest<Bytes>, at: SocketAddr) -> ResponseFuture {
    let mut ready = sender.clone().ready().await.unwrap();
    let head = request(at, &Method::POST, "/v1/chat/completions")
        .header("authorization", "Bearer sk-case")
        .header("cookie", "a=1")
        .header("cookie", "b=2");
    let (answer, mut upload) = ready.send_request(head.body(()).unwrap(), false).unwrap();
    upload.send_data(Bytes::from_static(TURN.as_bytes()), true).unwrap();
    answer
}

async fn get(
    sender: &SendRequest<Bytes>,
    at: SocketAddr,
    method: &Method,
    path: &str,
) -> http::Response<RecvStream> {
    let mut ready = sender.clone().ready().await.unwrap();
    let head = request(at, method, path).body(()).unwrap();
    soon(ready.send_request(head, true).unwrap().0).await.unwrap()
}

async fn text(body: &mut RecvStream) -> Result<String, h2::Error> {
    let mut whole = Vec::new();
    while let Some(data) = soon(body.data()).await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        whole.extend_from_slice(&data);
    }
    Ok(String::from_utf8(whole).unwrap())
}

const OK: &str = r#"{"id":"x","choices":[{"message":{"content":"hello"}}]}"#;

#[tokio::test]
async fn a_turn_is_served_like_any_other_and_sent_on_as_http1() {
    let busy = Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded","message":"busy"}}"#);
    let up = Upstream::start(Script::of([busy, Reply::status(200).json(OK)])).await.unwrap();
    let at = relay(towards(&up.url())).await;
    let sender = speak(at).await;
    let answer = soon(turn(&sender, at).await).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    assert_eq!(text(&mut answer.into_body()).await.unwrap(), OK);
    let seen = up.requests();
    assert_eq!(seen.len(), 2, "the refusal is the relay's to heal");
    for request in seen {
        assert_eq!((request.version.as_str(), request.text().as_str()), ("HTTP/1.1", TURN));
        assert_eq!(request.header_values("host"), [up.addr().to_string()]);
        assert_eq!(request.header_values("cookie"), ["a=1; b=2"], "crumbs are for HTTP/2 alone");
    }
}

/// Over HTTP/2 a connection has other signs of life, and not every client bears interim answers there.
#[tokio::test]
async fn a_client_that_waits_sees_no_interim_answer() {
    let busy = Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded","message":"busy"}}"#);
    let late = Reply::status(200).json(OK).after(ms(300));
    let up = Upstream::start(Script::of([busy, late])).await.unwrap();
    let mut config = towards(&up.url());
    config.waiting.interim = Some(ms(20));
    let at = relay(config).await;
    // The same wait over HTTP/1.1 is full of them.
    let seen = exchange(at, &plain_turn("x-stainless-lang: python\r\n"), "").await;
    assert!(seen.matches("HTTP/1.1 102 ").count() >= 3 && seen.contains(OK), "{seen}");
    let sender = speak_on(at).await;
    let mut answer = turn(&sender, at).await;
    let interim = std::future::poll_fn(|cx| answer.poll_informational(cx));
    assert!(soon(interim).await.is_none(), "the first head is the last");
    let answer = soon(answer).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(text(&mut answer.into_body()).await.unwrap(), OK);
}

#[tokio::test]
async fn it_goes_on_over_http2_where_the_upstream_agrees() {
    let (listener, secured, config) = service(&["h2", "http/1.1"]).await;
    assert_eq!(config.http2, Http2::Auto);
    let at = relay(config).await;
    let sender = speak(at).await;
    let waiting = turn(&sender, at).await;
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    assert_eq!(request.uri().host(), Some("localhost"));
    answer(respond, 200, OK);
    assert_eq!(text(&mut soon(waiting).await.unwrap().into_body()).await.unwrap(), OK);
}

#[tokio::test]
async fn heads_and_our_own_pages_are_served() {
    let up = Upstream::start(Script::of([Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n")]))
        .await
        .unwrap();
    let at = relay(towards(&up.url())).await;
    let sender = speak(at).await;
    let head = get(&sender, at, &Method::HEAD, "/v1/models/x").await;
    assert_eq!((head.status().as_u16(), &head.headers()["content-length"]), (200, &"42".parse().unwrap()));
    assert_eq!(text(&mut head.into_body()).await.unwrap(), "");
    let health = get(&sender, at, &Method::GET, "/healthz").await;
    assert_eq!(health.status(), 200);
    let foreign = Request::builder().uri("http://evil.example:80/healthz").body(()).unwrap();
    let refused =
        soon(sender.clone().ready().await.unwrap().send_request(foreign, true).unwrap().0).await.unwrap();
    assert_eq!(refused.status(), 403, "the host of the target counts");
}

#[tokio::test]
async fn a_broken_answer_is_a_reset_and_never_an_end() {
    let delta = Event::data(r#"{"choices":[{"delta":{"content":"hello"}}]}"#);
    for broken in [Reply::sse([delta.clone()]).reset(), Reply::sse([delta]).fin_without_terminator()] {
        let up = Upstream::start(Script::of([broken])).await.unwrap();
        let at = relay(towards(&up.url())).await;
        let sender = speak(at).await;
        let answer = soon(turn(&sender, at).await).await.unwrap();
        let mut body = answer.into_body();
        let first = soon(body.data()).await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&first).contains("hello"));
        let broke = text(&mut body).await.unwrap_err();
        assert!(broke.is_reset() && broke.is_remote(), "{broke}");
        // The connection is none the worse.
        assert_eq!(get(&sender, at, &Method::GET, "/healthz").await.status(), 200);
    }
}

#[tokio::test]
async fn a_client_that_resets_its_stream_ends_the_work_at_once() {
    let hold = Signal::new();
    let delta = Event::data(r#"{"choices":[{"delta":{"content":"hello"}}]}"#);
    let streaming = Reply::sse([delta, Event::wait_for(hold.clone())]);
    let silent = Reply::silence();
    let up = Upstream::start(Script::of([streaming, silent])).await.unwrap();
    let at = relay(towards(&up.url())).await;
    let sender = speak(at).await;
    let answer = soon(turn(&sender, at).await).await.unwrap();
    let mut body = answer.into_body();
    assert!(soon(body.data()).await.is_some());
    drop(body);
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
    let waiting = turn(&sender, at).await;
    assert!(up.wait_for(SOON, |seen| seen.len() == 2).await);
    drop(waiting);
    assert!(up.wait_for(SOON, |seen| seen[1].client_gone_at.is_some()).await);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(up.requests().len(), 2, "nobody is left for whom to send again");
    assert_eq!(get(&sender, at, &Method::GET, "/healthz").await.status(), 200);
}

#[tokio::test]
async fn streams_and_heads_are_bounded() {
    let hold = Signal::new();
    let up = Upstream::start(Script::of([Reply::status(200).json(OK).when(hold.clone())])).await.unwrap();
    let mut config = towards(&up.url());
    config.limits.streams = 2;
    config.limits.head = 16 << 10;
    let at = relay(config).await;
    let sender = speak(at).await;
    // The limit is known once the relay has said anything.
    assert_eq!(get(&sender, at, &Method::GET, "/healthz").await.status(), 200);
    assert_eq!(sender.current_max_send_streams(), 2);
    let (one, two) = (turn(&sender, at).await, turn(&sender, at).await);
    assert!(up.wait_for_requests(2, SOON).await);
    hold.release();
    for waiting in [one, two] {
        assert_eq!(soon(waiting).await.unwrap().status(), 200);
    }
    let mut ready = sender.clone().ready().await.unwrap();
    let huge = request(at, &Method::GET, "/v1/x").header("a", "x".repeat(17 << 10)).body(()).unwrap();
    match soon(ready.send_request(huge, true).unwrap().0).await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        Err(error) => assert!(error.is_reset() || error.is_go_away(), "{error}"),
    }
    assert_eq!(up.requests().len(), 2);
}

#[tokio::test]
async fn half_a_request_is_none() {
    let up = Upstream::start(Script::of([Reply::status(200).json(OK)])).await.unwrap();
    let at = relay(towards(&up.url())).await;
    let sender = speak(at).await;
    let mut ready = sender.clone().ready().await.unwrap();
    let head = request(at, &Method::POST, "/v1/chat/completions").body(()).unwrap();
    let (answer, mut upload) = ready.send_request(head, false).unwrap();
    upload.send_data(Bytes::from_static(b"{\"model\":"), false).unwrap();
    upload.send_reset(Reason::CANCEL);
    assert!(soon(answer).await.is_err());
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(up.requests().len(), 0, "half a request is none");
    assert_eq!(get(&sender, at, &Method::GET, "/healthz").await.status(), 200);
}
