//! Calls that end badly are kept where the settings say so, without a secret, and can be looked at and decided anew.

use relay_core::config::Config;
use relay_core::event::Outcome;
use relay_sim::fixtures::codex as wire;
use relay_sim::websocket::steps::wrapped;
use relay_sim::websocket::{WsScript, WsUpstream};
use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::started::{Folder, program, run};
use crate::support::{Bench, SOON, TURN, bounded, ms, plain, strict, towards};
use crate::websocket::{FULL, codex, texts};

fn keeping(mut config: Config, home: &Folder) -> Config {
    config.state_dir = Some(home.path().to_owned());
    config.snapshots.enabled = true;
    config
}

/// The files, once there are so many.
async fn kept(home: &Folder, count: usize) -> Vec<Value> {
    let by = Instant::now() + SOON;
    loop {
        let folder = home.path().join("snapshots");
        let mut paths: Vec<_> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .collect();
        paths.sort();
        if paths.len() >= count {
            let read = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap();
            return paths.iter().map(|path| serde_json::from_str(&read(path)).unwrap()).collect();
        }
        assert!(Instant::now() < by, "{} of {count} snapshots", paths.len());
        tokio::time::sleep(ms(5)).await;
    }
}

fn outcome(snapshot: &Value) -> (&str, Option<u64>) {
    (snapshot["record"]["closed"]["outcome"].as_str().unwrap(), snapshot["answer"]["status"].as_u64())
}

#[tokio::test]
async fn a_call_that_gives_up_is_kept_with_its_request_its_answer_and_its_record() {
    let up = Upstream::start(Script::by(|_, _| wire::overloaded_503())).await.unwrap();
    let home = Folder::new();
    let config = bounded(&up.url(), |profile| profile.sends = Some(3));
    let bench = Bench::with(keeping(config, &home)).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 503);
    let [snapshot] = kept(&home, 1).await.try_into().unwrap();
    assert_eq!(outcome(&snapshot), ("gave_up", Some(503)));
    assert_eq!(snapshot["request"]["method"], "POST");
    assert_eq!(snapshot["request"]["url"], format!("{}/v1/responses", up.url()));
    assert_eq!(snapshot["request"]["body"]["json"], serde_json::from_str::<Value>(TURN).unwrap());
    assert_eq!(snapshot["request"]["body"]["bytes"], TURN.len());
    let headers = snapshot["request"]["headers"].as_array().unwrap();
    assert!(headers.contains(&json!(["authorization", "[redacted, 14 bytes]"])), "{headers:?}");
    let said: Value = serde_json::from_str(&wire::overloaded_body()).unwrap();
    assert_eq!(snapshot["answer"]["body"]["json"]["error"]["code"], said["error"]["code"]);
    let sends = snapshot["record"]["sends"].as_array().unwrap();
    assert_eq!((sends.len(), snapshot["record"]["closed"]["sends"].as_u64()), (3, Some(3)));
    assert_eq!(sends[0]["failed"]["fault"], "at_capacity");
}

#[tokio::test]
async fn each_bad_end_is_kept_and_a_good_one_is_not() {
    let script = Script::by(|seen, _| match seen.header("x-do") {
        Some("passed") => Reply::status(400).json(r#"{"error":{"code":"invalid_value","message":"no"}}"#),
        Some("refused") => Reply::reset_after_request(),
        Some("broken") => Reply::sse(wire::partial("x")),
        _ => Reply::sse(wire::turn("x")),
    });
    let up = Upstream::start(script).await.unwrap();
    let home = Folder::new();
    let bench = Bench::with(keeping(strict(&up.url()), &home)).await;
    for what in ["served", "passed", "refused", "broken"] {
        let mut client = bench.client().await;
        client.send(&plain(TURN).header("x-do", what)).await.unwrap();
        client.read().await;
    }
    let all = kept(&home, 3).await;
    let mut outcomes: Vec<_> = all.iter().map(outcome).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("broken", Some(200)), ("passed", Some(400)), ("refused", None)]);
    let broken = all.iter().find(|it| outcome(it).0 == "broken").unwrap();
    assert_eq!(broken["request"]["body"]["left_out"], "it was let go when the answer began");
    assert_eq!(broken["answer"]["body"], json!({"bytes": 0}), "no answer of a model is kept");
}

