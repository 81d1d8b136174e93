//! Tests of the file.

use std::path::PathBuf;

use super::*;
use crate::clock::drawn;
use crate::history::record::{
    ClosedRecord, FailedRecord, MissedRecord, SendRecord, State, Tokens, WaitRecord, WaitWhy, WayRecord,
};
use crate::history::tests::call;

/// A folder that goes with its test.
pub(in crate::history) struct Folder(PathBuf);

impl Folder {
    pub(in crate::history) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("steady-history-{}", drawn()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(in crate::history) fn file(&self) -> PathBuf {
        self.0.join("state").join("history.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

pub(in crate::history) fn run() -> Run {
    Run { kind: "serve".to_owned(), version: "0.1.0".to_owned(), pid: 7 }
}

pub(in crate::history) const BOUNDS: Bounds = Bounds { age: Duration::from_secs(3600), size: 1 << 30 };

/// A call in which everything happened.
pub(in crate::history) fn full(number: u64) -> CallRecord {
    let tokens = Some(Tokens { input: 100, cached: 60, output: 9 });
    CallRecord {
        request_id: Some(format!("client-{number}")),
        pool: None,
        bound: None,
        inherited_sends: 2,
        inherited_failed: 1,
        inherited_resends: 1,
        sends: vec![
            SendRecord {
                send: 1,
                began: Some(0),
                head: Some(10),
                status: Some(503),
                request_id: Some(format!("req-{number}")),
                failed: Some(FailedRecord {
                    at: 11,
                    fault: "at_capacity".to_owned(),
                    evidence: Some("refused".to_owned()),
                    code: Some("server_is_overloaded".to_owned()),
                    rule: Some("code `server_is_overloaded`".to_owned()),
                    told: Some(4_000),
                    tokens,
                }),
                ..SendRecord::default()
            },
            SendRecord {
                send: 2,
                wait: Some(WaitRecord {
                    why: WaitWhy::Line,
                    began: 11,
                    planned: Some(4_000),
                    took: Some(5_000),
                    waiting: Some(3),
                    notices: 1,
                }),
                began: Some(5_011),
                moved: None,
                may_run_twice: true,
                way: Some(WayRecord {
                    by: None,
                    missed: vec![MissedRecord { by: "direct".to_owned(), why: "dns".to_owned() }],
                }),
                ..SendRecord::default()
            },
        ],
        committed: Some(6_000),
        closed: Some(ClosedRecord {
            outcome: "served".to_owned(),
            why: Some("x".to_owned()),
            status: Some(200),
            sends: 2,
            waited: 5_000,
            took: 9_000,
            last_fault: Some("at_capacity".to_owned()),
            capacity_faults: 1,
            maybe_billed_twice: 1,
            received: 300,
            sent: 4_000,
            tokens,
        }),
        ..call(number, State::Closed)
    }
}

#[test]
fn what_is_written_is_read_as_it_was() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let number = store.begin(&run(), 1_000).unwrap();
    let open = CallRecord { model: None, ..call(2, State::Waiting) };
    store.write(number, &[full(1), open.clone()]).unwrap();
    let reader = Reader::open(&folder.file()).unwrap();
    let with_run = |call: CallRecord| CallRecord { run: Some(number), ..call };
    assert_eq!(reader.before(u64::MAX, 10).unwrap(), [with_run(open), with_run(full(1))]);
    assert_eq!(reader.before(1_000_002, 10).unwrap(), [with_run(full(1))]);
    // The same call again, as it is later.
    store.write(number, &[full(2)]).unwrap();
    let mut all = Vec::new();
    reader.each((0, u64::MAX), |call| all.push(call)).unwrap();
    assert_eq!(all, [with_run(full(1)), with_run(full(2))]);
    let shorter = CallRecord { left_out: 1, sends: full(2).sends.split_off(1), ..full(2) };
    store.write(number, std::slice::from_ref(&shorter)).unwrap();
    assert_eq!(
        reader.named(&Name::of("c2"), 9).unwrap(),
        [with_run(shorter)],
        "what is left out goes from the file, too"
    );
}

#[test]
fn a_call_is_found_by_each_of_its_names() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let runs = [store.begin(&run(), 1_000).unwrap(), store.begin(&run(), 2_000).unwrap()];
    store.write(runs[0], &[full(1), full(2)]).unwrap();
    store.write(runs[1], &[CallRecord { opened: 9_000_000, ..full(1) }]).unwrap();
    let reader = Reader::open(&folder.file()).unwrap();
    let found = |name: &str| {
        let calls = reader.named(&Name::of(name), 10).unwrap();
        calls.iter().map(|call| (call.run.unwrap(), call.call)).collect::<Vec<_>>()
    };
    assert_eq!(found("c1"), [(runs[1], 1), (runs[0], 1)]);
    assert_eq!(found("2"), [(runs[0], 2)]);
    assert_eq!(found(&format!("{}-c1", runs[0])), [(runs[0], 1)]);
    assert_eq!(found("req-2"), [(runs[0], 2)]);
    assert_eq!(found("client-2"), [(runs[0], 2)]);
    assert_eq!(found("' OR 1=1 --"), []);
}

#[test]
fn the_last_call_is_the_newest_that_met_a_fault() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let reader = Reader::open(&folder.file()).unwrap();
    assert_eq!((reader.last().unwrap(), reader.last_run().unwrap()), (None, None));
    let number = store.begin(&run(), 1_000).unwrap();
    let last = || reader.last().unwrap().map(|call| call.call);
    let served = |number| {
        let closed = ClosedRecord { last_fault: None, ..full(number).closed.unwrap() };
        CallRecord { closed: Some(closed), ..call(number, State::Closed) }
    };
    store.write(number, &[served(1), call(2, State::Sending)]).unwrap();
    assert_eq!(last(), Some(2), "none met a fault");
    store.write(number, &[full(3), served(4)]).unwrap();
    assert_eq!(last(), Some(3));
    let left = ClosedRecord { outcome: "client_left".to_owned(), ..served(5).closed.unwrap() };
    store.write(number, &[CallRecord { closed: Some(left), ..served(5) }, served(6)]).unwrap();
    assert_eq!(last(), Some(5), "it was not served");
    let mut all = Vec::new();
    reader.each_of_run(number, |call| all.push(call.call)).unwrap();
    assert_eq!(all, [1, 2, 3, 4, 5, 6]);
    let of = |number, ended| Some(RunRecord { run: number, started: 1_000, ended, kind: "serve".to_owned() });
    assert_eq!(reader.run(number).unwrap(), of(number, None));
    store.end(number, 9_000).unwrap();
    assert_eq!((reader.last_run().unwrap(), reader.run(99).unwrap()), (of(number, Some(9_000)), None));
}

#[test]
fn what_is_too_old_or_too_much_goes_oldest_first() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let number = store.begin(&run(), 1_000).unwrap();
    let calls: Vec<_> = (0..2_000).map(|at| CallRecord { opened: at * 1_000, ..full(at) }).collect();
    store.write(number, &calls).unwrap();
    let reader = Reader::open(&folder.file()).unwrap();
    let oldest = || {
        let mut oldest = None;
        reader.each((0, u64::MAX), |call| oldest = oldest.or(Some(call.opened))).unwrap();
        oldest
    };
    store.prune(BOUNDS, 3_600_000 + 500_000).unwrap();
    assert_eq!(oldest(), Some(500_000));
    assert_eq!(reader.before(u64::MAX, 1).unwrap()[0].sends.len(), 2);
    let before = store.size().unwrap();
    store.prune(Bounds { size: before / 2, ..BOUNDS }, 0).unwrap();
    assert!(store.size().unwrap() <= before / 2);
    assert!(oldest() > Some(500_000) && reader.before(u64::MAX, 1).unwrap()[0].call == 1_999);
    store.prune(Bounds { size: 0, ..BOUNDS }, 0).unwrap();
    assert_eq!(oldest(), None, "and where there is room for none, all go");
}

