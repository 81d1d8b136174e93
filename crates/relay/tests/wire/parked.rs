//! A spent quota that names when there is one again parks its lane, where the settings say so.

use std::time::Duration;

use relay_core::config::Route;
use relay_core::event::{CallId, Event};
use relay_core::{Config, ProfileOverrides};
use relay_sim::websocket::steps::good;
use relay_sim::websocket::{WsScript, WsStep, WsUpstream};
use relay_sim::{Answer, Reply, Request, Script, Seen, Signal, Upstream};
use serde_json::json;

use crate::encoded::gzip;
use crate::lanes::{answer_to, asks, bytes_for, careful, gets, lane_until, of, sent};
use crate::started::Folder;
use crate::support::{Bench, SOON, TURN, bounded, ms, plain};
use crate::websocket::{self, FULL};

/// What Codex is told when its plan is spent for so many seconds.
fn spent_body(more: &str) -> String {
    format!(
        r#"{{"error":{{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus"{more}}}}}"#
    )
}

fn spent(more: &str) -> Reply {
    Reply::status(429).header("x-request-id", "req_spent").header("set-cookie", "a=b").json(spent_body(more))
}

fn for_seconds(seconds: f64) -> Reply {
    spent(&format!(r#","resets_in_seconds":{seconds}"#))
}

/// A service that answers the first requests like this, and all others well.
async fn first(replies: Vec<Reply>) -> Upstream {
    let script =
        Script::by(move |seen, number| replies.get(number).cloned().unwrap_or_else(|| answer_to(seen)));
    Upstream::start(script).await.unwrap()
}

/// Everything to `url`; a lane whose quota is spent is parked, and calls wait for so long.
fn parking(url: &str, patience: Duration) -> Config {
    bounded(url, |profile| {
        careful(profile, ms(20));
        profile.park_quota = true;
        profile.patience = patience;
    })
}

/// Waits until the call stands in the line of a parked lane.
async fn waits_parked(bench: &Bench, call: u64) {
    let stands = |(id, event): &(CallId, Event)| {
        id.0 == call && matches!(event, Event::InLine { parked: Some(_), .. })
    };
    bench.until(|events| events.iter().any(stands)).await;
}

/// Why the call ended, where the relay ended it.
async fn why(bench: &Bench, call: u64) -> Option<&'static str> {
    let _ended = bench.story(call).await;
    bench.recorder().closing(call).why
}

fn is_the_service_s(answer: &Answer, body: &str) {
    assert_eq!((answer.status, answer.text().as_str()), (429, body));
    assert_eq!(answer.header("x-request-id"), Some("req_spent"));
}

#[tokio::test]
async fn calls_wait_for_the_quota_and_one_asks_first() {
    let door = Signal::new();
    let gate = door.clone();
    let script = Script::by(move |seen, number| match number {
        0 => for_seconds(0.5),
        1 => answer_to(seen).when(gate.clone()),
        _ => answer_to(seen),
    });
    let up = Upstream::start(script).await.unwrap();
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    let mut a = sent(&bench, &of("a")).await;
    waits_parked(&bench, 1).await;
    let mut others = Vec::new();
    for (call, name) in [(2, "b"), (3, "c")] {
        others.push((name, sent(&bench, &of(name)).await));
        waits_parked(&bench, call).await;
    }
    let lane = lane_until(&bench, |lane| lane["waiting"] == 3).await;
    assert_eq!((&lane["state"], &lane["why"]), (&json!("shut"), &json!("quota_spent")), "{lane}");
    let parked = lane["parked_for_s"].as_f64().unwrap();
    assert!(parked <= 0.7 && lane["next_send_in_s"] == lane["parked_for_s"], "{lane}");
    assert_eq!(up.requests().len(), 1, "nobody asks meanwhile");
    assert!(up.wait_for_requests(2, SOON).await);
    let [first, second] = &up.requests()[..] else { panic!("one asks") };
    assert!(second.at - first.at >= ms(500), "never early");
    lane_until(&bench, |lane| lane["sending"] == 1 && lane["waiting"] == 2).await;
    door.release();
    gets(&mut a, &bytes_for("a")).await;
    for (name, client) in &mut others {
        gets(client, &bytes_for(name)).await;
    }
    assert_eq!(
        bench.story(1).await,
        "opened, send 1, 429, quota_spent final, line, send 2, 200, committed, served"
    );
    assert_eq!(bench.story(2).await, "opened, line, send 1, 200, committed, served");
    lane_until(&bench, |lane| lane["state"] == "open" && lane["parked_for_s"].is_null()).await;
}

#[tokio::test]
async fn a_quota_that_is_not_back_parks_it_anew() {
    let up = first(vec![for_seconds(0.2), for_seconds(0.3)]).await;
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    let mut a = sent(&bench, &of("a")).await;
    gets(&mut a, &bytes_for("a")).await;
    let seen = up.requests();
    assert_eq!(seen.len(), 3);
    assert!(seen[1].at - seen[0].at >= ms(200) && seen[2].at - seen[1].at >= ms(300));
}

#[tokio::test]
async fn whoever_cannot_wait_gets_the_answer_of_the_service_and_the_next_one_too_without_a_send() {
    let body = spent_body(r#","resets_in_seconds":3600"#);
    for (headers, wire) in [(None, body.as_bytes().to_vec()), (Some("gzip"), gzip(body.as_bytes()))] {
        let mut reply = Reply::status(429)
            .header("x-request-id", "req_spent")
            .header("retry-after", "3600")
            .header("set-cookie", "a=b")
            .header("connection", "x-hop")
            .header("x-hop", "1")
            .header("content-type", "application/json");
        if let Some(encoding) = headers {
            reply = reply.header("content-encoding", encoding);
        }
        let up = first(vec![reply.bytes(wire.clone())]).await;
        let bench = Bench::with(parking(&up.url(), SOON)).await;
        let own = bench.ask(&of("a")).await;
        assert_eq!((own.status, &own.body[..]), (429, &wire[..]));
        assert_eq!((own.header("age"), own.header("set-cookie")), (None, Some("a=b")));
        assert_eq!(bench.story(1).await, "opened, send 1, 429, quota_spent final, passed");
        // The client that comes later has not said that it reads any encoding.
        for call in [2, 3] {
            let told = bench.ask(&of("b")).await;
            is_the_service_s(&told, &body);
            assert_eq!((told.header("retry-after"), told.header("content-encoding")), (Some("3600"), None));
            assert_eq!((told.header("set-cookie"), told.header("x-hop")), (None, None));
            assert!(told.header("age").unwrap().parse::<u64>().unwrap() < 10);
            assert_eq!(bench.story(call).await, "opened, line, passed");
            assert_eq!(why(&bench, call).await, Some("quota_parked"));
        }
        assert_eq!((up.requests().len(), bench.totals().sends), (1, 1));
    }
}

#[tokio::test]
async fn where_the_answer_of_another_does_not_fit_the_relay_says_so_in_the_words_of_the_client() {
    let chat = |key: &str| {
        let body = r#"{"model":"gpt-x","messages":[{"role":"user","content":"hi"}]}"#;
        Request::post("/v1/chat/completions").header("authorization", format!("Bearer {key}")).json(body)
    };
    let up = first(vec![for_seconds(3600.0), for_seconds(3600.0)]).await;
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 429);
    let told = bench.ask(&chat("sk-test")).await;
    assert_eq!((told.status, told.header("x-should-retry")), (429, Some("false")));
    assert_eq!(told.json()["error"]["code"], "quota_parked");
    let words = told.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(words.contains("The usage limit has been reached") && words.contains("hint: "), "{words}");
    crate::support::invents_no_time(&told);
    // Codex prints a 400 whole, and does not ask again.
    assert_eq!(bench.ask(&chat("sk-other")).await.status, 429);
    let codex = Request::post("/v1/responses")
        .header("authorization", "Bearer sk-other")
        .header("user-agent", "codex_cli_rs/0.171.0 (Linux 6.1; x86_64) xterm")
        .json(TURN);
    let told = bench.ask(&codex).await;
    assert_eq!((told.status, told.text().contains("[quota_parked]")), (400, true));
    assert_eq!(up.requests().len(), 2);
}

#[tokio::test]
async fn without_a_setting_or_a_time_to_wait_for_it_goes_back_at_once_each_time() {
    let past = r#","resets_at":1000000000"#;
    let soon = r#","resets_in_seconds":0.2"#;
    let broke = Reply::status(429)
        .header("retry-after", "1")
        .json(r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"m"}}"#);
    for (parks, reply) in [(false, spent(soon)), (true, spent(past)), (true, spent("")), (true, broke)] {
        let up = first(vec![reply.clone(), reply]).await;
        let mut config = parking(&up.url(), SOON);
        config.profiles.get_mut("tested").unwrap().park_quota = parks;
        let bench = Bench::with(config).await;
        for call in [1, 2] {
            let told = bench.ask(&of(&call.to_string())).await;
            assert_eq!((told.status, told.header("age")), (429, None));
            assert_eq!(bench.story(call).await, "opened, send 1, 429, quota_spent final, passed");
            assert_eq!(why(&bench, call).await, None);
        }
        assert_eq!(bench.ask(&of("a")).await.status, 200);
    }
}

