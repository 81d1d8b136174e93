//! What a failed send proves, and what follows from it.

use relay_sim::fixtures::codex as wire;
use relay_sim::{Answer, Ending, Refused, Reply, Request, Script, Upstream};

use crate::support::{Bench, CONTINUED, SOON, TURN, fast, plain, sdk, strict, towards};

fn served() -> Reply {
    Reply::sse(wire::turn("hi"))
}

fn is_cut(answer: &Answer) -> bool {
    answer.status == 0 && matches!(answer.ending, Ending::Truncated | Ending::Reset)
}

#[tokio::test]
async fn never_twice() {
    for broken in [Reply::reset_after_request(), Reply::reset_before_reading(), Reply::close_after_request()]
    {
        let shown = format!("{broken:?}");
        let up = Upstream::start(broken).await.unwrap();
        let bench = Bench::to(&up).await;
        // Self-contained: one grant, counted; then the client's own policy decides.
        let answer = bench.ask(&plain(TURN)).await;
        assert!(is_cut(&answer), "{answer:?} {shown}");
        assert_eq!(
            bench.story(1).await,
            "opened, send 1, broken_stream maybe_ran, grant, wait, send 2, broken_stream maybe_ran, returned"
        );
        assert_eq!((up.requests().len(), bench.totals().maybe_billed_twice), (2, 1));
        // Not self-contained: not once.
        assert!(is_cut(&bench.ask(&plain(CONTINUED)).await));
        assert_eq!(bench.story(2).await, "opened, send 1, broken_stream maybe_ran, returned");
        // A POST that nobody knows: not once.
        assert!(is_cut(&bench.ask(&Request::post("/v1/files").json(TURN)).await));
        assert_eq!((up.requests().len(), bench.totals().maybe_billed_twice), (4, 1));
        // Who is told how it went beside the answer gets one.
        let answer = bench.ask(&plain(CONTINUED).header("x-steady-report", "call")).await;
        let report = answer.header("x-steady-report").unwrap_or_default();
        assert_eq!((answer.status, answer.header("x-should-retry")), (502, Some("false")));
        assert!(report.contains(r#""outcome":"returned""#) && report.contains(r#""by":"relay""#), "{report}");
        // Strict: not once, and the client is told.
        let bench = Bench::with(strict(&up.url())).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.status, answer.header("x-should-retry")), (429, Some("false")));
        assert_eq!(up.requests().len(), 6);
    }
}

#[tokio::test]
async fn strict_names_what_it_does_not_send_again() {
    for (broken, code) in [
        (Reply::reset_after_request(), "upstream_reset_replay_refused"),
        (Reply::close_after_request(), "upstream_closed_before_response"),
        (Reply::status(504).text("gateway timeout"), "upstream_error_replay_refused"),
    ] {
        let up = Upstream::start(broken).await.unwrap();
        let bench = Bench::with(strict(&up.url())).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!(answer.json()["error"]["code"], code, "{}", answer.text());
        assert!(answer.text().contains("it was not sent again"), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_send_that_may_have_run_is_sent_again_once_and_counted() {
    let up = Upstream::start(Script::of([Reply::reset_after_request(), served()])).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    assert_eq!(
        bench.story(1).await,
        "opened, send 1, broken_stream maybe_ran, grant, wait, send 2, 200, committed, served"
    );
    let page = bench.page().await;
    assert_eq!(
        (&page["totals"]["maybe_billed_twice"], &page["totals"]["calls_saved"]),
        (&1.into(), &1.into())
    );
}

#[tokio::test]
async fn a_stream_that_breaks_before_output_may_have_run() {
    let replies = [
        Reply::sse([wire::created()]).fin_without_terminator(),
        Reply::sse([wire::created()]),
        Reply::sse([]),
        Reply::status(200).header("content-type", "application/json").bytes("").length(0),
        Reply::status(200)
            .header("content-type", "application/json")
            .bytes("{")
            .length(9)
            .fin_without_terminator(),
        Reply::raw("HTTP/1.1 2").close(),
        Reply::raw("what is this?\r\n\r\n").close(),
        // Nobody asked it to.
        Reply::raw("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").close(),
        Reply::status(504).text("gateway timeout"),
        Reply::status(524).text("timeout"),
    ];
    for reply in replies {
        let shown = format!("{reply:?}");
        let up = Upstream::start(Script::of([reply, served()])).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{shown}");
        assert_eq!(bench.totals().maybe_billed_twice, 1, "{} {shown}", bench.story(1).await);
        assert_eq!(up.requests().len(), 2);
    }
}

#[tokio::test]
async fn what_was_never_sent_is_sent_until_the_service_is_up() {
    let rows = [
        plain(TURN),
        plain(CONTINUED),
        Request::post("/v1/files").json("{}"),
        Request::new("DELETE", "/v1/x"),
    ];
    for request in rows {
        let closed = Refused::port().unwrap();
        let bench = Bench::with(towards(&closed.url())).await;
        let mut client = bench.client().await;
        client.send(&request).await.unwrap();
        bench.faults(1, 2).await;
        let up = closed.open(served()).unwrap();
        assert_eq!(client.read().await.status, 200);
        assert_eq!(up.requests().len(), 1);
        let story = bench.story(1).await;
        assert!(story.starts_with("opened, send 1, never_sent never_sent, wait, send 2"), "{story}");
        assert_eq!(bench.totals().maybe_billed_twice, 0);
    }
}

#[tokio::test]
async fn a_service_that_stays_away_is_told_with_the_sends_made() {
    let closed = Refused::port().unwrap();
    let bench = Bench::with(strict(&closed.url())).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (502, Some("false")));
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("steady-relay: gave up after 3 sends in "), "{message}");
    assert_eq!(answer.json()["error"]["code"], "sends_exhausted");
}

#[tokio::test]
async fn a_connection_that_went_stale_costs_nothing() {
    let up = Upstream::start(Script::of([Reply::status(200).json("{}").close_unannounced(), served()]))
        .await
        .unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    assert_eq!(bench.ask(&plain(CONTINUED)).await.status, 200);
    assert_eq!((up.requests().len(), bench.totals().maybe_billed_twice), (2, 0));
}

#[tokio::test]
async fn a_fin_on_a_reused_connection_after_the_request_was_written_may_have_run() {
    let script = Script::of([Reply::status(200).json("{}"), Reply::close_after_request(), served()]);
    let up = Upstream::start(script).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    let connections: Vec<u64> = up.requests().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0, 1], "reused, then a fresh one for the resend");
    assert_eq!(bench.totals().maybe_billed_twice, 1);
}

