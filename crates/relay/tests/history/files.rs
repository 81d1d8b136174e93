//! Where the file is not what it should be, calls are relayed all the same, and whoever asks is told.

use relay_sim::{Request, Script, Upstream};
use serde_json::Value;

use crate::program::{CONFIG, Home, Serving, good, turn};
use crate::soon::soon;
use crate::told::{home, serve};

/// Relays a call, whatever the file is like; what is said about the file, and how many calls are in memory.
async fn relays(home: &Home, words: &str) {
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let mut relay = serve(home, &up).await;
    relay.says(words).await;
    assert!(relay.ask(&turn()).await.text().contains("response.completed"));
    soon("the call is not in memory", async || {
        let page = relay.ask(&Request::get("/__steady/calls")).await.json();
        page["calls"].as_array()?.iter().any(|call| call["state"] == "closed").then_some(())
    })
    .await;
}

async fn refuses(home: &Home, words: &str) {
    let state = home.path("state").display().to_string();
    for verb in ["why", "stats"] {
        let (code, out, said) = home.run(&[verb, "--state-dir", &state]).await;
        assert_eq!((code, out.as_str()), (1, ""), "{said}");
        assert!(said.starts_with("error: ") && said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn one_that_is_switched_off_is_not_made() {
    let home = home();
    refuses(&home, "there is no history at ").await;
    home.write(CONFIG, home.read(CONFIG) + "[history]\nenabled = false\n");
    relays(&home, "listening on").await;
    assert!(!home.path("state/history.sqlite").exists());
    refuses(&home, "the history is switched off (`history.enabled`)\nhint: ").await;
}

#[tokio::test]
async fn a_damaged_one_is_put_aside() {
    let home = home();
    std::fs::create_dir_all(home.path("state")).unwrap();
    home.write("state/history.sqlite", "no database ".repeat(500));
    refuses(&home, "cannot be used: ").await;
    relays(&home, "the history was damaged").await;
    assert!(home.read("state/history.sqlite.damaged-1").starts_with("no database"));
}

#[tokio::test]
async fn a_newer_one_is_left_alone() {
    let home = home();
    relays(&home, "listening on").await;
    let path = home.path("state/history.sqlite");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 9).unwrap();
    drop(file);
    refuses(&home, "is of a newer steady-relay\nhint: ").await;
    relays(&home, "is of a newer steady-relay").await;
    let file = rusqlite::Connection::open(&path).unwrap();
    let version: i64 = file.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 9);
}

/// Root may write everywhere.
#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(unix)]
#[tokio::test]
async fn where_it_cannot_be_written_calls_go_on() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |home: &Home, name: &str, mode: u32| {
        std::fs::set_permissions(home.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // A folder that is a file stops even root.
    let home = home();
    home.write(CONFIG, home.read(CONFIG) + "[history]\nfile = \"blocked/history.sqlite\"\n");
    std::fs::create_dir_all(home.path("config/steady-relay")).unwrap();
    home.write("config/steady-relay/blocked", "");
    relays(&home, "calls are not recorded: ").await;
    if is_root() {
        return;
    }
    let home = crate::told::home();
    relays(&home, "listening on").await;
    mode(&home, "state/history.sqlite", 0o400);
    relays(&home, "calls are not recorded: ").await;
    // It can be read all the same.
    let state = home.path("state").display().to_string();
    let (code, out, said) = home.run(&["why", "--state-dir", &state]).await;
    assert!(code == 0 && out.starts_with("1-c1 (serve)"), "{out}{said}");
}

#[tokio::test]
async fn the_file_can_be_asked_by_a_relay_and_by_others_at_once() {
    let home = home();
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let relay = serve(&home, &up).await;
    for _ in 0..5 {
        relay.ask(&turn()).await;
    }
    soon("they are not in the file", async || {
        let page = relay.ask(&Request::get("/__steady/calls?before=9999999999999")).await.json();
        page["calls"].as_array().is_some_and(|calls| calls.len() == 5).then_some(())
    })
    .await;
    let state = home.path("state").display().to_string();
    let (code, out, _) = home.run(&["stats", "--json", "--state-dir", &state]).await;
    let page: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &page["sums"]["calls"]), (0, &5.into()));
}

/// Whether a call that is made now comes to be in the file.
async fn is_recorded(relay: &Serving) {
    let opened = || async {
        let page = relay.ask(&Request::get("/__steady/calls?before=9999999999999&limit=1")).await;
        if page.status == 200 { page.json()["calls"][0]["opened"].as_u64() } else { None }
    };
    let before = opened().await;
    assert!(relay.ask(&turn()).await.text().contains("response.completed"));
    soon("it is not in the file", async || (opened().await > before).then_some(())).await;
}

#[tokio::test]
async fn one_that_is_locked_at_the_start_is_written_once_it_is_free() {
    let home = home();
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    drop(serve(&home, &up).await);
    let file = rusqlite::Connection::open(home.path("state/history.sqlite")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut relay = serve(&home, &up).await;
    relay.says("calls are not recorded: ").await;
    drop(file);
    relay.says("calls are recorded again").await;
    is_recorded(&relay).await;
}

#[cfg(unix)]
#[tokio::test]
async fn one_that_is_removed_meanwhile_is_begun_anew() {
    let home = home();
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let mut relay = serve(&home, &up).await;
    is_recorded(&relay).await;
    for name in ["history.sqlite", "history.sqlite-wal", "history.sqlite-shm"] {
        std::fs::remove_file(home.path(&format!("state/{name}"))).unwrap();
    }
    is_recorded(&relay).await;
    relay.says("was removed or replaced while the relay runs").await;
}