#[tokio::test]
async fn nothing_is_kept_unless_it_is_wanted() {
    let script = Script::by(|_, _| Reply::status(400).json("{}"));
    let up = Upstream::start(script).await.unwrap();
    let home = Folder::new();
    let mut off = towards(&up.url());
    off.state_dir = Some(home.path().to_owned());
    let bench = Bench::with(off).await;
    bench.ask(&plain(TURN)).await;
    let mut others = keeping(towards(&up.url()), &home);
    others.snapshots.outcomes = [Outcome::GaveUp].into();
    bench.reload(others);
    bench.ask(&plain(TURN)).await;
    let mut wanted = keeping(towards(&up.url()), &home);
    wanted.snapshots.outcomes = [Outcome::Passed].into();
    bench.reload(wanted);
    bench.ask(&plain(TURN)).await;
    let [only] = kept(&home, 1).await.try_into().unwrap();
    assert_eq!(only["record"]["call"], 3);
}

#[tokio::test]
async fn a_message_of_a_websocket_is_kept_with_what_was_told() {
    let wrong = wrapped(400, "invalid_request_error", ("bad_input", "no"), &[]);
    let up = WsUpstream::start(WsScript::good("").creates([wrong.clone()])).await.unwrap();
    let home = Folder::new();
    let bench = Bench::with(keeping(towards(&up.url()), &home)).await;
    let mut client = codex(&bench).await;
    client.send(FULL).await.unwrap();
    assert_eq!(client.answer().await, texts(&wrong));
    let [snapshot] = kept(&home, 1).await.try_into().unwrap();
    assert_eq!(outcome(&snapshot), ("passed", None));
    assert_eq!(snapshot["record"]["transport"], "websocket");
    assert_eq!(snapshot["request"]["body"]["json"]["model"], "gpt-x");
    assert!(snapshot["answer"]["body"]["text"].as_str().unwrap().contains("bad_input"), "{snapshot:#}");
}

/// Every kind of secret, each with this in it.
const CANARY: &str = "qzcanaryqz";

fn secrets() -> Vec<String> {
    vec![
        format!("sk-proj-{CANARY}00"),
        format!("Bearer Zz{CANARY}Aa1Bb2Cc3Dd4"),
        format!("eyJhbGciOiJIUzI1NiJ9.{CANARY}.sig"),
        format!("{CANARY}@example.com"),
        format!("/home/{CANARY}/project"),
        format!("C:\\Users\\{CANARY}\\project"),
        format!("https://user:{CANARY}@host.example/x?token={CANARY}"),
        format!("AKIA{}", CANARY.to_uppercase()),
        format!("password={CANARY}"),
        format!("data:image/png;base64,{}", format!("{CANARY}AAAA").repeat(9)),
    ]
}

fn full_of_secrets(secret: &str) -> Value {
    json!({
        "model": "gpt-x",
        "stream": true,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": format!("see {secret} there")}]}],
        "tools": [{"type": "function", "name": "f"}],
        "metadata": {"apiKey": CANARY, "nested": [{"x-auth-token": {"deep": CANARY}}], "user": CANARY, secret: 1},
        "arguments": json!({"cmd": json!({"password": CANARY, "note": secret}).to_string()}).to_string(),
        "image_url": format!("data:image/png;base64,{}", format!("{CANARY}AAAA").repeat(30)),
    })
}

