//! Many clients, and odd ones.

use relay_core::event::{CallId, Event};
use relay_sim::fixtures::codex as wire;
use relay_sim::{Client, Ending, Reply, Request, Script, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::support::{Bench, SOON, TURN, bounded, codex, ms, plain, towards};

#[tokio::test]
async fn two_requests_sent_ahead_are_answered_in_order() {
    let up = Upstream::start(Script::by(|seen, _| Reply::status(200).json(seen.text()))).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    let requests = [r#"{"input":1}"#, r#"{"input":2}"#, r#"{"input":3}"#].map(plain);
    let host = bench.addr().to_string();
    let ahead: Vec<u8> = requests[1..]
        .iter()
        .flat_map(|request| [request.head_bytes(&host), request.body_bytes()].concat())
        .collect();
    client.send(&requests[0]).await.unwrap();
    client.send_bytes(&ahead).await.unwrap();
    for number in 1..=3 {
        let answer = client.read().await;
        assert_eq!((answer.ending, answer.json()["input"].as_u64()), (Ending::Complete, Some(number)));
    }
}

#[tokio::test]
async fn two_hundred_calls_at_once_are_all_served_though_half_the_sends_are_refused() {
    let up = Upstream::start(Script::by(|seen, number| {
        if number % 2 == 0 {
            wire::overloaded_503()
        } else {
            Reply::status(200).json(format!(r#"{{"echo":{}}}"#, seen.text()))
        }
    }))
    .await
    .unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| {
        profile.sends = Some(60);
        profile.curve.jitter = ms(20);
    }))
    .await;
    let mut calls = JoinSet::new();
    for number in 0..200_u64 {
        let addr = bench.addr();
        calls.spawn(async move {
            let mut client = relay_sim::Client::connect(addr).await.unwrap().patience(SOON);
            let answer = client.ask(&plain(&format!(r#"{{"input":{number}}}"#))).await.unwrap();
            (number, answer.status, answer.json()["echo"]["input"].as_u64())
        });
    }
    while let Some(call) = calls.join_next().await {
        let (number, status, echo) = call.unwrap();
        assert_eq!((status, echo), (200, Some(number)));
    }
    let is_end = |(_, event): &&(_, Event)| matches!(event, Event::CallClosed(_));
    bench.until(|events| events.iter().filter(is_end).count() == 200).await;
    let totals = bench.totals();
    assert_eq!(totals.sends, up.requests().len() as u64);
    assert_eq!((totals.calls_lost, totals.maybe_billed_twice), (0, 0));
    assert_eq!(totals.calls_saved, totals.calls_sent_again);
}

#[tokio::test]
async fn connections_that_say_nothing_end_and_hinder_nobody() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let mut config = towards(&up.url());
    config.limits.head_time = ms(300);
    let bench = Bench::with(config).await;
    let began = Instant::now();
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(bench.addr()).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nx-slow").await.unwrap();
        }
        silent.push(stream);
    }
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    for mut stream in silent {
        let mut said = Vec::new();
        // A reset is an end as well.
        let ended = timeout(SOON, stream.read_to_end(&mut said)).await;
        assert!(ended.is_ok(), "still open after {:?}", began.elapsed());
        assert_eq!(String::from_utf8_lossy(&said), "");
    }
    assert!(began.elapsed() >= ms(300));
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
}

#[tokio::test]
async fn a_long_answer_is_not_cut_by_the_limit_for_heads() {
    let up = Upstream::start(Reply::status(200).json("{}").after(ms(400))).await.unwrap();
    let mut config = towards(&up.url());
    config.limits.head_time = ms(150);
    let bench = Bench::with(config).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.ending), (200, Ending::Complete));
}

#[tokio::test]
async fn garbage_is_a_bad_request_and_the_relay_lives() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let bench = Bench::to(&up).await;
    let bad = [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"what is this\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/x HTTP/1.1\r\nno colon here\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\ncontent-length: two\r\n\r\n",
        b"POST /v1/x HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nxx",
        b"POST /v1/x HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        b"GET /v1/x y HTTP/1.1\r\n\r\n",
    ];
    for bytes in bad {
        let mut client = bench.client().await;
        client.send_bytes(bytes).await.unwrap();
        let answer = client.read().await;
        assert_eq!(answer.status, 400, "{} {answer:?}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(up.connections(), 0);
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
}

#[tokio::test]
async fn a_request_that_could_be_read_in_two_ways_is_not_forwarded_in_two_ways() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let bench = Bench::to(&up).await;
    let both = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
                 0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut client = bench.client().await.patience(ms(300));
    client.send_bytes(both).await.unwrap();
    let answer = client.read().await;
    assert!(answer.status == 400 || answer.status == 200);
    for seen in up.requests() {
        assert!(matches!(seen.header_values("content-length")[..], [] | ["0"]), "{seen:?}");
        assert_eq!(seen.header("transfer-encoding"), None);
        assert!(seen.body.is_empty());
    }
}

