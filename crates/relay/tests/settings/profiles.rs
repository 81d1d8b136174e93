//! What the numbers of a profile do on the wire.

use relay_sim::{Reply, Upstream};

use crate::program::{Home, QUICK, refusal, turn};

/// How many sends a call of this profile makes, where the service always answers like this.
async fn sends(config: &str, profile: &str, always: Reply) -> usize {
    let up = Upstream::start(always).await.unwrap();
    let home = Home::with_config(config);
    let relay = home.serve(&["--upstream", &up.url(), "--profile", profile]).await;
    relay.ask(&turn()).await;
    up.requests().len()
}

#[tokio::test]
async fn codex_retry_sends_again_3_5_and_3_times_by_fault() {
    let config = format!("[profile.codex-retry]\n{QUICK}");
    for (always, expected) in [
        (refusal(429, "rate_limit_exceeded"), 4),
        (refusal(503, "server_is_overloaded"), 6),
        (refusal(529, "overloaded_error"), 6),
        (Reply::status(500), 4),
        (Reply::status(502), 4),
        (refusal(429, "insufficient_quota"), 1),
    ] {
        let shown = format!("{always:?}");
        assert_eq!(sends(&config, "codex-retry", always).await, expected, "{shown}");
    }
}

#[tokio::test]
async fn codex_retry_hands_a_retry_after_beyond_its_120_s_back_untouched() {
    let up = Upstream::start(refusal(429, "rate_limit_exceeded").header("Retry-After", 121)).await.unwrap();
    let relay = Home::new().serve(&["--upstream", &up.url(), "--profile", "codex-retry"]).await;
    let answer = relay.ask(&turn()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("121")));
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn opencodex_sends_three_times_where_strict_sends_once() {
    let config = format!("[profile.opencodex]\n{QUICK}[profile.strict]\n{QUICK}");
    assert_eq!(sends(&config, "opencodex", Reply::status(500)).await, 3);
    assert_eq!(sends(&config, "strict", Reply::status(500)).await, 1);
    assert_eq!(sends(&config, "opencodex", refusal(503, "server_is_overloaded")).await, 3);
}

#[tokio::test]
async fn throttled_and_capacity_sends_are_counted_apart() {
    let config = format!("[profile.x]\nsends = 9\nthrottled_sends = 2\ncapacity_sends = 3\n{QUICK}");
    assert_eq!(sends(&config, "x", refusal(429, "rate_limit_exceeded")).await, 2);
    assert_eq!(sends(&config, "x", refusal(503, "server_is_overloaded")).await, 3);
    assert_eq!(sends(&config, "x", refusal(529, "overloaded_error")).await, 3);
}

/// The waits before the sends of one call to a port where nobody listens.
async fn waits_for_nobody(config: &str, profile: &str) -> Vec<f64> {
    let nobody = relay_sim::Refused::port().unwrap();
    let home = Home::with_config(config);
    let mut relay =
        home.serve(&["--upstream", &nobody.url(), "--profile", profile, "--log-format", "json"]).await;
    relay.ask(&turn()).await;
    relay.says("\"event\":\"done\"").await;
    let lines = relay.said();
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|line| line["event"] == "retry").map(|line| line["wait"].as_f64().unwrap()).collect()
}

#[tokio::test]
async fn the_curve_where_nothing_was_sent_is_set_by_its_own_keys() {
    let own =
        "[profile.x]\nsends = 4\njitter = \"0s\"\nnever_sent_base = \"20ms\"\nnever_sent_cap = \"30ms\"\n";
    assert_eq!(waits_for_nobody(own, "x").await, [0.02, 0.03, 0.03]);
    let opencodex = "[profile.opencodex]\nsends = 5\njitter = \"0s\"\n";
    assert_eq!(waits_for_nobody(opencodex, "opencodex").await, [0.15, 0.3, 0.6, 1.0]);
}
