//! Bytes in equal bytes out, both ways.

use relay_sim::fixtures::{anthropic, chat, codex as wire};
use relay_sim::script::stream_bytes;
use relay_sim::{Ending, Event, LineEnd, Reply, Request, Script, Upstream};

use crate::support::{Bench, SOON, TURN, plain};

/// The headers without those that belong to a single hop.
fn end_to_end(headers: &[(String, String)]) -> Vec<(String, String)> {
    let of_one_hop = |name: &str| {
        ["transfer-encoding", "connection", "keep-alive"].iter().any(|hop| name.eq_ignore_ascii_case(hop))
    };
    headers.iter().filter(|(name, _)| !of_one_hop(name)).cloned().collect()
}

#[tokio::test]
async fn never_altered() {
    let events = wire::turn("hello \"there\"");
    let up = Upstream::start(Script::of([
        wire::overloaded_503(),
        Reply::sse(wire::overloaded_stream()),
        Reply::sse(events.clone()).header("X-Request-Id", "Req-1").reason("Fine"),
    ]))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    let request = plain(TURN).header("X-Odd-CASE", "a  b").header("x-odd-case", "c");
    let answer = bench.ask(&request).await;
    assert_eq!((answer.status, answer.reason.as_str(), answer.ending), (200, "Fine", Ending::Complete));
    assert_eq!(answer.header("x-request-id"), Some("Req-1"));
    assert_eq!(answer.body, stream_bytes(&events));
    assert_eq!(
        bench.story(1).await,
        "opened, send 1, 503, at_capacity refused, wait, send 2, 200, at_capacity refused, wait, \
         send 3, 200, committed, served"
    );
    let seen = up.requests();
    assert_eq!(seen.len(), 3);
    for sent in &seen {
        assert_eq!(sent.text(), TURN);
        let odd: Vec<_> =
            sent.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-odd-case")).collect();
        assert_eq!(odd, [&("X-Odd-CASE".to_owned(), "a  b".to_owned()), &("x-odd-case".into(), "c".into())]);
    }
}

#[tokio::test]
async fn the_head_of_an_answer_keeps_case_order_and_multiplicity() {
    let body = r#"{"ok":true}"#;
    let reply = Reply::status(200)
        .reason("Quite Right")
        .header("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
        .header("X-RateLimit-Remaining-Tokens", "0")
        .header("Content-Type", "application/json")
        .header("SET-Cookie", "a=1; Path=/")
        .header("set-cookie", "b=2")
        .header("x-empty", "")
        .header("X-Last", "\u{fc}")
        .bytes(body);
    let up = Upstream::start(reply).await.unwrap();
    let direct =
        relay_sim::Client::connect(up.addr()).await.unwrap().ask(&Request::get("/v1/x")).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&Request::get("/v1/x")).await;
    assert_eq!(String::from_utf8_lossy(&answer.raw_head), String::from_utf8_lossy(&direct.raw_head));
    assert_eq!(answer.text(), body);
}

