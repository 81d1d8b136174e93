//! How many sends, when, and for how long.

use std::time::Duration;

use relay_core::Profile;
use relay_core::client::Kind;
use relay_sim::fixtures::{anthropic, chat, codex as wire};
use relay_sim::{Answer, Ending, Reply, Request, Script, Upstream};
use tokio::time::Instant;

use crate::support::{
    Bench, CONTINUED, SOON, TURN, bounded, claude, codex, invents_no_time, ms, plain, sdk, strict, towards,
};

fn served() -> Reply {
    Reply::sse(wire::turn("hi"))
}

/// The time from each refusal to the send after it.
fn gaps(up: &Upstream) -> Vec<Duration> {
    let seen = up.requests();
    seen.windows(2).map(|pair| pair[1].at - pair[0].answered_at.unwrap()).collect()
}

async fn ask_within(up: &Upstream, request: &Request, change: impl FnOnce(&mut Profile)) -> (Bench, Answer) {
    let bench = Bench::with(bounded(&up.url(), change)).await;
    let answer = bench.ask(request).await;
    (bench, answer)
}

#[tokio::test]
async fn never_early() {
    let busy = |status| Reply::status(status).json(wire::overloaded_body());
    let in_words = |words: &str| {
        let body = format!(r#"{{"error":{{"code":"rate_limit_exceeded","message":"{words}"}}}}"#);
        Reply::status(429).json(body)
    };
    let in_stream = Reply::sse([
        wire::created(),
        wire::failed("rate_limit_exceeded", "Rate limit reached. Please try again in 180ms."),
    ]);
    let rows = [
        (busy(503).header("Retry-After", "0.2"), 200),
        (busy(429).header("retry-after-ms", "170"), 170),
        (busy(429).header("Retry-After", "1").header("retry-after-ms", "150"), 150),
        (in_words("Please try again in 0.16s."), 160),
        (in_stream, 180),
        (
            busy(429).header("x-ratelimit-remaining-tokens", "0").header("x-ratelimit-reset-tokens", "190ms"),
            190,
        ),
        (anthropic::overloaded_529(), 20),
        // What says nothing means the profile's own floor.
        (busy(503).header("Retry-After", "soon"), 30),
        (busy(503).header("Retry-After", "0"), 30),
        (busy(503).header("Retry-After", "-5"), 30),
        (busy(503).header("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"), 30),
    ];
    for (reply, least) in rows {
        let shown = format!("{reply:?}");
        let up = Upstream::start(Script::of([reply.clone(), reply, served()])).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{shown}");
        for gap in gaps(&up) {
            assert!(gap >= ms(least), "sent after {gap:?}: {shown}");
            assert!(gap < ms(least) + ms(2000), "sent only after {gap:?}: {shown}");
        }
    }
}

#[tokio::test]
async fn waits_grow_along_the_curve_up_to_its_cap() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let (bench, _) = ask_within(&up, &plain(TURN), |profile| profile.sends = Some(5)).await;
    assert_eq!(bench.waits(1), [20, 40, 60, 60].map(ms));
    for (gap, wait) in gaps(&up).iter().zip(bench.waits(1)) {
        assert!(*gap >= wait, "{gap:?} is less than {wait:?}");
    }
}

