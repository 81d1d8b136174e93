//! Secrets and words of a conversation stay where they belong.

use std::path::Path;

use relay_sim::fixtures::{anthropic, codex as wire};
use relay_sim::{Client, Reply, Request, Script, Upstream};
use rustix::process::Signal;
use serde_json::json;

use crate::started::{Folder, Serving, program};
use crate::support::{Bench, SOON, TURN, bounded, claude, codex, plain};

/// Stands in everything that may be a secret, in all that a client or a service says.
const CANARY: &str = "CANARY0SECRET";
/// Stands in what people and models write, which nothing but a snapshot may hold.
const PROMPT: &str = "CANARY0PROMPT";

fn request(path: &str, agent: &str) -> Request {
    let words = format!(
        "{PROMPT} Cookie: a={CANARY}\nthen \"user_id\": \"{CANARY}\" of {CANARY}@example.com in C:\\\\Users\\\\{CANARY}\\\\x \
         with fw_{CANARY}abcdefgh at https://x.example/?sig={CANARY}&a=sk%2Dproj%2D{CANARY}"
    );
    let said = json!({"device_id": CANARY, "account_uuid": CANARY, "session_id": CANARY}).to_string();
    Request::post(&format!("{path}?key={CANARY}&api_key=sk-proj-{CANARY}"))
        .header("authorization", format!("Bearer sk-proj-{CANARY}"))
        .header("x-api-key", format!("sk-proj-{CANARY}"))
        .header("user-agent", format!("{agent} {CANARY}"))
        .header("cookie", format!("session={CANARY}"))
        .header("thread-id", CANARY)
        .header("x-codex-turn-metadata", format!(r#"{{"turn_id":"{CANARY}"}}"#))
        .header("x-steady-token", CANARY)
        .header("x-client-request-id", format!("csk-{CANARY}"))
        .header("openai-organization", CANARY)
        .header("x-anything", CANARY)
        .json(json!({
            "model": format!("sk-ant-{CANARY}"),
            "stream": true,
            "input": [{"role": "user", "content": words}],
            "tools": [{"type": "function", "name": PROMPT}],
            "metadata": {"user_id": said},
            "user": CANARY,
            "prompt_cache_key": CANARY,
        }))
}

fn replies() -> Vec<Reply> {
    let body = format!(
        r#"{{"error":{{"code":"sk-proj-{CANARY}","type":"Bearer sk-proj-{CANARY}","message":"{PROMPT}, key sk-proj-{CANARY} in /home/{CANARY}/.codex"}}}}"#
    );
    let said = format!("{PROMPT} said sk-proj-{CANARY}");
    let with = |status| {
        Reply::status(status)
            .reason(CANARY)
            .header("x-request-id", format!("nvapi-{CANARY}"))
            .header("set-cookie", format!("__cf_bm={CANARY}"))
            .json(&body)
    };
    let mut fatal = wire::partial(PROMPT);
    fatal.push(wire::failed("server_is_overloaded", &said));
    vec![
        with(503),
        with(500),
        with(529),
        Reply::sse([wire::created(), wire::failed("server_is_overloaded", &said)]),
        Reply::reset_after_request(),
        Reply::raw(format!("{CANARY}\r\n\r\n")).close(),
        Reply::sse(fatal),
        with(400),
        with(401),
        Reply::sse(wire::turn(PROMPT)),
        Reply::status(302).header("location", format!("https://x.example/{CANARY}")).text(PROMPT),
        Reply::sse(wire::partial(PROMPT)),
    ]
}

/// Asks all that a page of the relay's own asks, and the port of the metrics.
async fn pages(relay: &Serving) -> Vec<(String, String)> {
    let ask = async |at, path: &str| {
        let mut client = Client::connect(at).await.unwrap().patience(SOON);
        let answer = client.ask(&Request::get(path)).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
        (path.to_owned(), answer.text())
    };
    let mut all = Vec::new();
    for path in ["status", "calls", "calls?before=99999999999999", "charts?span=day", "heat", "config", "log"]
    {
        all.push(ask(relay.addr, &format!("/__steady/{path}")).await);
    }
    let said = relay.said();
    let metrics = said.split("metrics are at http://").nth(1).unwrap().split('/').next().unwrap();
    all.push(ask(metrics.parse().unwrap(), "/metrics").await);
    let mut client = Client::connect(relay.addr).await.unwrap().patience(SOON);
    client.send(&Request::get("/__steady/events")).await.unwrap();
    assert!(client.read_until(b"event: status").await);
    all.push(("/__steady/events".to_owned(), client.answer().text()));
    all
}

/// All files below a folder, but the one with the settings.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if !path.ends_with("relay.toml") {
            let bytes = std::fs::read(&path).unwrap();
            all.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    all
}

#[tokio::test]
async fn never_leaked() {
    let count = replies().len();
    let up =
        Upstream::start(Script::by(move |_, number| replies().swap_remove(number % count))).await.unwrap();
    let home = Folder::new();
    let config = format!(
        "[relay]\nprofile = \"quick\"\nupstream = \"up\"\nstate_dir = \"state\"\n[log]\nlevel = \"trace\"\nfile = \"relay.log\"\n\
         [snapshots]\nenabled = true\nmax_count = 1000\n\
         [upstream.up]\nurl = \"{}\"\nheaders = {{ \"x-own\" = \"{CANARY}\" }}\n\
         [profile.quick]\nbased_on = \"interactive\"\nsends = 3\nbase = \"10ms\"\ncap = \"10ms\"\n\
         jitter = \"0s\"\noverloaded_base = \"10ms\"\noverloaded_cap = \"10ms\"\n",
        up.url()
    );
    let file = home.write("relay.toml", &config);
    let mut command = program(&home);
    command.args(["--listen", "127.0.0.1", "--port", "0", "--metrics-port", "0", "--config"]).arg(file);
    let mut relay = Serving::start(command.env("RUST_LOG", "trace")).await;
    ask_of_all_kinds(&relay, count / 2).await;
    let open = Client::connect(relay.addr).await.unwrap();
    let mut told = pages(&relay).await;
    drop(open);
    relay.signal(Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0));
    relay.until("stopping").await;
    let said = relay.said();
    assert!(
        said.matches("[retry]").count() > 5 && said.matches("[done]").count() > 30,
        "too little was said to prove anything: {said}"
    );
    told.push(("the log".to_owned(), said));
    told.extend(files(home.path()));
    let has = |part: &str| told.iter().filter(|(place, _)| place.contains(part)).count();
    assert!(
        has("/snapshots/") > 20 && has("relay.log") == 1 && has("history.sqlite") > 0,
        "{:?}",
        home.names()
    );
    for (place, text) in &told {
        let hidden = if place.contains("/snapshots/") { &[CANARY][..] } else { &[CANARY, PROMPT] };
        for canary in hidden {
            let leak = text.lines().find(|line| line.to_lowercase().contains(&canary.to_lowercase()));
            assert_eq!(leak, None, "{canary} in {place}");
        }
    }
}

