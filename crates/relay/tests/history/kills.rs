//! The real program, killed while it writes: what it had told from the file is there afterwards.

use std::collections::BTreeSet;

use relay_sim::{Request, Script, Upstream};
use rusqlite::Connection;
use rustix::process::Signal;
use tokio::time::timeout;

use crate::child::SOON;
use crate::program::{good, turn};
use crate::told::{home, serve};

/// The library's tests kill a process that does nothing but write a hundred times; this one has a relay around it.
const ROUNDS: u64 = 10;

#[tokio::test]
async fn a_kill_under_load_loses_no_call_that_was_told() {
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let home = home();
    let mut told = BTreeSet::new();
    for round in 0..ROUNDS {
        let mut relay = serve(&home, &up).await;
        let addr = relay.addr;
        let load: Vec<_> = (0..4)
            .map(|_| {
                tokio::spawn(async move {
                    // Until the relay is gone.
                    while let Ok(client) = relay_sim::Client::connect(addr).await {
                        if client.patience(SOON).ask(&turn()).await.is_err() {
                            return;
                        }
                    }
                })
            })
            .collect();
        let mut seen = 0;
        while seen < 3 + round % 5 {
            let page = relay.ask(&Request::get("/__steady/calls?before=9999999999999")).await.json();
            let calls = page["calls"].as_array().unwrap();
            let closed = calls.iter().filter(|call| call["state"] == "closed");
            let before = told.len();
            told.extend(closed.map(|call| (call["run"].as_i64().unwrap(), call["call"].as_i64().unwrap())));
            seen += u64::from(told.len() > before);
        }
        relay.signal(Signal::KILL);
        timeout(SOON, relay.child.wait()).await.unwrap().unwrap();
        for task in load {
            timeout(SOON, task).await.unwrap().unwrap();
        }
        let file = Connection::open(home.path("state/history.sqlite")).unwrap();
        let check: String = file.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "round {round}");
        let mut calls = file.prepare("SELECT run, call FROM calls WHERE outcome IS NOT NULL").unwrap();
        let kept = calls.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let kept: BTreeSet<(i64, i64)> = kept.map(Result::unwrap).collect();
        let lost: Vec<_> = told.difference(&kept).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?} of {}", told.len());
    }
    let state = home.path("state").display().to_string();
    let (code, out, said) = home.run(&["stats", "--state-dir", &state]).await;
    assert!(code == 0 && out.contains("100.0 % with the relay"), "{out}{said}");
}
