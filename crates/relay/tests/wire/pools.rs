//! Calls with more than one way: pools, and what goes along to another member and what does not.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use relay_core::breaker;
use relay_core::config::{Pool, Upstream as Entry, UpstreamChoice};
use relay_core::event::{CallId, Event};
use relay_core::router::Strategy;
use relay_core::{Config, Profile};
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Refused, Reply, Request, Script, Seen, Signal, Upstream};

use crate::lanes::{gets, sent};
use crate::support::{Bench, CONTINUED, TURN, fast, ms};

const KEY: &str = "sk-proj-CANARYCLIENTKEY";
const OWN_KEY: &str = "sk-proj-keyofthesecondone";

/// A pool of the upstreams at these URLs, named `one`, `two`, …; each but the first has a key of its own.
pub(crate) fn pool(urls: &[&str], strategy: Strategy, profile: impl FnOnce(&mut Profile)) -> Config {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let mut config = fast();
    for (name, url) in NAMES.iter().zip(urls) {
        let mut entry = Entry::at(url.parse().unwrap());
        entry.api_key = (*name != "one").then(|| OWN_KEY.parse().unwrap());
        config.upstreams.insert((*name).to_owned(), entry);
    }
    let members: Vec<String> = NAMES.iter().take(urls.len()).map(|name| (*name).to_owned()).collect();
    let weights = members.iter().map(|_| NonZeroU32::MIN).collect();
    config.pools.insert("main".to_owned(), Pool { members, strategy, weights });
    config.upstream = Some(UpstreamChoice::Pool("main".to_owned()));
    let mut tested = config.profiles["interactive"].clone();
    profile(&mut tested);
    config.profiles.insert("interactive".to_owned(), tested.clone());
    for other in ["patient", "batch"] {
        config.profiles.insert(other.to_owned(), tested.clone());
    }
    config
}

/// Two in order.
pub(crate) async fn two(one: impl Into<Script>, other: impl Into<Script>) -> (Upstream, Upstream, Config) {
    let (one, other) = (Upstream::start(one).await.unwrap(), Upstream::start(other).await.unwrap());
    let config = pool(&[&one.url(), &other.url()], Strategy::InOrder, |_| ());
    (one, other, config)
}

fn busy() -> Reply {
    Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded"}}"#)
}

pub(crate) fn answers(words: &str) -> Reply {
    Reply::sse(wire::turn(words))
}

/// What a client sends that tells who it is.
fn request(body: &str) -> Request {
    Request::post("/v1/responses?beta=1&key=AIzaCANARYQUERY")
        .header("authorization", format!("Bearer {KEY}"))
        .header("cookie", "session=CANARYCOOKIE")
        .header("openai-organization", "CANARYORG")
        .header("openai-project", "CANARYPROJECT")
        .header("x-my-gateway-token", "CANARYTOKEN")
        .header("x-anything", "stays")
        .json(body)
}

pub(crate) fn ask() -> Request {
    Request::post("/v1/responses").header("authorization", format!("Bearer {KEY}")).json(TURN)
}

/// What Codex asks in a thread of this name.
pub(crate) fn session(name: &str, body: &str) -> Request {
    Request::post("/v1/responses")
        .header("authorization", format!("Bearer {KEY}"))
        .header("user-agent", "codex_cli_rs/0.171.0 (Linux 6.1; x86_64) xterm")
        .header("thread-id", name)
        .json(body)
}

/// All that was sent, as one text.
fn heard(seen: &Seen) -> String {
    format!("{seen:?}")
}

#[tokio::test]
async fn a_call_goes_on_at_the_next_member_and_takes_nothing_there_that_says_who_it_is() {
    let (one, other, config) = two(busy(), answers("from the other")).await;
    let bench = Bench::with(config).await;
    let answer = bench.ask(&request(TURN)).await;
    assert_eq!((answer.status, answer.body), (200, stream_bytes(&wire::turn("from the other"))));
    let story = "opened, send 1, 503, at_capacity refused, failed to two, send 2, 200, committed, served";
    assert_eq!(bench.story(1).await, story);
    let (at_one, at_other) = (one.requests(), other.requests());
    assert_eq!((at_one.len(), at_other.len()), (1, 1));
    // The first gets all of it as it came.
    for secret in [KEY, "AIzaCANARYQUERY", "CANARYCOOKIE", "CANARYORG", "CANARYPROJECT", "CANARYTOKEN"] {
        assert!(heard(&at_one[0]).contains(secret), "{secret}");
    }
    assert!(!heard(&at_other[0]).contains("CANARY"), "{:?}", at_other[0]);
    assert_eq!(at_other[0].header("authorization"), Some(format!("Bearer {OWN_KEY}").as_str()));
    assert_eq!((at_other[0].header("x-anything"), at_other[0].text()), (Some("stays"), TURN.to_owned()));
    assert_eq!(at_other[0].path(), "/v1/responses");
}

