//! Another model in place of one that takes no calls: when, with what, and how its answers are marked.

use std::time::Duration;

use relay_core::Config;
use relay_core::config::{Fallback, Pool, Upstream as Entry, UpstreamChoice};
use relay_core::event::Event;
use relay_core::gate::Preset;
use relay_core::router::Strategy;
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Reply, Request, Script, Upstream};
use steady_relay::clock::{Clock as _, SystemClock};

use crate::support::{Bench, TURN, bounded, ms, plain};

const AFTER: Duration = Duration::from_millis(250);
const COMMENT: &str = ": steady-relay: gpt-y answers instead of gpt-x\n\n";

/// Everything goes to `url`, with other models for `gpt-x`.
fn with(url: &str, to: &[&str], gate: Option<Preset>) -> Config {
    let mut config = bounded(url, |profile| {
        profile.sends = None;
        profile.gate = gate;
    });
    let to = to.iter().map(|model| (*model).to_owned()).collect();
    config.fallbacks = vec![Fallback { model: "gpt-x".to_owned(), to, after: AFTER, upstream: None }];
    config
}

fn busy() -> Reply {
    Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded"}}"#)
}

fn held(seconds: u32) -> Reply {
    Reply::status(503).header("retry-after", seconds).json("{}")
}

fn answers(words: &str) -> Reply {
    Reply::sse(wire::turn(words))
}

/// Answers like this where this model is asked for, and is busy for all others.
fn only(model: &'static str, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    let wanted = format!(r#""model":"{model}""#);
    Script::by(move |seen, _| if seen.text().contains(&wanted) { reply() } else { busy() })
}

