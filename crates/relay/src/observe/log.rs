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
use self::words::{level, record, words};
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
    labels: Mutex<BTreeMap<CallId, Arc<Labels>>>,
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
        let (level, live, labels) = (Arc::default(), OnceLock::new(), Mutex::default());
        let log = Self { clock, level, outlets, tail: Arc::default(), screen, live, labels };
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
        let open = self.labels.lock().unwrap_or_else(PoisonError::into_inner).len();
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
        let mut open = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let changed;
        let labels = match event {
            Event::CallOpened { labels, .. } => {
                open.insert(call, Arc::clone(labels));
                Some(labels)
            }
            Event::CallClosed(_) => {
                changed = open.remove(&call);
                changed.as_ref()
            }
            Event::Moved { to, .. } => {
                let moved = open.get(&call).map(|labels| Arc::new(labels.moved_to(to)));
                changed = moved.clone();
                open.extend(moved.map(|labels| (call, labels)));
                changed.as_ref()
            }
            Event::SendStarted { .. }
            | Event::HeadArrived { .. }
            | Event::WayTaken { .. }
            | Event::FaultSeen { .. }
            | Event::WaitStarted { .. }
            | Event::InLine { .. }
            | Event::NoticeGiven { .. }
            | Event::GrantTaken { .. }
            | Event::Committed { .. }
            | Event::StreamCut { .. } => open.get(&call),
        };
        if let (Some(live), Event::CallOpened { .. } | Event::CallClosed(_)) = (self.live.get(), event) {
            live.calls(open.len());
        }
        let wanted = labels.filter(|_| self.wants(level(event)));
        if let Some(record) = wanted.map(|labels| record(call, labels, event)) {
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
mod tests {
    use std::time::Duration;

    use relay_core::Fault;
    use relay_core::alert::{About, Alert, Kind, State};
    use relay_core::call::{Stop, Why};
    use relay_core::event::{Closing, Detour, Missed, Outcome, Transport};
    use relay_core::evidence::Operation;
    use relay_core::gate::Shut;

    use super::words::draining;
    use super::*;
    use crate::observe::{LaneChange, What};
    use crate::upstream::{WayNews, WayWhat};

    fn labels() -> Labels {
        Labels {
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
        }
    }

    fn text(event: &Event) -> String {
        record(CallId(7), &labels(), event).line(
            LogFormat::Text,
            Medium::Stderr,
            std::time::SystemTime::UNIX_EPOCH,
        )
    }

    fn closing(outcome: Outcome, sends: u32) -> Closing {
        Closing {
            sends,
            waited: Duration::from_millis(6300),
            last_fault: Some(Fault::AtCapacity),
            capacity_faults: 2,
            took: Duration::from_secs(9),
            ..Closing::new(outcome)
        }
    }

    #[test]
    fn a_wait_is_one_line() {
        let event = Event::WaitStarted {
            send: 2,
            wait: Duration::from_millis(2100),
            fault: Fault::AtCapacity,
            status: Some(503),
            code: None,
        };
        insta::assert_snapshot!(
            text(&event),
            @"[retry] send=2 status=503 fault=at_capacity wait=2.1s model=gpt-x upstream=openai id=c7"
        );
        let event = Event::WaitStarted {
            send: 2,
            wait: Duration::from_millis(1000),
            fault: Fault::NeverSent,
            status: None,
            code: Some("dns".into()),
        };
        insta::assert_snapshot!(
            text(&event),
            @"[retry] send=2 status=- fault=never_sent code=dns wait=1.0s model=gpt-x upstream=openai id=c7"
        );
        // Before its first send, as after a cut, nothing is sent again.
        let event = Event::WaitStarted {
            send: 1,
            wait: Duration::from_millis(1000),
            fault: Fault::AtCapacity,
            status: None,
            code: None,
        };
        assert!(text(&event).starts_with("[held] send=1 "));
        let spoken = Labels { transport: Transport::WebSocket, ..labels() };
        let line = record(CallId(7), &spoken, &event);
        let line = line.line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH);
        assert!(line.contains(" transport=websocket model=gpt-x "), "{line}");
    }

    #[test]
    fn where_metrics_are_is_no_warning_and_an_alert_says_why() {
        let about =
            About { what: Some("history"), why: Some("the disk is \"full\"".into()), ..About::default() };
        let kind = Kind::CannotWrite;
        let alert = Alert { kind, state: State::Raised, about, lasted: Duration::ZERO, held_back: 0 };
        let record = words(&Notice::Alert(alert)).unwrap();
        let line = |format| record.line(format, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH);
        insta::assert_snapshot!(
            line(LogFormat::Text),
            @r#"[alert] state=raised kind=cannot_write lasted=0.0s what=history why="the disk is \"full\"""#
        );
        let json: serde_json::Value = serde_json::from_str(&line(LogFormat::Json)).unwrap();
        assert_eq!(json["why"], "the disk is \"full\"");
        let metrics = words(&Notice::Metrics { url: "http://127.0.0.1:9090".to_owned() }).unwrap();
        assert_eq!(metrics.level, LogLevel::Info);
    }

    #[test]
    fn a_retried_call_closes_with_one_line_and_a_healthy_one_is_quiet() {
        insta::assert_snapshot!(
            text(&Event::CallClosed(closing(Outcome::Served, 3))),
            @"[done] outcome=served sends=3 waited=6.3s fault=at_capacity model=gpt-x upstream=openai id=c7"
        );
        let level = |outcome, sends| level(&Event::CallClosed(closing(outcome, sends)));
        assert_eq!(level(Outcome::Served, 3), LogLevel::Info);
        assert_eq!(level(Outcome::Served, 1), LogLevel::Debug);
        assert_eq!(level(Outcome::Broken, 1), LogLevel::Info);
        let billed = Closing { maybe_billed_twice: 1, ..closing(Outcome::Served, 2) };
        assert!(text(&Event::CallClosed(billed)).contains(" fault=at_capacity maybe_billed_twice=1 model="));
        let stopped = Closing { why: Some(Stop::FloorTooFar.name()), ..closing(Outcome::GaveUp, 1) };
        assert!(
            text(&Event::CallClosed(stopped))
                .starts_with("[done] outcome=gave_up why=told_to_wait_longer sends=1 ")
        );
    }

    #[test]
    fn the_page_of_the_log_explains_every_word() {
        let page = include_str!("../../../../docs/log.md");
        let explained = |word: &str| page.lines().any(|line| line.starts_with(&format!("| `{word}` | ")));
        let outcomes = Outcome::ALL.map(Outcome::name).into_iter();
        let reasons = Stop::ALL.map(Stop::name).into_iter().chain(Why::ALL.map(Why::name));
        // A lane that is shut for being full is no news.
        let reasons = reasons.chain([Shut::Slow.name()]);
        for word in outcomes.chain(reasons) {
            assert!(explained(word), "docs/log.md does not explain `{word}`");
        }
        assert!(!explained(Shut::Full.name()));
    }

    #[test]
    fn a_relay_that_stops_says_what_becomes_of_the_open_calls() {
        let said = |open, waiting| draining(open, waiting, Duration::from_secs(300));
        let rest = "at most 300 s to end; once more to stop now";
        assert_eq!(said(1, 0), format!("stopping: 1 open call has {rest}"));
        assert_eq!(said(2, 0), format!("stopping: 2 open calls have {rest}"));
        assert_eq!(said(3, 3), "stopping: 3 open calls cut while waiting");
        assert_eq!(said(3, 1), format!("stopping: 1 open call cut while waiting, 2 have {rest}"));
    }

    #[test]
    fn who_is_turned_away_is_told_of() {
        let away = Notice::TurnedAway { status: 400, code: "no_upstream", path: "/v1/responses".into() };
        let line =
            words(&away).unwrap().line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH);
        assert_eq!(line, "[refused] status=400 code=no_upstream path=/v1/responses");
    }

    fn change(what: What) -> Notice {
        let (id, model) = ("9f86d081884c7d65".to_owned(), Some("gpt-x".into()));
        Notice::Lane(LaneChange { lane: LaneName { id, model, upstream: "openai".into() }, what })
    }

    #[test]
    fn a_lane_that_shuts_or_opens_is_one_line() {
        let line = |what, format| {
            let record = words(&change(what)).unwrap();
            assert_eq!(record.level, LogLevel::Info);
            record.line(format, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH)
        };
        let shut = What::LaneShut { why: Shut::Refused(Fault::AtCapacity), waiting: 6 };
        let opened = What::LaneOpened { after: Duration::from_millis(12_345) };
        insta::assert_snapshot!(
            line(shut, LogFormat::Text),
            @"[lane] state=shut why=at_capacity waiting=6 model=gpt-x upstream=openai lane=9f86d081884c7d65"
        );
        insta::assert_snapshot!(
            line(opened, LogFormat::Text),
            @"[lane] state=open after=12.3s model=gpt-x upstream=openai lane=9f86d081884c7d65"
        );
        let json: serde_json::Value = serde_json::from_str(&line(shut, LogFormat::Json)).unwrap();
        let fields = ["event", "state", "why", "model", "lane"].map(|name| json[name].as_str().unwrap());
        assert_eq!(fields, ["lane", "shut", "at_capacity", "gpt-x", "9f86d081884c7d65"]);
        assert_eq!((&json["waiting"], &json["after"]), (&6.into(), &serde_json::Value::Null));
    }

    #[test]
    fn a_way_that_is_left_or_taken_is_one_line() {
        let line = |what| {
            let (upstream, by) = ("api.example:443".into(), "http://p.example:3128".into());
            let record = words(&Notice::Way(WayNews { upstream, by, what })).unwrap();
            assert_eq!(record.level, LogLevel::Info);
            record.line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH)
        };
        let pause = Duration::from_millis(5_400);
        insta::assert_snapshot!(
            line(WayWhat::Left { since: Moment::ZERO, why: "refused", pause }),
            @"[way] state=left why=refused pause=5.4s by=http://p.example:3128 upstream=api.example:443"
        );
        insta::assert_snapshot!(
            line(WayWhat::Back { after: Duration::from_secs(65) }),
            @"[way] state=back after=65.0s by=http://p.example:3128 upstream=api.example:443"
        );
        assert!(line(WayWhat::Forgotten).starts_with("[way] state=forgotten by="));
        let missed = [("http://p.example:3128", "refused"), ("socks5://q.example:1080", "dns")];
        let missed = missed.map(|(by, why)| Missed { by: by.into(), why }).to_vec();
        let taken = Event::WayTaken { send: 2, detour: Detour { by: Some("direct".into()), missed } };
        insta::assert_snapshot!(
            text(&taken),
            @"[detour] send=2 by=direct missed=http://p.example:3128(refused),socks5://q.example:1080(dns) model=gpt-x upstream=openai id=c7"
        );
        // Each call that goes another way while one is left would be a line.
        assert_eq!(level(&taken), LogLevel::Debug);
        let none = Event::WayTaken { send: 2, detour: Detour { by: None, missed: Vec::new() } };
        assert!(text(&none).starts_with("[detour] send=2 by=- model="));
    }

    #[test]
    fn a_terminal_shows_lanes_in_place_of_their_lines_and_a_file_has_both() {
        let path = std::env::temp_dir().join(format!("steady-relay-{}-lanes.log", std::process::id()));
        let settings = LogSettings { file: Some(path.clone()), ..LogSettings::default() };
        let mut log = Log::start(&settings, Arc::new(crate::clock::SystemClock), false).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        log.outlets
            .push(outlet(Told(Arc::clone(&told)), LogFormat::Text, Medium::Stderr, &log.clock).unwrap());
        let opened = change(What::LaneOpened { after: Duration::from_secs(1) });
        log.show_lanes(Vec::new).unwrap();
        log.notice(&opened);
        log.screen = Some(Arc::new(Mutex::new(Screen::on(io::stderr(), terminal::size))));
        log.show_lanes(Vec::new).unwrap();
        log.notice(&opened);
        log.notice(&Notice::Advice("note".to_owned()));
        log.close();
        let line = "[lane] state=open after=1.0s model=gpt-x upstream=openai lane=9f86d081884c7d65";
        assert_eq!(*told.lock().unwrap(), [line, "note"]);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.matches(line).count(), 2);
    }

    /// Keeps what is written.
    struct Told(Arc<Mutex<Vec<String>>>);

    impl Sink for Told {
        fn write(&mut self, line: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(line.to_owned());
            Ok(())
        }
    }

    #[test]
    fn each_step_has_its_line() {
        insta::assert_snapshot!(
            text(&Event::CallOpened { labels: labels().into(), inherited_sends: 2 }),
            @"[open] client=codex dialect=openai_responses operation=generation transport=http profile=interactive inherited_sends=2 model=gpt-x upstream=openai id=c7"
        );
        let fault = Event::FaultSeen {
            send: 1,
            fault: Fault::NeverSent,
            evidence: Some(relay_core::Evidence::NeverSent),
            status: None,
            code: Some("refused".into()),
            rule: None,
            told: None,
            usage: None,
        };
        insta::assert_snapshot!(
            text(&fault),
            @"[fault] send=1 status=- fault=never_sent evidence=never_sent code=refused model=gpt-x upstream=openai id=c7"
        );
        insta::assert_snapshot!(
            text(&Event::StreamCut { fault: Fault::Overloaded, cuts: 2 }),
            @"[cut] fault=overloaded cuts=2 model=gpt-x upstream=openai id=c7"
        );
        insta::assert_snapshot!(
            text(&Event::NoticeGiven { send: 3, notices: 1, fault: Some(Fault::AtCapacity) }),
            @"[notice] send=3 fault=at_capacity notices=1 model=gpt-x upstream=openai id=c7"
        );
    }

    #[test]
    fn a_reload_says_what_needs_a_restart_and_why_it_was_refused() {
        let said = |notice: &Notice| {
            let record = words(notice).unwrap();
            (record.level, record.line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH))
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let changed = names(&["relay.port", "log.file", "timeouts.idle"]);
        let kept = names(&["relay.port", "log.file"]);
        let words = "settings reloaded: they hold for new calls (relay.port, log.file, timeouts.idle); \
                     relay.port, log.file only after a restart";
        assert_eq!(said(&Notice::Reloaded { changed, kept }), (LogLevel::Warn, words.to_owned()));
        let many: Vec<_> = (0..1000).map(|n| format!("k{n}")).collect();
        let words =
            "settings reloaded: they hold for new calls (k0, k1, k2, k3, k4, k5, k6, k7 and 992 more)";
        assert_eq!(
            said(&Notice::Reloaded { changed: many, kept: vec![] }),
            (LogLevel::Info, words.to_owned())
        );
        let words = "settings read again: the settings are as they were";
        assert_eq!(
            said(&Notice::Reloaded { changed: vec![], kept: vec![] }),
            (LogLevel::Info, words.to_owned())
        );
        let refused = said(&Notice::ReloadRefused("error: a\nhint: b".to_owned()));
        let words = "settings not reloaded, the old ones stay\nerror: a\nhint: b";
        assert_eq!(refused, (LogLevel::Error, words.to_owned()));
    }
}
