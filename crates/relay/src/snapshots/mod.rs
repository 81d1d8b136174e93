//! What is kept of calls that end badly: a file for each, with the request, the answer and the record of the call,
//! without secrets ([`relay_core::redact::kept`]).
//!
//! ```text
//!  open call: draft --ends badly--> line (bounded) --> thread: redact, shorten, write, remove the oldest
//! ```
//!
//! As long as a call is open, its draft holds what the call itself holds: its head, and the head of its answer. The body
//! is the one that is kept for a resend; it goes to the thread with its place in the room for bodies, or not at all. What
//! finds no room in the line is counted, which the next file tells.

pub mod file;
pub mod folder;
pub mod replay;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, Subcommand};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use relay_core::Moment;
use relay_core::config::{Config, SnapshotSettings};
use relay_core::event::{CallId, Event, Outcome};

use crate::body::Place;
use crate::body_text::Written;
use crate::history::Single;
use crate::history::record::CallRecord;
use crate::priority;
use crate::target::Upstream;

/// The most snapshots that wait to be written.
const ROOM: usize = 16;
/// A longer body is not read: what is made of it in memory is many times as long.
const LONGEST: usize = 8 << 20;
/// The most of an answer that is held for it; what tells of an error is short.
const ANSWER: usize = 256 << 10;
/// How long the end of the relay waits for the last ones.
const LAST: Duration = Duration::from_secs(2);

/// `steady-relay snapshots`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// What to do with them.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// List them, the newest first.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print one: its request, its answer, and how the call ended.
    Show {
        /// Its name in the list, or what the log, the history or a service calls its call
        #[arg(default_value = "last")]
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say what the present settings would make of one, without sending it.
    ///
    /// Prints the request that would be sent and decides anew about the answer that came, by the rules that are in force
    /// now. Nothing is ever sent: what may have run is not run again.
    Replay {
        /// Its name in the list, or what the log, the history or a service calls its call
        #[arg(default_value = "last")]
        id: String,
        /// Send nothing; needed, since nothing else can be done.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The request of a call, as it goes to its upstream.
pub(crate) struct Requested {
    pub(crate) method: Method,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) path_and_query: PathAndQuery,
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) written: Written,
}

/// The answer that told of the failure.
pub(crate) struct Answered {
    pub(crate) status: Option<u16>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<Bytes>,
    /// How its body is to be read, where its headers do not say.
    pub(crate) kind: Option<&'static str>,
}

/// What would be kept of an open call.
pub(crate) struct Draft {
    config: Arc<Config>,
    asked: Requested,
    answered: Option<Answered>,
    seen: Single,
}

impl Draft {
    /// Of this request, where the settings want any.
    pub(crate) fn of(config: &Arc<Config>, asked: impl FnOnce() -> Requested) -> Option<Box<Self>> {
        config.keeps_snapshots().then(|| {
            let seen = Single::default();
            Box::new(Self { config: Arc::clone(config), asked: asked(), answered: None, seen })
        })
    }

    /// Something happened to the call. An end that nobody wants to read of is not held.
    pub(crate) fn see(&self, call: CallId, at: Moment, event: &Event) {
        if !matches!(event, Event::CallClosed(closing) if !self.wants(closing.outcome)) {
            self.seen.see(call, at, event);
        }
    }

    /// Whether such an end is wanted.
    pub(crate) fn wants(&self, outcome: Outcome) -> bool {
        self.config.snapshots.outcomes.contains(&outcome)
    }

    /// This answer told of it. Of a long one the beginning is held.
    pub(crate) fn answered(&mut self, mut answered: Answered) {
        let mut room = ANSWER;
        answered.body.retain(|piece| {
            let fits = piece.len() <= room;
            room = if fits { room - piece.len() } else { 0 };
            fits
        });
        self.answered = Some(answered);
    }

    /// The call of this run has ended; its body, where it is still kept.
    pub(crate) fn ended(
        self,
        call: CallId,
        run: Option<i64>,
        body: Option<(Bytes, Place)>,
        wall: u64,
    ) -> Option<Job> {
        let record = CallRecord { run, ..self.seen.record(call)? };
        let folder = self.config.snapshots_folder()?;
        let body = match body {
            Some((bytes, place)) if bytes.len() <= LONGEST => Kept::Body(bytes, place),
            Some(_) => Kept::Not("it is too long"),
            None if record.committed.is_some() => Kept::Not("it was let go when the answer began"),
            None => Kept::Not("it was not kept"),
        };
        let settings = self.config.snapshots.clone();
        Some(Job { at: wall, asked: self.asked, body, answered: self.answered, record, settings, folder })
    }
}

/// The body of a request, or why there is none.
pub(crate) enum Kept {
    Body(Bytes, #[expect(dead_code, reason = "it counts as held until it is dropped")] Place),
    Not(&'static str),
}

/// What is to be written.
pub(crate) struct Job {
    /// When the call ended, in milliseconds since 1970.
    at: u64,
    asked: Requested,
    body: Kept,
    answered: Option<Answered>,
    record: CallRecord,
    settings: SnapshotSettings,
    folder: std::path::PathBuf,
}

/// The line of what is to be written, and the thread that does it, once there is any.
#[derive(Default)]
pub(crate) struct Snapshots {
    line: Mutex<Line>,
    state: Arc<State>,
}

#[derive(Default)]
struct Line {
    jobs: Option<SyncSender<Job>>,
    /// Ends with the thread.
    done: Option<Receiver<()>>,
    ended: bool,
}

#[derive(Default)]
struct State {
    lost: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Snapshots {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in the way of writing; `None`: nothing was, the last time.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands over what is to be written; never waits for it.
    pub(crate) fn push(&self, job: Job) {
        let mut line = self.line();
        if line.jobs.is_none() && !line.ended {
            match start(Arc::clone(&self.state)) {
                Ok((jobs, done)) => (line.jobs, line.done) = (Some(jobs), Some(done)),
                Err(error) => self.state.is_in_the_way(Some(error.to_string())),
            }
        }
        let left = match &line.jobs {
            Some(jobs) => jobs.try_send(job).map_err(|error| match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => {}
            }),
            None => Err(()),
        };
        if left.is_err() {
            self.state.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what is left, as far as that takes a moment only.
    pub(crate) fn close(&self) {
        let mut line = self.line();
        line.ended = true;
        line.jobs = None;
        if let Some(done) = line.done.take() {
            match done.recv_timeout(LAST) {
                // Written, or stuck: either way the relay ends now.
                Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl State {
    fn is_in_the_way(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

fn start(state: Arc<State>) -> std::io::Result<(SyncSender<Job>, Receiver<()>)> {
    let (jobs, waiting) = sync_channel::<Job>(ROOM);
    let (alive, done) = channel::<()>();
    std::thread::Builder::new().name("snapshots".to_owned()).spawn(move || {
        let _alive = alive;
        priority::give_way();
        for job in waiting {
            let lost = state.lost.swap(0, Ordering::Relaxed);
            let (folder, settings) = (job.folder.clone(), job.settings.clone());
            let written = folder::write(&folder, &file::Snapshot::of(job, lost), &settings);
            if written.is_err() {
                state.lost.fetch_add(lost + 1, Ordering::Relaxed);
            }
            state.is_in_the_way(written.err().map(|error| error.to_string()));
        }
    })?;
    Ok((jobs, done))
}

#[cfg(test)]
mod tests;