#[tokio::test]
async fn the_head_of_a_request_keeps_case_order_and_multiplicity() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let bench = Bench::to(&up).await;
    let request = Request::get("/v1/models?client_version=0.1&x=%2F%20a")
        .header("Authorization", "Bearer sk-test")
        .header("X-Two", "1")
        .header("x-two", "2")
        .header("X-TWO", "")
        .header("Accept", "*/*")
        .header("Cookie", "a=1; b=2");
    bench.ask(&request).await;
    let seen = up.requests().remove(0);
    assert_eq!(seen.target, "/v1/models?client_version=0.1&x=%2F%20a");
    // A service in the clear may be another relay, which has to know what came from this one.
    let added = |name: &str| name.eq_ignore_ascii_case("host") || name == "x-steady-hop";
    let own: Vec<_> = seen.headers.iter().filter(|(name, _)| !added(name)).cloned().collect();
    let expected = [
        ("Authorization", "Bearer sk-test"),
        ("X-Two", "1"),
        ("x-two", "2"),
        ("X-TWO", ""),
        ("Accept", "*/*"),
        ("Cookie", "a=1; b=2"),
    ];
    assert_eq!(own, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn host_is_the_upstreams_and_what_ends_at_a_hop_stays_there() {
    let reply = Reply::status(200)
        .header("Connection", "x-hop, keep-alive")
        .header("X-Hop", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Proxy-Authenticate", "Basic")
        .json("{}");
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let request = Request::get("/v1/models")
        .header("Host", "localhost:1")
        .header("Connection", "X-Private, keep-alive")
        .header("X-Private", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Proxy-Authorization", "Basic c2VjcmV0")
        .header("Proxy-Connection", "keep-alive")
        .header("X-Public", "2");
    let answer = bench.ask(&request).await;
    assert_eq!(end_to_end(&answer.headers).iter().filter(|(name, _)| name.starts_with("x-hop")).count(), 0);
    for gone in ["x-hop", "keep-alive", "proxy-authenticate"] {
        assert_eq!(answer.header(gone), None);
    }
    let seen = up.requests().remove(0);
    assert_eq!(seen.header_values("host"), [up.addr().to_string()]);
    for gone in ["x-private", "keep-alive", "proxy-authorization", "proxy-connection"] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
    assert_eq!(seen.header("x-public"), Some("2"));
}

#[tokio::test]
async fn a_stream_is_the_same_wherever_it_is_cut() {
    let short = [
        Event::comment("hi"),
        Event::named("response.created", r#"{"type":"response.created"}"#),
        Event::named("response.output_text.delta", r#"{"delta":"h\u00e9"}"#),
        Event::named("response.completed", r#"{"type":"response.completed"}"#),
    ];
    for line_end in [LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr] {
        let whole: Vec<u8> = short.iter().flat_map(|event| event.bytes(line_end)).collect();
        let length = whole.len();
        let stream = whole.clone();
        let cut_at = move |at: usize| {
            Reply::status(200)
                .header("content-type", "text/event-stream")
                .bytes(stream.clone())
                .chunked()
                .cut(if at == 0 { vec![1] } else { vec![at, length] })
        };
        let up = Upstream::start(Script::by(move |_, number| cut_at(number))).await.unwrap();
        let bench = Bench::to(&up).await;
        let mut client = bench.client().await;
        for at in 0..length {
            let answer = client.ask(&plain(TURN)).await.unwrap();
            assert_eq!((answer.ending, answer.body), (Ending::Complete, whole.clone()), "cut at {at}");
        }
        assert_eq!(up.connections(), 1);
    }
}

#[tokio::test]
async fn every_dialect_passes_whole() {
    let rows = [
        ("/v1/responses", wire::turn("a b")),
        ("/v1/chat/completions", chat::stream("a b")),
        ("/v1/messages", anthropic::stream("a b")),
        ("/v1/anything", vec![Event::data("a"), Event::data("b")]),
    ];
    for (path, events) in rows {
        for line_end in [LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr] {
            let up = Upstream::start(Reply::sse(events.clone()).line_end(line_end)).await.unwrap();
            let bench = Bench::to(&up).await;
            let answer = bench.ask(&Request::post(path).json(TURN)).await;
            let whole: Vec<u8> = events.iter().flat_map(|event| event.bytes(line_end)).collect();
            assert_eq!((answer.ending, answer.body), (Ending::Complete, whole), "{path} {line_end:?}");
            assert!(bench.story(1).await.ends_with("committed, served"), "{path}");
        }
    }
}

#[tokio::test]
async fn a_chunked_request_arrives_whole_on_every_send() {
    let up =
        Upstream::start(Script::of([wire::overloaded_503(), Reply::status(200).json("{}")])).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN).chunked(7)).await;
    assert_eq!(answer.status, 200);
    for sent in up.requests() {
        assert_eq!(sent.text(), TURN);
        assert_eq!(sent.header_values("content-length"), [TURN.len().to_string()]);
        assert_eq!(sent.header("transfer-encoding"), None);
    }
}

#[tokio::test]
async fn expect_continue_is_answered_here() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    let request = plain(TURN).header("Expect", "100-continue");
    client.send_head(&request).await.unwrap();
    while client.answer().interim.is_empty() {
        assert!(client.read_some().await, "no 100 came");
    }
    client.send_bytes(&request.body_bytes()).await.unwrap();
    let answer = client.read().await;
    assert_eq!((answer.status, answer.interim[0].status), (200, 100));
    let seen = up.requests().remove(0);
    assert_eq!((seen.text().as_str(), seen.header("expect")), (TURN, None));
}

#[tokio::test]
async fn interim_answers_do_not_disturb() {
    let reply = Reply::status(200).json("{}").interim(102).interim_with(103, &[("link", "</a>")]);
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(TURN)).await.text(), "{}");
}

#[tokio::test]
async fn head_and_bodiless_answers_leave_the_connection_in_order() {
    let up = Upstream::start(Script::by(|seen, _| match seen.path() {
        "/v1/none" => Reply::status(204).header("x-a", 1),
        "/v1/same" => Reply::status(304).header("etag", "\"x\""),
        "/v1/empty" => Reply::status(200).header("content-type", "text/plain"),
        _ => Reply::status(200).header("content-type", "text/plain").bytes("hello"),
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    let head = client.ask(&Request::new("HEAD", "/v1/thing")).await.unwrap();
    assert_eq!((head.status, head.header("content-length"), head.text().as_str()), (200, Some("5"), ""));
    let post = client.ask(&Request::post("/v1/thing").body("x")).await.unwrap();
    assert_eq!(post.text(), "hello");
    for (path, status, length) in [
        ("/v1/none", 204, None),
        ("/v1/same", 304, None),
        ("/v1/empty", 200, Some("0")),
        ("/v1/thing", 200, Some("5")),
    ] {
        let answer = client.ask(&Request::get(path)).await.unwrap();
        assert_eq!(
            (answer.status, answer.header("content-length"), answer.ending),
            (status, length, Ending::Complete),
            "{path}"
        );
    }
    assert_eq!(up.connections(), 1);
    for call in 1..=6 {
        assert!(bench.story(call).await.ends_with("committed, served"), "{}", bench.story(call).await);
    }
}

#[tokio::test]
async fn empty_bodies_stay_empty() {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let bench = Bench::to(&up).await;
    bench.ask(&Request::post("/v1/thing").body("")).await;
    bench.ask(&Request::post("/v1/thing")).await;
    bench.ask(&Request::get("/v1/thing")).await;
    for seen in up.requests() {
        assert_eq!((seen.body.len(), seen.header("transfer-encoding")), (0, None));
    }
}

#[tokio::test]
async fn trailers_pass_to_who_asks_for_them() {
    let reply = Reply::sse(wire::turn("hi")).header("Trailer", "x-sum").trailer("x-sum", "42");
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN).header("TE", "trailers").header("Connection", "TE")).await;
    assert_eq!(answer.trailers, [("x-sum".to_owned(), "42".to_owned())]);
    assert_eq!(up.requests()[0].header("te"), Some("trailers"));
    let without = bench.ask(&plain(TURN)).await;
    assert_eq!((without.ending, without.body), (Ending::Complete, answer.body));
}

/// RFC 9112, section 6.3: the chunks count, and the length must not go on.
#[tokio::test]
async fn a_length_beside_the_chunks_of_an_answer_counts_for_nothing() {
    for length in [2, 5, 900] {
        let up = Upstream::start(Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        )))
        .await
        .unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&Request::get("/v1/models")).await;
        assert_eq!((answer.ending, answer.text().as_str()), (Ending::Complete, "hello"), "{length}");
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, served", "{length}");
    }
}