#[tokio::test]
async fn heads_may_be_large_and_have_a_limit() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut many = Request::get("/v1/models");
    for number in 0..300 {
        many = many.header(&format!("x-number-{number}"), "y".repeat(100));
    }
    assert_eq!(bench.ask(&many).await.status, 200);
    // `Host`, and the relay's own mark.
    assert_eq!(up.requests()[0].headers.len(), 302);
    let huge = Request::get("/v1/models").header("x-huge", "y".repeat(600 << 10));
    assert_eq!(bench.ask(&huge).await.status, 431);
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn one_connection_carries_many_calls_with_and_without_refusals() {
    let up = Upstream::start(Script::by(|_, number| {
        if number % 3 == 0 { wire::overloaded_503() } else { Reply::sse(wire::turn("hi")) }
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    for _ in 0..20 {
        assert_eq!(client.ask(&plain(TURN)).await.unwrap().ending, Ending::Complete);
    }
    assert_eq!(up.connections(), 1, "a refusal that was read to its end keeps its connection");
}

#[tokio::test]
async fn a_connection_that_lay_idle_for_longer_than_the_settings_say_carries_no_post() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.pool_idle = ms(40);
    let bench = Bench::with(config).await;
    for connections in 1..=3 {
        assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
        assert_eq!(up.connections(), connections);
        tokio::time::sleep(ms(60)).await;
    }
}

#[tokio::test]
async fn who_closes_its_side_at_once_still_hears_what_is_at_hand() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut stream = TcpStream::connect(bench.addr()).await.unwrap();
    stream
        .write_all(format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", bench.addr()).as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut said = String::new();
    timeout(SOON, stream.read_to_string(&mut said)).await.unwrap().unwrap();
    assert!(said.starts_with("HTTP/1.1 200 OK") && said.ends_with("ok\n"), "{said}");
}

/// One client of a crowd; the number decides how it behaves.
async fn behave(addr: std::net::SocketAddr, number: u64) {
    let mut client = Client::connect(addr).await.unwrap().patience(SOON);
    let request = if number.is_multiple_of(2) { plain(TURN) } else { codex(&number.to_string(), TURN) };
    match number % 6 {
        0 | 1 => drop(client.ask(&request).await.unwrap()),
        2 => {
            client.send(&request).await.unwrap();
            client.leave().await;
        }
        3 => {
            client.send(&request).await.unwrap();
            client.read_head().await;
            client.leave_by_reset();
        }
        4 => {
            client.send_head(&request).await.unwrap();
            client.send_bytes(&request.body_bytes()[..10]).await.unwrap();
            client.leave().await;
        }
        _ => {
            client.send(&request).await.unwrap();
            client.send_bytes(b"and more").await.unwrap();
            tokio::time::sleep(ms(number % 50)).await;
            client.leave().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_clients_behave_every_call_ends_once() {
    let up = Upstream::start(Script::by(|_, number| match number % 7 {
        0 | 1 => wire::overloaded_503(),
        2 => Reply::reset_after_request(),
        3 => Reply::sse(wire::partial("hello")),
        4 => Reply::sse(wire::overloaded_stream()),
        5 => Reply::status(500).json("{}"),
        _ => Reply::sse(wire::turn("hi")).spaced(ms(1)),
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    let mut crowd = JoinSet::new();
    for number in 0..300 {
        crowd.spawn(behave(bench.addr(), number));
    }
    while let Some(done) = crowd.join_next().await {
        done.unwrap();
    }
    let calls = |events: &[(CallId, Event)], wanted: fn(&Event) -> bool| -> Vec<CallId> {
        let mut ids: Vec<_> = events.iter().filter(|(_, event)| wanted(event)).map(|(id, _)| *id).collect();
        ids.sort();
        ids
    };
    // Neither is one missing nor told twice.
    bench
        .until(|events| {
            let opened = calls(events, |event| matches!(event, Event::CallOpened { .. }));
            opened.len() > 150 && opened == calls(events, |event| matches!(event, Event::CallClosed(_)))
        })
        .await;
    // A request that its client has left may be read after all.
    let by = Instant::now() + ms(10_000);
    while bench.page().await["open_calls"] != serde_json::json!([]) {
        assert!(Instant::now() < by, "{}", bench.page().await);
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(bench.ask(&Request::get("/healthz")).await.status, 200);
}
