//! What a client sends again by itself: served, counted on, never multiplied.

use relay_core::event::{Event, Inherited};
use relay_sim::fixtures::codex as wire;
use relay_sim::{Client, Ending, Reply, Request, Script, Upstream};

use crate::support::{Bench, SOON, TURN, bounded, claude, codex, plain, sdk, strict};

const BODY: &str = concat!(
    r#"{"model":"m","stream":true,"input":[{"role":"user","content":"hi"}],"#,
    r#""client_metadata":{"a":"1","b":"2"},"prompt_cache_key":"k"}"#
);
/// The same, its keys in another order.
const REORDERED: &str = concat!(
    r#"{"client_metadata":{"b":"2","a":"1"},"prompt_cache_key":"k","#,
    r#""input":[{"content":"hi","role":"user"}],"stream":true,"model":"m"}"#
);

fn failing() -> Reply {
    Reply::status(500).json(r#"{"error":{"message":"failed"}}"#)
}

fn broken(ending: Ending) -> bool {
    matches!(ending, Ending::Truncated | Ending::Reset)
}

#[tokio::test]
async fn codex_goes_on_from_where_its_turn_stood() {
    let up = Upstream::start(failing()).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&codex("u", BODY)).await.status, 500);
    assert_eq!(up.requests().len(), 3);
    for (call, body) in [(2, REORDERED), (3, BODY)] {
        assert_eq!(bench.ask(&codex("u", body)).await.status, 500);
        let story = bench.story(call).await;
        assert_eq!(story, format!("opened after {}, send 1, 500, server_failed failed, returned", call + 1));
    }
    assert_eq!(up.requests().len(), 5);
    // Another turn, and another body, are calls of their own.
    bench.ask(&codex("v", BODY)).await;
    bench.ask(&codex("u", TURN)).await;
    assert_eq!(up.requests().len(), 11);
}

#[tokio::test]
async fn an_sdk_that_counts_its_tries_goes_on_from_its_first() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(4))).await;
    for (tries, sends) in [(0, 4), (1, 5), (2, 6)] {
        let answer = bench.ask(&sdk(tries, BODY)).await;
        assert_eq!((answer.status, answer.header("x-should-retry")), (503, Some("false")));
        assert_eq!(up.requests().len(), sends);
    }
    // The first try of a new call has a budget of its own.
    bench.ask(&sdk(0, BODY)).await;
    assert_eq!(up.requests().len(), 10);
}

#[tokio::test]
async fn a_call_that_was_served_leaves_nothing_to_inherit() {
    let up = Upstream::start(Script::by(|_, number| match number {
        0..=2 | 4..=6 => failing(),
        _ => Reply::sse(wire::turn("hi")),
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&codex("u", BODY)).await.status, 500);
    assert_eq!(bench.ask(&codex("u", BODY)).await.status, 200);
    assert_eq!(bench.ask(&codex("u", BODY)).await.status, 500);
    assert!(bench.story(3).await.starts_with("opened, "));
    assert_eq!(up.requests().len(), 7);
}

#[tokio::test]
async fn body_and_credential_alone_carry_over_what_failed_but_not_the_count_of_sends() {
    let up =
        Upstream::start(Script::by(|_, number| if number < 4 { failing() } else { wire::overloaded_503() }))
            .await
            .unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(3))).await;
    assert_eq!(bench.ask(&plain(BODY)).await.status, 500);
    assert_eq!(bench.ask(&plain(REORDERED)).await.status, 500);
    // It is told of, although no send of the first counts.
    let inherits = |event: &Event| {
        let Event::CallOpened { inherited, .. } = event else { return None };
        Some(*inherited).filter(|it| !it.is_nothing())
    };
    assert_eq!(bench.first(inherits), Inherited { failed: 3, ..Inherited::default() });
    assert_eq!(up.requests().len(), 4, "three failures are spent, so the fourth goes back");
    assert_eq!(bench.ask(&plain(BODY)).await.status, 503);
    assert_eq!(up.requests().len(), 7, "refusals have the whole budget again");
    assert!(bench.story(3).await.starts_with("opened, "));
    // Whoever has another credential is somebody else.
    let other = Request::post("/v1/responses").header("authorization", "Bearer sk-else").json(BODY);
    bench.ask(&other).await;
    assert_eq!(up.requests().len(), 10);
}

