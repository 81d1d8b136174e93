//! Request bodies: what is kept, what is passed through, and what becomes of the memory.

use relay_core::Config;
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Ending, Event, Refused, Reply, Request, Script, Signal, Upstream};

use crate::support::{Bench, SOON, TURN, plain, towards};

/// A turn of about so many bytes.
fn turn_of(bytes: usize) -> String {
    let text = "x".repeat(bytes - 100);
    format!(r#"{{"model":"m","stream":true,"input":[{{"role":"user","content":"{text}"}}]}}"#)
}

fn room(url: &str, each: u64, total: u64) -> Config {
    let mut config = towards(url);
    config.bodies.each = each;
    config.bodies.total = total;
    config
}

fn served() -> Reply {
    Reply::sse(wire::turn("hi"))
}

#[tokio::test]
async fn a_body_over_the_limit_is_streamed_and_sent_once() {
    let body = turn_of(5000);
    for request in [plain(&body), plain(&body).chunked(700)] {
        let up = Upstream::start(Script::of([wire::overloaded_503(), served()])).await.unwrap();
        let bench = Bench::with(room(&up.url(), 1000, 1 << 20)).await;
        let answer = bench.ask(&request).await;
        assert_eq!((answer.status, answer.text()), (503, wire::overloaded_body()));
        let seen = up.requests();
        assert_eq!((seen.len(), seen[0].text()), (1, body.clone()));
        assert_eq!(bench.story(1).await, "opened, send 1, 503, at_capacity refused, returned");
        // The same relay sends a smaller one again.
        assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    }
}

/// Whoever announces much and sends nothing keeps nobody out; whoever sends much does, and that is said once.
#[tokio::test]
async fn room_is_taken_by_what_came() {
    let replies = [wire::overloaded_503(), served(), wire::overloaded_503(), wire::overloaded_503()];
    let up = Upstream::start(Script::of(replies)).await.unwrap();
    let bench = Bench::with(room(&up.url(), 8000, 8000)).await;
    let mut large = bench.client().await;
    let body = turn_of(7900);
    large.send_head(&plain(&body)).await.unwrap();
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200, "sent again, since it was kept");
    let (most, rest) = body.split_at(body.len() - 5);
    large.send_bytes(most.as_bytes()).await.unwrap();
    let small = turn_of(600);
    tokio::time::timeout(SOON, async {
        // Until the large one has arrived.
        while bench.ask(&plain(&small)).await.status == 200 {}
    })
    .await
    .unwrap();
    assert!(bench.recorder().notices().iter().any(|notice| format!("{notice:?}").contains("bodies.total")));
    large.send_bytes(rest.as_bytes()).await.unwrap();
    large.leave().await;
}

#[tokio::test]
async fn a_streamed_body_keeps_its_framing() {
    let body = turn_of(5000);
    let up = Upstream::start(served()).await.unwrap();
    let bench = Bench::with(room(&up.url(), 1000, 1 << 20)).await;
    assert_eq!(bench.ask(&plain(&body)).await.body, stream_bytes(&wire::turn("hi")));
    assert_eq!(bench.ask(&plain(&body).chunked(700)).await.status, 200);
    let seen = up.requests();
    let lengths = seen.iter().map(|seen| seen.header("content-length")).collect::<Vec<_>>();
    assert_eq!(lengths, [Some(body.len().to_string().as_str()), None]);
    assert_eq!(seen[1].header("transfer-encoding"), Some("chunked"));
    assert!(seen.iter().all(|seen| seen.text() == body));
}

/// Answers when the signal comes, and reads the body after it.
async fn answering_early(go: &Signal) -> Upstream {
    let go = go.clone();
    Upstream::start(Script::by_head(move |_, _| Reply::early(served().when(go.clone())))).await.unwrap()
}

#[tokio::test]
async fn a_streamed_body_begins_to_arrive_before_the_client_has_sent_it_all() {
    let go = Signal::new();
    let up = answering_early(&go).await;
    let bench = Bench::with(room(&up.url(), 1000, 1 << 20)).await;
    let mut client = bench.client().await;
    let request = plain(&turn_of(50_000));
    let bytes = request.body_bytes();
    client.send_head(&request).await.unwrap();
    client.send_bytes(&bytes[..20_000]).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    client.send_bytes(&bytes[20_000..]).await.unwrap();
    go.release();
    assert_eq!(client.read().await.status, 200);
    // Nobody wants the rest of an upload that was answered; what came of it is what was sent.
    assert!(bytes.starts_with(&up.requests()[0].body));
}

