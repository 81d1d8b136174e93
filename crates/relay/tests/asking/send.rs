//! `steady-relay send`.

use std::process::Stdio;
use std::time::Duration;

use relay_sim::{Event, Reply, Script, Signal, Upstream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

#[cfg(unix)]
use crate::program::run;
use crate::program::{CONFIG, Home, QUICK, good, refusal};

const SOON: Duration = Duration::from_secs(20);
const KEY: &str = "authorization: Bearer sk-test";

/// A home whose profile waits for milliseconds and gives up after three sends.
fn home() -> Home {
    let home = Home::new();
    home.write(CONFIG, format!("[relay]\ngate = false\n[profile.interactive]\nsends = 3\n{QUICK}"));
    home
}

fn generation() -> String {
    json!({"model": "gpt-x", "stream": true, "input": "hi"}).to_string()
}

#[tokio::test]
async fn one_request_is_protected_and_its_answer_is_printed_byte_for_byte() {
    let up = Upstream::start(Script::of([refusal(503, "server_is_overloaded"), good()])).await.unwrap();
    let home = home();
    let url = format!("{}/v1/responses?a=%2F", up.url());
    let (code, out, said) = home.run(&["send", &url, "-H", KEY, "-d", &generation()]).await;
    assert_eq!(code, 0, "{said}");
    assert!(out.starts_with("event: response.created\n") && out.contains("response.completed"), "{out}");
    assert!(said.contains("[retry] send=2 ") && said.contains("[done] outcome=served sends=2 "), "{said}");
    let seen = up.requests();
    assert_eq!(seen.len(), 2);
    let last = &seen[1];
    assert_eq!((last.method.as_str(), last.target.as_str()), ("POST", "/v1/responses?a=%2F"));
    assert_eq!(last.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(last.header("content-type"), Some("application/json"));
    assert_eq!((last.header("x-steady-token"), last.text()), (None, generation()));
    assert!(!said.contains("sk-test"), "{said}");
    // Nothing is left behind.
    assert!(!home.path(".local").exists() && !home.path("state").exists());
}

#[tokio::test]
async fn quiet_says_nothing_and_json_ends_with_a_summary() {
    let again = || Script::of([refusal(503, "server_is_overloaded"), good()]);
    let home = home();
    let up = Upstream::start(again()).await.unwrap();
    let url = format!("{}/v1/responses", up.url());
    let (code, _, said) = home.run(&["send", "-q", &url, "-d", &generation()]).await;
    assert_eq!((code, said.as_str()), (0, ""));
    let up = Upstream::start(again()).await.unwrap();
    let url = format!("{}/v1/responses", up.url());
    let (code, _, said) = home.run(&["send", "--json", &url, "-d", &generation()]).await;
    assert_eq!(code, 0);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, before) = lines.split_last().unwrap();
    assert!(before.iter().any(|line| line["event"] == "retry"), "{said}");
    assert_eq!((&last["event"], &last["exit"], &last["sends"]), (&"summary".into(), &0.into(), &2.into()));
    assert_eq!((&last["v"], &last["outcome"], &last["status"]), (&1.into(), &"served".into(), &200.into()));
}

#[tokio::test]
async fn every_exit_code_is_met() {
    let home = home();
    home.write("strict.toml", format!("[profile.strict]\n{QUICK}"));
    let generation = generation();
    let cut = || {
        Reply::sse([Event::named("response.created", json!({"type": "response.created"}))])
            .fin_without_terminator()
    };
    let broken = || {
        let delta = json!({"type": "response.output_text.delta", "delta": "hi"});
        Reply::sse([Event::named("response.output_text.delta", delta)]).fin_without_terminator()
    };
    let rows: [(&str, Script, &[&str], i32, &str); 6] = [
        (
            "gave up",
            Script::by(|_, _| refusal(503, "server_is_overloaded")),
            &[],
            3,
            "gave up after 3 sends, ",
        ),
        (
            "maybe ran",
            Script::by(move |_, _| cut()),
            &["--profile", "strict"],
            4,
            "since it may have run (may_have_run)",
        ),
        (
            "final",
            Script::by(|_, _| refusal(401, "invalid_api_key")),
            &[],
            5,
            "the service said no (status 401)",
        ),
        ("broke off", Script::by(move |_, _| broken()), &[], 1, "the answer broke off"),
        (
            "turned away",
            Script::by(|_, _| good()),
            &["-H", "x-steady-profile: none"],
            2,
            "not sent (status 400)",
        ),
        ("served", Script::by(|_, _| good()), &[], 0, ""),
    ];
    for (name, script, more, expected, words) in rows {
        let up = Upstream::start(script).await.unwrap();
        let url = format!("{}/v1/responses", up.url());
        let line = [&["send", &url, "-H", KEY, "-d", &generation], more].concat();
        let (code, _, said) = home.run(&line).await;
        assert_eq!(code, expected, "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
    }
    for (line, words) in [
        (&["send", "a.example"][..], "error: the URL has no http:// or https:// before it\nhint: "),
        (&["send", "http://127.0.0.1:1/", "-H", "odd"], "error: -H: a header has no colon\nhint: "),
        (&["send", "http://127.0.0.1:1/", "-d", "@nowhere"], "error: nowhere: "),
        (&["send", "http://127.0.0.1:1/", "-o", "no/such/folder"], "error: no/such/folder: "),
        (&["send"], "error: the following required arguments were not provided"),
    ] {
        let (code, out, said) = home.run(line).await;
        assert!(code == 2 && out.is_empty() && said.starts_with(words), "{line:?}: {said}");
    }
}

#[tokio::test]
async fn get_and_post_are_short_for_it_and_so_is_the_older_name() {
    let up = Upstream::start(Script::by(|_, _| Reply::status(200).json(json!({"data": []})))).await.unwrap();
    let home = home();
    let url = format!("{}/v1/models", up.url());
    let (code, out, said) = home.run(&["get", &url, "-i"]).await;
    assert_eq!(code, 0, "{said}");
    let (head, body) = out.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-type: application/json"),
        "{head}"
    );
    assert_eq!(body, r#"{"data":[]}"#);
    let (code, ..) = home.run(&["post", &url, "-d", "{}"]).await;
    assert_eq!(code, 0);
    let (code, ..) = home.run(&["--profile", "strict", "send", "DELETE", &url]).await;
    assert_eq!(code, 0);
    let methods: Vec<_> = up.requests().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["GET", "POST", "DELETE"]);
    let (code, _, said) = home.run(&["post", "put", &url]).await;
    assert!(code == 2 && said.contains("the method is named twice"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_program_is_found_under_the_name_of_the_older_tool() {
    let up = Upstream::start(Script::by(|_, _| Reply::status(200).json(json!({"id": 1})))).await.unwrap();
    let home = home();
    let older = home.path("codex-retry");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steady-relay"), &older).unwrap();
    home.write("request.json", "{\"model\":\"m\"}");
    // The older tool's file: its address and its key belong together.
    home.write(".env", format!("CODEX_ENDPOINT={}/v1\nCODEX_API_KEY=sk-from-file\n", up.url()));
    let ask = |url: String| {
        let mut command = tokio::process::Command::new(&older);
        let line = ["post", &url, "-H", "x-a: b", "--data-file", "request.json", "--env-file", ".env"];
        command.args(line).env_clear().env("HOME", home.path("")).env("XDG_CONFIG_HOME", home.path("config"));
        command.current_dir(home.path(""));
        command
    };
    let (code, out, said) = run(&mut ask(format!("{}/v1/chat/completions", up.url()))).await;
    assert_eq!((code, out.as_str()), (0, r#"{"id":1}"#), "{said}");
    let seen = up.requests();
    assert_eq!(seen[0].header("authorization"), Some("Bearer sk-from-file"));
    assert_eq!((seen[0].header("x-a"), seen[0].text().as_str()), (Some("b"), "{\"model\":\"m\"}"));
    // To another place the key does not go.
    let other = Upstream::start(Script::by(|_, _| Reply::status(200).json(json!({"id": 2})))).await.unwrap();
    let (code, ..) = run(&mut ask(format!("{}/v1/chat/completions", other.url()))).await;
    assert_eq!((code, other.requests()[0].header("authorization")), (0, None));
    // A path alone goes where the relay's settings say.
    let (code, ..) = run(&mut ask("/v1/chat/completions".to_owned())).await;
    assert_eq!((code, up.requests()[1].header("authorization")), (0, Some("Bearer sk-from-file")));
}

#[tokio::test]
async fn data_comes_from_files_and_from_standard_input_and_goes_to_a_file() {
    let up = Upstream::start(Script::by(|_, _| Reply::status(200).text("answer"))).await.unwrap();
    let home = home();
    let url = format!("{}/x", up.url());
    let large = vec![b'x'; 300_000];
    home.write("large", &large);
    home.write("out.txt", "what was there, and is longer");
    home.write("headers", "x-a: 1\n\nx-b: 2\n");
    let line = ["post", &url, "--data-file", "large", "-o", "out.txt", "-H", "@headers"];
    let (code, out, said) = home.run(&line).await;
    assert_eq!((code, out.as_str()), (0, ""), "{said}");
    assert_eq!(home.read("out.txt"), "answer");
    let mut command = home.program(&["send", &url, "-d", "@-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"from a pipe").await.unwrap();
    drop(stdin);
    assert!(timeout(SOON, child.wait()).await.unwrap().unwrap().success());
    let seen = up.requests();
    assert!(seen[0].body == large && seen[0].header("content-length") == Some("300000"));
    assert_eq!((seen[0].header("x-a"), seen[0].header("x-b")), (Some("1"), Some("2")));
    assert_eq!((seen[1].text().as_str(), seen[1].header("content-length")), ("from a pipe", Some("11")));
}

#[tokio::test]
async fn the_answer_streams_and_a_reader_that_has_seen_enough_ends_it_quietly() {
    let rest = Signal::new();
    let script = Script::by({
        let rest = rest.clone();
        move |_, _| {
            let event = |name: &str| Event::named(name, json!({"type": name, "delta": "hi"}));
            let [created, delta, done] =
                ["response.created", "response.output_text.delta", "response.completed"].map(event);
            Reply::sse([created, delta, Event::wait_for(rest.clone()), done])
        }
    });
    let up = Upstream::start(script).await.unwrap();
    let home = home();
    let url = format!("{}/v1/responses", up.url());
    let mut command = home.program(&["send", &url, "-d", &generation()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("output_text.delta") {
        let more = timeout(SOON, out.read_buf(&mut read)).await.unwrap().unwrap();
        assert!(more > 0, "it ended: {}", String::from_utf8_lossy(&read));
    }
    drop(out);
    rest.release();
    let ended = timeout(SOON, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap().as_str()), (Some(0), ""));
}

#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_ends_the_request_upstream_at_once() {
    let never = Signal::new();
    let script = Script::by({
        let never = never.clone();
        move |_, _| good().when(never.clone())
    });
    let up = Upstream::start(script).await.unwrap();
    let home = home();
    let url = format!("{}/v1/responses", up.url());
    let child = home.program(&["send", &url, "-d", &generation()]).spawn();
    let mut child = child.unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(timeout(SOON, child.wait()).await.unwrap().unwrap().code(), Some(130));
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}
