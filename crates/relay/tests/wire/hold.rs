//! The commit point: what is held, for how long, and what a break after it looks like.

use relay_core::Config;
use relay_sim::fixtures::{anthropic, chat, codex as wire};
use relay_sim::script::stream_bytes;
use relay_sim::{Client, Ending, Event, Reply, Request, Script, Signal, Upstream};
use tokio::time::Instant;

use crate::support::{A_WHILE, Bench, SOON, TURN, claude, codex, invents_no_time, ms, plain, sdk, towards};

/// Whether no byte of an answer comes for a while.
async fn is_silent(client: &mut Client) -> bool {
    let head = tokio::time::timeout(A_WHILE, client.read_head()).await;
    head.is_err() && client.answer().status == 0
}

fn held_for(up: &Upstream, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = towards(&up.url());
    change(&mut config);
    config
}

/// An answer that broke off: told as a break, never as a tidy end.
fn is_aborted(ending: Ending) -> bool {
    matches!(ending, Ending::Truncated | Ending::Reset)
}

#[tokio::test]
async fn lifecycle_is_held_until_output() {
    let (told, go) = (Signal::new(), Signal::new());
    let whole = wire::turn("hi");
    let mut events = whole.clone();
    events.splice(2..2, [Event::tell(told.clone()), Event::wait_for(go.clone())]);
    let up = Upstream::start(Reply::sse(events)).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    told.wait().await;
    assert!(is_silent(&mut client).await);
    go.release();
    assert_eq!(client.read().await.body, stream_bytes(&whole));
}

#[tokio::test]
async fn output_passes_at_once() {
    let doors: Vec<Signal> = (0..9).map(|_| Signal::new()).collect();
    let delta = |number: usize| {
        Event::named(
            "response.output_text.delta",
            format!(r#"{{"type":"response.output_text.delta","delta":"{number}!"}}"#),
        )
    };
    let mut events = vec![wire::created()];
    for (number, door) in doors.iter().enumerate() {
        events.extend([Event::wait_for(door.clone()), delta(number)]);
    }
    events.push(wire::turn("hi").pop().unwrap());
    let up = Upstream::start(Reply::sse(events)).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    let mut late = Vec::new();
    for (number, door) in doors.iter().enumerate() {
        let released = Instant::now();
        door.release();
        assert!(client.read_until(format!("{number}!").as_bytes()).await);
        late.push(released.elapsed());
    }
    late.sort();
    // The machine may be busy at one moment, not at half of them.
    assert!(late[late.len() / 2] < ms(50), "{late:?}");
    assert_eq!(client.read().await.ending, Ending::Complete);
}

#[tokio::test]
async fn a_failure_after_output_passes_unchanged() {
    let partial = |mut events: Vec<Event>, failure: Event| {
        events.push(failure);
        events
    };
    let chat_events = chat::stream("a b").drain(..2).collect();
    let anthropic_events = anthropic::stream("a b").drain(..4).collect();
    let rows = [
        (plain(TURN), partial(wire::partial("hello"), wire::failed("server_is_overloaded", "busy"))),
        (codex("t", TURN), partial(wire::partial("hello"), wire::failed("rate_limit_exceeded", "later"))),
        (
            Request::post("/v1/chat/completions").json(TURN),
            partial(chat_events, chat::error_chunk("server_is_overloaded", "busy")),
        ),
        (claude(), partial(anthropic_events, anthropic::overloaded_event())),
    ];
    for (request, events) in rows {
        let up = Upstream::start(Reply::sse(events.clone())).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&request).await;
        assert_eq!(
            (answer.ending, answer.text()),
            (Ending::Complete, String::from_utf8(stream_bytes(&events)).unwrap())
        );
        assert_eq!(up.requests().len(), 1);
    }
}

