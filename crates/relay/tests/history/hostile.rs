//! Whatever stands in a file or is said by a peer: no terminal is commanded by what the program prints of it, and no
//! line is read in another order than it is written.

use std::path::Path;

use relay_core::plain;
use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::{Value, json};

use crate::child::SOON;
use crate::program::{CONFIG, Home, QUICK, refusal, turn};

/// A title, a colour, a cleared screen in one sign, writing turned round in each way, an odd end of a line.
const HOSTILE: &str =
    "\u{1b}]0;x\u{7}\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{85}\u{2028}\rz";

/// The same behind every text in it, where any text may stand.
fn turned(value: &mut Value, key: &str) {
    // What a program knows by its name, or does not know at all.
    let known = "state outcome last_fault fault client dialect operation transport evidence";
    let is_fixed = known.split(' ').any(|name| name == key);
    match value {
        Value::String(text) if !is_fixed && !["backoff", "told", "line"].contains(&&**text) => {
            text.push_str(HOSTILE);
        }
        Value::Array(all) => all.iter_mut().for_each(|one| turned(one, key)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, one)| turned(one, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A relay that was asked and has ended, and what it told at last: its status, and its calls.
async fn asked(home: &Home) -> (Value, Value) {
    let up = Upstream::start(Script::by(|_, _| refusal(503, "server_is_overloaded"))).await.unwrap();
    let mut relay = home.serve(&["--upstream", &up.url()]).await;
    relay.ask(&turn().header("x-request-id", "req-1")).await;
    relay.says("[done]").await;
    let page = relay.ask(&Request::get("/__steady/status")).await.json();
    let ended = async {
        loop {
            let calls = relay.ask(&Request::get("/__steady/calls")).await.json();
            if calls["calls"][0]["closed"].is_object() {
                break calls;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let calls = tokio::time::timeout(SOON, ended).await.unwrap();
    relay.stop().await;
    (page, calls)
}

/// Every text of the history.
fn turn_history(path: &Path) {
    let file = rusqlite::Connection::open(path).unwrap();
    let set = |table: &str, columns: &[&str]| {
        let all: Vec<_> = columns.iter().map(|it| format!("{it} = coalesce({it}, 'x') || ?1")).collect();
        file.execute(&format!("UPDATE {table} SET {}", all.join(", ")), [HOSTILE]).unwrap();
    };
    set("runs", &["kind", "version"]);
    set(
        "calls",
        &[
            "client",
            "dialect",
            "operation",
            "transport",
            "upstream",
            "model",
            "profile",
            "lane",
            "request_id",
            "why",
        ],
    );
    set("sends", &["request_id", "evidence", "code", "rule"]);
}

/// Every text of the newest snapshot; and one that is none, which the errors of its reader quote.
fn turn_snapshots(folder: &Path) {
    let newest = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let mut snapshot: Value = serde_json::from_str(&std::fs::read_to_string(&newest).unwrap()).unwrap();
    turned(&mut snapshot, "");
    std::fs::write(&newest, snapshot.to_string()).unwrap();
    snapshot["record"]["state"] = HOSTILE.into();
    let bad = snapshot;
    std::fs::write(folder.join("20200101-000000000-c1.json"), bad.to_string()).unwrap();
}

/// What is asked, and whether its answer quotes anything of that.
const ROWS: &[(&[&str], bool)] = &[
    (&["why"], true),
    (&["why", "--json"], true),
    (&["why", "\u{1b}[31m\u{202e}"], true),
    (&["stats"], false),
    (&["stats", "--by", "model"], true),
    (&["stats", "--by", "client", "--json"], true),
    (&["stats", "--export", "jsonl"], true),
    (&["stats", "--last-run"], false),
    (&["stats", "--last-run", "--json"], true),
    (&["diagnose"], true),
    (&["diagnose", "--json"], true),
    (&["diagnose", "--report", "-"], true),
    (&["replay", "good.jsonl", "--profile", "strict"], true),
    (&["replay", "good.jsonl", "--profile", "strict", "--json"], true),
    (&["replay", "bad.jsonl"], false),
    (&["replay", "worse.jsonl"], false),
    (&["replay", "--since", "1d", "--profile", "strict"], true),
    (&["snapshots", "list"], true),
    (&["snapshots", "list", "--json"], true),
    (&["snapshots", "show", "last"], true),
    (&["snapshots", "show", "last", "--json"], true),
    (&["snapshots", "show", "20200101-000000000-c1"], false),
    (&["snapshots", "replay", "--dry-run", "last"], true),
    (&["snapshots", "replay", "--dry-run", "last", "--json"], true),
    (&["status"], true),
    (&["status", "--json"], true),
    (&["health"], false),
    (&["doctor"], false),
    (&["doctor", "--json"], false),
    (&["config", "check", "bad.toml"], true),
    (&["config", "check", "bad.toml", "--json"], true),
    (&["config", "test-rule", "answer.http"], false),
    (&["config", "test-rule", "answer.http", "--json"], false),
    (&["setup", "codex", "--dry-run"], false),
    (&["setup", "--status"], false),
];

#[tokio::test]
async fn nothing_commands_the_terminal() {
    let config = |more: &str| {
        format!(
            "[relay]\nstate_dir = \"state\"\n{more}[snapshots]\nenabled = true\n[profile.interactive]\nsends = 3\n{QUICK}"
        )
    };
    let home = Home::with_config(&config(""));
    let (mut page, mut calls) = asked(&home).await;
    let state = home.path("config/steady-relay/state");
    turn_history(&state.join("history.sqlite"));
    turn_snapshots(&state.join("snapshots"));
    turned(&mut page, "");
    turned(&mut calls, "");
    let other = Script::by(|_, _| Reply::status(404).text(HOSTILE));
    let other = other.for_path("/__steady/status", Reply::status(200).json(page.to_string()));
    let other =
        Upstream::start(other.for_path("/__steady/calls", Reply::status(200).json(calls.to_string())))
            .await
            .unwrap();
    home.write(CONFIG, config(&format!("port = {}\n", other.addr().port())));
    let records: Vec<_> = calls["calls"].as_array().unwrap().iter().map(|call| format!("{call}\n")).collect();
    home.write("good.jsonl", records.concat());
    let mut bad = calls["calls"][0].clone();
    bad["state"] = HOSTILE.into();
    home.write("bad.jsonl", bad.to_string());
    home.write("worse.jsonl", format!("{{\"call\": {HOSTILE}"));
    home.write(
        "bad.toml",
        format!(
            "\"{}\" = 1\n[upstream.\"\\u001b[31m\u{202e}\"]\nurl = \"\\u009b\u{202e}\"\n",
            "\\u001b\u{202e}x"
        ),
    );
    let error = json!({"error": {"code": "server_is_overloaded", "message": HOSTILE}});
    home.write("answer.http", format!("HTTP/1.1 503 x\r\nx-a: \u{202e}\r\n\r\n{error}"));
    std::fs::create_dir_all(home.path(".codex")).unwrap();
    home.write(".codex/config.toml", "openai_base_url = \"http://x.example/\u{202e}\\u001b[31m\"\n");
    for lang in ["en", "zh"] {
        for (arguments, quotes) in ROWS {
            let arguments = [arguments, &["--lang", lang][..]].concat();
            let ran = home.run(&arguments);
            let (_, out, said) = tokio::time::timeout(SOON * 3, ran).await.unwrap();
            for words in [&out, &said] {
                assert_eq!(plain::text(words), *words, "{arguments:?}");
                assert!(!words.contains('\r'), "{arguments:?}");
            }
            // Or else it proves nothing.
            let marks = [&out, &said].iter().any(|it| it.contains('?') || it.contains("\\u001b"));
            assert!(marks || !quotes, "{arguments:?} shows nothing of it: {out}\n{said}");
        }
    }
}
