//! A client that goes away ends everything that was done for it, at once.

use std::time::Duration;

use relay_sim::fixtures::codex as wire;
use relay_sim::{Client, Event, Reply, Request, Signal, Upstream};

use steady_relay::observe::Notice;

use crate::support::{A_WHILE, Bench, SOON, TURN, bounded, codex, ms, plain};

/// The upstream sees the end of its request within 200 ms, and nothing comes after it.
async fn ends_at_once(up: &Upstream, left_at: Duration) {
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
    let late = up.requests()[0].client_gone_at.unwrap().saturating_sub(left_at);
    assert!(late < ms(200), "closed {late:?} after the client left");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(up.requests().len(), 1);
}

/// Leaves in every way there is.
async fn leave(client: Client, by_reset: bool) {
    if by_reset {
        client.leave_by_reset();
    } else {
        client.leave().await;
    }
}

#[tokio::test]
async fn in_flight() {
    for by_reset in [false, true] {
        for request in [plain(TURN), codex("t", TURN), Request::get("/v1/models")] {
            let up = Upstream::start(Reply::silence()).await.unwrap();
            let bench = Bench::to(&up).await;
            let mut client = bench.client().await;
            client.send(&request).await.unwrap();
            assert!(up.wait_for_requests(1, SOON).await);
            let now = up.now();
            leave(client, by_reset).await;
            ends_at_once(&up, now).await;
            assert_eq!(bench.story(1).await, "opened, send 1, client_left");
        }
    }
}

#[tokio::test]
async fn while_the_beginning_is_held() {
    let told = Signal::new();
    let up = Upstream::start(Reply::sse([wire::created(), Event::tell(told.clone())]).hang()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&codex("t", TURN)).await.unwrap();
    told.wait().await;
    let now = up.now();
    client.leave().await;
    ends_at_once(&up, now).await;
    assert_eq!(bench.story(1).await, "opened, send 1, 200, client_left");
}

#[tokio::test]
async fn on_a_failure_that_it_was_told() {
    // More than is read to judge it, and never whole.
    let words = vec![vec![b'x'; 300 << 10], b"invalid_api_key".to_vec()];
    let up = Upstream::start(Reply::status(401).bytes_stream(words).hang()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    assert!(client.read_until(b"invalid_api_key").await);
    leave(client, false).await;
    assert_eq!(bench.story(1).await, "opened, send 1, 401, authentication final, passed");
}

#[tokio::test]
async fn in_the_middle_of_the_stream() {
    for by_reset in [false, true] {
        let up = Upstream::start(Reply::sse(wire::partial("hello")).hang()).await.unwrap();
        let bench = Bench::to(&up).await;
        let mut client = bench.client().await;
        client.send(&plain(TURN)).await.unwrap();
        assert!(client.read_until(b"hello").await);
        let now = up.now();
        leave(client, by_reset).await;
        ends_at_once(&up, now).await;
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, client_left");
    }
}

#[tokio::test]
async fn in_a_wait() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.curve.base = ms(250))).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    bench.faults(1, 1).await;
    client.leave().await;
    assert_eq!(bench.story(1).await, "opened, send 1, 503, at_capacity refused, wait, client_left");
    tokio::time::sleep(ms(350)).await;
    assert_eq!(up.requests().len(), 1, "sent for a client that is gone");
}

#[tokio::test]
async fn in_a_tunnel() {
    let up =
        Upstream::start(Reply::status(101).header("Upgrade", "x").header("Connection", "Upgrade").echo())
            .await
            .unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&Request::get("/v1/x").header("Connection", "upgrade").header("Upgrade", "x")).await.unwrap();
    assert!(client.read_head().await);
    let now = up.now();
    client.leave_by_reset();
    ends_at_once(&up, now).await;
}

#[tokio::test]
async fn while_a_tunnel_opens() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&Request::get("/v1/x").header("Connection", "upgrade").header("Upgrade", "x")).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    let now = up.now();
    client.leave().await;
    ends_at_once(&up, now).await;
}