#[test]
fn a_damaged_file_is_put_aside_and_a_newer_one_left_alone() {
    let folder = Folder::new();
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    for number in 1..=2 {
        fs::write(folder.file(), format!("no database {number} ").repeat(500)).unwrap();
        let opened = Store::open(&folder.file()).unwrap();
        let aside = opened.damaged.unwrap();
        assert!(
            fs::read_to_string(&aside).unwrap().starts_with(&format!("no database {number}")),
            "{aside:?}"
        );
    }
    let store = Store::open(&folder.file()).unwrap();
    assert!(store.damaged.is_none());
    store.store.connection.pragma_update(None, "user_version", 9).unwrap();
    drop(store);
    for error in [Store::open(&folder.file()).unwrap_err(), Reader::open(&folder.file()).unwrap_err()] {
        assert!(matches!(error, StoreError::Newer { found: 9, .. }), "{error}");
    }
    assert!(folder.file().exists());
}

#[test]
fn where_there_is_none_a_reader_says_so() {
    let folder = Folder::new();
    assert!(matches!(Reader::open(&folder.file()).unwrap_err(), StoreError::Missing(_)));
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    fs::write(folder.file(), "").unwrap();
    assert!(matches!(Reader::open(&folder.file()).unwrap_err(), StoreError::Missing(_)));
}