#[tokio::test]
async fn snapshots_hold_no_secret() {
    let script = Script::by(|seen, _| {
        let secret = seen.header("x-secret").unwrap_or_default();
        let body = json!({"error": {"code": secret, "message": format!("bad: {secret}"), "token": CANARY, "param": {"cookie": CANARY}}});
        let kind = seen.header("x-kind").unwrap_or("json");
        let reply = Reply::status(400)
            .header("set-cookie", format!("__cf_bm={CANARY}"))
            .header("x-request-id", format!("sk-proj-{CANARY}00"))
            .header("x-account", CANARY)
            .header("server", secret)
            .header("x-anything", secret);
        match kind {
            "html" => reply.html(format!("<p>{secret}</p>")),
            "text" => reply.text(secret.to_owned()),
            "odd" => reply.header("content-type", "application/x-odd").bytes(secret.as_bytes().to_vec()),
            _ => reply.json(body),
        }
    });
    let up = Upstream::start(script).await.unwrap();
    let home = Folder::new();
    let bench = Bench::with(keeping(towards(&up.url()), &home)).await;
    let mut count = 0;
    for secret in secrets() {
        for kind in ["json", "html", "text", "odd"] {
            let escaped: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let request = Request::post(&format!(
                "/v1/{escaped}/responses?key={CANARY}&x={escaped}&accessToken={CANARY}"
            ))
            .header("authorization", format!("Bearer {CANARY}"))
            .header("x-api-key", CANARY)
            .header("cookie", format!("session={CANARY}"))
            .header("user-agent", format!("codex_cli_rs/0.171.0 ({CANARY}; {secret}) {CANARY}/x"))
            .header("accept-language", CANARY)
            .header("x-secret", &secret)
            .header("x-kind", kind)
            .header("x-stainless-lang", &secret)
            .header(&format!("x-{CANARY}"), "1")
            .json(full_of_secrets(&secret));
            bench.ask(&request).await;
            count += 1;
            // One after the other: a line that is full would drop some.
            kept(&home, count).await;
        }
        let form = format!("grant_type=refresh&refresh_token={CANARY}&note={}", secret.replace('&', "%26"));
        let request = Request::post("/oauth/token")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-secret", &secret)
            .body(form);
        bench.ask(&request).await;
        count += 1;
        kept(&home, count).await;
    }
    let all = kept(&home, count).await;
    for snapshot in &all {
        let text = snapshot.to_string().to_lowercase();
        // The name of a header is the client's own word, and no place for a secret.
        let text = text.replace(&format!("x-{CANARY}"), "");
        assert!(!text.contains(CANARY), "{snapshot:#}");
    }
    assert!(all.iter().any(|it| it["answer"]["body"]["left_out"].is_string()), "what is odd is left out");
    assert!(all.iter().any(|it| it["request"]["body"]["text"].is_string()), "a form is kept");
}

#[cfg(unix)]
#[tokio::test]
async fn they_are_listed_shown_and_decided_anew_and_never_sent() {
    let busy = || Reply::status(422).json(r#"{"error":{"code":"busy_now","message":"cold start of x"}}"#);
    let up = Upstream::start(Script::by(move |_, _| busy())).await.unwrap();
    let home = Folder::new();
    let bench = Bench::with(keeping(towards(&up.url()), &home)).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 422);
    kept(&home, 1).await;
    let asked = up.requests().len();
    let rules =
        "[[rule]]\nstatus = 422\nphrase = \"cold start\"\nfault = \"model_loading\"\nfloor = \"5s\"\n";
    let file = home.write("relay.toml", rules);
    let verb = async |words: &[&str]| {
        let mut command = program(&home);
        command.arg("snapshots").args(words).arg("--state-dir").arg(home.path()).arg("--config").arg(&file);
        run(&mut command).await
    };
    let (code, listed, _) = verb(&["list"]).await;
    assert!(
        code == 0 && listed.contains("passed") && listed.contains("422") && listed.contains("gpt-x"),
        "{listed}"
    );
    let (_, listed, _) = verb(&["list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed["snapshots"][0]["id"].as_str().unwrap();
    assert_eq!((&listed["v"], &listed["snapshots"][0]["outcome"]), (&json!(1), &json!("passed")));
    let (code, shown, _) = verb(&["show", id]).await;
    assert!(code == 0 && shown.contains("HTTP 422") && shown.contains("cold start of x"), "{shown}");
    let (_, shown, _) = verb(&["show", "last", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["id"], id);
    let (code, replayed, _) = verb(&["replay", "last", "--dry-run"]).await;
    for part in [
        "curl -X POST 'http://127.0.0.1:",
        "-H 'authorization: [redacted, 14 bytes]'",
        "nothing was sent",
        "model_loading",
        "relay.toml:1",
    ] {
        assert!(replayed.contains(part), "{part}: {replayed}");
    }
    assert_eq!(code, 0);
    let (_, replayed, _) = verb(&["replay", id, "--dry-run", "--json"]).await;
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["sent"], false);
    assert_eq!(replayed["then"]["outcome"], "passed");
    assert_eq!(replayed["now"]["answer"]["failure"]["fault"], "model_loading");
    let (code, out, said) = verb(&["replay", id]).await;
    assert!(code == 4 && out.is_empty() && said.contains("hint: add --dry-run"), "{code} {said}");
    let (code, _, said) = verb(&["show", "20200101-000000000-c1"]).await;
    assert!(code == 1 && said.contains("there is no snapshot"), "{said}");
    assert_eq!(up.requests().len(), asked, "nothing was sent");
    let (code, _, said) = run(program(&home).args(["snapshots", "list", "--state-dir", "elsewhere"])).await;
    assert!(code == 0 && said.contains("there are no snapshots"), "{code} {said}");
}