#[tokio::test]
async fn never_many() {
    let refusals = [
        wire::overloaded_503(),
        Reply::sse(wire::overloaded_stream()),
        Reply::status(429).json(r#"{"error":{"code":"rate_limit_exceeded"}}"#),
        Reply::status(200).json(wire::overloaded_body()),
        Reply::status(529).json("{}"),
    ];
    for reply in refusals {
        for sends in [1, 2, 4] {
            for request in [plain(TURN), sdk(0, TURN), codex("t", TURN)] {
                let up = Upstream::start(reply.clone()).await.unwrap();
                let (bench, answer) = ask_within(&up, &request, |profile| profile.sends = Some(sends)).await;
                assert_eq!(answer.ending, Ending::Complete);
                assert_eq!(up.requests().len(), sends as usize, "{reply:?}");
                assert!(bench.story(1).await.ends_with("refused, gave_up"), "{}", bench.story(1).await);
                invents_no_time(&answer);
            }
        }
    }
}

#[tokio::test]
async fn no_send_is_allowed_where_the_budget_is_zero() {
    let up = Upstream::start(served()).await.unwrap();
    let (bench, answer) = ask_within(&up, &plain(TURN), |profile| profile.sends = Some(0)).await;
    assert_eq!(answer.json()["error"]["code"], "sends_exhausted");
    assert_eq!((up.requests().len(), bench.story(1).await.as_str()), (0, "opened, gave_up"));
}

#[tokio::test]
async fn the_last_answer_goes_back_as_it_came_and_says_that_it_is_the_last() {
    let body = chat::error("server_error", "all GPUs are busy");
    let reply = Reply::status(503).reason("Very Busy").header("X-Request-Id", "r").json(&body);
    let up = Upstream::start(reply).await.unwrap();
    let (_bench, answer) = ask_within(&up, &sdk(0, TURN), |profile| profile.sends = Some(2)).await;
    assert_eq!((answer.status, answer.reason.as_str(), answer.text()), (503, "Very Busy", body));
    assert_eq!((answer.header("x-request-id"), answer.header("x-should-retry")), (Some("r"), Some("false")));
}

#[tokio::test]
async fn a_success_that_carries_an_error_gets_a_status_that_says_so() {
    let body = wire::overloaded_body();
    let up = Upstream::start(Reply::status(200).reason("All Right").json(&body)).await.unwrap();
    let (_bench, answer) = ask_within(&up, &sdk(0, TURN), |profile| profile.sends = Some(2)).await;
    assert_eq!((answer.status, answer.reason.as_str(), answer.text()), (503, "Service Unavailable", body));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn claude_code_is_told_of_an_overload_in_a_stream_by_status() {
    let up = Upstream::start(Reply::sse([anthropic::message_start(), anthropic::overloaded_event()]))
        .await
        .unwrap();
    let (_bench, answer) = ask_within(&up, &claude(), |profile| profile.sends = Some(2)).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (529, Some("false")));
    assert_eq!(answer.json()["error"]["type"], "overloaded_error");
    assert_eq!(answer.json()["error"]["message"], "Overloaded");
    invents_no_time(&answer);
}

#[tokio::test]
async fn never_forever() {
    for request in [plain(TURN), sdk(0, TURN), codex("t", TURN), claude()] {
        let up = Upstream::start(Reply::status(503).json("{}")).await.unwrap();
        let began = Instant::now();
        let (bench, answer) = ask_within(&up, &request, |profile| {
            profile.sends = None;
            profile.patience = ms(300);
            profile.client_limit = relay_core::ClientLimit::Ignored;
        })
        .await;
        let took = began.elapsed();
        assert!(took < ms(1500), "{took:?}");
        assert_eq!(answer.ending, Ending::Complete);
        let waited: Duration = bench.waits(1).iter().sum();
        assert!(waited <= ms(300), "{waited:?}");
        // 20 + 40 + 60 + 60 + 60 + 60: one more would be too many.
        assert_eq!(up.requests().len(), 7);
        assert!(bench.story(1).await.ends_with("gave_up"));
        invents_no_time(&answer);
    }
}

#[tokio::test]
async fn a_time_beyond_patience_goes_back_at_once_and_unchanged() {
    let reply =
        Reply::status(429).header("Retry-After", "3600").json(r#"{"error":{"code":"rate_limit_exceeded"}}"#);
    let up = Upstream::start(reply.clone()).await.unwrap();
    let began = Instant::now();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&sdk(0, TURN)).await;
    assert!(began.elapsed() < ms(1500));
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("3600")));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.text(), r#"{"error":{"code":"rate_limit_exceeded"}}"#);
    assert_eq!((up.requests().len(), bench.waits(1).len()), (1, 0));
    // A Retry-After would arm Codex again: it is told in words, once.
    let answer = bench.ask(&codex("t", TURN)).await;
    assert_eq!((answer.status, answer.header("retry-after")), (400, None));
    assert!(answer.text().contains("the service asks for a wait of 3600 s"), "{}", answer.text());
    assert_eq!(up.requests().len(), 2);
}

