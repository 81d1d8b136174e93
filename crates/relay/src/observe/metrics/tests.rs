use std::collections::BTreeSet;
use std::time::Duration;

use relay_core::Evidence;
use relay_core::event::{Left, Leg, Transport};
use relay_core::evidence::Operation;
use relay_core::gate::Shut;

use super::labels::NAMES;
use super::*;

const BEGAN: Moment = Moment::after_start(Duration::from_secs(100));

fn open(metrics: &Metrics, id: u64, model: &str) {
    let labels = Labels {
        client: "codex",
        dialect: "openai_responses",
        operation: Operation::Generation,
        transport: Transport::WebSocket,
        upstream: "openai".into(),
        model: Some(model.into()),
        profile: "interactive".into(),
        lane: "0f".into(),
        request_id: None,
        pool: None,
        bound: None,
        trace: None,
    };
    let opened = Event::CallOpened {
        labels: labels.into(),
        inherited: relay_core::event::Inherited::default(),
        wall: 0,
    };
    metrics.see(CallId(id), BEGAN, &opened);
}

/// A call that is refused once and then ends like this.
fn call(metrics: &Metrics, id: u64, outcome: Outcome) {
    open(metrics, id, "gpt-x");
    let see = |seconds, event| metrics.see(CallId(id), BEGAN + Duration::from_secs(seconds), &event);
    see(0, Event::SendStarted { send: 1 });
    let (fault, evidence) = (Fault::AtCapacity, Some(Evidence::Refused));
    let (status, code, rule, told, usage) = (Some(503), None, None, None, None);
    see(1, Event::FaultSeen { send: 1, fault, evidence, status, code, rule, told, usage });
    let wait = Duration::from_secs(2);
    see(1, Event::WaitStarted { send: 2, wait, fault, status: Some(503), code: None });
    see(3, Event::SendStarted { send: 2 });
    see(4, Event::Committed { send: 2 });
    see(
        9,
        Event::CallClosed(Closing {
            sends: 2,
            waited: wait,
            last_fault: Some(fault),
            capacity_faults: 1,
            took: Duration::from_secs(9),
            ..Closing::new(outcome)
        }),
    );
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|there| there == line), "no line {line}\n{text}");
}

