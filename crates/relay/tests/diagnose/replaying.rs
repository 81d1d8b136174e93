//! `steady-relay replay`: what the program recorded, decided again by the program.

use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::Value;

use crate::program::{Home, good, refusal, run};
use crate::scene::{always, list, turn};

/// Answers by the model that is asked, each of them until it is served.
async fn service() -> Upstream {
    let count = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeMap::new()));
    let script = Script::by(move |seen, _| {
        let model = seen.json()["model"].as_str().unwrap_or_default().to_owned();
        let mut count = count.lock().unwrap();
        let sends = count.entry(model.clone()).or_insert(0);
        *sends += 1;
        match (model.as_str(), *sends) {
            ("full", 1..=3) => refusal(503, "server_is_overloaded"),
            ("told", 1) => refusal(429, "rate_limit_exceeded").header("retry-after", "3"),
            ("far", _) => refusal(429, "rate_limit_exceeded").header("retry-after", "86400"),
            ("failing", 1) => refusal(500, "server_error"),
            ("ill", _) => refusal(500, "server_error"),
            ("lost", 1) => Reply::close_after_request(),
            ("key", _) => refusal(401, "invalid_api_key"),
            ("spent", _) => refusal(429, "insufficient_quota"),
            _ => good(),
        }
    });
    Upstream::start(script.for_path("/v1/models", list())).await.unwrap()
}

const MODELS: [&str; 9] = ["good", "full", "told", "far", "failing", "ill", "lost", "key", "spent"];

#[tokio::test]
async fn what_was_recorded_replays_the_same_and_other_settings_differ() {
    let up = service().await;
    let home = Home::new();
    let relay = home.serve(&["--upstream", &up.url(), "--clock-rate", "10"]).await;
    for model in MODELS {
        relay.ask(&turn(model)).await;
    }
    let ended = async {
        loop {
            let page = relay.ask(&Request::get("/__steady/calls")).await.json();
            let calls = page["calls"].as_array().unwrap().clone();
            if calls.len() == MODELS.len() && calls.iter().all(|call| call["closed"].is_object()) {
                return calls;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let calls = tokio::time::timeout(crate::child::SOON, ended).await.unwrap();
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    home.write("calls.jsonl", &lines);
    let (code, out, said) = home.run(&["replay", "calls.jsonl"]).await;
    assert_eq!((code, said.as_str()), (0, ""), "{out}\n{lines}");
    assert_eq!(out, "9 calls replayed with the present settings, 0 would differ\n");
    let (code, out, _) = home.run(&["replay", "calls.jsonl", "--json", "--profile", "strict"]).await;
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["v"], &json["calls"]), (1, &1.into(), &9.into()), "{out}");
    let would = |model: &str| {
        let mut all = json["differing"].as_array().unwrap().iter();
        all.find(|call| call["model"] == model).map(|call| call["would"].clone())
    };
    // Three sends are too few, what may have run is not sent again, and what failed goes back at once.
    assert_eq!(would("full").unwrap()["why"], "sends_spent", "{out}");
    assert_eq!(would("lost").unwrap()["why"], "may_have_run", "{out}");
    assert_eq!(would("failing").unwrap()["outcome"], "returned", "{out}");
    assert!(["good", "key", "spent"].into_iter().all(|model| would(model).is_none()), "{out}");
    // The same from the relay that runs.
    let port = relay.addr.port().to_string();
    let (code, out, said) = home.run(&["replay", "--since", "1h", "--port", &port]).await;
    assert_eq!(code, 0, "{out}{said}");
    assert!(out.starts_with("9 calls replayed"), "{out}");
    // And from a report of `diagnose`, for people and in Chinese.
    let (_, report, _) = home.run(&["diagnose", "--report", "-", "--port", &port]).await;
    home.write("report.md", &report);
    let mut command = home.program(&["replay", "report.md", "--profile", "strict"]);
    let (code, out, _) = run(command.env("LANG", "zh_CN.UTF-8")).await;
    assert!(code == 1 && out.starts_with("用当前设置重放了 "), "{out}");
}

#[tokio::test]
async fn what_is_no_file_of_calls_is_refused_with_a_hint() {
    let home = Home::new();
    home.write("odd.jsonl", "{\"call\": \"x\"}\n");
    home.write("empty.jsonl", "");
    for (line, words) in [
        (&["replay", "odd.jsonl"][..], "odd.jsonl: line 1 is no recorded call: "),
        (&["replay", "empty.jsonl"], "there is no recorded call in it"),
        (&["replay", "none.jsonl"], "it cannot be read: "),
        #[cfg(feature = "history")]
        (&["replay", "--since", "1h", "--port", "1"], "there is no history at "),
        (&["replay"], "which calls are to be replayed?\nhint: `--since 24h`"),
        (&["replay", "odd.jsonl", "--since", "1h"], "cannot be used with"),
    ] {
        let (code, out, said) = home.run(line).await;
        assert!(code == 2 && out.is_empty() && said.contains(words), "{line:?}: {said}");
    }
    // A history without a call of this time.
    let up = always(good()).await;
    let relay = home.serve(&["--upstream", &up.url()]).await;
    let port = relay.addr.port().to_string();
    let (code, _, said) = home.run(&["replay", "--since", "1h", "--port", &port]).await;
    assert!(code == 2 && said.contains("no call was recorded in this time\nhint: "), "{said}");
}
