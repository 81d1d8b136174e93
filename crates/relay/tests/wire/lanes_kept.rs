//! What lanes learn outlives the relay, and its file tells nobody's secrets.

use std::time::Duration;

use relay_core::Config;
use relay_core::gate::Preset;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Client, Reply, Request, Script, Upstream};
use rustix::process::Signal;
use serde_json::Value;

use crate::lanes::{Busy, answer_to, asks, bytes_for, careful, gets, lane_until, of, sent, shut_by};
use crate::started::{Folder, Serving, program};
use crate::support::{Bench, SOON, TURN, bounded, ms};

const KEY: &str = "sk-test-KEY0CANARY";
const MODEL: &str = "gpt-MODEL0CANARY";

fn kept(url: &str, home: &Folder) -> Config {
    let mut config = bounded(url, |profile| {
        careful(profile, ms(300));
        profile.gate = Some(Preset::Interactive);
    });
    config.state_dir = Some(home.path().to_owned());
    config
}

fn request(thread: &str) -> Request {
    Request::post("/v1/responses")
        .header("authorization", format!("Bearer {KEY}"))
        .header("thread-id", format!("THREAD0CANARY {thread}"))
        .json(TURN.replace("gpt-x", MODEL).replace("hi", "PROMPT0CANARY"))
}

/// Whether nothing in the folder tells whose it is.
fn tells_nothing(home: &Folder) {
    for name in home.names() {
        let bytes = std::fs::read(home.path().join(&name)).unwrap();
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let hex = |secret: &str| secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        for secret in [KEY, MODEL, "canary", "127.0.0.1", "bearer"] {
            let secret = secret.to_lowercase();
            assert!(!text.contains(&secret) && !text.contains(&hex(&secret)), "{secret} in {name}: {text}");
        }
    }
}

#[tokio::test]
async fn how_long_a_lane_was_shut_and_what_a_limit_leaves_is_known_after_a_restart() {
    let home = Folder::new();
    let busy = Busy::start().await;
    let bench = Bench::with(kept(&busy.up.url(), &home)).await;
    assert_eq!(home.names(), ["lanes.json", "token"]);
    let [mut a, mut b] = shut_by(&bench, [request("a"), request("b")]).await;
    busy.back.release();
    busy.door.release();
    assert_eq!([a.read().await.status, b.read().await.status], [200, 200]);
    let lane = lane_until(&bench, |lane| lane["state"] == "open" && lane["running"] == 0).await;
    assert!(lane["recovery_s"].is_number(), "{lane}");
    // Another lane is told of a rate.
    let limited = Upstream::start(Script::by(|seen, number| match number {
        0 => {
            let body = r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
            Reply::status(429).header("retry-after-ms", "250").json(body)
        }
        _ => answer_to(seen),
    }))
    .await
    .unwrap();
    let mut config = kept(&busy.up.url(), &home);
    config
        .upstreams
        .insert("limited".to_owned(), relay_core::config::Upstream::at(limited.url().parse().unwrap()));
    bench.reload(config.clone());
    let elsewhere =
        Request::post("/to/limited/v1/responses").header("authorization", format!("Bearer {KEY}"));
    let answer = bench.ask(&elsewhere.json(TURN.replace("gpt-x", MODEL))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let rated = lane_until(&bench, |lane| lane["rate_per_s"].is_number()).await;
    bench.drain().await;
    tells_nothing(&home);
    let file: Value = serde_json::from_str(&home.read("lanes.json")).unwrap();
    assert_eq!((&file["v"], file["lanes"].as_object().unwrap().len()), (&1.into(), 2), "{file:#}");
    assert!(file["lanes"].get(lane["id"].as_str().unwrap()).is_some(), "{file:#}");

    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&request("c")).await.status, 200);
    let again = lane_until(&bench, |other| other["id"] == lane["id"]).await;
    assert_eq!((&again["recovery_s"], &again["state"]), (&lane["recovery_s"], &"open".into()), "{again}");
    let elsewhere =
        Request::post("/to/limited/v1/responses").header("authorization", format!("Bearer {KEY}"));
    assert_eq!(bench.ask(&elsewhere.json(TURN.replace("gpt-x", MODEL))).await.status, 200);
    let again = lane_until(&bench, |other| other["id"] == rated["id"]).await;
    assert!(again["rate_per_s"].is_number(), "{again}");
    // Whoever has another key, or asks for another model, knows nothing of it.
    assert_eq!(bench.ask(&of("d")).await.status, 200);
    let page = bench.page().await;
    let fresh = page["lanes"].as_array().unwrap().iter().filter(|it| it["model"] == "gpt-x").count();
    assert_eq!(fresh, 1, "{page:#}");
    bench.drain().await;
    tells_nothing(&home);
}