async fn ask_of_all_kinds(relay: &Serving, times: usize) {
    let ask = async |request: &Request| {
        let mut client = Client::connect(relay.addr).await.unwrap().patience(SOON);
        client.ask(request).await.unwrap()
    };
    let agents = ["codex_cli_rs/0.171.0", "claude-cli/2.1.332", "curl/8"];
    let odd = format!("/sk-proj-{CANARY}");
    for path in ["/v1/responses", "/v1/messages", "/v1/chat/completions", "/v1/files", &odd] {
        for agent in agents {
            for _ in 0..times {
                ask(&request(path, agent)).await;
            }
        }
    }
    // And what never becomes a call.
    for (name, value) in
        [("origin", format!("https://{CANARY}.example")), ("host", format!("{CANARY}.example"))]
    {
        ask(&request("/v1/responses", "x").header(name, &value)).await;
        ask(&Request::get("/__steady/status").header(name, &value)).await;
    }
    ask(&request("/v1/realtime", "x").header("connection", "upgrade").header("upgrade", CANARY)).await;
}

#[tokio::test]
async fn words_of_our_own_repeat_no_secret() {
    let said = format!("Incorrect key sk-proj-{CANARY} used by /home/{CANARY}/x, Bearer {CANARY}");
    let rows = [
        (codex("t", TURN), Reply::sse([wire::created(), wire::failed("rate_limit_exceeded", &said)]), 400),
        (
            claude(),
            Reply::sse([anthropic::message_start(), anthropic::error_event("overloaded_error", &said)]),
            529,
        ),
    ];
    for (request, reply, status) in rows {
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(1))).await;
        let answer = bench.ask(&request).await;
        assert_eq!(answer.status, status);
        assert!(answer.text().contains("[redacted]") && !answer.text().contains(CANARY), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_model_is_shown_by_its_name_and_a_key_in_its_place_is_not() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let bench = Bench::to(&up).await;
    let rows = [
        ("Meta-Llama-3.1-405B-Instruct-Turbo-FP8", "Meta-Llama-3.1-405B-Instruct-Turbo-FP8"),
        ("openai/gpt-x:free", "openai/gpt-x:free"),
        ("Bearer sk-proj-abcdef12345", "redacted"),
        ("sk-ant-abcdef", "redacted"),
    ];
    for (number, (model, shown)) in rows.into_iter().enumerate() {
        let mut client = bench.client().await;
        client.send(&plain(&format!(r#"{{"model":"{model}","input":"hi"}}"#))).await.unwrap();
        assert!(up.wait_for_requests(number + 1, SOON).await);
        assert_eq!(bench.page().await["open_calls"][0]["model"], shown);
        client.leave().await;
        bench.story(u64::try_from(number).unwrap() + 1).await;
    }
}
