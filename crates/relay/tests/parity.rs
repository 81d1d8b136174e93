//! `docs/parity.md` has every row, once, and every file and test that it names is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The parts of the work that a row may wait for.
const LATER: [&str; 6] = [
    "WebSocket",
    "failover, credentials",
    "gate",
    "history, metrics, dashboard",
    "packages",
    "setup, doctor, service",
];

/// How many rows each letter has.
const ROWS: [(char, u32); 4] = [('A', 59), ('B', 61), ('C', 40), ('X', 25)];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The cells of each row whose first one is an id.
fn rows() -> Vec<Vec<String>> {
    let page = fs::read_to_string(docs().join("parity.md")).unwrap_or_default();
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let is_id = |row: &Vec<String>| ROWS.iter().any(|(letter, _)| row[0].starts_with(&format!("{letter}-")));
    page.lines().filter(|line| line.starts_with('|')).map(cells).filter(is_id).collect()
}

/// Where a reference leads, if it is a link: the name that is shown, and the file.
fn link(reference: &str) -> Option<(&str, PathBuf)> {
    let (name, rest) = reference.strip_prefix("[`")?.split_once("`](")?;
    Some((name, docs().join(rest.strip_suffix(')')?)))
}

#[test]
fn every_row_is_there_once() {
    let mut count = BTreeMap::new();
    for row in rows() {
        *count.entry(row[0].clone()).or_insert(0) += 1;
    }
    for (letter, last) in ROWS {
        for number in 1..=last {
            let id = format!("{letter}-{number:02}");
            assert_eq!(count.remove(&id), Some(1), "{id}");
        }
    }
    assert!(count.is_empty(), "ids that nobody knows: {count:?}");
}

#[test]
fn every_row_says_what_it_is_and_is_shown_by_what_exists() {
    for row in rows() {
        assert!(row.iter().all(|cell| !cell.is_empty()), "an empty cell in {row:?}");
        let [id, _, _, shown] = row.as_slice() else {
            // What is not built has a reason instead.
            assert_eq!(row.len(), 3, "{row:?}");
            continue;
        };
        for reference in shown.split("; ") {
            if let Some(part) = reference.strip_prefix("later: ") {
                assert!(LATER.contains(&part), "{id}: {part} is no part of the work");
                continue;
            }
            let Some((name, file)) = link(reference) else { panic!("{id}: {reference} is no link") };
            let text = fs::read_to_string(&file).unwrap_or_default();
            let word = if file.extension().is_some_and(|end| end == "py") { "def" } else { "fn" };
            assert!(text.contains(&format!("{word} {name}(")), "{id}: no {name} in {}", file.display());
        }
    }
}