#[tokio::test]
async fn holding_ends_at_its_size() {
    let go = Signal::new();
    let padding = wire::created();
    let held = [padding.clone(), padding.clone(), padding];
    let mut events = held.to_vec();
    events.push(Event::wait_for(go.clone()));
    events.extend(wire::overloaded_stream());
    let up = Upstream::start(Reply::sse(events)).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.hold.bytes = 500)).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    assert!(client.read_until(&stream_bytes(&held)).await);
    go.release();
    // Committed is committed: the refusal that follows is the client's.
    assert!(client.read().await.text().contains("server_is_overloaded"));
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn holding_ends_at_its_time_but_not_for_codex() {
    let go = Signal::new();
    let whole = wire::turn("hi");
    let mut events = whole.clone();
    events.insert(1, Event::wait_for(go.clone()));
    let up = Upstream::start(Reply::sse(events)).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.hold.time = ms(60))).await;
    let mut other = bench.client().await;
    other.send(&plain(TURN)).await.unwrap();
    assert!(other.read_until(&stream_bytes(&whole[..1])).await);
    let mut of_codex = bench.client().await;
    of_codex.send(&codex("t", TURN)).await.unwrap();
    assert!(up.wait_for_requests(2, SOON).await);
    assert!(is_silent(&mut of_codex).await);
    go.release();
    assert_eq!(other.read().await.body, stream_bytes(&whole));
    assert_eq!(of_codex.read().await.body, stream_bytes(&whole));
}

#[tokio::test]
async fn holding_ends_before_the_client_would_hang_up() {
    let go = Signal::new();
    let whole = wire::turn("hi");
    let mut events = whole.clone();
    events.insert(2, Event::wait_for(go.clone()));
    let up = Upstream::start(Reply::sse(events)).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await.patience(ms(900));
    client.send(&sdk(0, TURN).header("x-stainless-read-timeout", "1")).await.unwrap();
    assert!(client.read_until(&stream_bytes(&whole[..2])).await, "the client has given up");
    go.release();
    assert_eq!(client.read().await.body, stream_bytes(&whole));
}

#[tokio::test]
async fn silence_before_output_is_told_and_never_sent_again() {
    for (request, status, kind) in
        [(plain(TURN), 429, "application/json"), (codex("t", TURN), 400, "text/plain; charset=utf-8")]
    {
        for reply in [Reply::sse([wire::created()]).hang(), Reply::sse([]).hang()] {
            let up = Upstream::start(reply).await.unwrap();
            let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(80))).await;
            let answer = bench.ask(&request).await;
            assert_eq!((answer.status, answer.header("content-type")), (status, Some(kind)));
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            assert!(answer.text().contains("upstream_no_response"), "{}", answer.text());
            assert!(answer.text().contains("1 send"), "{}", answer.text());
            invents_no_time(&answer);
            assert_eq!(bench.story(1).await, "opened, send 1, 200, no_answer no_answer, refused");
            assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
            assert_eq!(up.requests().len(), 1);
        }
    }
}

/// The status is an answer, whatever becomes of the words behind it.
#[tokio::test]
async fn a_refusal_whose_words_never_come_is_a_refusal() {
    let begun = |status: u16| Reply::status(status).bytes("{\"error\"").length(1000).hang();
    let good = Reply::sse(wire::turn("hi"));
    let up =
        Upstream::start(Script::of([begun(503).header("retry-after", "0.05"), good.clone()])).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(80))).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    let story = bench.story(1).await;
    assert!(story.contains("503, at_capacity refused") && story.ends_with("committed, served"), "{story}");

    let up = Upstream::start(Script::of([begun(400), good])).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(80))).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.text(), up.requests().len()), (400, "{\"error\"".into(), 1));
    assert!(is_aborted(answer.ending), "{answer:?}");
}

#[tokio::test]
async fn silence_after_output_aborts() {
    let events = wire::partial("hello");
    let up = Upstream::start(Reply::sse(events.clone()).hang()).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(80))).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert!(is_aborted(answer.ending), "{:?}", answer.ending);
    assert_eq!(answer.body, stream_bytes(&events));
    assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, broken");
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

#[tokio::test]
async fn heartbeats_count_as_life_before_output_only() {
    let beats = || (0..12).flat_map(|_| [Event::comment("beat"), Event::pause(ms(30))]);
    let mut alive: Vec<Event> = beats().collect();
    alive.extend(wire::turn("hi"));
    let up = Upstream::start(Reply::sse(alive)).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(150))).await;
    assert_eq!(bench.ask(&plain(TURN)).await.ending, Ending::Complete);

    let mut dead = wire::partial("hello");
    dead.extend(beats());
    dead.extend(beats());
    let up = Upstream::start(Reply::sse(dead).hang()).await.unwrap();
    let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(150))).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert!(is_aborted(answer.ending));
    let beats = answer.text().matches(": beat").count();
    assert!((1..20).contains(&beats), "aborted after {beats} beats");
    assert!(bench.story(1).await.ends_with("committed, broken"));
}

