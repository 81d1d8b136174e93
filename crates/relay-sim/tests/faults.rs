//! Each fault of the pretend upstream really is, on the wire, what it says.

use std::io;
use std::time::Duration;

use relay_sim::fixtures::{anthropic, chat, codex};
use relay_sim::{Answer, Client, Ending, Event, LineEnd, Refused, Reply, Request, Script, Signal, Upstream};
use serde_json::json;

const SOON: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(60);

fn post() -> Request {
    Request::post("/v1/responses").header("Authorization", "Bearer sk-test").json(json!({"model": "m"}))
}

async fn ask(up: &Upstream) -> io::Result<Answer> {
    Client::connect(up.addr()).await?.patience(SOON).ask(&post()).await
}

/// The answer to one request with this reply.
async fn answer_to(reply: Reply) -> io::Result<Answer> {
    ask(&Upstream::start(reply).await?).await
}

#[tokio::test]
async fn an_error_with_a_body_keeps_the_connection() -> io::Result<()> {
    let busy = Reply::status(529).reason("").header("X-Odd-Case", 1).json(r#"{"error":{"z":1,"a":2}}"#);
    let up = Upstream::start(Script::of([busy, Reply::status(200).text("good")])).await?;
    let mut client = Client::connect(up.addr()).await?;
    let first = client.ask(&post()).await?;
    assert_eq!((first.status, first.reason.as_str(), first.ending), (529, "", Ending::Complete));
    assert_eq!(first.headers[0], ("X-Odd-Case".to_owned(), "1".to_owned()));
    assert_eq!(first.text(), r#"{"error":{"z":1,"a":2}}"#);
    assert_eq!(client.ask(&post()).await?.text(), "good");
    assert_eq!((up.connections(), up.requests().len()), (1, 2));
    let seen = &up.requests()[1];
    assert_eq!((seen.connection, seen.json(), seen.body_complete), (0, json!({"model": "m"}), true));
    assert_eq!(seen.header("authorization"), Some("Bearer sk-test"));
    Ok(())
}

#[tokio::test]
async fn a_stream_arrives_event_by_event_with_each_line_end() -> io::Result<()> {
    for line_end in [LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr] {
        let events = [Event::comment("hi"), Event::named("a", json!({"x": 1})), Event::data("[DONE]")];
        let expected: Vec<u8> = events.iter().flat_map(|event| event.bytes(line_end)).collect();
        let answer = answer_to(Reply::sse(events).line_end(line_end)).await?;
        assert_eq!(answer.body, expected);
        assert_eq!(answer.ending, Ending::Complete);
        let named = [("a".to_owned(), r#"{"x":1}"#.to_owned()), (String::new(), "[DONE]".to_owned())];
        assert_eq!(answer.events(), named);
    }
    Ok(())
}

#[tokio::test]
async fn bytes_are_the_same_wherever_they_are_cut() -> io::Result<()> {
    let whole = relay_sim::script::stream_bytes(&codex::turn("hello there"));
    for cut in [vec![1], vec![3, 1, 70], vec![4096]] {
        let body = answer_to(Reply::sse(codex::turn("hello there")).cut(cut.clone())).await?;
        let wire = answer_to(Reply::sse(codex::turn("hello there")).cut_wire(cut)).await?;
        assert_eq!((body.body, wire.body), (whole.clone(), whole.clone()));
    }
    let spaced = answer_to(Reply::status(200).text("abc").cut([1]).spaced(Duration::from_millis(2))).await?;
    assert_eq!((spaced.text(), spaced.arrivals.len()), ("abc".to_owned(), 3));
    Ok(())
}

#[tokio::test]
async fn every_ending_is_told_apart() -> io::Result<()> {
    let stream = || Reply::sse([Event::data("1")]);
    let text = || Reply::status(200).text("12345");
    let cases = [
        (stream(), Ending::Complete),
        (stream().close(), Ending::Complete),
        (stream().trailer("x-sum", 1), Ending::Complete),
        (stream().fin_without_terminator(), Ending::Truncated),
        (stream().reset(), Ending::Reset),
        (stream().close_delimited(), Ending::CompleteByClose),
        (stream().close_delimited().reset(), Ending::Reset),
        (text().length(9).fin_without_terminator(), Ending::Truncated),
        (text().length(9).reset(), Ending::Reset),
        (Reply::close_after_request(), Ending::Truncated),
        (Reply::reset_after_request(), Ending::Reset),
        (Reply::reset_before_reading(), Ending::Reset),
        (
            Reply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n").close(),
            Ending::Malformed,
        ),
        (Reply::raw("HTTP/1.1 2").close(), Ending::Truncated),
    ];
    for (reply, ending) in cases {
        let name = format!("{reply:?}");
        let answer = answer_to(reply).await?;
        assert_eq!(answer.ending, ending, "{name}");
        assert_eq!(answer.body.is_empty(), answer.status == 0 || ending == Ending::Malformed, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn hanging_and_silence_last_until_the_client_leaves() -> io::Result<()> {
    for (reply, status, answered) in
        [(Reply::silence(), 0, false), (Reply::sse([Event::data("1")]).hang(), 200, true)]
    {
        let up = Upstream::start(reply).await?;
        let mut client = Client::connect(up.addr()).await?.patience(SHORT);
        let answer = client.ask(&post()).await?;
        assert_eq!((answer.status, answer.ending), (status, Ending::Timeout));
        assert!(up.requests()[0].client_gone_at.is_none());
        client.leave().await;
        assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
        assert_eq!(up.requests()[0].answered_at.is_some(), answered);
    }
    Ok(())
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_while_streaming_waiting_or_before_the_head() -> io::Result<()> {
    let never = Signal::new();
    let ticks = (0..10_000).flat_map(|_| [Event::data("tick"), Event::pause(Duration::from_millis(1))]);
    let replies = [
        Reply::sse(ticks),
        Reply::sse([Event::data("tick"), Event::wait_for(never.clone())]),
        Reply::status(200).when(never.clone()),
        Reply::status(200).interim(102).after(Duration::from_secs(3600)),
    ];
    for reply in replies {
        for by_reset in [false, true] {
            let up = Upstream::start(reply.clone()).await?;
            let mut client = Client::connect(up.addr()).await?;
            client.send(&post()).await?;
            assert!(up.wait_for_requests(1, SOON).await);
            if by_reset {
                client.leave_by_reset();
            } else {
                client.leave().await;
            }
            assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
            assert_eq!(up.requests()[0].answered_at, None);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_signal_holds_and_tells() -> io::Result<()> {
    let (go, there) = (Signal::new(), Signal::new());
    let steps = [
        Event::data("before"),
        Event::tell(there.clone()),
        Event::wait_for(go.clone()),
        Event::data("after"),
    ];
    let up = Upstream::start(Reply::sse(steps).reset()).await?;
    let mut client = Client::connect(up.addr()).await?;
    client.send(&post()).await?;
    assert!(client.read_until(b"before").await);
    there.wait().await;
    assert!(!client.answer().text().contains("after"));
    go.release();
    assert!(go.released() && client.read_until(b"after").await);
    assert_eq!(client.read().await.ending, Ending::Reset);
    Ok(())
}

#[tokio::test]
async fn delays_and_interim_answers_come_in_the_order_they_were_asked_for() -> io::Result<()> {
    let reply =
        Reply::status(200).interim(102).after(SHORT).interim_with(103, &[("link", "</x>")]).text("good");
    let answer = answer_to(reply).await?;
    assert_eq!((answer.status, answer.text()), (200, "good".to_owned()));
    let [first, second] = answer.interim.as_slice() else {
        return Err(io::Error::other("two interim answers"));
    };
    assert_eq!((first.status, second.status), (102, 103));
    assert_eq!(second.headers, [("link".to_owned(), "</x>".to_owned())]);
    assert!(second.at >= first.at + SHORT / 2 && answer.head_at >= Some(SHORT));
    Ok(())
}

#[tokio::test]
async fn an_early_answer_does_not_wait_for_the_body() -> io::Result<()> {
    let up = Upstream::start(Reply::early(Reply::status(413).text("too large"))).await?;
    let mut client = Client::connect(up.addr()).await?;
    client.send_head(&post()).await?;
    let answer = client.read().await;
    assert_eq!((answer.status, answer.ending), (413, Ending::Complete));
    assert!(!up.requests()[0].body_complete);
    client.send_bytes(&post().body_bytes()).await?;
    assert!(up.wait_for(SOON, |seen| seen[0].body_complete).await);
    assert_eq!(client.ask(&post()).await?.status, 413);
    let up = Upstream::start(Reply::early(Reply::status(413).close())).await?;
    let mut client = Client::connect(up.addr()).await?;
    client.send_head(&post()).await?;
    assert_eq!(client.read().await.ending, Ending::Complete);
    assert_eq!(client.wait_for_close(SOON).await, Ending::CompleteByClose);
    Ok(())
}

#[tokio::test]
async fn an_early_reset_cuts_a_large_request() -> io::Result<()> {
    for reply in [Reply::reset_before_reading(), Reply::early(Reply::status(413).text("no").reset())] {
        let up = Upstream::start(reply).await?;
        let mut client = Client::connect(up.addr()).await?;
        let answer = client.ask(&Request::post("/").body(vec![b'x'; 32 << 20])).await?;
        assert_eq!(answer.ending, if answer.status == 0 { Ending::Reset } else { Ending::Complete });
        assert!(!up.requests()[0].body_complete);
    }
    Ok(())
}

#[tokio::test]
async fn chunked_and_large_bodies_and_expectations_are_read_whole() -> io::Result<()> {
    let up = Upstream::start(Script::by(|seen, number| {
        Reply::status(200).text(format!("{number} {}", seen.body.len()))
    }))
    .await?;
    let mut client = Client::connect(up.addr()).await?;
    let large = vec![7_u8; 9 << 20];
    assert_eq!(client.ask(&Request::post("/").body(large.clone()).chunked(5000)).await?.text(), "0 9437184");
    assert_eq!(up.requests()[0].body, large);
    let expecting = client.ask(&post().header("Expect", "100-continue")).await?;
    assert_eq!((expecting.interim[0].status, expecting.text()), (100, "1 13".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_stale_connection_is_closed_or_reset_under_the_next_request() -> io::Result<()> {
    let up = Upstream::start(Reply::status(200).text("good").close_unannounced()).await?;
    let mut client = Client::connect(up.addr()).await?;
    let answer = client.ask(&post()).await?;
    assert_eq!((answer.ending, answer.header("connection")), (Ending::Complete, None));
    assert_eq!(client.wait_for_close(SOON).await, Ending::CompleteByClose);
    let up = Upstream::start(Script::of([Reply::status(200), Reply::reset_after_request()])).await?;
    let mut client = Client::connect(up.addr()).await?;
    assert_eq!(client.ask(&post()).await?.status, 200);
    assert_eq!(client.ask(&post()).await?.ending, Ending::Reset);
    assert_eq!(up.connections(), 1);
    Ok(())
}

#[tokio::test]
async fn a_slow_reader_holds_the_upstream_back() -> io::Result<()> {
    let megabyte = vec![b'x'; 1 << 20];
    let up = Upstream::start(Reply::status(200).bytes_stream(vec![megabyte; 32])).await?;
    let mut client = Client::connect_narrow(up.addr(), 64 << 10).await?;
    client.send(&post()).await?;
    assert!(client.read_head().await);
    assert!(!up.wait_for(SHORT, |seen| seen[0].answered_at.is_some()).await);
    let answer = client.read().await;
    assert_eq!((answer.body.len(), answer.ending), (32 << 20, Ending::Complete));
    Ok(())
}

#[tokio::test]
async fn a_refused_port_refuses_until_it_opens() -> io::Result<()> {
    let refused = Refused::port()?;
    let addr = refused.addr();
    let error = Client::connect(addr).await.err().map(|error| error.kind());
    assert_eq!(error, Some(io::ErrorKind::ConnectionRefused));
    let up = refused.open(Reply::status(200))?;
    assert_eq!((up.addr(), ask(&up).await?.status), (addr, 200));
    up.stop().await;
    assert!(Client::connect(addr).await.is_err());
    let up = Upstream::start_on(addr.port(), Reply::status(200)).await?;
    assert_eq!(ask(&up).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn stopping_closes_every_socket() -> io::Result<()> {
    for dropped in [false, true] {
        let up = Upstream::start(Reply::silence()).await?;
        let mut client = Client::connect(up.addr()).await?;
        client.send(&post()).await?;
        assert!(up.wait_for_requests(1, SOON).await);
        if dropped {
            drop(up);
        } else {
            up.stop().await;
        }
        assert_eq!(client.read().await.ending, Ending::Truncated);
    }
    Ok(())
}

#[tokio::test]
async fn paths_and_dialects_come_from_the_fixtures() -> io::Result<()> {
    let script = Script::by_head(|seen, number| match (seen.path(), number) {
        (_, 0) => codex::overloaded_503(),
        ("/v1/messages", _) => Reply::sse(anthropic::stream("hello there")),
        _ => Reply::status(200).json(chat::completion("hello there")),
    })
    .for_path("/v1/models", Reply::status(200).json(codex::models()));
    let up = Upstream::start(script).await?;
    let mut client = Client::connect(up.addr()).await?;
    assert_eq!(client.ask(&Request::get("/v1/models?client_version=1")).await?.text(), r#"{"models":[]}"#);
    let busy = client.ask(&post()).await?;
    assert_eq!((busy.status, busy.json()["error"]["code"].as_str()), (503, Some("server_is_overloaded")));
    let message = client.ask(&Request::post("/v1/messages").json("{}")).await?;
    assert_eq!(message.events().last().map(|(name, _)| name.as_str()), Some("message_stop"));
    let chat = client.ask(&Request::post("/v1/chat/completions").json("{}")).await?;
    assert_eq!(chat.json()["choices"][0]["message"]["content"], "hello there");
    Ok(())
}

#[tokio::test]
async fn an_upgrade_echoes_until_the_client_leaves() -> io::Result<()> {
    let upgrade = Reply::status(101).header("connection", "upgrade").header("upgrade", "websocket").echo();
    let up = Upstream::start(upgrade).await?;
    let mut client = Client::connect(up.addr()).await?;
    client.send(&Request::get("/v1/responses").header("upgrade", "websocket")).await?;
    client.send_bytes(b"frame one").await?;
    assert!(client.read_until(b"frame one").await);
    client.send_bytes(b"frame two").await?;
    assert!(client.read_until(b"frame two").await);
    assert_eq!(client.answer().status, 101);
    client.leave().await;
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
    Ok(())
}

#[tokio::test]
async fn a_long_run_need_not_keep_its_bodies() -> io::Result<()> {
    let up = Upstream::start(Script::of([Reply::status(200)]).forgetting_bodies()).await?;
    assert_eq!(ask(&up).await?.status, 200);
    assert!(up.wait_for(SOON, |seen| seen[0].answered_at.is_some()).await);
    assert!(up.requests()[0].body.is_empty() && up.requests()[0].body_complete);
    Ok(())
}
