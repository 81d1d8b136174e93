//! Servers with a stated number of places: never more calls than that, and a fair line before them.

use std::num::NonZeroU32;
use std::time::Duration;

use relay_core::Config;
use relay_core::config::{ProfileChoice, Route, UpstreamChoice};
use relay_core::gate::Preset;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Event, Reply, Request, Script, Seen, Signal, Upstream};
use tokio::task::JoinSet;

use crate::lanes::{
    answer_to, asks, bytes_for, gets, in_line, lane_until, lanes, of, page_until, sent, waits, whose,
};
use crate::support::{A_WHILE, Bench, SOON, TURN, bounded, invents_no_time, ms, plain, sdk, towards};

/// Everything to `url`, which has so many places; through the gate.
pub(crate) fn places(url: &str, most: u32) -> Config {
    let mut config = bounded(url, |profile| profile.gate = Some(Preset::Interactive));
    has_places(&mut config, most);
    config
}

fn has_places(config: &mut Config, most: u32) {
    if let Some(UpstreamChoice::Url(entry)) = &mut config.upstream {
        entry.max_running = NonZeroU32::new(most);
    }
}

/// The most requests that were under way at once.
fn most_at_once(seen: &[Seen]) -> usize {
    let end = |it: &Seen| it.answered_at.into_iter().chain(it.client_gone_at).min().unwrap_or(Duration::MAX);
    let at = |moment: Duration| seen.iter().filter(|it| it.at <= moment && moment < end(it)).count();
    seen.iter().map(|it| at(it.at)).max().unwrap_or(0)
}

/// Waits for the end of every answer that the upstream has begun.
async fn all_answered(up: &Upstream, count: usize) -> Vec<Seen> {
    let whole = |seen: &[Seen]| seen.len() >= count && seen.iter().all(|it| it.answered_at.is_some());
    assert!(up.wait_for(SOON, whole).await);
    up.requests()
}

/// An upstream whose answers begin when the door is open.
async fn behind(door: &Signal) -> Upstream {
    let door = door.clone();
    Upstream::start(Script::by(move |seen, _| answer_to(seen).when(door.clone()).after(ms(5)))).await.unwrap()
}