#[tokio::test]
async fn redirects_go_to_the_client() {
    let elsewhere = "https://elsewhere.example/v1/responses?a=%20b";
    let reply = Reply::status(307).header("Location", elsewhere).text("go there");
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.reason.as_str()), (307, "Temporary Redirect"));
    assert_eq!((answer.header("location"), answer.text().as_str()), (Some(elsewhere), "go there"));
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn cookies_are_the_clients_own() {
    let reply = Reply::status(200).header("Set-Cookie", "__cf_bm=abc; Path=/; Secure").json("{}");
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    for _ in 0..2 {
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!(answer.header("set-cookie"), Some("__cf_bm=abc; Path=/; Secure"));
    }
    assert!(up.requests().iter().all(|seen| seen.header("cookie").is_none()));
}

#[tokio::test]
async fn definite_errors_go_back_untouched_and_at_once() {
    let body = r#"{"error":{"z":1,"message":"no \u00fc","code":"invalid_prompt"}}"#;
    for status in [400, 401, 403, 404, 413, 422, 501] {
        let reply = Reply::status(status).reason("Odd Words").header("X-Request-Id", "r").json(body);
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!(
            (answer.status, answer.reason.as_str(), answer.text().as_str()),
            (status, "Odd Words", body)
        );
        assert_eq!((answer.header("x-request-id"), answer.header("x-should-retry")), (Some("r"), None));
        assert_eq!(up.requests().len(), 1);
        assert!(bench.story(1).await.ends_with("final, passed"), "{}", bench.story(1).await);
    }
}

#[tokio::test]
async fn an_answer_during_the_upload_reaches_the_client() {
    let reply = Reply::early(Reply::status(413).json(r#"{"error":{"message":"too large"}}"#).close());
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(&"x".repeat(8 << 20))).await;
    assert_eq!((answer.status, answer.json()["error"]["message"].as_str()), (413, Some("too large")));
    assert!(up.wait_for_requests(1, SOON).await);
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn a_refusal_during_the_upload_is_waited_out() {
    let busy = Reply::early(wire::overloaded_503().close());
    let up = Upstream::start(Script::of([busy, Reply::status(200).json("{}")])).await.unwrap();
    let bench = Bench::to(&up).await;
    let body = format!(r#"{{"input":"{}"}}"#, "x".repeat(8 << 20));
    assert_eq!(bench.ask(&plain(&body)).await.status, 200);
    assert_eq!(up.requests()[1].body.len(), body.len());
}

#[tokio::test]
async fn an_old_client_is_answered_in_its_way() {
    let up =
        Upstream::start(Script::of([wire::overloaded_503(), Reply::sse(wire::turn("hi"))])).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    let head = format!("POST /v1/responses HTTP/1.0\r\ncontent-length: {}\r\n\r\n{TURN}", TURN.len());
    client.send_bytes(head.as_bytes()).await.unwrap();
    let answer = client.read().await;
    assert_eq!((answer.status, answer.ending), (200, Ending::CompleteByClose));
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.body, stream_bytes(&wire::turn("hi")));
}
