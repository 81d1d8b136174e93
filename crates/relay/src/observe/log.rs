//! The log: silent when healthy, one line per wait, one closing line per call that was retried; more where the level
//! asks for it. Lines go to standard error and, where one is named, to a file. Writing never slows a call.

mod queue;
mod record;
mod rotate;
mod words;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use relay_core::Moment;
use relay_core::config::{LogFormat, LogLevel, LogSettings};
use relay_core::event::{CallId, Event, Labels};
use relay_core::gate::View;

use self::queue::{Queue, Sink};
use self::record::{Body, Field, Medium, Record};
use self::rotate::{Around, Rotating};
use self::words::{Before, level, record, words};
use super::live::{Live, Screen, Sources};
use super::tail::Tail;
use super::{LaneName, Notice, Observer};
use crate::clock::{Clock, wall_ms};
use crate::terminal;
use crate::words::{lang, start};

/// A time of so many milliseconds since 1970, as in the log.
pub(crate) fn timestamp_of(at: u64) -> String {
    record::timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis(at))
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be written.
    #[error("{}", start::no_log_file(lang(), &path.display().to_string(), &source.to_string()))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no thread to write with.
    #[error("{}", start::no_log(lang(), &.0.to_string()))]
    NoThread(io::Error),
}

/// Writes log lines.
pub struct Log {
    clock: Arc<dyn Clock>,
    /// The place of the level in [`LogLevel::ALL`].
    level: Arc<AtomicUsize>,
    outlets: Vec<Outlet>,
    /// The last lines.
    tail: Arc<Tail>,
    /// Standard error, where it is a terminal for people.
    screen: Option<Arc<Terminal>>,
    /// The lines on it that are rewritten.
    live: OnceLock<Live>,
    // The labels of open calls; events carry none but the first.
    open: Mutex<BTreeMap<CallId, Open>>,
}

/// An open call.
struct Open {
    labels: Arc<Labels>,
    before: Before,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log to {} places", self.outlets.len())
    }
}

struct Outlet {
    format: LogFormat,
    medium: Medium,
    queue: Arc<Queue>,
}

/// Standard error: the one place where its lines are written, those of the log and those that are rewritten.
type Terminal = Mutex<Screen<io::Stderr>>;

struct Stderr(Arc<Terminal>);

impl Sink for Stderr {
    fn write(&mut self, line: &str) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).line(line)
    }
}

impl Log {
    /// Opens what the settings name, and standard error where it is free for that.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn start(
        settings: &LogSettings,
        clock: Arc<dyn Clock>,
        stderr_is_free: bool,
    ) -> Result<Self, LogError> {
        let format = settings.format;
        let mut outlets = Vec::new();
        let mut screen = None;
        if stderr_is_free {
            let stderr = Arc::new(Mutex::new(Screen::on(io::stderr(), terminal::size)));
            outlets.push(outlet(Stderr(Arc::clone(&stderr)), format, Medium::Stderr, &clock)?);
            screen = Some(stderr).filter(|_| format == LogFormat::Text && terminal::can_rewrite());
        }
        if let Some(path) = &settings.file {
            let around = Around { clock: Arc::clone(&clock), say: elsewhere(&outlets, &clock) };
            let file = Rotating::open(path, settings.max_size, settings.max_files, around)
                .map_err(|source| LogError::File { path: path.clone(), source })?;
            outlets.push(outlet(file, format, Medium::File, &clock)?);
        }
        let (level, live, open) = (Arc::default(), OnceLock::new(), Mutex::default());
        let log = Self { clock, level, outlets, tail: Arc::default(), screen, live, open };
        log.set_level(settings.level);
        Ok(log)
    }

    /// From now on a terminal shows how these lanes are, as they change, in place of a line for each change. Anywhere
    /// else, and where nothing of level `info` is logged, nothing is different. The lanes are asked on another thread.
    ///
    /// # Errors
    /// Where the system gives no thread for it.
    pub fn show_lanes(
        &self,
        lanes: impl Fn() -> Vec<(LaneName, View)> + Send + 'static,
    ) -> Result<(), LogError> {
        let Some(screen) = &self.screen else { return Ok(()) };
        let level = Arc::clone(&self.level);
        let sources = Sources {
            clock: Arc::clone(&self.clock),
            lanes: Box::new(lanes),
            wanted: Box::new(move || LogLevel::Info as usize <= level.load(Ordering::Relaxed)),
        };
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).len();
        let live = Live::start(Arc::clone(screen), sources, open).map_err(LogError::NoThread)?;
        // A second one ends at once.
        drop(self.live.set(live));
        Ok(())
    }

    /// The last lines, wherever they are written.
    #[must_use]
    pub fn tail(&self) -> Arc<Tail> {
        Arc::clone(&self.tail)
    }

    /// From now on lines of this level and above it are written.
    pub fn set_level(&self, level: LogLevel) {
        self.level.store(level as usize, Ordering::Relaxed);
    }

    /// Writes what is left, as far as that takes a moment only.
    pub fn close(&self) {
        if let Some(live) = self.live.get() {
            live.close();
        }
        for outlet in &self.outlets {
            outlet.queue.close();
        }
    }

    fn wants(&self, level: LogLevel) -> bool {
        level as usize <= self.level.load(Ordering::Relaxed)
    }

    fn write(&self, record: &Record) {
        self.write_at(record, |_everywhere| true);
    }

    fn write_at(&self, record: &Record, place: impl Fn(Medium) -> bool) {
        if !self.wants(record.level) {
            return;
        }
        let at = self.clock.wall();
        let text = record.line(LogFormat::Text, Medium::Stderr, at);
        self.tail.push(wall_ms(&*self.clock), record.level.name(), text);
        for outlet in self.outlets.iter().filter(|outlet| place(outlet.medium)) {
            outlet.queue.push(record.line(outlet.format, outlet.medium, at));
        }
    }
}

