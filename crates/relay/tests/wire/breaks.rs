//! What breaks off upstream is told as a break, whatever it was and whoever asked; what is whole is whole.

use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Ending, Reply, Request, Upstream};

use crate::support::{Bench, TURN, bounded, codex, plain};

fn is_break(ending: Ending) -> bool {
    matches!(ending, Ending::Truncated | Ending::Reset)
}

/// The error is definite, and its head and what came of its words reach the client; but not as a whole.
#[tokio::test]
async fn an_error_that_breaks_off_goes_to_the_client_as_far_as_it_came() {
    let words = r#"{"error":{"message":"no such mod"#;
    let asks = [(400, plain(TURN)), (400, codex("turn-1", TURN)), (500, plain(TURN))];
    for (status, request) in asks {
        let head = |framing: &str| {
            format!("HTTP/1.1 {status} Broken\r\nContent-Type: application/json\r\n{framing}\r\n\r\n")
        };
        let chunk = format!("{:x}\r\n{words}\r\n", words.len());
        for bytes in [head("Content-Length: 400") + words, head("Transfer-Encoding: chunked") + &chunk] {
            let up = Upstream::start(Reply::raw(bytes).fin_without_terminator()).await.unwrap();
            let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(1))).await;
            let answer = bench.ask(&request).await;
            assert_eq!((answer.status, answer.text().as_str()), (status, words));
            assert!(is_break(answer.ending), "{:?}", answer.ending);
        }
    }
}

/// Hyper asks for nothing after trailers, so they must not go before it is known that nothing is missing.
#[tokio::test]
async fn a_stream_with_trailers_is_whole_only_with_its_end() {
    let trailing = |events| Reply::sse(events).header("Trailer", "x-sum").trailer("x-sum", "42");
    let asks = || plain(TURN).header("TE", "trailers").header("Connection", "TE");
    let up = Upstream::start(trailing(wire::turn("hi"))).await.unwrap();
    let bench = Bench::to(&up).await;
    for call in 1..=3 {
        let answer = bench.ask(&asks()).await;
        assert_eq!((answer.ending, answer.trailers.len()), (Ending::Complete, 1));
        assert_eq!(bench.story(call).await, "opened, send 1, 200, committed, served");
    }
    assert_eq!(up.connections(), 1, "each gave its connection back");

    let up = Upstream::start(trailing(wire::partial("hi"))).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&asks()).await;
    assert!(is_break(answer.ending), "{:?}", answer.ending);
    assert_eq!(answer.body, stream_bytes(&wire::partial("hi")));
    assert!(bench.story(1).await.ends_with("committed, broken"), "{}", bench.story(1).await);
}

/// To it, an answer without a length is whole when the connection is closed.
#[tokio::test]
async fn a_break_is_a_reset_to_a_client_of_http_1_0() {
    let up = Upstream::start(Reply::sse(wire::partial("hi")).fin_without_terminator()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    let head = format!("POST /v1/responses HTTP/1.0\r\ncontent-length: {}\r\n\r\n{TURN}", TURN.len());
    client.send_bytes(head.as_bytes()).await.unwrap();
    let answer = client.read().await;
    assert_eq!((answer.status, answer.ending), (200, Ending::Reset));
    assert_eq!(answer.body, stream_bytes(&wire::partial("hi")));
}

/// RFC 9110, section 8.6.
#[tokio::test]
async fn a_length_that_is_told_twice_alike_is_told_once() {
    for lengths in ["Content-Length: 2, 2", "Content-Length: 2\r\nContent-Length: 2"] {
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{lengths}\r\n\r\n{{}}");
        let up = Upstream::start(Reply::raw(reply)).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&Request::get("/v1/models")).await;
        assert_eq!((answer.ending, answer.text().as_str()), (Ending::Complete, "{}"), "{lengths}");
        let told = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        assert_eq!(told.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["2"]);
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, served");
    }
}
