//! The files of the page, and what it reads.

use std::io::Read as _;

use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::Value;

use crate::program::{CONFIG, Home, QUICK, Serving, good, refusal, serve, turn};
use crate::soon::soon;

#[tokio::test]
async fn files_come_packed_and_only_once() {
    let home = Home::new();
    let relay = home.serve(&["--upstream", "http://127.0.0.1:9"]).await;
    for (path, kind) in [
        ("/__steady/", "text/html; charset=utf-8"),
        ("/__steady/app.js", "text/javascript; charset=utf-8"),
        ("/__steady/app.css", "text/css; charset=utf-8"),
        ("/__steady/icon.svg", "image/svg+xml"),
    ] {
        let plain = relay.ask(&Request::get(path)).await;
        let packed = relay.ask(&Request::get(path).header("Accept-Encoding", "gzip, br")).await;
        assert_eq!((plain.header("content-type"), packed.header("content-type")), (Some(kind), Some(kind)));
        assert_eq!(
            (plain.header("content-encoding"), plain.header("cache-control")),
            (None, Some("no-cache"))
        );
        assert_eq!(
            (packed.header("content-encoding"), packed.header("vary")),
            (Some("gzip"), Some("accept-encoding"))
        );
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.body, "{path}");
        assert!(packed.body.len() < plain.body.len(), "{path}");
        for answer in [&plain, &packed] {
            let coding = answer.header("content-encoding").unwrap_or("identity");
            let again = Request::get(path).header("Accept-Encoding", coding);
            let again = relay.ask(&again.header("If-None-Match", answer.header("etag").unwrap())).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        }
        let head = relay.ask(&Request::new("HEAD", path)).await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
    }
    let moved = relay.ask(&Request::get("/__steady")).await;
    assert_eq!((moved.status, moved.header("location")), (308, Some("__steady/")));
    assert!(moved.text().starts_with("steady-relay: "), "what other programs know a relay by");
    assert!(relay.said().contains("/__steady/\n"), "the start tells where to look: {}", relay.said());
}

/// A relay that refuses the first send of every call, and what one call leaves behind.
async fn after_a_saved_call(home: &Home) -> (Serving, Upstream) {
    let script =
        Script::by(|_, nth| if nth % 2 == 0 { refusal(503, "server_is_overloaded") } else { good() });
    let up = Upstream::start(script).await.unwrap();
    let relay = home.serve(&["--upstream", &up.url()]).await;
    assert_eq!(relay.ask(&turn()).await.status, 200);
    (relay, up)
}

/// Asks until the answer is as wished: records are put together on another thread.
async fn until(relay: &Serving, path: &str, wish: impl Fn(&Value) -> bool) -> Value {
    soon(&format!("{path} did not become as wished"), async || {
        let page = relay.ask(&Request::get(path)).await.json();
        wish(&page).then_some(page)
    })
    .await
}

#[tokio::test]
async fn charts_add_up_what_is_in_the_file_and_else_what_is_in_memory() {
    for enabled in [true, false] {
        let home =
            Home::with_config(&format!("[history]\nenabled = {enabled}\n\n[profile.interactive]\n{QUICK}"));
        let (relay, _up) = after_a_saved_call(&home).await;
        for span in ["hour", "day", "week"] {
            let sum = |page: &Value, key: &str| -> u64 {
                page[key].as_array().into_iter().flatten().filter_map(Value::as_u64).sum()
            };
            let path = format!("/__steady/charts?span={span}");
            let page = until(&relay, &path, |page| sum(page, "served") == 1).await;
            let sums = ["calls", "served", "saved", "failed", "refusals", "sends"].map(|key| sum(&page, key));
            assert_eq!(sums, [1, 1, 1, 0, 1, 2], "{span} {enabled}");
            assert!(sum(&page, "waited") >= 10, "{page}");
        }
        let page =
            until(&relay, "/__steady/heat?offset=60", |page| page["models"][0]["model"] == "gpt-x").await;
        let short = page["models"][0]["short"].as_array().unwrap();
        assert_eq!((short.len(), short.iter().filter(|count| **count == 1).count()), (168, 1));
        for wrong in ["charts?span=year", "heat?offset=x", "log?since=x"] {
            let answer = relay.ask(&Request::get(&format!("/__steady/{wrong}"))).await;
            assert_eq!(answer.status, 400, "{wrong}");
        }
    }
}

