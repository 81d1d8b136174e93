//! What shuts no lane and waits by its own curve; what shuts one although it came after output; and the place that a
//! call keeps that its client sends again.

use std::time::Duration;

use relay_core::gate::Preset;
use relay_core::{ClientLimit, Config, Curve};
use relay_sim::fixtures::{anthropic, codex as wire};
use relay_sim::{Client, Ending, Event, Refused, Reply, Request, Script, Signal, Upstream};

use crate::lanes::{
    Busy, answer_to, asks, bytes_for, gated, gets, in_line, lane_until, of, sent, shut, shut_by, waits, whose,
};
use crate::support::{Bench, SOON, TURN, bounded, claude, ms, sdk};

/// Everything to `url`, through the gate, with curves of 20 ms.
fn quick(url: &str) -> Config {
    bounded(url, |profile| profile.gate = Some(Preset::Interactive))
}

const fn flat(wait: Duration) -> Curve {
    Curve { base: wait, factor: 1.0, cap: wait, jitter: Duration::ZERO }
}

#[tokio::test]
async fn what_failed_or_may_have_run_waits_by_itself_and_shuts_no_lane() {
    let failures = [
        (Reply::status(500).json("{}"), "500, server_failed failed, wait"),
        (Reply::status(502).text("bad gateway"), "502, server_failed failed, wait"),
        (Reply::reset_after_request(), "broken_stream maybe_ran, grant, wait"),
        (Reply::sse([wire::created()]).fin_without_terminator(), "200, broken_stream maybe_ran, grant, wait"),
    ];
    for (failure, told) in failures {
        let shown = format!("{failure:?}");
        let up = Upstream::start(Script::by(
            move |seen, number| {
                if number < 3 { failure.clone() } else { answer_to(seen) }
            },
        ))
        .await
        .unwrap();
        let bench = Bench::with(bounded(&up.url(), |profile| {
            profile.gate = Some(Preset::Interactive);
            profile.curve = flat(ms(300));
        }))
        .await;
        let mut clients = Vec::new();
        for (call, name) in [(1, "a"), (2, "b"), (3, "c")] {
            clients.push((name, sent(&bench, &of(name)).await));
            bench.faults(call, 1).await;
        }
        assert_eq!(waits(&bench, 3).await["state"], "open", "{shown}");
        // Others pass.
        assert_eq!(bench.ask(&of("d")).await.body, bytes_for("d"));
        assert_eq!(bench.story(4).await, "opened, send 1, 200, committed, served");
        for (name, client) in &mut clients {
            gets(client, &bytes_for(name)).await;
        }
        for call in 1..=3 {
            let story = bench.story(call).await;
            assert!(story.starts_with(&format!("opened, send 1, {told}, send 2, ")), "{shown}: {story}");
            assert_eq!(bench.waits(call), [ms(300)]);
        }
        assert_eq!(lane_until(&bench, |lane| lane["waiting"] == 0).await["state"], "open");
    }
}

#[tokio::test]
async fn what_never_arrived_waits_by_itself_and_shuts_no_lane() {
    let closed = Refused::port().unwrap();
    let bench = Bench::with(quick(&closed.url())).await;
    let mut clients = Vec::new();
    for (call, name) in [(1, "a"), (2, "b"), (3, "c")] {
        clients.push((name, sent(&bench, &of(name)).await));
        bench.faults(call, 2).await;
    }
    assert_eq!(lane_until(&bench, |_| true).await["state"], "open");
    let _up = closed.open(Script::by(|seen, _| answer_to(seen))).unwrap();
    for (name, client) in &mut clients {
        gets(client, &bytes_for(name)).await;
    }
    let story = bench.story(1).await;
    assert!(story.starts_with("opened, send 1, never_sent never_sent, wait, send 2, "), "{story}");
    assert!(!story.contains("line"), "{story}");
}

/// The moment to look at the lane again is that of the call that is due first, whoever came first.
#[tokio::test]
async fn a_short_wait_is_not_kept_up_by_a_long_one() {
    let up =
        Upstream::start(Script::by(
            |seen, number| {
                if number < 2 { Reply::status(500).json("{}") } else { answer_to(seen) }
            },
        ))
        .await
        .unwrap();
    let mut config = quick(&up.url());
    let mut long = config.profiles["tested"].clone();
    (long.curve, long.client_limit) = (flat(SOON * 3), ClientLimit::Ignored);
    config.profiles.insert("long".to_owned(), long);
    let bench = Bench::with(config).await;
    let _long = sent(&bench, &of("a").header("x-steady-profile", "long")).await;
    bench.faults(1, 1).await;
    waits(&bench, 1).await;
    let mut short = sent(&bench, &of("b")).await;
    gets(&mut short, &bytes_for("b")).await;
    assert_eq!((bench.waits(1), bench.waits(2)), (vec![SOON * 3], vec![ms(20)]));
}

