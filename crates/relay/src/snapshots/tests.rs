//! What stands in a file, how long it is, and how many there are.

use std::path::{Path, PathBuf};

use relay_core::event::{Closing, Labels, Transport};
use relay_core::evidence::Operation;
use serde_json::{Value, json};

use super::file::Snapshot;
use super::*;
use crate::body::Room;
use crate::decode::Encoding;

/// A folder of this test alone, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steady-relay-{}-snapshots-{name}", std::process::id()));
        let _not_there = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn config(folder: &Path, change: impl FnOnce(&mut SnapshotSettings)) -> Arc<Config> {
    let mut config = Config::default();
    config.snapshots.enabled = true;
    config.snapshots.folder = Some(folder.to_owned());
    change(&mut config.snapshots);
    Arc::new(config)
}

fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
    all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

/// A call that gave up, with this body.
fn job(config: &Arc<Config>, call: u64, body: &[u8]) -> Job {
    let labels = Labels {
        client: "codex",
        dialect: "openai_responses",
        operation: Operation::Generation,
        transport: Transport::Http,
        upstream: "openai".into(),
        model: Some("gpt-x".into()),
        profile: "interactive".into(),
        lane: "0f".into(),
        request_id: None,
        pool: None,
        bound: None,
        trace: None,
    };
    let asked = Requested {
        method: Method::POST,
        upstream: Arc::new(Upstream::parse("openai", "https://api.openai.com/v1").unwrap()),
        path_and_query: PathAndQuery::from_static("/v1/responses?key=hunter2"),
        headers: headers(&[("content-type", "application/json"), ("authorization", "Bearer hunter2")]).into(),
        written: Written { encoding: Some(Encoding::Identity), limit: 1 << 30 },
    };
    let mut draft = Draft::of(config, || asked).unwrap();
    let (id, at) = (CallId(call), Moment::ZERO);
    let (labels, inherited) = (labels.into(), relay_core::event::Inherited::default());
    draft.see(id, at, &Event::CallOpened { labels, inherited, wall: 1_764_500_000_000 });
    draft.answered(Answered {
        status: Some(503),
        headers: headers(&[("content-type", "application/json"), ("set-cookie", "hunter2")]),
        body: vec![Bytes::from_static(b"{\"error\":{\"message\":\"busy\",\"token\":\"hunter2\"}}")],
        kind: None,
    });
    draft.see(id, at, &Event::CallClosed(Closing::new(Outcome::GaveUp)));
    let place = Place::none(&Room::new(1 << 20));
    draft
        .ended(CallId(call), Some(3), Some((Bytes::copy_from_slice(body), place)), 1_764_500_000_000 + call)
        .unwrap()
}

#[test]
fn a_file_has_the_request_the_answer_and_the_record_without_secrets() {
    let folder = Folder::new("whole");
    let body = json!({"model": "gpt-x", "input": [{"role": "user", "content": "hi"}], "api_key": "hunter2"});
    let snapshot = Snapshot::of(job(&config(&folder.0, |_| {}), 7, body.to_string().as_bytes()), 3);
    let json: Value = serde_json::from_str(&snapshot.text().unwrap()).unwrap();
    assert_eq!((&json["v"], &json["id"]), (&json!(1), &json!("20251130-105320007-c7")));
    assert_eq!(json["lost_before"], 3);
    assert_eq!(
        json["request"],
        json!({
            "method": "POST",
            "url": "https://api.openai.com/v1/responses?key=[redacted]",
            "headers": [["content-type", "application/json"], ["authorization", "[redacted, 14 bytes]"]],
            "body": {
                "bytes": body.to_string().len(),
                "json": {"model": "gpt-x", "input": [{"role": "user", "content": "hi"}], "api_key": "[redacted]"},
            },
        })
    );
    assert_eq!(json["answer"]["status"], 503);
    assert_eq!(json["answer"]["body"]["json"]["error"], json!({"message": "busy", "token": "[redacted]"}));
    assert_eq!(json["record"]["closed"]["outcome"], "gave_up");
    assert!(!json.to_string().contains("hunter2"), "{json:#}");
    let again: Snapshot = serde_json::from_value(json).unwrap();
    assert_eq!(again, snapshot);
}