#[tokio::test]
async fn after_a_failure_of_the_connection_the_resend_takes_a_fresh_one() {
    let idle = relay_sim::Signal::new();
    let hold = idle.clone();
    let up = Upstream::start(Script::by(move |seen, _| match (seen.path(), seen.connection) {
        ("/v1/models", _) => Reply::status(200).json("{}").when(hold.clone()),
        (_, 0 | 1) => Reply::reset_after_request(),
        _ => served(),
    }))
    .await
    .unwrap();
    let bench = Bench::to(&up).await;
    // Two connections lie in the pool, and the service has forgotten both.
    let (mut one, mut two) = (bench.client().await, bench.client().await);
    one.send(&Request::get("/v1/models")).await.unwrap();
    two.send(&Request::get("/v1/models")).await.unwrap();
    assert!(up.wait_for_requests(2, SOON).await);
    idle.release();
    assert_eq!((one.read().await.status, two.read().await.status), (200, 200));
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    let last: Vec<u64> = up.requests().iter().skip(2).map(|seen| seen.connection).collect();
    assert_eq!(last.len(), 2, "the second connection in the pool was not tried: {last:?}");
    assert_eq!(last[1], 2);
}

#[tokio::test]
async fn failures_of_the_service_are_sent_again_twice_and_then_go_back_as_they_were() {
    let body = r#"{"error":{"message":"The server had an error","code":null}}"#;
    for status in [500, 502, 520] {
        let up = Upstream::start(Reply::status(status).header("X-Request-Id", "r").json(body)).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.status, answer.text().as_str()), (status, body));
        assert_eq!((answer.header("x-request-id"), answer.header("x-should-retry")), (Some("r"), None));
        assert_eq!(up.requests().len(), 3);
        let story = bench.story(1).await;
        assert!(story.ends_with(&format!("send 3, {status}, server_failed failed, returned")), "{story}");
    }
}

#[tokio::test]
async fn the_services_own_word_on_retries_is_obeyed() {
    let never = Reply::status(503).header("x-should-retry", "false").json(wire::overloaded_body());
    let up = Upstream::start(never).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&sdk(0, TURN)).await;
    assert_eq!((answer.status, answer.text()), (503, wire::overloaded_body()));
    assert_eq!(up.requests().len(), 1);

    let again = Reply::status(409).header("x-should-retry", "true").json("{}");
    let up = Upstream::start(Script::of([again, served()])).await.unwrap();
    let bench = Bench::to(&up).await;
    assert_eq!(bench.ask(&sdk(0, TURN)).await.status, 200);
}

#[tokio::test]
async fn a_certificate_that_is_not_accepted_is_told_and_not_tried_again() {
    let (up, pem) = Upstream::start_tls(served()).await.unwrap();
    let bench = Bench::with(towards(&up.url())).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (502, Some("false")));
    assert_eq!(answer.json()["error"]["code"], "upstream_certificate_refused", "{}", answer.text());
    assert!(answer.text().contains("SSL_CERT_FILE"));
    assert_eq!((up.connections(), up.requests().len()), (1, 0));

    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("wire-evidence-ca.pem");
    std::fs::write(&file, pem).unwrap();
    let mut config = towards(&up.url());
    config.ca_files = vec![file];
    let bench = Bench::with(config).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.ending), (200, Ending::Complete));
}

#[tokio::test]
async fn a_name_that_does_not_exist_was_never_sent() {
    let mut config = strict("http://relay-test.invalid");
    config.timeouts.connect = fast().timeouts.connect;
    let bench = Bench::with(config).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &"sends_exhausted".into()));
    assert!(bench.story(1).await.contains("never_sent never_sent, wait"));
}

#[tokio::test]
async fn a_page_is_no_answer_of_a_model() {
    let page = "<!DOCTYPE html><title>Sign in</title>";
    let up = Upstream::start(Reply::status(200).html(page)).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.status, answer.text().as_str(), up.requests().len()), (200, page, 3));
    assert!(bench.story(1).await.ends_with("server_failed failed, returned"));
    // Asked for by whoever wants a page, it is what it is.
    assert_eq!(bench.ask(&Request::get("/v1/page")).await.text(), page);
    assert_eq!(up.requests().len(), 4);
    // A challenge is for a browser; no wait heals it.
    let up = Upstream::start(relay_sim::fixtures::html_challenge()).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!(
        (answer.status, answer.header("cf-mitigated"), up.requests().len()),
        (403, Some("challenge"), 1)
    );
    assert_eq!(bench.story(1).await, "opened, send 1, 403, challenge final, passed");
}