/// A call that was refused once, and waits for long.
async fn waiting(request: &Request) -> (Upstream, Bench, Client) {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| {
        profile.curve.base = SOON;
        profile.curve.cap = SOON;
    }))
    .await;
    let mut client = bench.client().await;
    client.send(request).await.unwrap();
    bench.faults(1, 1).await;
    (up, bench, client)
}

#[tokio::test]
async fn a_relay_that_stops_cuts_who_waits_and_says_how_many_are_open() {
    let (up, bench, mut client) = waiting(&codex("t", TURN)).await;
    let seen = bench.recorder();
    bench.drain().await;
    let answer = client.read().await;
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(seen.story(1).ends_with("wait, gave_up"), "{}", seen.story(1));
    let within = relay_core::config::Timeouts::default().drain;
    assert_eq!(
        seen.notices(),
        [Notice::Draining { open: 1, waiting: 1, within }, Notice::Stopping { open: 0 }]
    );
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn a_relay_that_stops_says_so_to_who_is_told_how_it_goes() {
    let (_up, bench, mut client) = waiting(&plain(TURN).header("x-steady-report", "call")).await;
    bench.drain().await;
    let answer = client.read().await;
    let report: serde_json::Value =
        serde_json::from_str(answer.header("x-steady-report").unwrap_or_default()).unwrap();
    assert_eq!(
        ["outcome", "why", "by"].map(|key| report[key].as_str().unwrap_or_default()),
        ["gave_up", "stopping", "relay"]
    );
    assert_eq!((answer.status, answer.header("x-should-retry")), (503, Some("false")));
    assert!(answer.text().contains("relay_stopping"), "{}", answer.text());
}

#[tokio::test]
async fn with_a_request_sent_ahead() {
    for ahead in [&b"\r\n"[..], b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let up = Upstream::start(Reply::silence()).await.unwrap();
        let bench = Bench::to(&up).await;
        let mut client = bench.client().await;
        client.send(&plain(TURN)).await.unwrap();
        client.send_bytes(ahead).await.unwrap();
        assert!(up.wait_for_requests(1, SOON).await);
        let now = up.now();
        client.leave().await;
        ends_at_once(&up, now).await;
    }
}

/// What was sent ahead later than the first of it is not read from the socket any more.
#[tokio::test]
async fn with_requests_sent_ahead_one_after_another() {
    const NEXT: &[u8] = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";
    let streams = Reply::sse(wire::partial("hello")).hang();
    for (reply, by_reset) in [(Reply::silence(), false), (Reply::silence(), true), (streams, false)] {
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::to(&up).await;
        let mut client = bench.client().await;
        client.send(&plain(TURN)).await.unwrap();
        assert!(up.wait_for_requests(1, SOON).await);
        for ahead in [NEXT.to_vec(), NEXT.to_vec(), NEXT.repeat(1000)] {
            client.send_bytes(&ahead).await.unwrap();
            tokio::time::sleep(ms(50)).await;
        }
        let now = up.now();
        leave(client, by_reset).await;
        ends_at_once(&up, now).await;
    }
}

#[tokio::test]
async fn in_a_wait_with_a_body_that_was_not_kept() {
    let closed = relay_sim::Refused::port().unwrap();
    let mut config = bounded(&closed.url(), |profile| profile.curve.base = ms(100));
    config.bodies.each = 100;
    let bench = Bench::with(config).await;
    let mut client = bench.client().await;
    client.send(&plain(&"x".repeat(400_000))).await.unwrap();
    bench.faults(1, 1).await;
    client.leave_by_reset();
    let story = bench.story(1).await;
    assert!(story.ends_with("client_left"), "{story}");
}

/// Codex hangs up on `response.completed`, and the service ends its stream later, or never.
#[tokio::test]
async fn who_has_the_last_word_has_the_whole_answer() {
    let up = Upstream::start(Reply::sse(wire::turn("all of it")).hang()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&codex("t", TURN)).await.unwrap();
    assert!(client.read_until(b"response.completed").await);
    assert!(client.read_until(b"\n\n").await);
    client.leave().await;
    assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, served");
    // One that leaves before that has left.
    let up = Upstream::start(Reply::sse(wire::partial("some of it")).hang()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&codex("t", TURN)).await.unwrap();
    assert!(client.read_until(b"some").await);
    client.leave().await;
    assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, client_left");
}