#[tokio::test]
async fn other_models_and_other_credentials_are_not_parked() {
    let is_spent = |seen: &Seen| {
        seen.header("authorization") == Some("Bearer sk-test") && seen.json()["model"] == "gpt-x"
    };
    let script =
        Script::by(move |seen, _| if is_spent(seen) { for_seconds(3600.0) } else { answer_to(seen) });
    let up = Upstream::start(script).await.unwrap();
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    assert_eq!(bench.ask(&of("a")).await.status, 429);
    assert_eq!(bench.ask(&asks("a", &TURN.replace("gpt-x", "gpt-y"))).await.status, 200);
    let other = Request::post("/v1/responses").header("authorization", "Bearer sk-other").json(TURN);
    assert_eq!(bench.ask(&other).await.status, 200);
    assert_eq!(bench.ask(&of("b")).await.status, 429);
    assert_eq!(up.requests().len(), 3);
}

#[tokio::test]
async fn a_call_that_nobody_wants_to_wait_is_sent_as_ever_and_its_answer_tells_the_others() {
    let busy =
        Reply::status(503).header("retry-after-ms", "20").json(relay_sim::fixtures::codex::overloaded_body());
    let up = first(vec![for_seconds(3600.0), for_seconds(3600.0), busy]).await;
    let mut config = parking(&up.url(), Duration::from_secs(7200));
    let overrides = ProfileOverrides { park_quota: Some(false), ..ProfileOverrides::default() };
    let path = Some("/hasty".to_owned());
    config.routes.push(Route { path, overrides, ..Route::default() });
    let bench = Bench::with(config).await;
    let mut a = sent(&bench, &of("a")).await;
    waits_parked(&bench, 1).await;
    let hasty = Request::post("/hasty/v1/responses").header("authorization", "Bearer sk-test").json(TURN);
    let told = bench.ask(&hasty).await;
    is_the_service_s(&told, &spent_body(r#","resets_in_seconds":3600"#));
    assert_eq!(told.header("age"), None);
    assert_eq!(bench.story(2).await, "opened, send 1, 429, quota_spent final, passed");
    // One that would wait for something else in a parked lane does not.
    let told = bench.ask(&hasty.clone().header("x-other", "1")).await;
    assert_eq!((told.status, told.header("age").is_some()), (429, true));
    assert_eq!(why(&bench, 3).await, Some("quota_parked"));
    assert_eq!(up.requests().len(), 3);
    // The first that is answered ends it.
    assert_eq!(bench.ask(&hasty.header("x-other", "2")).await.status, 200);
    gets(&mut a, &bytes_for("a")).await;
    assert_eq!(up.requests().len(), 5);
}

#[tokio::test]
async fn a_person_ends_it() {
    let home = Folder::new();
    let up = first(vec![for_seconds(3600.0), for_seconds(3600.0)]).await;
    let mut config = parking(&up.url(), Duration::from_secs(7200));
    config.state_dir = Some(home.path().to_owned());
    let bench = Bench::with(config).await;
    let token = home.read("token").trim().to_owned();
    let mut a = sent(&bench, &of("a")).await;
    waits_parked(&bench, 1).await;
    let mut b = sent(&bench, &of("b")).await;
    waits_parked(&bench, 2).await;
    let lane = lane_until(&bench, |lane| lane["waiting"] == 2).await;
    let probe = Request::post(&format!("/__steady/lanes/{}/probe", lane["id"].as_str().unwrap()))
        .header("x-steady-token", &token);
    assert_eq!(bench.ask(&probe).await.json()["asked"], true);
    assert!(up.wait_for_requests(2, SOON).await);
    lane_until(&bench, |lane| lane["waiting"] == 2 && lane["parked_for_s"].as_f64() > Some(3000.0)).await;
    assert_eq!(bench.ask(&probe).await.json()["asked"], true);
    gets(&mut a, &bytes_for("a")).await;
    gets(&mut b, &bytes_for("b")).await;
    assert_eq!(up.requests().len(), 4);
}

#[tokio::test]
async fn a_refusal_that_is_passed_on_unread_does_not_end_it() {
    let up = first(vec![for_seconds(3600.0), for_seconds(3600.0)]).await;
    let bench = Bench::with(parking(&up.url(), Duration::from_secs(7200))).await;
    let mut a = sent(&bench, &of("a")).await;
    waits_parked(&bench, 1).await;
    let off = of("b").header("x-steady", "off");
    assert_eq!(bench.ask(&off).await.status, 429);
    let lane = lane_until(&bench, |lane| lane["waiting"] == 1 && lane["sending"] == 0).await;
    assert!(lane["parked_for_s"].as_f64() > Some(3000.0), "{lane}");
    assert_eq!(up.requests().len(), 2);
    // One that is none does.
    assert_eq!(bench.ask(&off).await.status, 200);
    gets(&mut a, &bytes_for("a")).await;
}

#[tokio::test]
async fn a_person_ends_it_while_nobody_waits() {
    let home = Folder::new();
    let up = first(vec![for_seconds(3600.0)]).await;
    let mut config = parking(&up.url(), SOON);
    config.state_dir = Some(home.path().to_owned());
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&of("a")).await.status, 429);
    let lane = lane_until(&bench, |lane| !lane["parked_for_s"].is_null()).await;
    let probe = Request::post(&format!("/__steady/lanes/{}/probe", lane["id"].as_str().unwrap()))
        .header("x-steady-token", home.read("token").trim());
    assert_eq!(bench.ask(&probe).await.json()["asked"], false);
    assert_eq!(bench.ask(&of("a")).await.status, 200);
}