#[tokio::test]
async fn settings_are_shown_with_their_origin_and_without_secrets() {
    let home = Home::new();
    let config = "[relay]\nallowed_origins = []\n\n[upstream.mine]\nurl = \"http://127.0.0.1:9\"\napi_key = \"sk-canary-1\"\n\
                  headers = { \"x-tenant\" = \"canary-2\" }\n";
    home.write(CONFIG, config);
    let mut program = home.program(&["--upstream", "mine", "--port", "0"]);
    let relay = serve(program.env("STEADY_RELAY_TOKEN", "canary-3-canary-3")).await;
    let path = "/~canary-3-canary-3/__steady/config";
    let answer = relay.ask(&Request::get(path)).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains("canary"), "{}", answer.text());
    let page = answer.json();
    let of = |section: &str, key: &str| {
        let keys = page["keys"].as_array().unwrap();
        keys.iter().find(|it| it["section"] == section && it["key"] == key).unwrap().clone()
    };
    assert_eq!(of("[relay]", "token")["origin"], "STEADY_RELAY_TOKEN");
    assert_eq!(of("[upstream.mine]", "api_key")["value"], "\"…\"");
    assert_eq!(of("[limits]", "connections")["origin"], "default");
    assert!(of("[upstream.mine]", "url")["origin"].as_str().unwrap().contains("config.toml:"));
    // A change is shown once it holds.
    home.write(CONFIG, config.replace("[]", "[\"https://app.example\"]"));
    let shown = |page: &Value| {
        let keys = page["keys"].as_array().unwrap();
        keys.iter().any(|it| it["key"] == "allowed_origins" && it["value"] == "[\"https://app.example\"]")
    };
    until(&relay, path, shown).await;
}

#[tokio::test]
async fn the_log_is_shown_from_any_line_on() {
    let home = Home::with_config(&format!("[profile.interactive]\n{QUICK}"));
    let (relay, _up) = after_a_saved_call(&home).await;
    let text = |page: &Value| {
        page["lines"].as_array().unwrap().iter().map(|line| line["text"].to_string()).collect::<String>()
    };
    let page = until(&relay, "/__steady/log", |page| text(page).contains("[done] outcome=served")).await;
    assert!(text(&page).contains("[retry] send=2"), "{page}");
    let last = page["last"].as_u64().unwrap();
    let rest = relay.ask(&Request::get(&format!("/__steady/log?since={}", last - 1))).await.json();
    assert_eq!((rest["lines"].as_array().unwrap().len(), &rest["lines"][0]["n"]), (1, &last.into()));
    let line = &rest["lines"][0];
    assert!(line["at"].as_u64().unwrap() > 1_600_000_000_000 && line["level"] == "info", "{line}");
}

#[tokio::test]
async fn nothing_of_a_call_but_labels_and_numbers_is_shown() {
    let script = Script::by(|_, nth| match nth % 2 {
        0 => {
            Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded","message":"canary-answer"}}"#)
        }
        _ => Reply::status(200).text("canary-answer"),
    });
    let up = Upstream::start(script).await.unwrap();
    let home = Home::with_config(&format!("[log]\nlevel = \"trace\"\n\n[profile.interactive]\n{QUICK}"));
    let relay = home.serve(&["--upstream", &up.url(), "--state-dir", "state"]).await;
    let body = r#"{"model":"gpt-x","stream":true,"input":"canary-prompt"}"#;
    let asked = Request::post("/v1/responses?key=canary-query")
        .json(body)
        .header("Authorization", "Bearer canary-key");
    relay.ask(&asked.header("Cookie", "a=canary-cookie")).await;
    until(&relay, "/__steady/calls", |page| page["calls"][0]["state"] == "closed").await;
    for path in ["calls", "calls?before=99999999999999", "charts?span=day", "heat", "config", "log", "status"]
    {
        let text = relay.ask(&Request::get(&format!("/__steady/{path}"))).await.text();
        assert!(!text.contains("canary"), "{path}: {text}");
    }
    let mut client = relay.client().await;
    client.send(&Request::get("/__steady/events")).await.unwrap();
    assert!(client.read_until(b"event: status").await);
    assert!(!client.answer().text().contains("canary"));
}