#[tokio::test]
async fn a_damaged_file_is_replaced_and_stops_nobody() {
    let home = Folder::new();
    home.write("lanes.json", "{\"v\":1,\"salt\":\"\u{0}");
    let busy = Busy::start().await;
    let bench = Bench::with(kept(&busy.up.url(), &home)).await;
    let [mut a, mut b] = shut_by(&bench, [of("a"), of("b")]).await;
    busy.back.release();
    busy.door.release();
    gets(&mut a, &bytes_for("a")).await;
    gets(&mut b, &bytes_for("b")).await;
    let notices = format!("{:?}", bench.recorder().notices());
    assert!(notices.contains("lanes learn anew"), "{notices}");
    bench.drain().await;
    let file: Value = serde_json::from_str(&home.read("lanes.json")).unwrap();
    assert_eq!(file["lanes"].as_object().unwrap().len(), 1, "{file:#}");
}

/// Killed while it saves, at whatever moment: what there is, is whole.
#[tokio::test]
async fn a_kill_while_it_saves_leaves_a_whole_file() {
    let up = Upstream::start(Script::by(|seen, _| match &*crate::lanes::whose(seen) {
        "limited" => {
            let body = r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
            Reply::status(429).json(body)
        }
        _ => Reply::sse(wire::turn("hi")),
    }))
    .await
    .unwrap();
    let home = Folder::new();
    let state = home.path().join("state");
    let mut salt = None;
    for round in 0..12_u32 {
        let mut command = program(&home);
        command
            .args(["--listen", "127.0.0.1", "--port", "0", "--upstream", &up.url(), "--state-dir"])
            .arg(&state);
        let mut relay = Serving::start(&mut command).await;
        // Something new to save in each round.
        let mut client = Client::connect(relay.addr).await.unwrap().patience(SOON);
        let ask = asks("limited", &TURN.replace("gpt-x", &format!("model {round}")));
        client.send(&ask.header("x-steady-patience", "1s")).await.unwrap();
        relay.until("[retry]").await;
        relay.signal(Signal::TERM);
        if round % 3 > 0 {
            tokio::time::sleep(Duration::from_micros(u64::from(round) * 400)).await;
        }
        relay.signal(Signal::KILL);
        relay.end().await;
        let file: Value =
            serde_json::from_str(&std::fs::read_to_string(state.join("lanes.json")).unwrap()).unwrap();
        assert_eq!(file["v"], 1, "{file:#}");
        assert!(file["lanes"].is_object(), "{file:#}");
        let first = salt.get_or_insert_with(|| file["salt"].clone());
        assert_eq!(file["salt"], *first);
    }
}

/// What is saved at an end is saved though calls wait.
#[tokio::test]
async fn a_relay_that_is_told_to_stop_saves_first() {
    let up = Upstream::start(
        Reply::status(429).json(r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#),
    );
    let up = up.await.unwrap();
    let home = Folder::new();
    let bench = Bench::with(kept(&up.url(), &home)).await;
    let _waits = sent(&bench, &request("a")).await;
    bench.faults(1, 1).await;
    lane_until(&bench, |lane| lane["rate_per_s"].is_number()).await;
    bench.drain().await;
    let file: Value = serde_json::from_str(&home.read("lanes.json")).unwrap();
    assert_eq!(file["lanes"].as_object().unwrap().len(), 1, "{file:#}");
    tells_nothing(&home);
}