#[tokio::test]
async fn a_stream_whose_last_word_was_said_ends_well_though_its_connection_stays_open() {
    let events = wire::turn("hi");
    for reply in [
        Reply::sse(events.clone()).hang(),
        Reply::sse(events.clone()).reset(),
        Reply::sse(events.clone()).fin_without_terminator(),
    ] {
        let resets = format!("{reply:?}").contains("Reset");
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::with(held_for(&up, |config| config.timeouts.idle = ms(80))).await;
        let answer = bench.ask(&plain(TURN)).await;
        // A reset destroys what was not yet read; what was read goes on.
        if !resets {
            assert_eq!(answer.body, stream_bytes(&events));
            assert!(bench.story(1).await.ends_with("committed, served"), "{}", bench.story(1).await);
        }
    }
}

#[tokio::test]
async fn an_early_end_is_an_abort_after_all_that_came() {
    let mut anthropic_events = anthropic::stream("a b");
    anthropic_events.truncate(5);
    let mut chat_events = chat::stream("a b");
    chat_events.truncate(3);
    let rows = [
        (plain(TURN), wire::partial("hello")),
        (codex("t", TURN), wire::partial("hello")),
        (Request::post("/v1/chat/completions").json(TURN), chat_events),
        (claude(), anthropic_events),
    ];
    for (request, events) in rows {
        let tidy = Reply::sse(events.clone());
        let unended = Reply::sse(events.clone()).fin_without_terminator();
        let by_close = Reply::sse(events.clone()).close_delimited();
        for reply in [tidy, unended, by_close] {
            let up = Upstream::start(reply).await.unwrap();
            let bench = Bench::to(&up).await;
            let answer = bench.ask(&request).await;
            assert!(is_aborted(answer.ending), "{:?}", answer.ending);
            assert_eq!(answer.body, stream_bytes(&events));
            assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, broken");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_before_the_last_word_is_a_break_though_all_choices_are_finished() {
    let mut finished = chat::stream("a b");
    assert!(stream_bytes(&finished[finished.len() - 1..]).starts_with(b"data: [DONE]"));
    finished.truncate(finished.len() - 1);
    let request = Request::post("/v1/chat/completions").json(TURN);
    for (reply, whole) in [
        (Reply::sse(finished.clone()), true),
        (Reply::sse(finished.clone()).close_delimited(), true),
        (Reply::sse(finished.clone()).fin_without_terminator(), false),
        (Reply::sse(chat::stream("a b")).fin_without_terminator(), true),
    ] {
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::to(&up).await;
        let ending = bench.ask(&request).await.ending;
        assert_eq!((ending == Ending::Complete, is_aborted(ending)), (whole, !whole), "{ending:?}");
        let end = if whole { "served" } else { "broken" };
        assert_eq!(bench.story(1).await, format!("opened, send 1, 200, committed, {end}"));
    }
}

#[tokio::test]
async fn a_length_that_is_reached_makes_no_broken_stream_whole() {
    let mut anthropic_events = anthropic::stream("a b");
    anthropic_events.truncate(5);
    let mut chat_events = chat::stream("a b");
    chat_events.truncate(3);
    let of_length =
        |bytes: Vec<u8>| Reply::status(200).header("content-type", "text/event-stream").bytes(bytes);
    for (request, events) in [
        (plain(TURN), wire::partial("hello")),
        (codex("t", TURN), wire::partial("hello")),
        (Request::post("/v1/chat/completions").json(TURN), chat_events),
        (claude(), anthropic_events),
    ] {
        let sent = stream_bytes(&events);
        let up = Upstream::start(of_length(sent.clone())).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&request).await;
        assert!(is_aborted(answer.ending), "{:?}", answer.ending);
        // The last byte would end the answer.
        assert_eq!(answer.body, sent[..sent.len() - 1]);
        assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, broken");
    }
    // A whole stream of a length is whole.
    let sent = stream_bytes(&wire::turn("hi"));
    let up = Upstream::start(of_length(sent.clone())).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.ending, answer.body), (Ending::Complete, sent));
    assert!(bench.story(1).await.ends_with("committed, served"));
    // One that broke off before its output, and did so again.
    for sent in [stream_bytes(&[wire::created()]), Vec::new()] {
        let up = Upstream::start(of_length(sent.clone())).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert!(is_aborted(answer.ending), "{:?}", answer.ending);
        assert_eq!(answer.body, sent);
        assert!(bench.story(1).await.ends_with("maybe_ran, returned"), "{}", bench.story(1).await);
    }
}

