//! Tests of the file.

use std::path::PathBuf;

use super::*;
use crate::clock::drawn;
use crate::history::record::{ClosedRecord, FailedRecord, SendRecord, State, Tokens, WaitRecord, WaitWhy};
use crate::history::tests::call;

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("steady-history-{}", drawn()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("state").join("history.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

fn run() -> Run {
    Run { kind: "serve".to_owned(), version: "0.1.0".to_owned(), pid: 7 }
}

const BOUNDS: Bounds = Bounds { age: Duration::from_secs(3600), size: 1 << 30 };

/// A call in which everything happened.
fn full(number: u64) -> CallRecord {
    let tokens = Some(Tokens { input: 100, cached: 60, output: 9 });
    CallRecord {
        request_id: Some(format!("client-{number}")),
        inherited_sends: 2,
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
                may_run_twice: true,
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
        reader.named("c2", 9).unwrap(),
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
        let calls = reader.named(name, 10).unwrap();
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