/// Asks until something is known of the answer, and reads it to its end.
async fn broken_off(bench: &Bench, request: &Request, cut: bool) {
    let answer = bench.ask(request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.ending != Ending::Complete, cut, "{}", answer.text());
    assert!(answer.text().contains("some "), "{}", answer.text());
}

#[tokio::test]
async fn a_want_of_capacity_after_output_counts_as_a_refusal_of_its_conversation() {
    let mut fatal = wire::partial("some of it");
    fatal.push(wire::failed("server_is_overloaded", wire::OVERLOADED));
    let mut told = anthropic::stream("some of it");
    told.truncate(told.len() - 3);
    told.push(anthropic::error_event("overloaded_error", "Overloaded"));
    let plain = |name: &str| {
        Request::post("/v1/responses")
            .header("authorization", "Bearer sk-test")
            .header("thread-id", name)
            .json(TURN)
    };
    let claude_of = |name: &str| claude().header("x-claude-code-session-id", name);
    type Asks<'a> = &'a dyn Fn(&str) -> Request;
    let rows: [(Asks<'_>, &[Event], bool); 3] =
        [(&of, &fatal, true), (&plain, &fatal, false), (&claude_of, &told, false)];
    for (ask, events, cut) in rows {
        for breaks in [true, false] {
            let reply = Reply::sse(events.to_vec());
            let up = Upstream::start(Script::by(move |seen, _| match &*whose(seen) {
                "a" if breaks => reply.clone(),
                "b" => wire::overloaded_503(),
                _ => answer_to(seen),
            }))
            .await
            .unwrap();
            let bench = Bench::with(gated(&up.url(), SOON)).await;
            if breaks {
                broken_off(&bench, &ask("a"), cut).await;
            } else {
                assert_eq!(bench.ask(&ask("a")).await.ending, Ending::Complete);
            }
            // One conversation alone shuts nothing.
            lane_until(&bench, |lane| lane["state"] == "open" && lane["running"] == 0).await;
            let _b = sent(&bench, &ask("b")).await;
            bench.faults(2, 1).await;
            if breaks {
                let lane = lane_until(&bench, |lane| lane["state"] == "shut").await;
                assert!(["at_capacity", "overloaded"].contains(&lane["why"].as_str().unwrap()), "{lane}");
                let _c = sent(&bench, &ask("c")).await;
                in_line(&bench, 3).await;
            } else {
                assert_eq!(bench.ask(&ask("c")).await.ending, Ending::Complete);
                assert_eq!(bench.story(3).await, "opened, send 1, 200, committed, served");
            }
        }
    }
}

/// Two that break off after output shut the lane, too, though each was accepted before.
#[tokio::test]
async fn two_that_break_off_shut_the_lane_as_well() {
    let door = Signal::new();
    let mut fatal = wire::partial("some of it");
    fatal.extend([Event::wait_for(door.clone()), wire::failed("server_is_overloaded", wire::OVERLOADED)]);
    let up = Upstream::start(Reply::sse(fatal)).await.unwrap();
    let bench = Bench::with(gated(&up.url(), SOON)).await;
    let mut clients = Vec::new();
    for name in ["a", "b"] {
        let mut client = sent(&bench, &of(name)).await;
        assert!(client.read_until(b"some ").await);
        clients.push(client);
    }
    door.release();
    for (call, mut client) in (1..).zip(clients) {
        assert_ne!(client.read().await.ending, Ending::Complete);
        let story = bench.story(call).await;
        assert!(story.ends_with("committed, cut 1, cut"), "{story}");
    }
    lane_until(&bench, |lane| lane["state"] == "shut" && lane["running"] == 0).await;
}

/// Its client hung up and asks once more, while others came.
async fn left(bench: &Bench, client: Client, call: u64) {
    client.leave_by_reset();
    assert_eq!(bench.story(call).await, "opened, line, client_left");
}

#[tokio::test]
async fn a_call_that_is_sent_again_keeps_its_rank() {
    let number = |seen: &relay_sim::Seen| seen.header("x-number").unwrap_or_default().to_owned();
    let codex_turn = |_: u32| asks("c", TURN);
    let stainless = |tries: u32| sdk(tries, TURN);
    type Asks<'a> = &'a dyn Fn(u32) -> Request;
    let rows: [Asks<'_>; 2] = [&codex_turn, &stainless];
    for ask in rows {
        let busy = Busy::start().await;
        let bench = Bench::with(gated(&busy.up.url(), ms(2500))).await;
        let _two = shut(&bench).await;
        let first = sent(&bench, &ask(0).header("x-number", "first")).await;
        in_line(&bench, 3).await;
        let _between = sent(&bench, &asks("d", TURN).header("x-number", "between")).await;
        in_line(&bench, 4).await;
        left(&bench, first, 3).await;
        let _again = sent(&bench, &ask(1).header("x-number", "again")).await;
        in_line(&bench, 5).await;
        let lane = waits(&bench, 4).await;
        let line: Vec<_> = lane["line"].as_array().unwrap().iter().map(|it| it["call"].clone()).collect();
        let place = |call: &str| line.iter().position(|it| it == call).unwrap();
        assert!(place("c5") < place("c4"), "{line:?}");
        let before = busy.up.requests().len();
        busy.back.release();
        assert!(busy.up.wait_for_requests(before + 1, SOON).await);
        assert_eq!(number(&busy.up.requests()[before]), "again");
        busy.door.release();
    }
}

#[tokio::test]
async fn a_call_that_its_client_does_not_call_the_same_has_no_rank_to_keep() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), ms(2500))).await;
    let _two = shut_by(&bench, [of("a"), of("b")]).await;
    let first = sent(&bench, &asks("c", TURN)).await;
    in_line(&bench, 3).await;
    let _between = sent(&bench, &asks("d", TURN)).await;
    in_line(&bench, 4).await;
    left(&bench, first, 3).await;
    // Another turn: its body is another one.
    let _other = sent(&bench, &asks("c", &TURN.replace("hi", "ho"))).await;
    in_line(&bench, 5).await;
    let lane = waits(&bench, 4).await;
    let line: Vec<_> = lane["line"].as_array().unwrap().iter().map(|it| it["call"].clone()).collect();
    let place = |call: &str| line.iter().position(|it| it == call).unwrap();
    assert!(place("c4") < place("c5"), "{line:?}");
}