#[tokio::test]
async fn a_limit_that_the_client_states_takes_the_place_of_patience() {
    let up = Upstream::start(Reply::status(503).json("{}")).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| {
        // Sends at 0, 170 and 340 ms: none is under way at the limit.
        (profile.sends, profile.curve.base, profile.curve.cap) = (None, ms(170), ms(170));
    }))
    .await;
    for header in ["x-stainless-timeout", "x-stainless-read-timeout"] {
        let began = Instant::now();
        let answer = bench.ask(&sdk(0, TURN).header(header, "1")).await;
        let took = began.elapsed();
        assert_eq!((answer.status, answer.header("x-should-retry")), (503, Some("false")));
        // Half a second is the margin for the answer to arrive.
        assert!(took < ms(1000) && took > ms(250), "{header}: {took:?}");
    }
    assert_eq!(up.requests().len(), 6);
}

#[tokio::test]
async fn no_answer_within_the_limit_is_told_and_the_send_ended() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.first_byte = Some(ms(80));
    let bench = Bench::with(config).await;
    let answer = bench.ask(&sdk(0, TURN)).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (429, Some("false")));
    assert_eq!(answer.json()["error"]["code"], "upstream_no_response");
    assert_eq!(bench.story(1).await, "opened, send 1, no_answer no_answer, refused");
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
    assert_eq!(up.requests().len(), 1);
    invents_no_time(&answer);
}

/// It may bear more than is known of it, or have slept with the machine: a send that ends as it begins helps nobody.
#[tokio::test]
async fn a_client_that_is_still_there_after_its_limit_is_not_answered_for_it() {
    // The refusal in the stream is one only as long as the beginning of an answer is still held.
    let refused = Reply::sse([wire::created(), wire::failed("server_is_overloaded", "no")]);
    let up = Upstream::start(Script::of([refused.clone(), refused, served().after(ms(100))])).await.unwrap();
    let mut config = bounded(&up.url(), |profile| {
        profile.client_limit = relay_core::ClientLimit::Ignored;
        (profile.curve.base, profile.curve.cap) = (ms(150), ms(150));
    });
    config.clients.entry(Kind::Stainless).or_default().limit = Some(ms(100));
    let bench = Bench::with(config).await;
    let answer = bench.ask(&sdk(0, TURN)).await;
    assert_eq!((answer.status, up.requests().len()), (200, 3), "{}", bench.story(1).await);
}

#[tokio::test]
async fn of_a_client_without_a_known_limit_an_answer_may_take_so_long() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let mut config = towards(&up.url());
    config.timeouts.first_byte_unknown = ms(80);
    let bench = Bench::with(config).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!(answer.json()["error"]["code"], "upstream_no_response");
    // Codex waits for as long as it takes.
    let mut codex_waits = bench.client().await;
    codex_waits.send(&codex("t", TURN)).await.unwrap();
    assert!(up.wait_for_requests(2, SOON).await);
    tokio::time::sleep(ms(240)).await;
    assert_eq!(bench.recorder().story(2), "opened, send 1");
}

#[tokio::test]
async fn a_failure_that_is_no_request_for_a_model_is_not_waited_for() {
    let rows = [
        (Request::post("/v1/files").json("{}"), 503, 1),
        (Request::post("/v1/responses/compact").json(TURN), 500, 1),
        (Request::post("/v1/batches").json("{}"), 500, 1),
        (Request::new("PUT", "/v1/thing").json("{}"), 500, 1),
        // What says that it was not run may be sent again, whatever it is.
        (Request::post("/v1/files").json("{}"), 429, 8),
        (Request::get("/v1/models"), 503, 8),
        (Request::post("/v1/embeddings").json("{}"), 500, 3),
        (plain(CONTINUED), 503, 8),
    ];
    for (request, status, sends) in rows {
        let shown = format!("{request:?}");
        let up = Upstream::start(Reply::status(status).json("{}")).await.unwrap();
        let bench = Bench::to(&up).await;
        assert_eq!(bench.ask(&request).await.status, status, "{shown}");
        assert_eq!(up.requests().len(), sends, "{shown}");
    }
}

#[tokio::test]
async fn strict_makes_three_sends_and_tells_the_rest() {
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let bench = Bench::with(strict(&up.url())).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 503);
    assert_eq!(up.requests().len(), 3);
    let up = Upstream::start(Reply::status(500).json("{}")).await.unwrap();
    let bench = Bench::with(strict(&up.url())).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 500);
    assert_eq!(up.requests().len(), 1);
}