#[tokio::test]
async fn all_members_together_have_the_one_budget() {
    let (one, other, mut config) = two(busy(), busy()).await;
    for profile in config.profiles.values_mut() {
        profile.sends = Some(5);
    }
    let bench = Bench::with(config).await;
    let answer = bench.ask(&ask()).await;
    assert_eq!(answer.status, 503);
    assert!(bench.story(1).await.ends_with("gave_up"), "{}", bench.story(1).await);
    assert_eq!((one.requests().len(), other.requests().len()), (3, 2));
    assert_eq!(bench.totals().sends, 5);
}

#[tokio::test]
async fn a_pause_that_one_asks_for_holds_it_and_no_other() {
    let held =
        Reply::status(429).header("retry-after", "3600").json(r#"{"error":{"code":"rate_limit_exceeded"}}"#);
    for gate in [None, Some(relay_core::gate::Preset::Interactive)] {
        let (one, other, mut config) = two(held.clone(), answers("x")).await;
        for profile in config.profiles.values_mut() {
            profile.gate = gate;
        }
        let bench = Bench::with(config).await;
        for _ in 0..3 {
            assert_eq!(bench.ask(&ask()).await.status, 200);
        }
        let sent = (one.requests().len(), other.requests().len());
        // Each call by itself knows nothing of the pause.
        assert_eq!(sent, if gate.is_some() { (1, 3) } else { (3, 3) });
        if gate.is_some() {
            assert_eq!(bench.story(2).await, "opened, shut to two, send 1, 200, committed, served");
        }
    }
}

/// The longer the quota of one is spent, the more another member is worth.
#[tokio::test]
async fn who_meets_a_spent_quota_that_parks_the_lane_is_served_by_another_member() {
    for (parks, seconds, expected) in [(true, 30, 200), (true, 7200, 200), (false, 7200, 429)] {
        let quota = Reply::status(429)
            .json(format!(r#"{{"error":{{"type":"usage_limit_reached","resets_in_seconds":{seconds}}}}}"#));
        let (one, other, mut config) = two(quota, answers("x")).await;
        for profile in config.profiles.values_mut() {
            (profile.gate, profile.park_quota) = (Some(profile.preset), parks);
            profile.patience = Duration::from_secs(60);
        }
        let bench = Bench::with(config).await;
        for _ in 0..2 {
            assert_eq!(bench.ask(&ask()).await.status, expected, "{parks} {seconds}");
        }
        let sent = (one.requests().len(), other.requests().len());
        assert_eq!(sent, if parks { (1, 2) } else { (2, 0) }, "{parks} {seconds}");
    }
}

#[tokio::test]
async fn what_may_have_run_and_what_is_definite_is_not_moved() {
    let definite = Reply::status(400).json(r#"{"error":{"code":"invalid_prompt"}}"#);
    let quota =
        Reply::status(429).json(r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#);
    for (reply, status) in [
        (definite, 400),
        (quota, 429),
        (Reply::status(401).json("{}"), 401),
        (Reply::status(302).header("location", "http://127.0.0.1:1/"), 302),
    ] {
        let (_one, other, config) = two(reply, answers("x")).await;
        let bench = Bench::with(config).await;
        assert_eq!(bench.ask(&request(TURN)).await.status, status);
        assert_eq!(other.requests().len(), 0, "{status}");
    }
    let (_one, other, mut config) = two(Reply::reset_after_request(), answers("x")).await;
    for profile in config.profiles.values_mut() {
        profile.ambiguous_resends = 0;
    }
    let bench = Bench::with(config).await;
    let answer = bench.ask(&request(TURN)).await;
    assert_eq!((answer.status, other.requests().len()), (429, 0), "{}", answer.text());
    // With the one grant there is, it is.
    let (_one, other, config) = two(Reply::reset_after_request(), answers("x")).await;
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&request(TURN)).await.status, 200);
    assert_eq!(other.requests().len(), 1);
    let story =
        "opened, send 1, broken_stream maybe_ran, grant, failed to two, send 2, 200, committed, served";
    assert_eq!(bench.story(1).await, story);
}

#[tokio::test]
async fn what_only_the_first_understands_stays_there() {
    let sealed =
        r#"{"model":"gpt-x","stream":true,"input":[{"type":"reasoning","encrypted_content":"CANARYSEAL"}]}"#;
    let rows =
        [(sealed, "encrypted_content"), (CONTINUED, "previous_response_id"), ("no json", "unreadable")];
    for (body, bound) in rows {
        let (one, other, config) = two(Script::of([busy(), answers("x")]), answers("y")).await;
        let bench = Bench::with(config).await;
        assert_eq!(bench.ask(&request(body)).await.status, 200, "{body}");
        assert_eq!((one.requests().len(), other.requests().len()), (2, 0), "{body}");
        let opened = |event: &Event| {
            let Event::CallOpened { labels, .. } = event else { return None };
            Some((labels.pool.clone(), labels.bound))
        };
        let labels = bench.first(opened);
        assert_eq!(labels, (Some("main".into()), Some(bound)));
    }
}

#[tokio::test]
async fn what_is_no_generation_goes_to_the_first() {
    let (one, other, config) = two(Reply::status(200).json("{}"), answers("y")).await;
    let bench = Bench::with(config).await;
    for path in ["/v1/models", "/v1/responses/resp_1"] {
        bench.ask(&Request::get(path).header("authorization", format!("Bearer {KEY}"))).await;
    }
    assert_eq!((one.requests().len(), other.requests().len()), (2, 0));
}

#[tokio::test]
async fn a_session_goes_back_to_the_member_that_has_sealed_something_for_it() {
    let (one, other, config) = two(Script::of([busy(), answers("x")]), answers("y")).await;
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&session("a", TURN)).await.status, 200);
    let sealed = r#"{"model":"gpt-x","stream":true,"input":[{"type":"reasoning","encrypted_content":"s"}]}"#;
    assert_eq!(bench.ask(&session("a", sealed)).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (1, 2));
    let seen = other.requests();
    assert_eq!(seen[1].header("authorization"), Some(format!("Bearer {OWN_KEY}").as_str()));
    // Whoever is not known goes to the first.
    assert_eq!(bench.ask(&session("b", sealed)).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (2, 2));
    // A key is no business of the other one, whatever that has made.
    let with_a_key = r#"{"model":"gpt-x","stream":true,"previous_response_id":"r","input":"hi",
        "tools":[{"type":"mcp","server_label":"s","authorization":"CANARYMCP"}]}"#;
    assert_eq!(bench.ask(&session("a", with_a_key)).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (3, 2));
}

