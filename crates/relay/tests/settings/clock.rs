//! A relay whose time goes by faster, for tests of long waits.

use std::time::Duration;

use relay_sim::{Script, Upstream};
use steady_relay::clock::{Clock as _, SystemClock};

use crate::program::{Home, good, refusal, turn};

#[tokio::test]
async fn every_wait_of_the_relay_goes_by_as_fast_as_its_clock() {
    let busy = refusal(429, "rate_limit_exceeded").header("retry-after", 60);
    let up = Upstream::start(Script::of([busy, good()])).await.unwrap();
    let home = Home::with_config("[waiting]\nearly_commit = \"30s\"\n");
    let flags = ["--upstream", &up.url(), "--clock-rate", "100", "--log-format", "json"];
    let mut relay = home.serve(&flags).await;
    let asked = SystemClock.now();
    let answer = relay.ask(&turn()).await;
    let took = SystemClock.now().since(asked);
    assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(15), "{took:?}");
    // The stream was begun while the call waited.
    assert!(answer.text().starts_with(": "), "{}", answer.text());
    assert!(answer.text().contains("response.completed"), "{}", answer.text());
    relay.says("\"event\":\"done\"").await;
    let said = relay.said();
    let done = said.lines().find(|line| line.contains("\"event\":\"done\"")).unwrap();
    let done: serde_json::Value = serde_json::from_str(done).unwrap();
    assert!(done["waited"].as_f64().unwrap() >= 60.0, "{done}");
}

#[tokio::test]
async fn a_rate_is_a_whole_number_of_one_or_more() {
    for rate in ["0", "-1", "1.5", "fast"] {
        let (code, _, said) =
            Home::new().run(&["serve", "--port", "0", &format!("--clock-rate={rate}")]).await;
        let words = "error: --clock-rate: this is no rate\nhint: write a whole number, 1 or more\n";
        assert_eq!((code, said.as_str()), (2, words), "{rate}");
    }
}