#[tokio::test]
async fn a_fallback_that_does_not_stream_is_the_same_call() {
    let up = Upstream::start(failing()).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&claude()).await.status, 500);
    assert_eq!(up.requests().len(), 3);
    let again = Request::post("/v1/messages?beta=true")
        .header("authorization", "Bearer sk-ant-oat01-test")
        .header("user-agent", "claude-cli/2.1.332 (external, cli)")
        .json(r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":99,"model":"claude-x"}"#);
    assert_eq!(bench.ask(&again).await.status, 500);
    assert_eq!(up.requests().len(), 4);
}

#[tokio::test]
async fn who_left_while_waiting_continues_its_count() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| {
        profile.sends = Some(4);
        profile.curve.base = SOON;
        profile.curve.cap = SOON;
    }))
    .await;
    let mut client = bench.client().await;
    client.send(&codex("u", BODY)).await.unwrap();
    bench.faults(1, 1).await;
    client.leave().await;
    assert!(bench.story(1).await.ends_with("wait, client_left"));
    let mut again = bench.client().await;
    again.send(&codex("u", REORDERED)).await.unwrap();
    bench.faults(2, 1).await;
    again.leave().await;
    assert!(bench.story(2).await.starts_with("opened after 1, send 1, "));
}

#[tokio::test]
async fn who_left_with_a_send_in_flight_has_one_that_may_have_run() {
    let up = Upstream::start(Script::of([Reply::silence(), Reply::reset_after_request()])).await.unwrap();
    let bench = Bench::to(&up).await;
    let mut client: Client = bench.client().await;
    client.send(&codex("u", BODY)).await.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    client.leave().await;
    assert_eq!(bench.story(1).await, "opened, send 1, client_left");
    // Its one grant is spent: the re-send itself is the second that may have run.
    let answer = bench.ask(&codex("u", REORDERED)).await;
    assert!(broken(answer.ending));
    assert_eq!(bench.story(2).await, "opened after 1, send 1, broken_stream maybe_ran, returned");
    assert_eq!(up.requests().len(), 2);
}

#[tokio::test]
async fn strict_refuses_what_its_client_sends_again() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(strict(&up.url())).await;
    assert_eq!(bench.ask(&sdk(0, BODY)).await.status, 503);
    assert_eq!(up.requests().len(), 3);
    let answer = bench.ask(&sdk(1, BODY)).await;
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.json()["error"]["code"], "sends_exhausted", "{}", answer.text());
    assert_eq!(bench.story(2).await, "opened after 3, gave_up");
    assert_eq!(up.requests().len(), 3);
}

#[tokio::test]
async fn a_storm_of_client_tries_costs_one_budget_and_one_send_each() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(4))).await;
    for tries in 0..30 {
        bench.ask(&sdk(tries, BODY)).await;
    }
    assert_eq!(up.requests().len(), 4 + 29);

    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(4))).await;
    let before = up.requests().len();
    for _ in 0..30 {
        bench.ask(&codex("u", BODY)).await;
    }
    assert_eq!(up.requests().len() - before, 4 + 29);
}

#[tokio::test]
async fn two_calls_at_once_with_the_same_body_are_two_calls() {
    let up = Upstream::start(Script::by(|_, number| match number {
        0..3 => failing(),
        _ => Reply::silence(),
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(BODY)).await.status, 500);
    let (mut one, mut two) = (bench.client().await, bench.client().await);
    one.send(&plain(BODY)).await.unwrap();
    assert!(up.wait_for_requests(4, SOON).await);
    two.send(&plain(BODY)).await.unwrap();
    assert!(up.wait_for_requests(5, SOON).await);
}
