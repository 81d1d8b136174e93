//! Upstreams that fail hard are cut off, and probed by one call.

use std::num::NonZeroU32;
use std::time::Duration;

use relay_core::breaker;
use relay_core::config::{Upstream as Entry, UpstreamChoice};
use relay_core::router::Strategy;
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Refused, Reply, Request, Script, Signal, Upstream};

use crate::lanes::{gated, gets, sent, waits};
use crate::pools::{answers, ask, pool, session, two};
use crate::started::Folder;
use crate::support::{Bench, TURN, ms};

#[tokio::test]
async fn while_one_probes_the_others_wait_for_what_it_tells() {
    let door = Signal::new();
    let gate = door.clone();
    let script = Script::by(move |_, number| match number {
        0 => Reply::status(500).json("{}"),
        1 => answers("x").when(gate.clone()),
        _ => answers("x"),
    });
    let up = Upstream::start(script).await.unwrap();
    let mut config = crate::support::bounded(&up.url(), |profile| {
        profile.failed_sends = 1;
        profile.patience = Duration::from_secs(30);
    });
    config.breaker = breaker::Rules { failures: 1, pause: ms(200), alone: true, ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 500);
    let mut clients = Vec::new();
    for name in ["a", "b", "c"] {
        clients.push(sent(&bench, &session(name, TURN)).await);
    }
    assert!(up.wait_for_requests(2, crate::support::SOON).await);
    tokio::time::sleep(ms(300)).await;
    assert_eq!(up.requests().len(), 2, "one probes");
    door.release();
    for client in &mut clients {
        gets(client, &stream_bytes(&wire::turn("x"))).await;
    }
    assert_eq!(up.requests().len(), 4);
}

#[tokio::test]
async fn a_turn_that_comes_while_the_breaker_is_open_is_not_taken() {
    let door = Signal::new();
    let fails = door.clone();
    let script = Script::by(move |_, number| match number {
        0 => Reply::status(500).json("{}").when(fails.clone()),
        _ => answers("x"),
    });
    let up = Upstream::start(script).await.unwrap();
    let mut config = gated(&up.url(), ms(50));
    config.breaker = breaker::Rules { failures: 1, pause: ms(700), alone: true, ..breaker::Rules::default() };
    let entry = Entry { max_running: Some(NonZeroU32::MIN), ..Entry::at(up.url().parse().unwrap()) };
    config.upstream = Some(UpstreamChoice::Url(entry));
    let bench = Bench::with(config).await;
    let mut clients = vec![sent(&bench, &session("a", TURN)).await];
    assert!(up.wait_for_requests(1, crate::support::SOON).await);
    clients.push(sent(&bench, &session("b", TURN)).await);
    waits(&bench, 1).await;
    // The one place is free now, and nothing goes there for a while.
    door.release();
    for client in &mut clients {
        gets(client, &stream_bytes(&wire::turn("x"))).await;
    }
    let seen = up.requests();
    assert!(seen[1].at - seen[0].at >= ms(700), "{:?}", seen[1].at - seen[0].at);
}

#[tokio::test]
async fn of_many_that_wait_as_the_pause_ends_one_probes_each_member() {
    let door = Signal::new();
    let script = |door: Signal| {
        Script::by(move |_, number| match number {
            0 => Reply::status(500).json("{}"),
            1 => answers("x").when(door.clone()),
            _ => answers("x"),
        })
    };
    let (one, other, mut config) = two(script(door.clone()), script(door.clone())).await;
    for profile in config.profiles.values_mut() {
        profile.patience = Duration::from_secs(30);
        profile.failed_sends = 2;
    }
    config.breaker = breaker::Rules { failures: 1, pause: ms(400), ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 500);
    let mut clients = Vec::new();
    for number in 0..12 {
        clients.push(sent(&bench, &session(&number.to_string(), TURN)).await);
    }
    for member in [&one, &other] {
        assert!(member.wait_for_requests(2, crate::support::SOON).await);
    }
    tokio::time::sleep(ms(300)).await;
    assert_eq!((one.requests().len(), other.requests().len()), (2, 2), "one probes each");
    door.release();
    for client in &mut clients {
        gets(client, &stream_bytes(&wire::turn("x"))).await;
    }
}

