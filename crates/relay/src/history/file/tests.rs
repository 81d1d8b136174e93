//! Tests of what keeps the file open, and of a recorder with one.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

use relay_core::event::CallId;
use rusqlite::Connection;

use super::*;
use crate::clock::{RatedClock, SystemClock};
use crate::history::recent::Recent;
use crate::history::record::CallRecord;
use crate::history::store::Reader;
use crate::history::store::tests::{BOUNDS, Folder, full, run};
use crate::history::tests::{opened, served};
use crate::history::{Recorder, Writer};
use crate::observe::Observer as _;

/// A clock that is set by hand.
#[derive(Default)]
struct ByHand(Mutex<Duration>);

impl ByHand {
    fn pass(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }
}

impl Clock for ByHand {
    fn now(&self) -> Moment {
        Moment::after_start(*self.0.lock().unwrap())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// A file there, its clock, and what is said.
fn start(folder: &Folder) -> (File, Arc<ByHand>, Receiver<String>) {
    let clock = Arc::<ByHand>::default();
    let (say, said) = channel();
    let say = move |words: String| drop(say.send(words));
    let file = File::new(folder.file(), run(), BOUNDS, clock.clone(), Box::new(say));
    (file, clock, said)
}

/// Somebody who keeps others from writing.
fn lock(folder: &Folder) -> Connection {
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// The runs and the numbers of the calls in the file.
fn written(folder: &Folder) -> Vec<(i64, u64)> {
    let mut all = Vec::new();
    let see = |call: CallRecord| all.push((call.run.unwrap(), call.call));
    Reader::open(&folder.file()).unwrap().each((0, u64::MAX), see).unwrap();
    all
}

#[tokio::test]
async fn who_waits_until_it_is_written_finds_it_in_the_file() {
    let folder = Folder::new();
    let (file, ..) = start(&folder);
    let recorder = Recorder::start(Writer::to(file)).unwrap();
    recorder.written().await;
    for call in 1..=50 {
        for event in [opened(), served(1, 0)] {
            recorder.see(CallId(call), Moment::ZERO, &event);
        }
        recorder.written().await;
        assert_eq!(written(&folder).len() as u64, call);
    }
    recorder.close();
    recorder.written().await;
}

#[test]
fn one_that_is_locked_at_the_start_is_opened_later() {
    let folder = Folder::new();
    drop(Store::open(&folder.file()).unwrap());
    let other = lock(&folder);
    let (mut file, clock, said) = start(&folder);
    assert!(file.trouble().is_some_and(|why| why.contains("locked")) && file.run().is_none());
    assert!(said.try_iter().collect::<String>().starts_with("calls are not recorded: "));
    drop(other);
    assert_eq!(file.write(vec![Known::of(full(1))]), 0);
    assert!(file.run().is_none(), "its time has not come");
    clock.pass(1);
    assert_eq!(file.write(Vec::new()), 0);
    assert_eq!((file.trouble(), file.next_try(), written(&folder)), (None, None, vec![(1, 1)]));
    assert_eq!(said.try_iter().collect::<Vec<_>>(), ["calls are recorded again"]);
}

#[test]
fn it_is_tried_ever_later_and_only_so_much_waits_for_it() {
    let folder = Folder::new();
    // A folder cannot be made below a file.
    std::fs::write(folder.file().parent().unwrap(), "").unwrap();
    let (mut file, clock, said) = start(&folder);
    let mut pauses = Vec::new();
    for number in 0..9 {
        let pause = file.next_try().unwrap();
        pauses.push(pause.as_secs());
        clock.pass(pause.as_secs());
        file.write(vec![Known::of(full(number))]);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(said.try_iter().count(), 1, "said once");
    assert_eq!(file.write((0..2_000).map(full).map(Known::of).collect()), 1_000);
    std::fs::remove_file(folder.file().parent().unwrap()).unwrap();
    clock.pass(60);
    file.write(Vec::new());
    assert_eq!(written(&folder).len(), UNWRITTEN);
}

#[test]
fn what_could_not_be_written_is_written_at_the_end() {
    let folder = Folder::new();
    let (mut file, _clock, _said) = start(&folder);
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("ALTER TABLE calls RENAME TO elsewhere").unwrap();
    file.write(vec![Known::of(full(1))]);
    other.execute_batch("ALTER TABLE elsewhere RENAME TO calls").unwrap();
    file.end();
    assert_eq!(written(&folder), [(1, 1)]);
}

#[cfg(unix)]
#[test]
fn one_that_is_removed_meanwhile_is_begun_anew() {
    let folder = Folder::new();
    let (mut file, _clock, said) = start(&folder);
    file.write(vec![Known::of(full(1))]);
    // What belongs to it may stay behind, or not.
    for (number, gone) in [(2, &["", "-wal", "-shm"][..]), (3, &[""])] {
        for suffix in gone {
            std::fs::remove_file(folder.file().with_file_name(format!("history.sqlite{suffix}"))).unwrap();
        }
        file.write(vec![Known::of(full(number))]);
        assert_eq!((file.trouble(), written(&folder)), (None, vec![(1, number)]));
        assert!(said.try_iter().collect::<String>().contains("was removed or replaced"));
    }
    file.write(vec![Known::of(full(4))]);
    assert_eq!((written(&folder), said.try_iter().count()), (vec![(1, 3), (1, 4)], 0));
}

#[test]
fn one_that_breaks_meanwhile_is_put_aside() {
    let folder = Folder::new();
    let (mut file, clock, said) = start(&folder);
    file.write(vec![Known::of(full(1))]);
    let other = Connection::open(folder.file()).unwrap();
    let broken = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'x' WHERE name = 'calls'; \
                  PRAGMA schema_version = 99";
    other.execute_batch(broken).unwrap();
    drop(other);
    file.write(vec![Known::of(full(2))]);
    clock.pass(1);
    file.write(vec![Known::of(full(3))]);
    assert_eq!((file.trouble(), written(&folder)), (None, vec![(1, 2), (1, 3)]));
    assert!(said.try_iter().any(|words| words.contains(".damaged-1")));
}

#[test]
fn memory_knows_before_the_file_does_and_time_alone_has_it_tried_again() {
    let folder = Folder::new();
    let clock = Arc::new(RatedClock::new(Arc::new(SystemClock), 100.try_into().unwrap()));
    let recent = Arc::<OnceLock<Arc<Recent>>>::default();
    let (say, said) = channel();
    let seen = Arc::clone(&recent);
    let is_there = move || seen.get().is_some_and(|recent: &Arc<Recent>| recent.call(1).is_some());
    let say = move |words: String| drop(say.send((words, is_there())));
    let file = File::new(folder.file(), run(), BOUNDS, clock.clone(), Box::new(say));
    let recorder = Recorder::start(Writer::to(file)).unwrap();
    recent.set(Arc::clone(recorder.recent())).unwrap();
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("ALTER TABLE calls RENAME TO elsewhere").unwrap();
    recorder.see(CallId(1), Moment::ZERO, &opened());
    recorder.see(CallId(1), Moment::ZERO, &served(1, 1));
    let heard = || said.recv_timeout(Duration::from_secs(30)).unwrap();
    let (words, was_there) = heard();
    assert!(words.starts_with("calls are not recorded: ") && was_there, "{words}");
    other.execute_batch("ALTER TABLE elsewhere RENAME TO calls").unwrap();
    assert_eq!(heard(), ("calls are recorded again".to_owned(), true));
    assert_eq!(written(&folder), [(1, 1)]);
}
