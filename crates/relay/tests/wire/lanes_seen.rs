//! What a person sees of lanes: the status page, the log, and the one thing that can be asked of them.

use relay_core::config::Secret;
use relay_core::gate::Preset;
use relay_core::{Config, event::Event};
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Answer, Ending, Reply, Request, Script, Upstream};
use serde_json::{Value, json};
use steady_relay::observe::{Notice, What};

use crate::lanes::{
    Busy, answer_to, asks, bytes_for, careful, gated, gets, in_line, lane_until, of, sent, shut, waits,
};
use crate::started::{Folder, Serving, program};
use crate::support::{Bench, SOON, TURN, bounded, ms, sdk};

/// The same settings, with a state folder.
fn kept(mut config: Config, home: &Folder) -> Config {
    config.state_dir = Some(home.path().to_owned());
    config
}

fn token(home: &Folder) -> String {
    home.read("token").trim().to_owned()
}

fn probe(id: &str) -> Request {
    Request::post(&format!("/__steady/lanes/{id}/probe"))
}

#[tokio::test]
async fn the_page_shows_each_lane_and_its_line() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), SOON)).await;
    let _two = shut(&bench).await;
    let _more = [sent(&bench, &of("c")).await, sent(&bench, &of("c")).await];
    in_line(&bench, 4).await;
    let lane = waits(&bench, 4).await;
    assert_eq!(
        (&lane["upstream"], &lane["model"], &lane["state"], &lane["why"]),
        (&json!(busy.up.addr().to_string()), &json!("gpt-x"), &json!("shut"), &json!("at_capacity"))
    );
    let id = lane["id"].as_str().unwrap();
    assert!(id.len() == 16 && id.bytes().all(|it| it.is_ascii_hexdigit()), "{id}");
    assert!(lane["next_send_in_s"].as_f64().is_some_and(|it| it > 0.0 && it < 20.0), "{lane}");
    assert!(lane["shut_for_s"].as_f64().is_some(), "{lane}");
    for (key, value) in [
        ("sending", json!(0)),
        ("running", json!(0)),
        ("max_running", Value::Null),
        ("held_for_s", Value::Null),
        ("rate_per_s", Value::Null),
        ("recovery_s", Value::Null),
        ("random", json!(false)),
    ] {
        assert_eq!(lane[key], value, "{key}: {lane}");
    }
    let line = lane["line"].as_array().unwrap();
    let positions: Vec<_> = line.iter().map(|it| it["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, [1, 2, 3, 4]);
    let session = |call: &str| line.iter().find(|it| it["call"] == call).unwrap()["session"].clone();
    assert_eq!(session("c3"), session("c4"));
    assert!(session("c1") != session("c2") && session("c2") != session("c3"), "{lane}");
    let page = bench.page().await;
    let calls = page["open_calls"].as_array().unwrap();
    let shown: Vec<_> = calls
        .iter()
        .map(|it| (it["state"].as_str().unwrap(), it["fault"].clone(), it["sends"].as_u64()))
        .collect();
    assert_eq!(
        &shown[1..],
        [
            ("waiting", json!("at_capacity"), Some(1)),
            ("waiting", Value::Null, Some(0)),
            ("waiting", Value::Null, Some(0)),
        ]
    );
    assert!(calls.iter().all(|it| it["next_send_in_s"].is_null()), "{page:#}");
}

#[tokio::test]
async fn a_person_may_have_a_lane_asked_now() {
    let home = Folder::new();
    let busy = Busy::start().await;
    let bench = Bench::with(kept(gated(&busy.up.url(), SOON * 6), &home)).await;
    let [mut a, mut b] = shut(&bench).await;
    let mut c = sent(&bench, &of("c")).await;
    in_line(&bench, 3).await;
    let lane = waits(&bench, 3).await;
    let id = lane["id"].as_str().unwrap();
    let token = token(&home);
    let before = busy.up.requests().len();
    let refused: [(u16, Request); 8] = [
        (401, probe(id)),
        (403, probe(id).header("x-steady-token", "0".repeat(32))),
        (403, probe(id).header("x-steady-token", "")),
        (404, probe(&"0".repeat(16)).header("x-steady-token", &token)),
        (405, Request::get(&format!("/__steady/lanes/{id}/probe")).header("x-steady-token", &token)),
        (405, Request::new("PUT", &format!("/__steady/lanes/{id}/probe")).header("x-steady-token", &token)),
        (403, probe(id).header("x-steady-token", &token).header("host", "evil.example")),
        (403, probe(id).header("x-steady-token", &token).header("origin", "https://evil.example")),
    ];
    for (status, request) in refused {
        let answer = bench.ask(&request).await;
        assert_eq!(answer.status, status, "{request:?}: {}", answer.text());
        assert!(!answer.text().contains(&token));
    }
    assert_eq!(busy.up.requests().len(), before, "nothing was sent for one that may not ask");
    busy.back.release();
    let answer = bench.ask(&probe(id).header("x-steady-token", &token)).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "v": 1, "lane": id, "asked": true })));
    assert!(busy.up.wait_for_requests(before + 1, SOON).await);
    assert_eq!(busy.after(before), ["c"]);
    busy.door.release();
    for (client, name) in [(&mut a, "a"), (&mut b, "b"), (&mut c, "c")] {
        gets(client, &bytes_for(name)).await;
    }
    waits(&bench, 0).await;
    let answer = bench.ask(&probe(id).header("x-steady-token", &token)).await;
    assert_eq!(answer.json()["asked"], false);
}