#[tokio::test]
async fn a_member_that_fails_hard_is_cut_off_and_probed_by_one() {
    let closed = Refused::port().unwrap();
    let other = Upstream::start(answers("y")).await.unwrap();
    let mut config = pool(&[&closed.url(), &other.url()], Strategy::InOrder, |_| ());
    config.breaker = breaker::Rules { failures: 2, pause: ms(400), ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    for _ in 0..4 {
        assert_eq!(bench.ask(&ask()).await.status, 200);
    }
    assert_eq!(
        bench.story(2).await,
        "opened, send 1, never_sent never_sent, failed to two, send 2, 200, committed, served"
    );
    assert_eq!(bench.story(3).await, "opened, circuit_open to two, send 1, 200, committed, served");
    let page = bench.page().await;
    let lanes = page["lanes"].as_array().unwrap();
    let states: Vec<_> = lanes.iter().map(|lane| lane["circuit"].as_str().unwrap_or("none")).collect();
    assert!(states.contains(&"open") && states.contains(&"closed"), "{page}");
    let one = closed.open(answers("x")).unwrap();
    tokio::time::sleep(ms(450)).await;
    for _ in 0..3 {
        assert_eq!(bench.ask(&ask()).await.status, 200);
    }
    assert_eq!((one.requests().len(), other.requests().len()), (3, 4));
}

#[tokio::test]
async fn a_member_whose_answers_break_off_is_cut_off_too() {
    let broken = Reply::sse(wire::partial("x")).fin_without_terminator();
    let (one, other, mut config) = two(broken, answers("y")).await;
    config.breaker = breaker::Rules { failures: 2, ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    for call in 1..=2 {
        let answer = bench.ask(&ask()).await;
        assert!(answer.status == 200 && answer.body != stream_bytes(&wire::turn("y")), "{}", answer.text());
        assert!(bench.story(call).await.ends_with("committed, broken"), "{}", bench.story(call).await);
    }
    assert_eq!(bench.ask(&ask()).await.body, stream_bytes(&wire::turn("y")));
    assert_eq!((one.requests().len(), other.requests().len()), (2, 1));
}

#[tokio::test]
async fn where_every_breaker_is_open_the_answer_names_each_member() {
    let (closed, other) =
        (Refused::port().unwrap(), Upstream::start(Reply::status(500).json("{}")).await.unwrap());
    let mut config = pool(&[&closed.url(), &other.url()], Strategy::InOrder, |profile| {
        profile.patience = Duration::from_secs(5);
        profile.failed_sends = 2;
    });
    config.breaker =
        breaker::Rules { failures: 1, pause: Duration::from_secs(3600), ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    let first = bench.ask(&ask()).await;
    assert!(
        first.status == 500 || first.text().contains("circuits_open"),
        "{} {}",
        first.status,
        first.text()
    );
    let answer = bench.ask(&ask()).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (503, Some("false")));
    let said = answer.text();
    for part in [
        "one (the service could not be reached; asked again in 1h",
        "two (the service failed; asked again in 1h",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(bench.story(2).await, "opened, gave_up");
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
async fn who_wants_nothing_done_waits_for_no_breaker_and_is_sent_once() {
    let (one, other, mut config) =
        two(Reply::status(500).json("{}"), Script::of([answers("x"), Reply::status(500).json("{}")])).await;
    config.breaker =
        breaker::Rules { failures: 1, pause: Duration::from_secs(3600), ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 200);
    let off = || ask().header("x-steady", "off");
    // The first is cut off, and the second is not yet; then both are.
    assert_eq!((bench.ask(&off()).await.status, other.requests().len()), (500, 2));
    assert_eq!((bench.ask(&ask()).await.status, one.requests().len(), other.requests().len()), (503, 1, 3));
    assert_eq!((bench.ask(&off()).await.status, one.requests().len(), other.requests().len()), (500, 2, 3));
    assert_eq!(bench.ask(&ask()).await.status, 503);
}

#[tokio::test]
async fn an_upstream_that_has_no_other_is_cut_off_only_where_that_is_wanted() {
    for alone in [false, true] {
        let up = Upstream::start(Reply::status(500).json("{}")).await.unwrap();
        let mut config = crate::support::bounded(&up.url(), |profile| profile.failed_sends = 1);
        // More than 10 failures in 5 minutes: nothing for 10 minutes.
        let minutes = |many: u64| Duration::from_secs(60 * many);
        config.breaker = breaker::Rules { failures: 11, window: minutes(5), pause: minutes(10), alone };
        let bench = Bench::with(config).await;
        let mut last = 0;
        for _ in 0..12 {
            last = bench.ask(&ask()).await.status;
        }
        assert_eq!((last, up.requests().len()), if alone { (503, 11) } else { (500, 12) });
        let circuit = if alone { "open" } else { "closed" };
        assert_eq!(bench.page().await["lanes"][0]["circuit"], circuit);
    }
}

#[tokio::test]
async fn a_person_ends_the_pause_of_a_breaker() {
    let home = Folder::new();
    let fails_first = Script::by(|_, number| match number {
        0 => Reply::status(500).json("{}"),
        _ => answers("x"),
    });
    let up = Upstream::start(fails_first).await.unwrap();
    let mut config = crate::support::bounded(&up.url(), |profile| {
        profile.failed_sends = 1;
        profile.patience = Duration::from_secs(7200);
    });
    let pause = Duration::from_secs(3600);
    config.breaker = breaker::Rules { failures: 1, pause, alone: true, ..breaker::Rules::default() };
    config.state_dir = Some(home.path().to_owned());
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 500);
    let mut waits = sent(&bench, &ask()).await;
    bench.until(|events| events.iter().any(|(call, _)| call.0 == 2)).await;
    let page = bench.page().await;
    assert_eq!(page["lanes"][0]["circuit"], "open", "{page}");
    let probe = Request::post(&format!("/__steady/lanes/{}/probe", page["lanes"][0]["id"].as_str().unwrap()))
        .header("x-steady-token", home.read("token").trim());
    assert_eq!(bench.ask(&probe).await.json()["asked"], true);
    gets(&mut waits, &stream_bytes(&wire::turn("x"))).await;
    assert_eq!(bench.page().await["lanes"][0]["circuit"], "closed");
}