#[tokio::test]
async fn what_is_held_in_crumbs_passes_as_it_came() {
    let whole = stream_bytes(&wire::turn("hi"));
    let crumbs = |bytes: &[u8]| bytes.iter().map(|byte| vec![*byte]).collect::<Vec<_>>();
    let reply = Reply::status(200).header("content-type", "text/event-stream");
    let up = Upstream::start(reply.clone().bytes_stream(crumbs(&whole))).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(TURN)).await.body, whole);
    // Among pieces that are none.
    let mut pieces = vec![format!(": {}\n\n", "x".repeat(300)).into_bytes()];
    pieces.extend(crumbs(
        ": a comment that goes on for more than sixty-four pieces, each one byte\n\n".repeat(2).as_bytes(),
    ));
    pieces.push(whole);
    let up = Upstream::start(reply.bytes_stream(pieces.clone())).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(TURN)).await.body, pieces.concat());
}

#[tokio::test]
async fn a_reset_after_output_is_an_abort_after_all_that_came() {
    let (events, go) = (wire::partial("hello"), Signal::new());
    let mut ended = events.clone();
    ended.push(Event::wait_for(go.clone()));
    let up = Upstream::start(Reply::sse(ended).reset()).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = bench.client().await;
    client.send(&plain(TURN)).await.unwrap();
    assert!(client.read_until(&stream_bytes(&events)).await);
    go.release();
    assert!(is_aborted(client.read().await.ending));
    assert_eq!(bench.story(1).await, "opened, send 1, 200, committed, broken");
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_an_abort() {
    let reply = Reply::status(200)
        .header("content-type", "application/octet-stream")
        .bytes("12345")
        .length(9)
        .fin_without_terminator();
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&Request::get("/v1/files/1/content")).await;
    assert!(is_aborted(answer.ending));
    assert_eq!((answer.header("content-length"), answer.text().as_str()), (Some("9"), "12345"));
    assert!(bench.story(1).await.ends_with("committed, broken"));
}

#[tokio::test]
async fn a_tidy_end_is_an_end_where_no_protocol_names_one() {
    let up = Upstream::start(Reply::sse([Event::data("a")])).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&Request::post("/v1/own").json("{}")).await;
    assert_eq!((answer.ending, answer.text().as_str()), (Ending::Complete, "data: a\n\n"));
    assert!(bench.story(1).await.ends_with("committed, served"));
}

#[tokio::test]
async fn a_slow_reader_slows_the_upstream_and_gets_every_byte() {
    let block = vec![b'x'; 64 << 10];
    let pieces: Vec<Vec<u8>> = (0..256).map(|_| block.clone()).collect();
    let reply = Reply::status(200).header("content-type", "application/octet-stream").bytes_stream(pieces);
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = Client::connect_narrow(bench.addr(), 16 << 10).await.unwrap();
    client.send(&Request::get("/v1/files/1/content")).await.unwrap();
    assert!(client.read_head().await);
    tokio::time::sleep(A_WHILE).await;
    // Sixteen megabytes do not fit into the buffers between them.
    assert!(up.requests()[0].answered_at.is_none());
    let answer = client.read().await;
    assert_eq!((answer.ending, answer.body.len()), (Ending::Complete, 16 << 20));
}

#[tokio::test]
async fn what_came_before_a_break_reaches_a_slow_reader_too() {
    const LENGTH: usize = 8 << 20;
    let block = vec![b'x'; 32 << 10];
    let pieces: Vec<Vec<u8>> = (0..LENGTH / block.len()).map(|_| block.clone()).collect();
    let reply = Reply::status(200)
        .header("content-type", "application/octet-stream")
        .bytes_stream(pieces)
        .fin_without_terminator();
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client = Client::connect_narrow(bench.addr(), 16 << 10).await.unwrap();
    client.send(&Request::get("/v1/files/1/content")).await.unwrap();
    for step in 1..16 {
        while client.answer().body.len() < step * LENGTH / 16 {
            assert!(
                client.read_some().await,
                "{} bytes, then {:?}",
                client.answer().body.len(),
                client.answer().ending
            );
        }
        tokio::time::sleep(ms(80)).await;
    }
    let answer = client.read().await;
    assert!(is_aborted(answer.ending), "{:?}", answer.ending);
    assert_eq!(answer.body.len(), LENGTH);
}
