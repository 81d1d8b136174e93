//! The page in headless Chromium, through an overload: `dashboard/tests/page.mjs` is what looks at it. Where
//! `UPDATE_DOCS` is set, its pictures replace those in `docs/screenshots`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use relay_sim::{Event, Reply, Script, Upstream};
use serde_json::json;
use steady_relay::clock::{Clock as _, SystemClock};
use steady_relay::history::record::{
    CallRecord, ClosedRecord, FailedRecord, MovedRecord, SendRecord, State, WaitRecord, WaitWhy,
};
use steady_relay::history::store::{Run, Store};
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::{CONFIG, Home, refusal};
use crate::tools::missing;

/// Longer than all of its steps take on a busy machine.
const WITHIN: Duration = Duration::from_secs(400);

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first of these programs that is there.
fn found(names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let at = |name: &&str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    names.iter().find_map(at)
}

/// A service that has no capacity for one model while it is shut, and none for another every second time.
fn service() -> Script {
    let (shut, odd) = (AtomicBool::new(false), AtomicBool::new(false));
    Script::by(move |seen, _| match seen.path() {
        "/shut" | "/open" => {
            shut.store(seen.path() == "/shut", Ordering::Relaxed);
            Reply::status(200).text("ok")
        }
        "/page" => Reply::status(200).html("<!doctype html><title>Elsewhere</title><body></body>"),
        _ if seen.json()["model"] == "o5-pro" && !odd.fetch_xor(true, Ordering::Relaxed) => {
            refusal(503, "server_is_overloaded")
        }
        _ if shut.load(Ordering::Relaxed) && seen.json()["model"] == "gpt-5.4" => {
            refusal(503, "server_is_overloaded")
                .header("x-request-id", "req_7f3a21c0")
                .after(Duration::from_millis(60))
        }
        _ => answer().header("x-request-id", "req_1b9d44e2").after(Duration::from_millis(120)),
    })
}

fn answer() -> Reply {
    let event = |name: &str| Event::named(name, json!({"type": name, "delta": "canary-answer"}));
    let mut events = vec![event("response.created")];
    for _ in 0..8 {
        events.extend([Event::pause(Duration::from_millis(90)), event("response.output_text.delta")]);
    }
    events.push(event("response.completed"));
    Reply::sse(events)
}

/// Four weeks of calls that were before: busy in the middle of working days.
fn before(now: u64) -> Vec<CallRecord> {
    const HOUR: u64 = 3_600_000;
    let mut calls = Vec::new();
    for hours in 0..28 * 24 {
        let (hour, day) = ((now / HOUR - hours) % 24, (now / HOUR - hours) / 24 % 7);
        // Nothing but bends: all night none, at noon most, on two days less.
        let noon = 12 - hour.abs_diff(13).min(12);
        let crowd = if matches!(day, 2 | 3) { noon / 3 } else { noon };
        for (model, share) in [("gpt-5.4", 3), ("gpt-5.4-mini", 2), ("o5-pro", 1)] {
            for nth in 0..=crowd * share / 2 {
                let number = calls.len() as u64 + 1;
                let drawn = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let refused = if drawn % 12 < crowd * 3 / 4 { drawn % 4 + u64::from(share == 3) } else { 0 };
                let opened = now - hours * HOUR - (nth * 7 + drawn) % 60 * 60_000;
                calls.push(call(number, opened, model, refused));
            }
        }
    }
    calls[0] = moved(now);
    calls
}

/// One that another model answered, elsewhere.
fn moved(now: u64) -> CallRecord {
    let mut moved = call(1, now - 60_000, "gpt-5.4", 1);
    (moved.pool, moved.request_id) = (Some("main".to_owned()), Some("req_moved".to_owned()));
    moved.sends[1].moved = Some(MovedRecord {
        upstream: "second".to_owned(),
        lane: "1f".to_owned(),
        model: Some("gpt-y".to_owned()),
        why: "circuit_open".to_owned(),
    });
    moved
}