/// Whatever holds it: its own wait, and a pause that the service asked for.
#[tokio::test]
async fn a_lane_that_is_to_pause_may_be_asked_by_a_person() {
    let home = Folder::new();
    let up = Upstream::start(Script::by(|seen, number| match number {
        0 => Reply::status(503).header("retry-after", "50").json(wire::overloaded_body()),
        _ => answer_to(seen),
    }))
    .await
    .unwrap();
    let bench = Bench::with(kept(gated(&up.url(), SOON), &home)).await;
    let mut a = sent(&bench, &of("a")).await;
    bench.faults(1, 1).await;
    let lane = waits(&bench, 1).await;
    assert!(lane["held_for_s"].as_f64().is_some_and(|it| it > 40.0), "{lane}");
    let id = lane["id"].as_str().unwrap();
    let answer = bench.ask(&probe(id).header("x-steady-token", token(&home))).await;
    assert_eq!(answer.json()["asked"], true);
    gets(&mut a, &bytes_for("a")).await;
}

#[tokio::test]
async fn a_relay_without_a_state_folder_lets_nobody_ask() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), SOON)).await;
    let _two = shut(&bench).await;
    let id = waits(&bench, 2).await["id"].as_str().unwrap().to_owned();
    let given = ["", "None", "undefined"].map(|given| probe(&id).header("x-steady-token", given));
    for request in given.iter().chain([&probe(&id)]) {
        let answer = bench.ask(request).await;
        assert_eq!(answer.status, 403, "{request:?}");
        let text = answer.text();
        assert!(
            text.contains("nobody can change anything") && text.contains("`--state-dir FOLDER`"),
            "{text}"
        );
    }
}