#[tokio::test]
async fn a_session_by_the_names_of_an_older_codex_is_one() {
    for name in ["session_id", "conversation_id"] {
        let (one, other, config) = two(Script::of([busy(), answers("x")]), answers("y")).await;
        let bench = Bench::with(config).await;
        let asks = |body: &str| {
            let request = Request::post("/v1/responses").header("authorization", format!("Bearer {KEY}"));
            request.header("user-agent", "codex_cli_rs/0.77.0 (Linux 6.1)").header(name, "a").json(body)
        };
        assert_eq!(bench.ask(&asks(TURN)).await.status, 200);
        let refers = r#"{"model":"gpt-x","stream":true,"input":[{"id":"msg_1"}]}"#;
        assert_eq!(bench.ask(&asks(refers)).await.status, 200);
        assert_eq!((one.requests().len(), other.requests().len()), (1, 2), "{name}");
        assert_eq!(bench.story(2).await, "opened, send 1, 200, committed, served");
    }
}

#[tokio::test]
async fn the_sign_in_of_a_person_is_for_no_pool() {
    let (one, other, config) = two(answers("x"), answers("y")).await;
    let bench = Bench::with(config).await;
    let post = || Request::post("/v1/responses").json(TURN);
    for request in [
        post().header("authorization", "Bearer abc").header("chatgpt-account-id", "acc"),
        post().header("authorization", "Bearer sk-ant-oat01-abcdef"),
        post().header(
            "authorization",
            format!("Bearer {}", relay_sim::fixtures::openai_jwt(&serde_json::json!({}))),
        ),
    ] {
        let answer = bench.ask(&request).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("[pool.main] does not take those"), "{}", answer.text());
    }
    assert_eq!((one.requests().len(), other.requests().len()), (0, 0));
}

