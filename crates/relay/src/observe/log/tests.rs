//! Tests of what the log says of each thing.

use std::time::Duration;

use relay_core::Fault;
use relay_core::alert::{About, Alert, Kind, State};
use relay_core::call::{Stop, Why};
use relay_core::event::{Closing, Detour, HeldBy, Inherited, Left, Leg, Missed, Outcome, Transport};
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
    record(CallId(7), &labels(), &Before::default(), event).line(
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
    let line = record(CallId(7), &spoken, &Before::default(), &event);
    let line = line.line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH);
    assert!(line.contains(" transport=websocket model=gpt-x "), "{line}");
}

#[test]
fn after_a_move_a_wait_names_who_failed_beside_who_is_next() {
    let to = |upstream: &str, model: Option<&str>| Leg {
        upstream: upstream.into(),
        lane: "0e".into(),
        model: model.map(Into::into),
    };
    let said = |here: &Labels, before: &Labels, event: &Event| {
        let before = Some(Arc::new(before.clone()));
        let before = Before { left: before.clone(), failed: before };
        let line = record(CallId(7), here, &before, event);
        line.line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH)
    };
    let line = Event::InLine {
        send: 2,
        waiting: 1,
        parked: None,
        fault: Some(Fault::AtCapacity),
        status: Some(503),
        code: None,
    };
    let there = labels().moved_to(&to("second", None));
    insta::assert_snapshot!(
        said(&there, &labels(), &line),
        @"[retry] send=2 status=503 fault=at_capacity waiting=1 failed_at=openai model=gpt-x upstream=second id=c7"
    );
    let moved = Event::Moved { send: 2, to: to("second", None).into(), why: Left::Failed };
    insta::assert_snapshot!(
        said(&there, &labels(), &moved),
        @"[moved] send=2 why=failed from=openai model=gpt-x upstream=second id=c7"
    );
    let other = labels().moved_to(&to("openai", Some("gpt-y")));
    let wait = Event::WaitStarted {
        send: 3,
        wait: Duration::from_secs(1),
        fault: Fault::AtCapacity,
        status: Some(503),
        code: None,
    };
    insta::assert_snapshot!(
        said(&other, &labels(), &wait),
        @"[retry] send=3 status=503 fault=at_capacity wait=1.0s failed_model=gpt-x model=gpt-y upstream=openai id=c7"
    );
    // Where it stays, nothing is to be told apart.
    assert!(!said(&labels(), &labels(), &line).contains("failed_at"));
}

#[test]
fn a_log_remembers_where_a_call_failed_and_where_it_was() {
    let settings = LogSettings { level: LogLevel::Info, ..LogSettings::default() };
    let mut log = Log::start(&settings, Arc::new(crate::clock::SystemClock), false).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    log.outlets.push(outlet(Told(Arc::clone(&told)), LogFormat::Text, Medium::Stderr, &log.clock).unwrap());
    let to = Leg { upstream: "second".into(), lane: "0e".into(), model: None };
    let failed = Event::FaultSeen {
        send: 1,
        fault: Fault::AtCapacity,
        evidence: None,
        status: Some(503),
        code: None,
        rule: None,
        told: None,
        usage: None,
    };
    let line = Event::InLine {
        send: 2,
        waiting: 1,
        parked: None,
        fault: Some(Fault::AtCapacity),
        status: Some(503),
        code: None,
    };
    for event in [
        Event::CallOpened { labels: labels().into(), inherited: Inherited::default(), wall: 0 },
        failed,
        Event::Moved { send: 2, to: to.into(), why: Left::Failed },
        line,
    ] {
        log.see(CallId(7), Moment::ZERO, &event);
    }
    log.close();
    let told = told.lock().unwrap().join("\n");
    insta::assert_snapshot!(told, @r"
    [moved] send=2 why=failed from=openai model=gpt-x upstream=second id=c7
    [retry] send=2 status=503 fault=at_capacity waiting=1 failed_at=openai model=gpt-x upstream=second id=c7
    ");
}

#[test]
fn a_call_that_waits_for_a_breaker_is_held() {
    let event =
        Event::HeldBack { send: 1, by: HeldBy::Circuits, wait: Some(Duration::from_secs(30)), fault: None };
    insta::assert_snapshot!(
        text(&event),
        @"[held] send=1 fault=- circuits=open wait=30.0s model=gpt-x upstream=openai id=c7"
    );
    let event = Event::HeldBack { send: 1, by: HeldBy::Credential, wait: None, fault: None };
    insta::assert_snapshot!(
        text(&event),
        @"[held] send=1 fault=- credential=renewing model=gpt-x upstream=openai id=c7"
    );
    assert_eq!(level(&event), LogLevel::Info);
}

#[test]
fn where_metrics_are_is_no_warning_and_an_alert_says_why() {
    let about = About { what: Some("history"), why: Some("the disk is \"full\"".into()), ..About::default() };
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
    let page = include_str!("../../../../../docs/log.md");
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
    let line = words(&away).unwrap().line(LogFormat::Text, Medium::Stderr, std::time::SystemTime::UNIX_EPOCH);
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
    let again = What::CircuitStaysOpen { fault: Fault::NeverSent, pause: Duration::from_secs(30) };
    insta::assert_snapshot!(
        line(again, LogFormat::Text),
        @"[lane] state=circuit_open probe=failed fault=never_sent pause=30.0s model=gpt-x upstream=openai lane=9f86d081884c7d65"
    );
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
    log.outlets.push(outlet(Told(Arc::clone(&told)), LogFormat::Text, Medium::Stderr, &log.clock).unwrap());
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
        text(&Event::CallOpened { labels: labels().into(), inherited: Inherited { sends: 2, ..Inherited::default() }, wall: 0 }),
        @"[open] client=codex dialect=openai_responses operation=generation transport=http profile=interactive inherited_sends=2 model=gpt-x upstream=openai id=c7"
    );
    let inherited = Inherited { failed: 2, resends: 1, ..Inherited::default() };
    let event = Event::CallOpened { labels: labels().into(), inherited, wall: 0 };
    assert!(text(&event).contains(" inherited_sends=0 inherited_failed=2 inherited_resends=1 model="));
    assert_eq!(level(&event), LogLevel::Debug);
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
    let words = "settings reloaded: they hold for new calls (k0, k1, k2, k3, k4, k5, k6, k7 and 992 more)";
    assert_eq!(said(&Notice::Reloaded { changed: many, kept: vec![] }), (LogLevel::Info, words.to_owned()));
    let words = "settings read again: the settings are as they were";
    assert_eq!(said(&Notice::Reloaded { changed: vec![], kept: vec![] }), (LogLevel::Info, words.to_owned()));
    let refused = said(&Notice::ReloadRefused("error: a\nhint: b".to_owned()));
    let words = "settings not reloaded, the old ones stay\nerror: a\nhint: b";
    assert_eq!(refused, (LogLevel::Error, words.to_owned()));
}
