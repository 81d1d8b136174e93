//! What a client may ask of the relay itself: connections, and time.

use relay_sim::{Client, Reply, Request, Script, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{A_WHILE, SOON, dial, exchange, ms, read_until, relay, soon, towards, turn};

const OK: &str = r#"{"id":"x","choices":[]}"#;

async fn upstream(reply: Reply) -> Upstream {
    Upstream::start(Script::of([reply])).await.unwrap()
}

#[tokio::test]
async fn a_connection_too_many_is_told_so_and_room_that_comes_free_is_used() {
    let up = upstream(Reply::status(200).json(OK)).await;
    let mut config = towards(&up.url());
    config.limits.connections = 2;
    let at = relay(config).await;
    let request = Request::post("/v1/chat/completions").json(r#"{"model":"m"}"#);
    let (mut one, mut two) = (Client::connect(at).await.unwrap(), Client::connect(at).await.unwrap());
    assert_eq!(one.ask(&request).await.unwrap().status, 200);
    assert_eq!(two.ask(&request).await.unwrap().status, 200);
    let refused = exchange(at, &turn(""), "").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("connection: close") && refused.contains("limits.connections"), "{refused}");
    drop(one);
    let served = async {
        while !exchange(at, &turn(""), "").await.starts_with("HTTP/1.1 200 ") {
            tokio::task::yield_now().await;
        }
    };
    soon(served).await;
    assert_eq!(two.ask(&request).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_tunnel_takes_up_the_place_of_its_connection_as_long_as_it_is_there() {
    let agreed = Reply::status(101).header("upgrade", "x").header("connection", "upgrade").echo();
    let up = Upstream::start(Script::by(move |seen, _| match seen.header("upgrade") {
        Some(_) => agreed.clone(),
        None => Reply::status(200).json(OK),
    }))
    .await
    .unwrap();
    let mut config = towards(&up.url());
    config.limits.connections = 1;
    let at = relay(config).await;
    let mut tunnel = Client::connect(at).await.unwrap();
    let upgrade = Request::get("/v1/realtime").header("connection", "upgrade").header("upgrade", "x");
    tunnel.send(&upgrade).await.unwrap();
    assert!(tunnel.read_head().await);
    assert_eq!(tunnel.answer().status, 101);
    for _ in 0..2 {
        tunnel.send_bytes(b"both ways").await.unwrap();
        assert!(tunnel.read_until(b"both ways").await);
        // Long enough for the HTTP before the tunnel to be over.
        tokio::time::sleep(A_WHILE).await;
        let refused = exchange(at, &turn(""), "").await;
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("limits.connections"), "{refused}");
    }
    tunnel.leave().await;
    let served = async {
        while !exchange(at, &turn(""), "").await.starts_with("HTTP/1.1 200 ") {
            tokio::task::yield_now().await;
        }
    };
    soon(served).await;
}

/// A side that has closed may be gone; no more tells of it.
#[tokio::test]
async fn a_tunnel_that_is_closed_on_one_side_ends_although_the_other_says_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = towards(&format!("http://{}", listener.local_addr().unwrap()));
    config.limits.stall = ms(80);
    let silent = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let agreed = "HTTP/1.1 101 Fine\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
        socket.write_all(agreed.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    let at = relay(config).await;
    let mut socket = dial(at).await;
    let head = "GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut socket, &mut String::new(), "\r\n\r\n").await;
    socket.shutdown().await.unwrap();
    let mut rest = Vec::new();
    soon(socket.read_to_end(&mut rest)).await.unwrap();
    silent.abort();
}

#[tokio::test]
async fn a_head_with_too_many_headers_is_refused() {
    let up = upstream(Reply::status(200).json(OK)).await;
    let mut config = towards(&up.url());
    config.limits.headers = 20;
    let at = relay(config).await;
    for (more, status) in [(10, "200"), (20, "431")] {
        let more: String = (0..more).map(|n| format!("x-{n}: y\r\n")).collect();
        let said = exchange(at, &turn(&more), "").await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
    }
}

#[tokio::test]
async fn a_client_that_says_nothing_or_half_a_head_is_hung_up_on() {
    let up = upstream(Reply::status(200).json(OK)).await;
    let mut config = towards(&up.url());
    config.limits.head_time = ms(150);
    let at = relay(config).await;
    for begun in ["", "PRI * HTTP/2", "P", "POST /v1/x HTTP/1.1\r\nHost: rel"] {
        let mut socket = dial(at).await;
        socket.write_all(begun.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        soon(async { drop(socket.read_to_end(&mut rest).await) }).await;
        let said = String::from_utf8_lossy(&rest).into_owned();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408 "), "{begun:?}: {said}");
    }
    // A request that takes longer than its head may is none of that.
    let mut socket = dial(at).await;
    socket.write_all(b"POST /v1/x HTTP/1.0\r\nContent-Length: 2\r\n\r\n").await.unwrap();
    tokio::time::sleep(ms(300)).await;
    socket.write_all(b"{}").await.unwrap();
    let mut seen = String::new();
    soon(read_until(&mut socket, &mut seen, "")).await;
    assert!(seen.contains(" 200 "), "{seen}");
}

#[tokio::test]
async fn an_upload_that_stops_is_answered_408_and_one_that_is_slow_is_not() {
    let up = upstream(Reply::status(200).json(OK)).await;
    let mut config = towards(&up.url());
    config.limits.stall = ms(250);
    let at = relay(config).await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: relay\r\nContent-Length: 20\r\n\r\n{\"model\":";
    let seen = exchange(at, head.as_bytes(), "").await;
    assert!(seen.starts_with("HTTP/1.1 408 ") && seen.to_lowercase().contains("connection: close"), "{seen}");
    assert!(seen.contains("nothing came for 0.25 s") && seen.contains("upload_stalled"), "{seen}");
    assert_eq!(up.requests().len(), 0);
    let mut slow = dial(at).await;
    slow.write_all(&head.as_bytes()[..head.len() - 9]).await.unwrap();
    for piece in ["{\"mode", "l\":\"m\"", "       }"] {
        tokio::time::sleep(ms(120)).await;
        slow.write_all(piece.as_bytes()).await.unwrap();
    }
    let mut seen = String::new();
    soon(read_until(&mut slow, &mut seen, "\r\n\r\n")).await;
    assert!(seen.starts_with("HTTP/1.1 200 "), "{seen}");
    assert_eq!(up.requests()[0].body.len(), 20);
}

#[tokio::test]
async fn a_streamed_upload_that_stops_is_cut_on_both_sides() {
    let up = upstream(Reply::status(200).json(OK)).await;
    let mut config = towards(&up.url());
    (config.limits.stall, config.bodies.each) = (ms(150), 4);
    let at = relay(config).await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: relay\r\nContent-Length: 20\r\n\r\n{\"model\":";
    assert_eq!(exchange(at, head.as_bytes(), "").await, "");
    assert!(up.wait_for(SOON, |seen| seen.first().is_some_and(|seen| seen.client_gone_at.is_some())).await);
    assert!(!up.requests()[0].body_complete);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_and_its_upstream_let_go() {
    let up =
        upstream(Reply::status(200).header("content-type", "text/plain").bytes(vec![b'x'; 64 << 20])).await;
    let mut config = towards(&up.url());
    config.limits.stall = ms(300);
    let at = relay(config).await;
    let mut stuck = dial(at).await;
    stuck.write_all(b"GET /v1/files/x HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    assert!(up.wait_for(SOON, |seen| seen.first().is_some_and(|seen| seen.client_gone_at.is_some())).await);
    let mut rest = Vec::new();
    soon(async { drop(stuck.read_to_end(&mut rest).await) }).await;
    assert!(rest.len() < 64 << 20);
    // One that reads again in time goes on.
    let mut slow = dial(at).await;
    slow.write_all(b"GET /v1/files/x HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n").await.unwrap();
    tokio::time::sleep(A_WHILE).await;
    let mut rest = Vec::new();
    soon(async { slow.read_to_end(&mut rest).await.unwrap() }).await;
    assert!(rest.len() > 64 << 20);
}