#[tokio::test]
async fn each_session_keeps_its_member_where_that_is_wanted() {
    let (one, other) =
        (Upstream::start(answers("x")).await.unwrap(), Upstream::start(answers("y")).await.unwrap());
    let bench = Bench::with(pool(&[&one.url(), &other.url()], Strategy::Sticky, |_| ())).await;
    for round in 1..=3 {
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            assert_eq!(bench.ask(&session(name, TURN)).await.status, 200);
        }
        let of = |up: &Upstream| -> Vec<String> {
            let mut names: Vec<_> =
                up.requests().iter().filter_map(|seen| seen.header("thread-id").map(str::to_owned)).collect();
            names.sort();
            names
        };
        let (mut at_one, mut at_other) = (of(&one), of(&other));
        assert_eq!(at_one.len() + at_other.len(), 8 * round);
        at_one.dedup();
        at_other.dedup();
        assert!(!at_one.is_empty() && !at_other.is_empty());
        assert!(!at_one.iter().any(|name| at_other.contains(name)), "{at_one:?} {at_other:?}");
    }
}

#[tokio::test]
async fn the_one_with_the_fewest_calls_is_asked_where_that_is_wanted() {
    let door = Signal::new();
    let (one, other) = (
        Upstream::start(answers("x").when(door.clone())).await.unwrap(),
        Upstream::start(answers("y")).await.unwrap(),
    );
    let bench = Bench::with(pool(&[&one.url(), &other.url()], Strategy::LeastWaiting, |profile| {
        profile.gate = Some(relay_core::gate::Preset::Interactive);
    }))
    .await;
    let mut slow = bench.client().await;
    slow.send(&ask()).await.unwrap();
    assert!(one.wait_for_requests(1, crate::support::SOON).await);
    assert_eq!(bench.ask(&ask()).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (1, 1));
    door.release();
    assert_eq!(slow.read().await.status, 200);
}

#[tokio::test]
async fn a_member_at_which_nobody_waits_is_asked_while_many_wait_at_the_first() {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = Arc::clone(&well);
    let later = Script::by(move |_, _| if is_well.load(Ordering::Relaxed) { answers("y") } else { busy() });
    let (one, other, mut config) = two(busy(), later).await;
    for profile in config.profiles.values_mut() {
        profile.gate = Some(relay_core::gate::Preset::Interactive);
        profile.sends = None;
        profile.patience = Duration::from_secs(60);
    }
    let bench = Bench::with(config).await;
    let mut clients = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        // Some seconds pass before a lane is asked again, on a busy machine more.
        let mut client = bench.client().await.patience(Duration::from_secs(60));
        client.send(&session(name, TURN)).await.unwrap();
        clients.push(client);
    }
    let stands = |events: &[(CallId, Event)], call| {
        events.iter().any(|(id, event)| id.0 == call && matches!(event, Event::InLine { .. }))
    };
    bench.until(|events| (1..=6).all(|call| stands(events, call))).await;
    well.store(true, Ordering::Relaxed);
    for client in &mut clients {
        gets(client, &stream_bytes(&wire::turn("y"))).await;
    }
    assert!(!one.requests().is_empty() && other.requests().len() >= 6);
}