#[test]
fn what_events_tell_is_counted() {
    let metrics = Metrics::default();
    call(&metrics, 1, Outcome::Served);
    call(&metrics, 2, Outcome::GaveUp);
    open(&metrics, 3, "gpt-x");
    let text = metrics.text(&[]);
    let whither = r#"upstream="openai",model="gpt-x""#;
    let of = r#"client="codex",dialect="openai_responses",operation="generation",transport="websocket""#;
    has(&text, &format!(r#"steady_relay_calls_total{{{of},{whither},outcome="served"}} 1"#));
    has(&text, &format!(r#"steady_relay_calls_total{{{of},{whither},outcome="gave_up"}} 1"#));
    has(&text, &format!("steady_relay_calls_saved_total{{{whither}}} 1"));
    has(&text, &format!("steady_relay_sends_total{{{whither}}} 4"));
    has(&text, &format!(r#"steady_relay_faults_total{{{whither},fault="at_capacity"}} 2"#));
    has(&text, &format!("steady_relay_wait_seconds_sum{{{whither}}} 4.0"));
    has(&text, &format!(r#"steady_relay_wait_seconds_bucket{{le="2.0",{whither}}} 2"#));
    has(&text, &format!("steady_relay_commit_seconds_sum{{{whither}}} 8.0"));
    has(&text, &format!("steady_relay_call_seconds_count{{{whither}}} 2"));
    has(&text, "steady_relay_open_calls 1");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

/// The names that codex-retry gave them, with their HELP and TYPE lines.
#[test]
fn the_older_names_are_kept() {
    let metrics = Metrics::default();
    has(&metrics.text(&[]), "codex_retry_success_rate 1.0");
    call(&metrics, 1, Outcome::Served);
    call(&metrics, 2, Outcome::Served);
    call(&metrics, 3, Outcome::Served);
    call(&metrics, 4, Outcome::Broken);
    // These say nothing of how well it goes.
    call(&metrics, 5, Outcome::Passed);
    call(&metrics, 6, Outcome::ClientLeft);
    let text = metrics.text(&[]);
    has(&text, r#"codex_retry_attempts_total{reason="overload"} 6"#);
    has(&text, "codex_retry_success_rate 0.75");
    has(&text, "# TYPE codex_retry_attempts counter");
    has(&text, "# TYPE codex_retry_success_rate gauge");
    assert!(text.contains("# HELP codex_retry_success_rate "), "{text}");
    assert_eq!(
        [Some(Fault::NoAnswer), Some(Fault::ServerFailed), None].map(reason),
        ["timeout", "other", "overload"]
    );
}

/// A lane with calls that wait, whose shutting and whatever else a relay tells was told.
fn shut_lane(metrics: &Metrics) -> (LaneName, View) {
    let lane = LaneName { id: "0f".into(), model: None, upstream: "openai".into() };
    let what = What::LaneShut { why: Shut::Slow, waiting: 1 };
    metrics.notice(&Notice::Lane(crate::observe::LaneChange { lane: lane.clone(), what }));
    let pause = Duration::from_secs(30);
    for what in [
        What::CircuitOpened { fault: Fault::NeverSent, failures: 5, pause },
        What::CircuitClosed { after: pause },
    ] {
        metrics.notice(&Notice::Lane(crate::observe::LaneChange { lane: lane.clone(), what }));
    }
    metrics.notice(&Notice::TurnedAway { status: 403, code: "host", path: "/x".into() });
    let left = WayWhat::Left { since: Moment::ZERO, why: "refused", pause: Duration::from_secs(5) };
    for what in [left, WayWhat::Back { after: Duration::from_secs(6) }] {
        let (upstream, by) = ("api.example:443".into(), "direct".into());
        metrics.notice(&Notice::Way(WayNews { upstream, by, what }));
    }
    let view = View {
        circuit: relay_core::breaker::Circuit::Closed,
        shut: Some((Shut::Slow, Moment::ZERO)),
        next: None,
        hold: None,
        parked: None,
        waiting: 7,
        line: Vec::new(),
        pending: 0,
        running: 0,
        max_running: None,
        recovery: None,
        rate: None,
        random: false,
    };
    (lane, view)
}

#[test]
fn lanes_are_told_as_they_are() {
    let metrics = Metrics::default();
    let lane = shut_lane(&metrics);
    let text = metrics.text(&[lane]);
    has(&text, r#"steady_relay_lane_waiting{lane="0f",upstream="openai",model=""} 7"#);
    has(&text, r#"steady_relay_lane_shut{lane="0f",upstream="openai",model=""} 1"#);
    has(&text, &format!(r#"steady_relay_lanes_shut_total{{why="{}"}} 1"#, Shut::Slow.name()));
    has(&text, r#"steady_relay_circuits_opened_total{why="never_sent"} 1"#);
    has(&text, r#"steady_relay_requests_refused_total{reason="host"} 1"#);
    has(&text, r#"steady_relay_ways_left_total{upstream="api.example:443",by="direct"} 1"#);
}

fn moved() -> Event {
    let to = Leg { upstream: "second".into(), lane: "1f".into(), model: None };
    Event::Moved { send: 2, to: to.into(), why: Left::Failed }
}

#[test]
fn a_call_that_moves_is_counted_where_it_goes() {
    let metrics = Metrics::default();
    open(&metrics, 1, "gpt-x");
    metrics.see(CallId(1), BEGAN, &Event::SendStarted { send: 1 });
    metrics.see(CallId(1), BEGAN, &moved());
    metrics.see(CallId(1), BEGAN, &Event::SendStarted { send: 2 });
    let text = metrics.text(&[]);
    has(&text, r#"steady_relay_moves_total{why="failed"} 1"#);
    has(&text, r#"steady_relay_sends_total{upstream="openai",model="gpt-x"} 1"#);
    has(&text, r#"steady_relay_sends_total{upstream="second",model="gpt-x"} 1"#);
}

/// The page names what is told, and nothing else.
#[test]
fn the_page_names_every_metric() {
    let page = include_str!("../../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let documented: BTreeSet<_> =
        rows.map(|(name, rest)| (name.to_owned(), rest.split(' ').next().unwrap_or_default())).collect();
    let metrics = Metrics::default();
    call(&metrics, 1, Outcome::Served);
    open(&metrics, 2, "gpt-x");
    let fault = Fault::AtCapacity;
    for event in [
        Event::GrantTaken { send: 2 },
        Event::NoticeGiven { send: 2, notices: 1, fault: Some(fault) },
        Event::StreamCut { fault, cuts: 1 },
        moved(),
    ] {
        metrics.see(CallId(2), BEGAN, &event);
    }
    let lane = shut_lane(&metrics);
    let text = metrics.text(&[lane]);
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let told: BTreeSet<_> = types
        .map(|(name, kind)| (if kind == "counter" { format!("{name}_total") } else { name.to_owned() }, kind))
        .collect();
    assert_eq!(told, documented);
}

#[test]
fn no_label_takes_more_values_than_are_bounded() {
    let metrics = Metrics::default();
    for id in 0..NAMES as u64 + 50 {
        open(&metrics, id, &format!("model-{id}"));
        metrics.see(CallId(id), BEGAN, &Event::SendStarted { send: 1 });
    }
    let text = metrics.text(&[]);
    let sends = text.lines().filter(|line| line.starts_with("steady_relay_sends_total{")).count();
    assert_eq!(sends, NAMES + 1);
    has(&text, r#"steady_relay_sends_total{upstream="openai",model="other"} 50"#);
}

#[test]
fn a_name_cannot_break_out_of_its_label() {
    let metrics = Metrics::default();
    open(&metrics, 1, "a\"b\\c\nd");
    metrics.see(CallId(1), BEGAN, &Event::SendStarted { send: 1 });
    has(&metrics.text(&[]), r#"steady_relay_sends_total{upstream="openai",model="a\"b\\c\nd"} 1"#);
}