/// The models that were asked for, in order.
fn models(up: &Upstream) -> Vec<String> {
    up.requests().iter().map(|seen| seen.json()["model"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_model_that_takes_no_calls_for_long_enough_is_stood_in_for_and_the_answer_says_so() {
    for gate in [None, Some(Preset::Interactive)] {
        let up = Upstream::start(only("gpt-y", || answers("from y"))).await.unwrap();
        let bench = Bench::with(with(&up.url(), &["gpt-y"], gate)).await;
        let began = SystemClock.now();
        let answer = bench.ask(&plain(TURN).header("accept-encoding", "gzip")).await;
        let took = SystemClock.now().since(began);
        assert!(took >= AFTER, "{took:?}");
        assert_eq!((answer.status, answer.header("x-steady-model")), (200, Some("gpt-y; instead-of=gpt-x")));
        let body = [COMMENT.as_bytes(), &stream_bytes(&wire::turn("from y"))].concat();
        assert_eq!(answer.text(), String::from_utf8(body).unwrap());
        let seen = up.requests();
        let (last, before) = seen.split_last().unwrap();
        assert!(
            before.iter().all(|seen| seen.text() == TURN && seen.header("accept-encoding") == Some("gzip"))
        );
        assert!(gate.is_some() || before.len() >= 2, "it was asked again before");
        // Nothing but the name is another one.
        assert_eq!(last.text(), TURN.replace("gpt-x", "gpt-y"));
        assert_eq!(last.header("accept-encoding"), Some("identity"));
        assert_eq!(last.header("authorization"), before[0].header("authorization"));
        let moved = bench
            .first(|event| if let Event::Moved { to, .. } = event { Some(to.model.clone()) } else { None });
        assert_eq!(moved, Some("gpt-y".into()));
        assert!(bench.story(1).await.ends_with("committed, served"), "{}", bench.story(1).await);
    }
}

#[tokio::test]
async fn nobody_gets_another_model_unasked_for_or_too_soon() {
    let up = Upstream::start(only("gpt-y", || answers("from y"))).await.unwrap();
    let few = |mut config: Config| {
        for profile in config.profiles.values_mut() {
            profile.sends = Some(3);
        }
        config
    };
    let config = few(with(&up.url(), &["gpt-y"], None));
    let none = Config { fallbacks: Vec::new(), ..config.clone() };
    let mut late = config.clone();
    late.fallbacks[0].after = Duration::from_secs(600);
    let mut elsewhere = config.clone();
    elsewhere.fallbacks[0].upstream = Some("anthropic".to_owned());
    let mut another = config.clone();
    another.fallbacks[0].model = "gpt-x-*".to_owned();
    for config in [none, late, elsewhere, another] {
        let bench = Bench::with(config).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.status, answer.header("x-steady-model")), (503, None));
    }
    assert!(models(&up).iter().all(|model| model == "gpt-x"));
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_marked_in_its_head_alone() {
    const JSON: &str = r#"{"object":"response","status":"completed","output":[{"type":"message"}]}"#;
    let up = Upstream::start(only("gpt-y", || Reply::status(200).json(JSON))).await.unwrap();
    let bench = Bench::with(with(&up.url(), &["gpt-y"], None)).await;
    let answer = bench.ask(&plain(&TURN.replace(r#""stream":true,"#, ""))).await;
    assert_eq!(
        (answer.text(), answer.header("x-steady-model")),
        (JSON.to_owned(), Some("gpt-y; instead-of=gpt-x"))
    );
}

#[tokio::test]
async fn an_announced_length_has_room_for_the_comment() {
    let stream = stream_bytes(&wire::turn("from y"));
    let reply = {
        let stream = stream.clone();
        move || Reply::status(200).header("content-type", "text/event-stream").bytes(stream.clone())
    };
    let up = Upstream::start(only("gpt-y", reply)).await.unwrap();
    let bench = Bench::with(with(&up.url(), &["gpt-y"], None)).await;
    let answer = bench.ask(&plain(TURN)).await;
    let whole = [COMMENT.as_bytes(), &stream].concat();
    assert_eq!(answer.header("content-length"), Some(whole.len().to_string().as_str()));
    assert_eq!(answer.body, whole);
    assert!(bench.story(1).await.ends_with("served"));
}

#[tokio::test]
async fn others_go_there_at_once_until_their_own_model_takes_calls_again() {
    let script = Script::by(|seen, nth| match (seen.text().contains("gpt-y"), nth) {
        (true, _) => answers("from y"),
        (false, 0) => held(2),
        (false, _) => answers("from x"),
    });
    let up = Upstream::start(script).await.unwrap();
    let bench = Bench::with(with(&up.url(), &["gpt-y"], Some(Preset::Interactive))).await;
    let first = bench.ask(&plain(TURN)).await;
    assert!(first.text().contains("from y"), "{}", first.text());
    let second = bench.ask(&plain(TURN)).await;
    assert_eq!(second.header("x-steady-model"), Some("gpt-y; instead-of=gpt-x"));
    assert_eq!(models(&up), ["gpt-x", "gpt-y", "gpt-y"]);
    let story = bench.story(2).await;
    assert!(story.starts_with("opened, shut to "), "{story}");
    tokio::time::sleep(ms(2000)).await;
    let third = bench.ask(&plain(TURN)).await;
    assert_eq!((third.header("x-steady-model"), third.text().contains("from x")), (None, true));
    assert_eq!(models(&up), ["gpt-x", "gpt-y", "gpt-y", "gpt-x"]);
}

#[tokio::test]
async fn a_pause_longer_than_the_client_waits_is_no_end_where_another_model_may_come_in() {
    for gate in [None, Some(Preset::Interactive)] {
        let script =
            Script::by(|seen, _| if seen.text().contains("gpt-y") { answers("from y") } else { held(3600) });
        let up = Upstream::start(script).await.unwrap();
        let mut config = with(&up.url(), &["gpt-y"], gate);
        for profile in config.profiles.values_mut() {
            profile.patience = Duration::from_secs(20);
        }
        let bench = Bench::with(config.clone()).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!(answer.header("x-steady-model"), Some("gpt-y; instead-of=gpt-x"), "{}", answer.text());
        assert_eq!(models(&up), ["gpt-x", "gpt-y"]);
        // Whoever cannot wait for that hears so at once.
        config.fallbacks[0].after = Duration::from_secs(60);
        let bench = Bench::with(config).await;
        assert_eq!(bench.ask(&plain(TURN)).await.status, 503);
        assert_eq!(models(&up), ["gpt-x", "gpt-y", "gpt-x"]);
    }
}

#[tokio::test]
async fn the_next_of_the_list_comes_in_where_the_first_has_no_capacity_either() {
    let up = Upstream::start(only("gpt-z", || answers("from z"))).await.unwrap();
    let bench = Bench::with(with(&up.url(), &["gpt-y", "gpt-z"], None)).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!(answer.header("x-steady-model"), Some("gpt-z; instead-of=gpt-x"));
    let mut asked = models(&up);
    asked.dedup();
    assert_eq!(asked, ["gpt-x", "gpt-y", "gpt-z"]);
}

#[tokio::test]
async fn what_is_for_one_model_alone_or_cannot_be_changed_stays_with_it() {
    let sealed =
        r#"{"model":"gpt-x","stream":true,"input":[{"type":"reasoning","encrypted_content":"CANARYSEAL"}]}"#;
    let requests = [
        plain(sealed),
        plain(TURN).header("content-digest", "sha-256=:AAAA:"),
        plain(TURN).header("x-steady", "off"),
        Request::post("/v1/responses")
            .header("authorization", "Bearer sk-test")
            .header("content-encoding", "gzip")
            .body(crate::encoded::gzip(TURN.as_bytes())),
        Request::post("/v1beta/models/gpt-x:generateContent")
            .header("x-goog-api-key", "AIzaTest")
            .json(r#"{"model":"gpt-x","contents":[{"parts":[{"text":"hi"}]}]}"#),
    ];
    for request in requests {
        let up = Upstream::start(busy()).await.unwrap();
        let mut config = with(&up.url(), &["gpt-y"], None);
        config.fallbacks[0].after = ms(1);
        for profile in config.profiles.values_mut() {
            profile.sends = Some(4);
        }
        let bench = Bench::with(config).await;
        let answer = bench.ask(&request).await;
        assert_eq!((answer.status, answer.header("x-steady-model")), (503, None), "{request:?}");
        let first = up.requests()[0].body.clone();
        assert!(up.requests().iter().all(|seen| seen.body == first), "{request:?}");
    }
}

#[tokio::test]
async fn of_a_pool_every_member_has_to_be_without_capacity() {
    let one = Upstream::start(only("gpt-y", || answers("from one"))).await.unwrap();
    let other = Upstream::start(Script::by(|seen, nth| {
        if nth == 0 && seen.text().contains("gpt-x") { answers("from other") } else { busy() }
    }))
    .await
    .unwrap();
    let mut config = with(&one.url(), &["gpt-y"], None);
    for (name, up) in [("one", &one), ("other", &other)] {
        config.upstreams.insert(name.to_owned(), Entry::at(up.url().parse().unwrap()));
    }
    let members = vec!["one".to_owned(), "other".to_owned()];
    let weights = vec![std::num::NonZeroU32::MIN; 2];
    config.pools.insert("main".to_owned(), Pool { members, strategy: Strategy::InOrder, weights });
    config.upstream = Some(UpstreamChoice::Pool("main".to_owned()));
    config.fallbacks[0].upstream = Some("main".to_owned());
    let bench = Bench::with(config).await;
    let first = bench.ask(&plain(TURN)).await;
    assert_eq!((first.header("x-steady-model"), first.text().contains("from other")), (None, true));
    let second = bench.ask(&plain(TURN)).await;
    assert_eq!(second.header("x-steady-model"), Some("gpt-y; instead-of=gpt-x"));
    assert!(second.text().contains("from one"));
}