/// What may not be sent is told so, rather than held for a turn that it may not take.
#[tokio::test]
async fn a_re_send_that_may_not_be_sent_waits_for_no_turn() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let mut config = gated(&up.url(), ms(50));
    let profile = config.profiles.get_mut("tested").unwrap();
    (profile.sends, profile.gated_sends, profile.serves_resends) = (Some(1), None, false);
    let mut slow = profile.clone();
    slow.sends = Some(9);
    config.profiles.insert("slow".to_owned(), slow);
    let bench = Bench::with(config).await;
    let first = bench.ask(&sdk(0, TURN).header("x-stainless-timeout", "100")).await;
    assert_eq!((first.status, first.text()), (503, wire::overloaded_body()));
    let _other = sent(&bench, &of("b").header("x-steady-profile", "slow")).await;
    bench.faults(2, 1).await;
    lane_until(&bench, |lane| lane["state"] == "shut").await;
    let again = bench.ask(&sdk(1, TURN)).await;
    assert_eq!(again.json()["error"]["code"], "sends_exhausted", "{}", again.text());
    assert_eq!(bench.story(3).await, "opened after 1, gave_up");
}

/// One whose head has come, and whose first word lets others wait, counts as accepted after a few seconds: a model may
/// think for minutes.
#[tokio::test]
async fn others_follow_one_that_asks_and_thinks() {
    let busy =
        Busy::but(|seen| (whose(seen) == "c").then(|| Reply::sse([Event::wait_for(Signal::new())]))).await;
    let bench = Bench::with(gated(&busy.up.url(), ms(2500))).await;
    let [mut a, mut b] = shut(&bench).await;
    let _c = sent(&bench, &of("c")).await;
    in_line(&bench, 3).await;
    busy.back.release();
    busy.door.release();
    gets(&mut a, &bytes_for("a")).await;
    gets(&mut b, &bytes_for("b")).await;
    let seen = busy.up.requests();
    let asked = seen.iter().position(|it| whose(it) == "c").unwrap();
    let after = seen[asked + 1].at - seen[asked].at;
    // The next time to ask would be in more than six.
    assert!(after >= ms(2500) && after < ms(5000), "{after:?}");
}