/// Where every request shows a token, all clients know that one: it changes nothing, and does not stand in the way.
#[tokio::test]
async fn the_token_of_all_clients_lets_nobody_ask() {
    const ALL: &str = "0123456789abcdef";
    let home = Folder::new();
    let busy = Busy::start().await;
    let mut config = kept(gated(&busy.up.url(), SOON), &home);
    config.token = Some(Secret::new(ALL.to_owned()));
    let bench = Bench::with(config).await;
    let probe = |before: &str| Request::post(&format!("{before}/__steady/lanes/{}/probe", "0".repeat(16)));
    let by_path = format!("/~{ALL}");
    let local = token(&home);
    for (status, request, words) in [
        (403, probe("").header("x-steady-token", ALL), "not the token in the file `token`"),
        (403, probe(&by_path).header("x-steady-token", ALL), "not the token in the file `token`"),
        (401, probe(&by_path), "the local token"),
        (403, probe("").header("x-steady-token", &local), "not the one this relay was started with"),
        (404, probe(&by_path).header("x-steady-token", &local), "no such lane"),
        (404, probe("").header("x-steady-token", ALL).header("x-steady-token", &local), "no such lane"),
    ] {
        let answer = bench.ask(&request).await;
        assert_eq!(answer.status, status, "{request:?}: {}", answer.text());
        assert!(answer.text().contains(words), "{}", answer.text());
    }
}

#[tokio::test]
async fn observers_hear_that_a_lane_shut_and_that_it_opened() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), ms(2600))).await;
    let [mut a, mut b] = shut(&bench).await;
    let id = waits(&bench, 2).await["id"].as_str().unwrap().to_owned();
    let changes = || {
        let notices = bench.recorder().notices();
        notices
            .into_iter()
            .filter_map(|it| if let Notice::Lane(it) = it { Some(it) } else { None })
            .collect::<Vec<_>>()
    };
    bench.until(|_| changes().len() == 1).await;
    busy.back.release();
    busy.door.release();
    gets(&mut a, &bytes_for("a")).await;
    gets(&mut b, &bytes_for("b")).await;
    bench.until(|_| changes().len() == 2).await;
    let told = changes();
    assert!(matches!(told[0].what, What::LaneShut { waiting: 2, .. }), "{told:?}");
    assert!(matches!(told[1].what, What::LaneOpened { after } if after >= ms(2000)), "{told:?}");
    assert!(told.iter().all(|it| it.lane.id == id && it.lane.model.as_deref() == Some("gpt-x")), "{told:?}");
}

#[tokio::test]
async fn the_log_tells_who_is_held_and_leaks_nothing() {
    const CANARY: &str = "CANARY0SECRET";
    let busy = Busy::start().await;
    let home = Folder::new();
    let file = home.write("relay.toml", "[log]\nlevel = \"trace\"\n");
    let mut command = program(&home);
    command
        .args(["--listen", "127.0.0.1", "--port", "0", "--upstream", &busy.up.url(), "--config"])
        .arg(file);
    let relay = Serving::start(&mut command).await;
    let request = |name: &str| {
        asks(&format!("{CANARY}{name}"), &TURN.replace("hi", CANARY))
            .header("authorization-2", CANARY)
            .header("x-api-key", format!("sk-proj-{CANARY}"))
    };
    let upstream = busy.up.addr();
    let mut clients = Vec::new();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON * 2);
        client.send(&request(name)).await.unwrap();
        let call = number + 1;
        let line = match name {
            "c" => {
                format!("[held] send=1 status=- fault=- waiting=3 model=gpt-x upstream={upstream} id=c{call}")
            }
            _ => format!(
                "[retry] send=2 status=503 fault=at_capacity waiting={call} model=gpt-x upstream={upstream} id=c{call}"
            ),
        };
        relay.until(&line).await;
        clients.push(client);
    }
    let mut status = relay_sim::Client::connect(relay.addr).await.unwrap();
    let page = status.ask(&Request::get("/__steady/status")).await.unwrap();
    // One of them may be asking just then.
    let count = |lane: &Value| lane["waiting"].as_u64().unwrap() + lane["sending"].as_u64().unwrap();
    assert_eq!(page.json()["lanes"].as_array().unwrap().iter().map(count).collect::<Vec<_>>(), [3]);
    relay.until("[lane] state=shut why=at_capacity waiting=").await;
    let said = relay.said();
    let told = said.lines().find(|line| line.starts_with("[lane] state=shut")).unwrap();
    assert!(told.contains(&format!(" model=gpt-x upstream={upstream} lane=")), "{told}");
    busy.back.release();
    busy.door.release();
    for client in &mut clients {
        let answer = client.read().await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    relay.until("[lane] state=open after=").await;
    for (place, text) in [("the log", relay.said()), ("the status", page.text())] {
        let leak = text.lines().find(|line| line.contains(CANARY));
        assert_eq!(leak, None, "in {place}");
    }
}