/// What is wrong with one outlet is told at those before it.
fn elsewhere(outlets: &[Outlet], clock: &Arc<dyn Clock>) -> Box<dyn Fn(String) + Send> {
    let told: Vec<_> = outlets.iter().map(|it| (Arc::clone(&it.queue), it.format, it.medium)).collect();
    let clock = Arc::clone(clock);
    Box::new(move |words| {
        let record = Record::words(LogLevel::Error, "log_file", words);
        for (queue, format, medium) in &told {
            queue.push(record.line(*format, *medium, clock.wall()));
        }
    })
}

fn outlet(
    sink: impl Sink,
    format: LogFormat,
    medium: Medium,
    clock: &Arc<dyn Clock>,
) -> Result<Outlet, LogError> {
    let clock = Arc::clone(clock);
    let told = move |lost: u64| {
        let fields = Body::Fields(vec![("lines", Field::Count(lost))]);
        Record { level: LogLevel::Warn, event: "log_lost", body: fields }.line(format, medium, clock.wall())
    };
    Ok(Outlet { format, medium, queue: Arc::new(Queue::start(sink, told).map_err(LogError::NoThread)?) })
}

impl Observer for Log {
    fn see(&self, call: CallId, _at: Moment, event: &Event) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let closed;
        let known = match event {
            Event::CallOpened { labels, .. } => {
                let begun = Open { labels: Arc::clone(labels), before: Before::default() };
                open.insert(call, begun);
                open.get(&call)
            }
            Event::CallClosed(_) => {
                closed = open.remove(&call);
                closed.as_ref()
            }
            Event::Moved { to, .. } => {
                if let Some(Open { labels, before }) = open.get_mut(&call) {
                    let moved = Arc::new(labels.moved_to(to));
                    before.left = Some(std::mem::replace(labels, moved));
                }
                open.get(&call)
            }
            Event::FaultSeen { .. } => {
                if let Some(Open { labels, before }) = open.get_mut(&call) {
                    before.failed = Some(Arc::clone(labels));
                }
                open.get(&call)
            }
            Event::SendStarted { .. }
            | Event::HeadArrived { .. }
            | Event::WayTaken { .. }
            | Event::WaitStarted { .. }
            | Event::InLine { .. }
            | Event::HeldBack { .. }
            | Event::NoticeGiven { .. }
            | Event::GrantTaken { .. }
            | Event::Committed { .. }
            | Event::StreamCut { .. } => open.get(&call),
        };
        if let (Some(live), Event::CallOpened { .. } | Event::CallClosed(_)) = (self.live.get(), event) {
            live.calls(open.len());
        }
        let wanted = known.filter(|_| self.wants(level(event)));
        if let Some(record) = wanted.map(|known| record(call, &known.labels, &known.before, event)) {
            self.write(&record);
        }
    }

    fn file(&self) -> Option<(&'static str, Option<String>)> {
        let outlet = self.outlets.iter().find(|outlet| outlet.medium == Medium::File)?;
        Some(("log", outlet.queue.trouble()))
    }

    fn notice(&self, notice: &Notice) {
        let Some(record) = words(notice) else { return };
        if let (Notice::Lane(_), Some(live)) = (notice, self.live.get()) {
            live.changed();
            // The terminal shows it already.
            self.write_at(&record, |medium| medium != Medium::Stderr);
        } else {
            self.write(&record);
        }
    }
}

#[cfg(test)]
mod tests;