fn call(number: u64, opened: u64, model: &str, refused: u64) -> CallRecord {
    let waited = refused * 2_600;
    let sends = (0..=refused).map(|nth| {
        let began = nth * 2_700;
        let wait = WaitRecord {
            why: WaitWhy::Line,
            began: began.saturating_sub(2_600),
            planned: None,
            took: Some(2_600),
            waiting: Some(2),
            notices: 0,
        };
        let failed = FailedRecord {
            at: began + 90,
            fault: "at_capacity".to_owned(),
            evidence: Some("refused".to_owned()),
            code: None,
            rule: None,
            told: None,
            tokens: None,
        };
        let is_last = nth == refused;
        SendRecord {
            send: u32::try_from(nth).unwrap() + 1,
            wait: (nth > 0).then_some(wait),
            began: Some(began),
            head: Some(began + 80),
            status: Some(if is_last { 200 } else { 503 }),
            failed: (!is_last).then_some(failed),
            ..SendRecord::default()
        }
    });
    let gave_up = refused > 3 && number.is_multiple_of(9);
    let took = waited + 4_000;
    CallRecord {
        run: None,
        call: number,
        opened,
        client: if number.is_multiple_of(3) { "claude_code" } else { "codex" }.to_owned(),
        dialect: "openai_responses".to_owned(),
        operation: "generation".to_owned(),
        transport: "http".to_owned(),
        upstream: "openai".to_owned(),
        model: Some(model.to_owned()),
        profile: "interactive".to_owned(),
        lane: "0f".to_owned(),
        request_id: None,
        pool: None,
        bound: None,
        inherited_sends: 0,
        inherited_failed: 0,
        inherited_resends: 0,
        state: State::Closed,
        sends: sends.collect(),
        left_out: 0,
        committed: Some(waited + 200),
        closed: Some(ClosedRecord {
            outcome: if gave_up { "gave_up" } else { "served" }.to_owned(),
            why: None,
            status: Some(if gave_up { 503 } else { 200 }),
            sends: u32::try_from(refused).unwrap() + 1,
            waited,
            took,
            last_fault: (refused > 0).then(|| "at_capacity".to_owned()),
            capacity_faults: u32::try_from(refused).unwrap(),
            maybe_billed_twice: 0,
            received: 9_000,
            sent: 21_000,
            tokens: None,
        }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_tells_of_an_overload_to_everybody() {
    let page = repository().join("dashboard/tests/page.mjs");
    let Some(chromium) = found(&["chromium", "chromium-browser", "google-chrome"]) else {
        return missing("chromium");
    };
    let Some(node) = found(&["node"]) else { return missing("node") };
    if !repository().join("dashboard/node_modules/playwright-core").exists() {
        return missing("playwright-core in dashboard/node_modules");
    }
    let home = Home::new();
    let now = SystemClock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let calls = before(u64::try_from(now.as_millis()).unwrap() - 30_000);
    assert!(calls.len() > 10_000, "{}", calls.len());
    let mut store = Store::open(&home.path("state/history.sqlite")).unwrap().store;
    let run = Run { kind: "serve".to_owned(), version: "0".to_owned(), pid: 1 };
    let run = store.begin(&run, calls.last().map_or(0, |call| call.opened)).unwrap();
    store.write(run, &calls).unwrap();
    drop(store);

    let up = Upstream::start(service()).await.unwrap();
    let mut relay = home.serve(&["--upstream", &up.url(), "--state-dir", "state"]).await;
    const KEY: &str = "a-token=of+this.relay";
    let locked_home = Home::new();
    locked_home.write(CONFIG, format!("[relay]\ntoken = \"{KEY}\"\n"));
    let locked = locked_home.serve(&["--state-dir", "state"]).await;
    let shots = if std::env::var_os("UPDATE_DOCS").is_some() {
        repository().join("docs/screenshots")
    } else {
        home.path("shots")
    };
    std::fs::create_dir_all(&shots).unwrap();
    let mut look = Command::new(node);
    look.arg(page).current_dir(repository().join("dashboard")).kill_on_drop(true);
    look.env("CHROMIUM", chromium).env("SHOTS", shots).env("UPSTREAM", up.url());
    look.env("RELAY", format!("http://{}", relay.addr)).env("TOKEN", home.read("state/token").trim());
    look.env("LOCKED", format!("http://{}", locked.addr)).env("KEY", KEY);
    // What the browser leaves behind goes with the rest.
    look.env("HOME", home.path(".")).env("TMPDIR", std::env::temp_dir());
    let looked = timeout(WITHIN, look.output()).await.unwrap().unwrap();
    let told =
        String::from_utf8_lossy(&looked.stdout).into_owned() + &String::from_utf8_lossy(&looked.stderr);
    assert!(looked.status.success(), "{told}\n{}", relay.said());
    assert!(told.contains("strangers: ok"), "{told}");
    relay.child.kill().await.unwrap();
}