#[tokio::test]
async fn whoever_leaves_a_parked_lane_leaves_nothing_behind() {
    let up = first(vec![for_seconds(0.3)]).await;
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    let a = sent(&bench, &of("a")).await;
    waits_parked(&bench, 1).await;
    drop(a);
    assert_eq!(bench.story(1).await, "opened, send 1, 429, quota_spent final, line, client_left");
    assert_eq!(bench.ask(&of("b")).await.status, 200);
    assert_eq!(up.requests().len(), 2);
}

// ---- over WebSocket ----

fn spent_message(seconds: f64) -> Vec<WsStep> {
    let error = json!({
        "type": "usage_limit_reached", "message": "The usage limit has been reached", "resets_in_seconds": seconds,
    });
    vec![WsStep::Send(json!({ "type": "error", "status": 429, "error": error }))]
}

#[tokio::test]
async fn a_message_parks_the_lane_too_and_its_call_goes_on_after_it() {
    let up = WsUpstream::start(WsScript::good("later").creates([spent_message(0.4), good("later")]))
        .await
        .unwrap();
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    let mut client = websocket::codex(&bench).await;
    client.send(FULL).await.unwrap();
    waits_parked(&bench, 1).await;
    assert_eq!(client.answer().await, websocket::texts(&good("later")));
    assert_eq!(up.creates().len(), 2);
}

#[tokio::test]
async fn a_message_that_cannot_wait_goes_back_and_the_next_client_gets_it_without_a_send() {
    let up = WsUpstream::start(WsScript::good("later").creates([spent_message(3600.0)])).await.unwrap();
    let bench = Bench::with(parking(&up.url(), SOON)).await;
    let expected = websocket::texts(&spent_message(3600.0));
    for call in [1, 2] {
        let mut client = websocket::codex(&bench).await;
        client.send(FULL).await.unwrap();
        assert_eq!([client.next().await], expected[..]);
        let story = bench.story(call).await;
        assert!(story.ends_with("passed"), "{story}");
    }
    assert_eq!(why(&bench, 2).await, Some("quota_parked"));
    assert_eq!(up.creates().len(), 1);
    // Over HTTP it is told in words: nothing else says what status and headers there would have been.
    let told = bench.ask(&plain(TURN)).await;
    assert_eq!((told.status, told.json()["error"]["code"].clone()), (429, json!("quota_parked")));
}