/// Asks with all of these at once: so many come to the upstream, and the rest waits. Then each is served.
async fn crowd(bench: &Bench, (up, door): (&Upstream, &Signal), requests: Vec<Request>, at_once: usize) {
    let (mut calls, count) = (JoinSet::new(), requests.len());
    for request in requests {
        let mut client = bench.client().await;
        calls.spawn(async move { client.ask(&request).await.unwrap() });
    }
    assert!(up.wait_for_requests(at_once, SOON).await);
    let all_wait = |page: &serde_json::Value| {
        let wait: u64 = lanes(page).iter().filter_map(|lane| lane["waiting"].as_u64()).sum();
        usize::try_from(wait).is_ok_and(|wait| wait == count - at_once)
    };
    page_until(bench, all_wait).await;
    assert_eq!(up.requests().len(), at_once);
    door.release();
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn never_more_than_the_stated_number_run_at_once() {
    for most in [1, 3] {
        let off = |request: Request| request.header("x-steady", "off");
        let gated = |up: &Upstream| places(&up.url(), most);
        let plain = |up: &Upstream| {
            let mut config = towards(&up.url());
            has_places(&mut config, most);
            config
        };
        type Way<'a> = (&'a dyn Fn(&Upstream) -> Config, &'a dyn Fn(Request) -> Request);
        let ways: [Way<'_>; 3] = [(&gated, &|it| it), (&plain, &|it| it), (&gated, &off)];
        for (config, change) in ways {
            let door = Signal::new();
            let up = behind(&door).await;
            let bench = Bench::with(config(&up)).await;
            // Whatever their credential, model and dialect.
            let requests = (0..10).map(|number| match number % 4 {
                0 => of(&format!("thread {number}")),
                1 => of("the same"),
                2 => asks("another model", &TURN.replace("gpt-x", "gpt-y")),
                _ => Request::post("/v1/responses").header("authorization", "Bearer sk-other").json(TURN),
            });
            crowd(&bench, (&up, &door), requests.map(change).collect(), most as usize).await;
            let seen = all_answered(&up, 10).await;
            assert_eq!((seen.len(), most_at_once(&seen)), (10, most as usize));
            let lane = lane_until(&bench, |lane| lane["running"] == 0).await;
            assert_eq!((&lane["max_running"], &lane["waiting"]), (&most.into(), &0.into()), "{lane}");
        }
    }
}

#[tokio::test]
async fn a_route_states_a_number_of_its_own() {
    let door = Signal::new();
    let up = behind(&door).await;
    let mut config = places(&up.url(), 4);
    config.routes.push(Route {
        model: Some("small*".to_owned()),
        max_running: NonZeroU32::new(2),
        ..Route::default()
    });
    let bench = Bench::with(config).await;
    let body = |model: &str| TURN.replace("gpt-x", model);
    let requests = (0..16).map(|number| {
        let model = ["small-a", "small-b", "large", "larger"][number % 4];
        asks(&format!("thread {number}"), &body(model))
    });
    crowd(&bench, (&up, &door), requests.collect(), 6).await;
    let seen = all_answered(&up, 16).await;
    let (small, large): (Vec<_>, Vec<_>) = seen.into_iter().partition(|it| it.text().contains("small"));
    assert_eq!((most_at_once(&small), most_at_once(&large)), (2, 4));
    let page = bench.page().await;
    let numbers: Vec<_> = lanes(&page).iter().map(|lane| lane["max_running"].as_u64()).collect();
    assert!(numbers.len() == 2 && numbers.contains(&Some(2)) && numbers.contains(&Some(4)), "{page:#}");
}

#[tokio::test]
async fn a_conversation_with_less_under_way_goes_first() {
    for (gate, most) in [(Some(Preset::Interactive), 2), (None, 2), (Some(Preset::Interactive), 1), (None, 1)]
    {
        let door = Signal::new();
        let first = door.clone();
        let up = Upstream::start(Script::by(move |seen, number| {
            if number < most { answer_to(seen).when(first.clone()) } else { answer_to(seen).after(ms(20)) }
        }))
        .await
        .unwrap();
        let mut config = places(&up.url(), u32::try_from(most).unwrap());
        config.profiles.get_mut("tested").unwrap().gate = gate;
        let bench = Bench::with(config).await;
        let mut clients = Vec::new();
        for call in 1..=8 {
            clients.push(sent(&bench, &of("heavy")).await);
            if call > most as u64 {
                in_line(&bench, call).await;
            } else {
                assert!(up.wait_for_requests(usize::try_from(call).unwrap(), SOON).await);
            }
        }
        let mut light = sent(&bench, &of("light")).await;
        in_line(&bench, 9).await;
        assert_eq!(up.requests().len(), most);
        door.release();
        gets(&mut light, &bytes_for("light")).await;
        for client in &mut clients {
            gets(client, &bytes_for("heavy")).await;
        }
        let order: Vec<_> = up.requests().iter().map(whose).collect();
        let place = order.iter().position(|name| name == "light").unwrap();
        // Where both of the first ended in the same moment, neither has anything under way.
        assert!(place <= 4, "{gate:?} {most}: {order:?}");
    }
}

/// A large one counts for several: whoever has one under way gives way to whoever has two small ones.
#[tokio::test]
async fn a_large_request_counts_for_several() {
    let (held, other) = (Signal::new(), Signal::new());
    let doors = (held.clone(), other.clone());
    let up = Upstream::start(Script::by(move |seen, number| match (&*whose(seen), number) {
        ("other", _) => answer_to(seen).when(doors.1.clone()),
        (_, 0..4) => answer_to(seen).when(doors.0.clone()),
        _ => answer_to(seen),
    }))
    .await
    .unwrap();
    let bench = Bench::with(places(&up.url(), 4)).await;
    let large = TURN.replace("\"hi\"", &format!("\"{}\"", "x".repeat(1 << 20)));
    let mut clients = Vec::new();
    for (number, (name, body)) in
        [("large", &*large), ("small", TURN), ("small", TURN), ("other", TURN)].into_iter().enumerate()
    {
        clients.push((name, sent(&bench, &asks(name, body)).await));
        assert!(up.wait_for_requests(number + 1, SOON).await);
    }
    for (call, name, body) in [(5, "large", &*large), (6, "small", TURN)] {
        clients.push((name, sent(&bench, &asks(name, body)).await));
        in_line(&bench, call).await;
    }
    let lane = waits(&bench, 2).await;
    let calls: Vec<_> = lane["line"].as_array().unwrap().iter().map(|it| it["call"].clone()).collect();
    assert_eq!(calls, ["c6", "c5"]);
    other.release();
    assert!(up.wait_for_requests(6, SOON).await);
    assert_eq!(whose(&up.requests()[4]), "small");
    held.release();
    for (name, client) in &mut clients {
        gets(client, &bytes_for(name)).await;
    }
}

/// Runs one call that streams until the door is opened.
async fn taken(door: &Signal) -> Upstream {
    let door = door.clone();
    let script = Script::by(move |seen, number| {
        let mut events = wire::turn(&format!("only for {}", whose(seen)));
        if number == 0 {
            events.insert(3, Event::wait_for(door.clone()));
        }
        Reply::sse(events)
    });
    Upstream::start(script.for_path("/v1/models", Reply::status(200).json("{}"))).await.unwrap()
}

#[tokio::test]
async fn the_wait_for_a_place_spends_no_patience_and_the_clients_own_limit_ends_it() {
    for gate in [Some(Preset::Interactive), None] {
        let door = Signal::new();
        let up = taken(&door).await;
        let mut config = places(&up.url(), 1);
        let profile = config.profiles.get_mut("tested").unwrap();
        (profile.gate, profile.patience) = (gate, ms(100));
        let bench = Bench::with(config).await;
        let mut first = sent(&bench, &of("first")).await;
        assert!(up.wait_for_requests(1, SOON).await);
        let mut second = sent(&bench, &of("second")).await;
        in_line(&bench, 2).await;
        let limited = bench.ask(&sdk(0, TURN).header("x-stainless-timeout", "1")).await;
        // Long after the patience of the profile.
        assert!(limited.head_at.unwrap() >= ms(300), "{:?}", limited.head_at);
        assert_eq!((limited.status, limited.header("x-should-retry")), (503, Some("false")));
        let words = limited.json()["error"]["message"].as_str().unwrap().to_owned();
        let told = format!("this call was not sent: {} was short of capacity", up.addr());
        assert!(words.contains(&told), "{words}");
        invents_no_time(&limited);
        assert_eq!(bench.story(3).await, "opened, line, gave_up");
        assert_eq!(bench.recorder().story(2), "opened, line", "it waits on");
        assert_eq!(up.requests().len(), 1);
        door.release();
        gets(&mut first, &bytes_for("first")).await;
        gets(&mut second, &bytes_for("second")).await;
    }
}

#[tokio::test]
async fn what_generates_nothing_takes_no_place_and_waits_for_none() {
    let door = Signal::new();
    let up = taken(&door).await;
    let bench = Bench::with(places(&up.url(), 1)).await;
    let mut first = sent(&bench, &of("first")).await;
    assert!(up.wait_for_requests(1, SOON).await);
    for _ in 0..3 {
        assert_eq!(bench.ask(&Request::get("/v1/models")).await.status, 200);
    }
    assert_eq!(bench.story(4).await, "opened, send 1, 200, committed, served");
    door.release();
    gets(&mut first, &bytes_for("first")).await;
}

#[tokio::test]
async fn a_call_that_waits_by_itself_keeps_no_place() {
    for gate in [Some(Preset::Interactive), None] {
        let up = Upstream::start(Script::by(|seen, number| match number {
            0 => Reply::status(500).json("{}"),
            _ => answer_to(seen),
        }))
        .await
        .unwrap();
        let mut config = places(&up.url(), 1);
        let profile = config.profiles.get_mut("tested").unwrap();
        (profile.gate, profile.curve.base, profile.curve.cap) = (gate, ms(400), ms(400));
        let bench = Bench::with(config).await;
        let mut a = sent(&bench, &of("a")).await;
        bench.faults(1, 1).await;
        assert_eq!(bench.ask(&of("b")).await.body, bytes_for("b"));
        gets(&mut a, &bytes_for("a")).await;
        let order: Vec<_> = up.requests().iter().map(whose).collect();
        assert_eq!(order, ["a", "b", "a"]);
    }
}

#[tokio::test]
async fn a_reload_changes_the_number_for_those_that_wait() {
    let door = Signal::new();
    let up = behind(&door).await;
    let bench = Bench::with(places(&up.url(), 1)).await;
    let mut clients = vec![("a", sent(&bench, &of("a")).await)];
    assert!(up.wait_for_requests(1, SOON).await);
    for (call, name) in [(2, "b"), (3, "c"), (4, "d")] {
        clients.push((name, sent(&bench, &of(name)).await));
        in_line(&bench, call).await;
    }
    bench.reload(places(&up.url(), 3));
    assert!(up.wait_for_requests(3, SOON).await, "those that wait take the new places");
    let lane = waits(&bench, 1).await;
    assert_eq!((&lane["max_running"], &lane["sending"]), (&3.into(), &3.into()), "{lane}");
    // Fewer: nobody is cut, and nobody goes before there is room.
    bench.reload(places(&up.url(), 2));
    clients.push(("e", sent(&bench, &of("e")).await));
    in_line(&bench, 5).await;
    assert_eq!(waits(&bench, 2).await["max_running"], 2);
    assert_eq!(up.requests().len(), 3);
    door.release();
    for (name, client) in &mut clients {
        gets(client, &bytes_for(name)).await;
    }
    assert_eq!(most_at_once(&all_answered(&up, 5).await), 3);
}

#[tokio::test]
async fn whoever_waits_for_a_place_under_a_named_profile_waits_in_the_same_line() {
    let door = Signal::new();
    let up = taken(&door).await;
    let mut config = places(&up.url(), 1);
    config.routes.push(Route {
        path: Some("/v1/responses".to_owned()),
        profile: Some(ProfileChoice::Named("patient".to_owned())),
        ..Route::default()
    });
    let bench = Bench::with(config).await;
    let mut first = sent(&bench, &of("first")).await;
    assert!(up.wait_for_requests(1, SOON).await);
    let mut second = sent(&bench, &plain(TURN).header("x-steady-profile", "tested")).await;
    in_line(&bench, 2).await;
    let mut third = sent(&bench, &of("third")).await;
    in_line(&bench, 3).await;
    let lane = waits(&bench, 2).await;
    assert_eq!(lane["line"].as_array().unwrap().len(), 2, "{lane}");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(up.requests().len(), 1);
    door.release();
    for (client, name) in [(&mut first, "first"), (&mut second, ""), (&mut third, "third")] {
        gets(client, &bytes_for(name)).await;
    }
}

/// A route is known by what it fits, not by its place among the others.
#[tokio::test]
async fn routes_that_change_places_keep_their_lines() {
    let door = Signal::new();
    let up = behind(&door).await;
    let route = |model: &str, most| Route {
        model: Some(model.to_owned()),
        max_running: NonZeroU32::new(most),
        ..Route::default()
    };
    let mut config = places(&up.url(), 9);
    config.routes = vec![route("gpt-x", 1), route("gpt-y", 3)];
    let bench = Bench::with(config.clone()).await;
    let mut clients = vec![("a", sent(&bench, &of("a")).await)];
    assert!(up.wait_for_requests(1, SOON).await);
    clients.push(("b", sent(&bench, &of("b")).await));
    in_line(&bench, 2).await;
    config.routes = vec![route("gpt-z", 5), route("gpt-y", 3), route("gpt-x", 1)];
    bench.reload(config.clone());
    clients.push(("c", sent(&bench, &of("c")).await));
    in_line(&bench, 3).await;
    assert_eq!(waits(&bench, 2).await["max_running"], 1);
    config.routes = vec![route("gpt-y", 3), route("gpt-x", 2)];
    bench.reload(config);
    assert!(up.wait_for_requests(2, SOON).await);
    assert_eq!(waits(&bench, 1).await["max_running"], 2);
    assert_eq!(up.requests().len(), 2);
    door.release();
    for (name, client) in &mut clients {
        gets(client, &bytes_for(name)).await;
    }
}