#[tokio::test]
async fn a_call_that_waits_moves_when_another_member_takes_calls_again() {
    let held = |seconds: u32| Reply::status(503).header("retry-after", seconds).json("{}");
    let (one, other, mut config) = two(held(3600), Script::of([held(1), answers("y")])).await;
    for profile in config.profiles.values_mut() {
        profile.gate = Some(relay_core::gate::Preset::Interactive);
    }
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_call_that_goes_back_since_its_send_failed_says_so_however_late() {
    let closed = Refused::port().unwrap();
    let held = Reply::status(503).header("retry-after", "20").json("{}");
    let other = Upstream::start(Script::of([answers("y"), held])).await.unwrap();
    let mut config = pool(&[&closed.url(), &other.url()], Strategy::InOrder, |profile| {
        profile.gate = Some(relay_core::gate::Preset::Interactive);
        profile.patience = Duration::from_secs(60);
    });
    config.breaker = breaker::Rules { failures: 1, pause: ms(400), ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 200);
    let one = closed.open(answers("x")).unwrap();
    // It waits at the other, until the breaker of the first lets it through.
    assert_eq!(bench.ask(&ask()).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (1, 2));
    let story = bench.story(2).await;
    assert!(story.starts_with("opened, circuit_open to two, send 1, 503, at_capacity refused, "), "{story}");
    assert!(story.ends_with(", failed to one, send 2, 200, committed, served"), "{story}");
}

#[tokio::test]
async fn a_call_that_waits_for_a_breaker_is_told_of_once() {
    let up = Upstream::start(Script::of([Reply::status(500).json("{}"), answers("x")])).await.unwrap();
    let mut config = crate::support::bounded(&up.url(), |profile| {
        profile.failed_sends = 1;
        profile.patience = Duration::from_secs(60);
    });
    let pause = ms(2_500);
    config.breaker = breaker::Rules { failures: 1, pause, alone: true, ..breaker::Rules::default() };
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 500);
    let mut waits = sent(&bench, &ask()).await;
    bench.until(|events| events.iter().any(|(_, event)| matches!(event, Event::HeldBack { .. }))).await;
    let page = bench.page().await;
    assert_eq!(page["open_calls"][0]["state"], "waiting", "{page}");
    assert!(page["open_calls"][0]["next_send_in_s"].as_f64().is_some_and(|left| left <= 2.5), "{page}");
    gets(&mut waits, &stream_bytes(&wire::turn("x"))).await;
    assert_eq!(bench.story(2).await, "opened, cut off, send 1, 200, committed, served");
}

#[tokio::test]
async fn a_member_gets_no_dialect_that_it_does_not_speak() {
    let (one, other, mut config) = two(busy(), answers("x")).await;
    config.upstreams.get_mut("two").unwrap().dialects = Some(vec!["anthropic"]);
    for profile in config.profiles.values_mut() {
        profile.sends = Some(2);
    }
    let bench = Bench::with(config.clone()).await;
    assert_eq!(bench.ask(&ask()).await.status, 503);
    assert_eq!((one.requests().len(), other.requests().len()), (2, 0));
    // The client's own credential is for the first that speaks its dialect.
    let message = Request::post("/v1/messages").header("x-api-key", "sk-ant-api03-abc").json(TURN);
    config.upstreams.get_mut("one").unwrap().dialects = Some(vec!["openai_responses"]);
    let bench = Bench::with(config.clone()).await;
    bench.ask(&message).await;
    assert_eq!(other.requests()[0].header("x-api-key"), Some("sk-ant-api03-abc"));
    config.upstreams.get_mut("two").unwrap().dialects = Some(vec!["gemini"]);
    let bench = Bench::with(config).await;
    let refused = bench.ask(&message).await;
    assert!(refused.status == 400 && refused.text().contains("speaks anthropic"), "{}", refused.text());
}

#[tokio::test]
async fn a_path_and_a_route_may_name_a_pool() {
    let (one, other, mut config) = two(busy(), answers("y")).await;
    config.upstream = Some(UpstreamChoice::Named("one".to_owned()));
    for profile in config.profiles.values_mut() {
        profile.sends = Some(2);
    }
    let bench = Bench::with(config.clone()).await;
    let named =
        Request::post("/to/main/v1/responses").header("authorization", format!("Bearer {KEY}")).json(TURN);
    assert_eq!(bench.ask(&named).await.status, 200);
    assert_eq!(bench.ask(&ask()).await.status, 503);
    config.routes.push(relay_core::config::Route {
        model: Some("gpt-x".to_owned()),
        upstream: Some("main".to_owned()),
        ..relay_core::config::Route::default()
    });
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&ask()).await.status, 200);
    assert_eq!((one.requests().len(), other.requests().len()), (4, 2));
}

#[tokio::test]
async fn over_a_websocket_nothing_goes_to_a_pool() {
    let (one, other, config) = two(answers("x"), answers("y")).await;
    let bench = Bench::with(config).await;
    let upgrade = Request::get("/v1/responses")
        .header("authorization", format!("Bearer {KEY}"))
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(bench.ask(&upgrade).await.status, 426);
    assert_eq!((one.requests().len(), other.requests().len()), (0, 0));
}