#[cfg(unix)]
#[test]
fn what_a_link_leads_to_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let target = folder.0.join("shared.sqlite");
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&target, folder.file()).unwrap();
    let store = Store::open(&folder.file()).unwrap().store;
    assert!(store.is_in_place());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let number = store.begin(&run(), 0).unwrap();
    store.write(number, &[full(1)]).unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(folder.file().parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        seen += 1;
    }
    assert_eq!(seen, 3, "the file, its log and its index");
}

#[test]
fn one_whose_first_page_alone_is_whole_is_put_aside_when_a_run_begins() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let number = store.begin(&run(), 0).unwrap();
    let calls: Vec<_> = (0..500).map(full).collect();
    store.write(number, &calls).unwrap();
    drop(store);
    let mut bytes = fs::read(folder.file()).unwrap();
    bytes[4096..].fill(0xA5);
    fs::write(folder.file(), bytes).unwrap();
    let (mut opened, number) = Store::open_for(&folder.file(), &run(), 0).unwrap();
    assert!(opened.damaged.is_some_and(|aside| aside.exists()));
    opened.store.write(number, &[full(1)]).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_in_its_place_is_refused_at_once() {
    let folder = Folder::new();
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(folder.file()).status().unwrap().success());
    assert!(matches!(Store::open(&folder.file()).unwrap_err(), StoreError::File { .. }));
    assert!(folder.file().exists());
}

#[test]
fn two_relays_share_it() {
    let folder = Folder::new();
    let mut stores = [(); 2].map(|()| Store::open(&folder.file()).unwrap().store);
    let numbers = stores.each_mut().map(|store| store.begin(&run(), 0).unwrap());
    assert_ne!(numbers[0], numbers[1]);
    std::thread::scope(|scope| {
        for (store, number) in stores.iter_mut().zip(numbers) {
            scope.spawn(move || {
                for call in 0..200 {
                    store.write(number, &[full(call)]).unwrap();
                }
            });
        }
    });
    let reader = Reader::open(&folder.file()).unwrap();
    assert_eq!(reader.before(u64::MAX, 1_000).unwrap().len(), 400);
}

/// What was released, by version: each is a file as that version left it.
const RELEASED: [(i64, &str); 3] = [
    (1, include_str!("released/version-1.sql")),
    (2, include_str!("released/version-2.sql")),
    (3, include_str!("released/version-3.sql")),
];

#[test]
fn a_file_of_each_released_version_is_read_and_written() {
    assert_eq!(RELEASED.map(|(version, _)| version).to_vec(), (1..=schema::VERSION).collect::<Vec<_>>());
    for (version, sql) in RELEASED {
        let folder = Folder::new();
        fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
        let made = Connection::open(folder.file()).unwrap();
        made.execute_batch(sql).unwrap();
        assert_eq!(schema::version(&made).unwrap(), version);
        drop(made);
        let read = || {
            let reader = Reader::open(&folder.file()).unwrap();
            let mut all = Vec::new();
            reader.each((0, u64::MAX), |call| all.push(call)).unwrap();
            (all, [1, 2].map(|run| reader.run(run).unwrap()))
        };
        let before = read();
        insta::assert_snapshot!(
            format!("version_{version}"),
            serde_json::to_string_pretty(&before.0).unwrap()
        );
        assert_eq!(before.1[0].as_ref().unwrap().ended, Some(1_796_043_600_000));
        // Whoever writes brings it up to date, and loses nothing.
        let mut store = Store::open(&folder.file()).unwrap().store;
        assert_eq!(schema::version(&store.connection).unwrap(), schema::VERSION);
        assert_eq!(read(), before);
        assert_eq!(store.begin(&run(), 3_000_000_000_000).unwrap(), 3, "numbers of runs go on");
        store.write(3, &[CallRecord { opened: 3_000_000_000_000, ..full(1) }]).unwrap();
        assert_eq!(read().0.len(), before.0.len() + 1);
    }
}

const PAGE: &str = include_str!("../../../../../docs/history.md");

/// What stands between two words of the page.
fn part(from: &str, to: &str) -> &'static str {
    PAGE.split_once(from).unwrap().1.split(to).next().unwrap()
}

