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