#[test]
fn a_long_body_is_shortened_until_the_file_is_short_enough_and_stays_json() {
    let folder = Folder::new("short");
    let settings = config(&folder.0, |snapshots| snapshots.max_size = 16 << 10);
    let turn = |letters: usize| json!({"role": "user", "content": "word ".repeat(letters / 5)});
    for input in [
        json!([turn(40_000), turn(10)]),
        json!((0..5000).map(|_| turn(50)).collect::<Vec<_>>()),
        json!([[[[turn(1 << 20)]]]]),
        json!((0..30_000).map(|n| (format!("name{n}"), n.into())).collect::<serde_json::Map<_, _>>()),
    ] {
        let body = json!({"model": "gpt-x", "input": input}).to_string();
        let snapshot = Snapshot::of(job(&settings, 1, body.as_bytes()), 0);
        let text = snapshot.text().unwrap();
        assert!(text.len() <= 16 << 10, "{}", text.len());
        let kept = snapshot.request.body;
        assert_eq!(kept.bytes, body.len() as u64);
        match kept.json {
            Some(json) => assert!(json["model"] == "gpt-x" && kept.shortened_to.is_some()),
            None => assert_eq!(kept.left_out.as_deref(), Some("it does not fit")),
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_size() {
    let folder = Folder::new("unread");
    let settings = config(&folder.0, |_| {});
    let of = |job: Job| {
        let body = Snapshot::of(job, 0).request.body;
        (body.bytes, body.left_out.unwrap_or_default())
    };
    assert_eq!(of(job(&settings, 1, b"\xff\xfe")), (2, "it is no text of a kind that is known".to_owned()));
    let mut encoded = job(&settings, 1, b"xx");
    encoded.asked.written.encoding = None;
    assert_eq!(of(encoded), (2, "it is encoded in a way that cannot be read".to_owned()));
    assert_eq!(of(job(&settings, 1, &vec![b' '; LONGEST + 1])).1, "it is too long");
}

#[test]
fn the_oldest_go_where_there_are_too_many_or_they_are_too_long() {
    let folder = Folder::new("pruned");
    let few = config(&folder.0, |snapshots| snapshots.max_count = 3);
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("notes.json"), "mine").unwrap();
    for call in 1..=5 {
        let snapshot = Snapshot::of(job(&few, call, b"{}"), 0);
        folder::write(&folder.0, &snapshot, &few.snapshots).unwrap();
    }
    let calls = |folder: &Folder| -> Vec<u64> {
        folder::list(&folder.0).unwrap().0.iter().map(|snapshot| snapshot.record.call).collect()
    };
    assert_eq!(calls(&folder), [5, 4, 3]);
    let size = std::fs::metadata(folder.0.join("20251130-105320005-c5.json")).unwrap().len();
    let small = config(&folder.0, |snapshots| snapshots.max_total = size * 2 + size / 2);
    folder::write(&folder.0, &Snapshot::of(job(&small, 6, b"{}"), 0), &small.snapshots).unwrap();
    assert_eq!(calls(&folder), [6, 5]);
    let tiny = config(&folder.0, |snapshots| snapshots.max_total = 1);
    folder::write(&folder.0, &Snapshot::of(job(&tiny, 7, b"{}"), 0), &tiny.snapshots).unwrap();
    assert_eq!(calls(&folder), [7]);
    assert!(folder.names().contains(&"notes.json".to_owned()), "what is no snapshot stays");
    assert_eq!(folder::named(&folder.0, "last").unwrap().record.call, 7);
    assert_eq!(folder::named(&folder.0, "20251130-105320007-c7").unwrap().record.call, 7);
    for name in ["c7", "7", "3-c7", "3-7", "20251130-105320007-c7.json"] {
        assert_eq!(folder::named(&folder.0, name).unwrap().record.name(), "3-c7", "{name}");
    }
    for id in ["20251130-105320006-c6", "c6", "4-c7", "../x", "notes", "\u{1b}[31m"] {
        assert!(matches!(folder::named(&folder.0, id), Err(folder::Unread::None(_))), "{id}");
    }
}

#[cfg(unix)]
#[test]
fn only_their_owner_can_read_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("private");
    let settings = config(&folder.0, |_| {});
    let snapshots = Snapshots::default();
    snapshots.push(job(&settings, 1, b"{}"));
    snapshots.close();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder.0), folder.names().len()), (0o700, 1));
    assert_eq!(mode(&folder.0.join(&folder.names()[0])), 0o600);
}

#[test]
fn what_cannot_be_written_is_told_and_counted_in_the_next_file() {
    let folder = Folder::new("trouble");
    let taken = Folder::new("taken");
    std::fs::write(&taken.0, "").unwrap();
    let (wrong, right) = (config(&taken.0, |_| {}), config(&folder.0, |_| {}));
    let snapshots = Snapshots::default();
    snapshots.push(job(&wrong, 1, b"{}"));
    snapshots.push(job(&wrong, 2, b"{}"));
    let by = std::time::Duration::from_millis(10);
    for _ in 0..500 {
        if snapshots.state.lost.load(Ordering::Relaxed) == 2 {
            break;
        }
        std::thread::park_timeout(by);
    }
    assert!(snapshots.trouble().is_some());
    snapshots.push(job(&right, 3, b"{}"));
    snapshots.close();
    assert_eq!((snapshots.trouble(), folder::named(&folder.0, "last").unwrap().lost_before), (None, 2));
    snapshots.push(job(&right, 4, b"{}"));
    assert_eq!(folder.names().len(), 1, "nothing is written after the end");
    let _gone = std::fs::remove_file(&taken.0);
}

#[test]
fn what_finds_no_room_is_counted() {
    let folder = Folder::new("room");
    let settings = config(&folder.0, |_| {});
    let snapshots = Snapshots::default();
    // Nobody takes what is in this line.
    let (jobs, _waiting) = sync_channel(ROOM);
    snapshots.line().jobs = Some(jobs);
    for call in 0..ROOM as u64 + 5 {
        snapshots.push(job(&settings, call, b"{}"));
    }
    assert_eq!(snapshots.state.lost.load(Ordering::Relaxed), 5);
}
