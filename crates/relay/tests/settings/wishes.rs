//! Headers of a single call.

use relay_sim::{Ending, Event, Reply, Upstream};
use serde_json::json;

use crate::program::{Home, QUICK, refusal, turn};

#[tokio::test]
async fn a_profile_and_a_patience_are_taken_and_not_forwarded() {
    let up = Upstream::start(refusal(503, "server_is_overloaded")).await.unwrap();
    let home = Home::with_config(&format!("[profile.interactive]\n{QUICK}[profile.strict]\n{QUICK}"));
    let relay = home.serve(&["--upstream", &up.url()]).await;
    let mut before = 0;
    for (name, value, expected) in [
        ("x-other", "1", 8),
        ("X-Steady-Profile", "strict", 3),
        // The client states ten minutes; no wait is shorter than the 10 ms of the profile.
        ("X-Steady-Patience", "5ms", 1),
        ("X-Steady-Patience", "25ms", 3),
    ] {
        let body = json!({"model": "gpt-x", "stream": true, "input": format!("{name} {value}")});
        let request = relay_sim::Request::post("/v1/responses").json(body).header(name, value);
        relay.ask(&request.header("x-stainless-timeout", 600).header("x-stainless-lang", "js")).await;
        assert_eq!(up.requests().len() - before, expected, "{name}: {value}");
        before = up.requests().len();
    }
    // None goes on but the relay's own mark.
    let ours = |name: &str| name.to_ascii_lowercase().starts_with("x-steady") && name != "x-steady-hop";
    assert!(up.requests().iter().all(|seen| !seen.headers.iter().any(|(name, _)| ours(name))));
}

#[tokio::test]
async fn off_passes_everything_through_as_it_is() {
    let refused = refusal(503, "server_is_overloaded").header("x-id", 7);
    let unfinished = Reply::sse([Event::named("response.created", json!({"type": "response.created"}))]);
    let fatal = json!({"type": "response.failed", "response": {"error": {"code": "server_is_overloaded"}}});
    let fails = Reply::sse([Event::named("response.failed", fatal)]);
    let up = Upstream::start(relay_sim::Script::of([refused, unfinished, fails])).await.unwrap();
    let relay = Home::new().serve(&["--upstream", &up.url()]).await;
    let off = turn().header("X-Steady", "off");
    let answer = relay.ask(&off).await;
    assert_eq!(
        (answer.status, answer.header("x-id"), answer.header("x-should-retry")),
        (503, Some("7"), None)
    );
    assert_eq!(answer.json()["error"]["code"], "server_is_overloaded");
    // Two streams that the relay would not let pass: one without its last word, one that is a refusal.
    for event in ["response.created", "response.failed"] {
        let answer = relay.ask(&off).await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{}", answer.text());
        assert_eq!(answer.events()[0].0, event);
    }
    assert_eq!(up.requests().len(), 3);
    assert_eq!(up.requests()[0].header("x-steady"), None);
    // A connection that is cut is a connection that is cut.
    let up = Upstream::start(Reply::raw("").fin_without_terminator()).await.unwrap();
    let relay = Home::new().serve(&["--upstream", &up.url()]).await;
    let answer = relay.ask(&off).await;
    assert_eq!((answer.status, answer.ending), (0, Ending::Truncated), "{}", answer.text());
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_with_the_reason() {
    let up = Upstream::start(Reply::status(200)).await.unwrap();
    let relay = Home::new().serve(&["--upstream", &up.url()]).await;
    for (name, value, what) in [
        ("x-steady-profile", "bach", "names no profile\\nhint: there are auto, batch"),
        ("x-steady-patience", "soon", "does not begin with a number"),
        ("x-steady", "maybe", "can only say `off`"),
        ("x-steady-pateince", "1s", "is none that this relay knows"),
    ] {
        let answer = relay.ask(&turn().header(name, value)).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(what), "{}", answer.text());
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    assert_eq!(up.requests().len(), 0);
}

#[tokio::test]
async fn a_report_tells_how_the_call_went_and_whose_the_answer_is() {
    let up = Upstream::start(relay_sim::Script::of([
        refusal(503, "server_is_overloaded"),
        Reply::status(404).json(json!({"error": {"message": "none"}})),
        refusal(503, "server_is_overloaded"),
    ]))
    .await
    .unwrap();
    let home = Home::with_config(&format!("[profile.interactive]\n{QUICK}[profile.strict]\n{QUICK}"));
    let relay = home.serve(&["--upstream", &up.url()]).await;
    let told = async |request: &relay_sim::Request| {
        let answer = relay.ask(&request.clone().header("X-Steady-Report", "call")).await;
        let report = answer.header("x-steady-report").unwrap_or_default().to_owned();
        serde_json::from_str::<serde_json::Value>(&report).unwrap_or_else(|_| panic!("{report}"))
    };
    // It was sent again, and the service's own answer came.
    let passed = told(&turn()).await;
    assert_eq!(
        (&passed["v"], &passed["outcome"], &passed["by"]),
        (&1.into(), &"passed".into(), &"service".into())
    );
    let sends = passed["call"]["sends"].as_array().unwrap();
    assert_eq!((&sends[0]["status"], &sends[0]["failed"]["fault"]), (&503.into(), &"at_capacity".into()));
    assert_eq!((sends.len(), &sends[1]["status"]), (2, &404.into()));
    // One that is given up; what may be sent is counted.
    let strict = turn().header("x-steady-profile", "strict");
    let gave_up = told(&strict).await;
    assert_eq!((&gave_up["outcome"], &gave_up["why"]), (&"gave_up".into(), &"sends_spent".into()));
    assert_eq!(gave_up["call"]["sends"].as_array().unwrap().len(), 3);
    // One that was no call.
    let turned_away = told(&turn().header("x-steady-profile", "bach")).await;
    assert_eq!(
        turned_away,
        json!({"v": 1, "outcome": "turned_away", "why": "bad_steady_header", "by": "relay"})
    );
    // Who does not ask is not told, and no service hears of it.
    assert_eq!(relay.ask(&turn()).await.header("x-steady-report"), None);
    assert!(up.requests().iter().all(|seen| seen.header("x-steady-report").is_none()));
}

#[tokio::test]
async fn a_limit_that_a_client_states_for_a_call_bounds_its_waits_and_not_its_sends() {
    let up = Upstream::start(relay_sim::Script::of([
        Reply::status(200).json(json!({"ok": 1})).after(std::time::Duration::from_millis(700)),
        refusal(503, "server_is_overloaded").header("retry-after", 20),
    ]))
    .await
    .unwrap();
    let relay = Home::new().serve(&["--upstream", &up.url()]).await;
    // A send may take longer than the margin that an answer of ours would need.
    let limited = relay_sim::Request::get("/v1/models").header("x-steady-limit", "1s");
    assert_eq!(relay.ask(&limited).await.status, 200);
    // Twenty seconds would outlast it, so the service's own word comes at once.
    let limited = relay_sim::Request::get("/v1/models").header("x-steady-limit", "5s");
    let answer = relay.ask(&limited).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("20")));
}