/// A client that stands in line is kept company as in any other wait.
#[tokio::test]
async fn interim_answers_go_to_whoever_stands_in_line() {
    let busy = Busy::start().await;
    let mut config = gated(&busy.up.url(), ms(1500));
    config.waiting.interim = Some(ms(50));
    let bench = Bench::with(config).await;
    let _two = shut(&bench).await;
    let mut c = sent(&bench, &of("c")).await;
    in_line(&bench, 3).await;
    busy.door.release();
    busy.back.release();
    let answer = c.read().await;
    assert!(
        answer.interim.len() >= 5 && answer.interim.iter().all(|it| it.status == 102),
        "{:?}",
        answer.interim
    );
    assert_eq!((answer.body, answer.ending), (bytes_for("c"), Ending::Complete));
    assert_eq!(bench.story(3).await, "opened, line, send 1, 200, committed, served");
}

fn beats(answer: &Answer) -> (usize, Vec<u8>) {
    const BEAT: &[u8] = b": steady-relay waits\n\n";
    let mut rest = &answer.body[..];
    let mut count = 0;
    while let Some(more) = rest.strip_prefix(BEAT) {
        (rest, count) = (more, count + 1);
    }
    (count, rest.to_vec())
}

#[tokio::test]
async fn a_stream_begins_early_for_whoever_stands_in_line() {
    let busy = Busy::start().await;
    let mut config = bounded(&busy.up.url(), |profile| {
        careful(profile, ms(1500));
        profile.gate = Some(Preset::Interactive);
    });
    config.waiting.early_commit = Some(ms(80));
    config.waiting.heartbeat = ms(40);
    let mut short = config.profiles["tested"].clone();
    short.patience = ms(400);
    config.profiles.insert("short".to_owned(), short);
    let bench = Bench::with(config).await;
    let _two = shut(&bench).await;
    let mut served = sent(&bench, &sdk(0, TURN)).await;
    in_line(&bench, 3).await;
    let mut lost =
        sent(&bench, &sdk(0, TURN).header("x-steady-profile", "short").header("x-stainless-timeout", "0.9"))
            .await;
    in_line(&bench, 4).await;
    let answer = lost.read().await;
    let (count, rest) = beats(&answer);
    assert!(count >= 3, "{}", answer.text());
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.contains(" was short of capacity for all of the ") && rest.ends_with("}\n\n"), "{rest}");
    assert!(bench.story(4).await.ends_with("opened, line, gave_up"));
    busy.door.release();
    busy.back.release();
    let answer = served.read().await;
    let (count, rest) = beats(&answer);
    assert!(count >= 5, "{}", answer.text());
    assert!(rest == stream_bytes(&wire::turn("only for ")), "{}", answer.text());
}

/// Where the wait is one of its own curve, no line is told of.
#[tokio::test]
async fn one_story_tells_of_a_line_only_where_a_call_stood_in_one() {
    let up = Upstream::start(Script::of([Reply::status(500).json("{}"), Reply::sse(wire::turn("hi"))]));
    let up = up.await.unwrap();
    let bench = Bench::with(gated(&up.url(), ms(50))).await;
    assert_eq!(bench.ask(&of("a")).await.status, 200);
    let story = bench.story(1).await;
    assert_eq!(story, "opened, send 1, 500, server_failed failed, wait, send 2, 200, committed, served");
    let is_line = |(_, event): &(_, Event)| matches!(event, Event::InLine { .. });
    bench.until(|events| !events.iter().any(is_line)).await;
    lane_until(&bench, |lane| lane["state"] == "open").await;
}