#[test]
fn the_page_tells_each_column_and_its_question_is_answered() {
    let file = Connection::open_in_memory().unwrap();
    file.execute_batch(RELEASED.last().unwrap().1).unwrap();
    for (heading, table) in [("Runs", "runs"), ("Calls", "calls"), ("Sends", "sends")] {
        let rows = part(&format!("\n### {heading}\n"), "\n#").lines();
        let told: Vec<_> =
            rows.filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0)).collect();
        let mut columns = file.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        let there: Vec<String> =
            columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(told, there, "{table}");
    }
    let mut question = file.prepare(part("```sql\n", "```")).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?, row.get(3)?));
    let found: Vec<(String, i64, f64)> = question.query_map([], row).unwrap().map(Result::unwrap).collect();
    assert!(found.contains(&("broken_stream".to_owned(), 1, 16.45)), "{found:?}");
}

/// Where a killed process writes to; unset where this is a test like all others.
const KILLED: &str = "STEADY_RELAY_TEST_HISTORY";

/// Not a test by itself: what [`a_kill_takes_no_call_that_was_told`] starts and kills. It tells each call once it is
/// written.
#[test]
fn writes_until_it_is_killed() {
    use std::io::Write as _;
    let Some(path) = std::env::var_os(KILLED).map(PathBuf::from) else { return };
    let mut store = Store::open(&path).unwrap().store;
    let number = store.begin(&run(), 1_000).unwrap();
    let mut out = io::stdout();
    for first in (1..).step_by(5) {
        let opened = |call: u64| u64::try_from(number).unwrap() * 1_000_000 + call;
        let calls: Vec<_> =
            (first..first + 5).map(|call| CallRecord { opened: opened(call), ..full(call) }).collect();
        store.write(number, &calls).unwrap();
        // Both kinds of work that a relay does.
        if first % 50 == 1 {
            store.prune(Bounds { size: 1 << 20, ..BOUNDS }, 1_000_000).unwrap();
        }
        writeln!(out, "wrote {number} {first}").unwrap();
    }
}

#[test]
fn a_kill_takes_no_call_that_was_told() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    let mut told = 0;
    for round in 0..100_u64 {
        let mut writing = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "history::store::tests::writes_until_it_is_killed", "--nocapture"])
            .env(KILLED, folder.file())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writing.stdout.take().unwrap()).lines();
        let numbers = |line: String| {
            let (run, call) = line.split_once("wrote ")?.1.split_once(' ')?;
            Some((run.parse::<i64>().ok()?, call.parse::<u64>().ok()?))
        };
        // After a number of writes that differs from round to round, in the middle of another one.
        let wanted = 1 + round * 7 % 13;
        let mut last = None;
        let mut seen = 0;
        while seen < wanted {
            last = numbers(lines.next().unwrap().unwrap()).or(last);
            seen += u64::from(last.is_some());
        }
        writing.kill().unwrap();
        writing.wait().unwrap();
        // What it had said before it was dead counts, too; the last line may be half of one.
        let rest: Vec<_> = lines.map_while(Result::ok).collect();
        let whole = rest.len().saturating_sub(1);
        let (run, call) = rest.into_iter().take(whole).filter_map(numbers).next_back().or(last).unwrap();
        let reader = Reader::open(&folder.file()).unwrap();
        let check: String =
            reader.connection().query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "round {round}");
        let mut found = 0;
        reader
            .each_of_run(run, |call| {
                assert_eq!(call.sends.len(), 2, "round {round}: a call is there as a whole");
                found = found.max(call.call);
            })
            .unwrap();
        assert!(found >= call + 4, "round {round}: {found} is the last, {call} and those after it were told");
        told += 1;
    }
    assert_eq!(told, 100);
}

#[test]
fn what_sums_need_is_told_by_the_columns_as_by_the_records() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.file()).unwrap().store;
    let number = store.begin(&run(), 1_000).unwrap();
    let (calls, _) = crate::history::fate::tests::ends();
    store.write(number, &calls).unwrap();
    let mut found = Vec::new();
    Reader::open(&folder.file()).unwrap().points(0, |point| found.push(point)).unwrap();
    let mut told: Vec<_> = calls.iter().map(crate::history::Point::of).collect();
    let key = |point: &crate::history::Point| format!("{point:?}");
    found.sort_by_key(key);
    told.sort_by_key(key);
    assert_eq!(found, told);
}