#[tokio::test]
async fn a_body_that_finds_no_room_among_all_is_streamed() {
    let go = Signal::new();
    let waits = go.clone();
    let up = Upstream::start(Script::by(move |seen, _| {
        if seen.body.len() > 9000 { served().when(waits.clone()) } else { wire::overloaded_503() }
    }))
    .await
    .unwrap();
    let bench = Bench::with(room(&up.url(), 20_000, 12_000)).await;
    let mut first = bench.client().await;
    first.send(&plain(&turn_of(10_000))).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    let answer = bench.ask(&plain(&turn_of(4000))).await;
    assert_eq!((answer.status, up.requests().len()), (503, 2));
    go.release();
    assert_eq!(first.read().await.status, 200);
    // Its place is free again.
    bench.ask(&plain(&turn_of(4000))).await;
    assert!(up.requests().len() > 3);
}

#[tokio::test]
async fn memory_is_given_back_at_commit() {
    let (told, go) = (Signal::new(), Signal::new());
    let mut events = wire::partial("hello");
    events.extend([Event::tell(told.clone()), Event::wait_for(go.clone())]);
    let up =
        Upstream::start(Script::of([Reply::sse(events), wire::overloaded_503(), served()])).await.unwrap();
    let bench = Bench::with(room(&up.url(), 20_000, 12_000)).await;
    let mut first = bench.client().await;
    first.send(&plain(&turn_of(10_000))).await.unwrap();
    assert!(first.read_until(b"hello").await);
    // The first still streams; the second is kept, and so it can be sent again.
    assert_eq!(bench.ask(&plain(&turn_of(10_000))).await.status, 200);
    assert_eq!(up.requests().len(), 3);
    assert!(told.released());
}

#[tokio::test]
async fn memory_is_given_back_when_the_client_leaves() {
    let up = Upstream::start(Script::of([Reply::silence(), wire::overloaded_503(), served()])).await.unwrap();
    let bench = Bench::with(room(&up.url(), 20_000, 12_000)).await;
    let mut first = bench.client().await;
    first.send(&plain(&turn_of(10_000))).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    first.leave().await;
    assert!(bench.story(1).await.ends_with("client_left"));
    assert_eq!(bench.ask(&plain(&turn_of(10_000))).await.status, 200);
}

#[tokio::test]
async fn a_streamed_body_that_was_not_touched_is_sent_when_the_service_is_up() {
    let body = turn_of(5000);
    for request in [plain(&body), plain(&body).chunked(700)] {
        let closed = Refused::port().unwrap();
        let bench = Bench::with(room(&closed.url(), 1000, 1 << 20)).await;
        let mut client = bench.client().await;
        client.send(&request).await.unwrap();
        bench.faults(1, 2).await;
        let up = closed.open(served()).unwrap();
        let answer = client.read().await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete));
        assert_eq!(up.requests()[0].text(), body);
    }
}

#[tokio::test]
async fn a_streamed_body_whose_send_broke_is_not_sent_again() {
    let up = Upstream::start(Reply::reset_after_request()).await.unwrap();
    let bench = Bench::with(room(&up.url(), 1000, 1 << 20)).await;
    let answer = bench.ask(&plain(&turn_of(5000))).await;
    assert!(matches!(answer.ending, Ending::Truncated | Ending::Reset), "{answer:?}");
    assert_eq!((up.requests().len(), bench.totals().maybe_billed_twice), (1, 0));
}

#[tokio::test]
async fn an_upload_that_breaks_off_reaches_nobody() {
    let up = Upstream::start(served()).await.unwrap();
    let bench = Bench::to(&up).await;
    for request in [plain(TURN), plain(TURN).chunked(10)] {
        let mut client = bench.client().await;
        client.send_head(&request).await.unwrap();
        client.send_bytes(&request.body_bytes()[..20]).await.unwrap();
        client.leave().await;
    }
    assert_eq!(bench.ask(&Request::get("/healthz")).await.status, 200);
    assert_eq!(up.connections(), 0);
}

#[tokio::test]
async fn a_streamed_upload_that_breaks_off_breaks_off_upstream() {
    let go = Signal::new();
    let up = answering_early(&go).await;
    let bench = Bench::with(room(&up.url(), 1000, 1 << 20)).await;
    let request = plain(&turn_of(5000));
    let mut client = bench.client().await;
    client.send_head(&request).await.unwrap();
    client.send_bytes(&request.body_bytes()[..2000]).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    client.leave().await;
    let story = bench.story(1).await;
    assert!(story.ends_with("client_left") || story.ends_with("maybe_ran, refused"), "{story}");
    go.release();
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
    assert!(!up.requests()[0].body_complete);
    assert_eq!(up.requests().len(), 1);
}
