//! What is told, when, and how often.

use std::collections::BTreeSet;

use super::*;
use crate::event::{Outcome, Transport};
use crate::evidence::Operation;
use proptest::prelude::*;

fn at(seconds: u64) -> Moment {
    Moment::after_start(Duration::from_secs(seconds))
}

fn labels(lane: &str) -> Arc<Labels> {
    Arc::new(Labels {
        client: "codex",
        dialect: "openai_responses",
        operation: Operation::Generation,
        transport: Transport::Http,
        upstream: "openai".into(),
        model: Some("gpt-x".into()),
        profile: "interactive".into(),
        lane: lane.into(),
        request_id: None,
        pool: None,
        bound: None,
        trace: None,
    })
}

fn opened(lane: &str) -> Event {
    Event::CallOpened { labels: labels(lane), inherited: crate::event::Inherited::default(), wall: 0 }
}

fn fault(fault: Fault, rule: Option<&str>) -> Event {
    Event::FaultSeen {
        send: 1,
        fault,
        evidence: None,
        status: Some(429),
        code: None,
        rule: rule.map(Into::into),
        told: None,
        usage: None,
    }
}

fn in_line() -> Event {
    Event::InLine { send: 2, waiting: 1, parked: None, fault: None, status: None, code: None }
}

fn of_lane(lane: &str) -> About {
    About { lane: Some(lane.into()), upstream: Some("openai".into()), ..About::default() }
}

fn shut() -> Gate {
    Gate::Shut(Shut::Refused(Fault::AtCapacity))
}

/// In short: `+lane_closed 300s`, with `(2)` where two were held back.
fn short(alerts: &[Alert]) -> String {
    let one = |alert: &Alert| {
        let sign = if alert.state == State::Raised { '+' } else { '-' };
        let held = if alert.held_back > 0 { format!(" ({})", alert.held_back) } else { String::new() };
        format!("{sign}{} {}s{held}", alert.kind.name(), alert.lasted.as_secs())
    };
    alerts.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_lane_that_stays_closed_is_told_once_and_again_when_it_opens() {
    let mut watch = Watch::default();
    assert_eq!(watch.lane(of_lane("a"), at(0), shut()), []);
    assert_eq!(short(&watch.tick(at(299))), "");
    let told = watch.tick(at(300));
    assert_eq!(short(&told), "+lane_closed 300s");
    assert_eq!((told[0].about.fault, told[0].about.lane.as_deref()), (Some("at_capacity"), Some("a")));
    assert_eq!(short(&watch.tick(at(4000))), "");
    assert_eq!(short(&watch.lane(of_lane("a"), at(4001), Gate::Opened)), "-lane_closed 4001s");
    // One that opens in time is told of by the log alone.
    watch.lane(of_lane("b"), at(5000), shut());
    watch.lane(of_lane("b"), at(5299), Gate::Opened);
    assert_eq!(short(&watch.tick(at(6000))), "");
}

#[test]
fn a_lane_that_closes_again_too_soon_is_held_back_and_told_once_that_may_be() {
    let mut watch = Watch::default();
    watch.set(AlertSettings { lane_closed: Duration::from_secs(10), ..AlertSettings::default() }, Vec::new());
    watch.lane(of_lane("a"), at(0), shut());
    assert_eq!(short(&watch.tick(at(10))), "+lane_closed 10s");
    assert_eq!(short(&watch.lane(of_lane("a"), at(20), Gate::Opened)), "-lane_closed 20s");
    watch.lane(of_lane("a"), at(30), shut());
    assert_eq!(short(&watch.tick(at(40))), "");
    // What was not told is not told to be over.
    assert_eq!(short(&watch.lane(of_lane("a"), at(50), Gate::Opened)), "");
    watch.lane(of_lane("a"), at(60), shut());
    assert_eq!(short(&watch.tick(at(70))), "");
    assert_eq!(short(&watch.tick(at(609))), "");
    assert_eq!(short(&watch.tick(at(610))), "+lane_closed 550s (1)");
    // Another lane is another case.
    watch.lane(of_lane("b"), at(600), shut());
    assert_eq!(short(&watch.tick(at(611))), "+lane_closed 11s");
}

#[test]
fn three_long_waits_in_a_row_are_told_and_a_short_one_ends_that() {
    let mut watch = Watch::default();
    let wait = |watch: &mut Watch, call: u64, from: u64, to: u64| {
        let mut out = watch.see(CallId(call), at(from), &opened("a"));
        out.extend(watch.see(CallId(call), at(from), &in_line()));
        out.extend(watch.see(CallId(call), at(from + 1), &in_line()));
        out.extend(watch.see(CallId(call), at(to), &Event::SendStarted { send: 2 }));
        out.extend(watch.see(CallId(call), at(to), &Event::CallClosed(Closing::new(Outcome::Served))));
        short(&out)
    };
    assert_eq!([wait(&mut watch, 1, 0, 50), wait(&mut watch, 2, 50, 120)], ["", ""]);
    assert_eq!(wait(&mut watch, 3, 120, 121), "");
    assert_eq!([wait(&mut watch, 4, 200, 250), wait(&mut watch, 5, 250, 300)], ["", ""]);
    assert_eq!(wait(&mut watch, 6, 300, 350), "+long_waits 0s");
    assert_eq!(wait(&mut watch, 7, 350, 410), "");
    // A client that leaves early has waited for a short time only because it left.
    watch.see(CallId(80), at(410), &opened("a"));
    watch.see(CallId(80), at(410), &in_line());
    let left = Event::CallClosed(Closing::new(Outcome::ClientLeft));
    assert_eq!(short(&watch.see(CallId(80), at(410), &left)), "");
    assert_eq!(wait(&mut watch, 8, 410, 411), "-long_waits 61s");
    // One that has not ended counts as soon as it is long, and once.
    for call in 9..12 {
        watch.see(CallId(call), at(2000), &opened("a"));
        watch.see(CallId(call), at(2000), &in_line());
    }
    assert_eq!(short(&watch.tick(at(2049))), "");
    assert_eq!(short(&watch.tick(at(2050))), "+long_waits 0s");
    assert_eq!(short(&watch.tick(at(2060))), "");
}

#[test]
fn where_nobody_calls_any_more_nobody_waits_for_long() {
    let mut watch = Watch::default();
    for call in 1..=3 {
        watch.see(CallId(call), at(0), &opened("a"));
        watch.see(CallId(call), at(0), &in_line());
    }
    assert_eq!(short(&watch.tick(at(50))), "+long_waits 0s");
    let left = Event::CallClosed(Closing::new(Outcome::ClientLeft));
    for call in 1..=2 {
        assert_eq!(short(&watch.see(CallId(call), at(100), &left)), "");
    }
    assert_eq!(short(&watch.tick(at(800))), "", "one still waits");
    watch.see(CallId(3), at(800), &left);
    assert_eq!(short(&watch.tick(at(1399))), "");
    assert_eq!(short(&watch.tick(at(1400))), "-long_waits 1350s");
    assert_eq!(short(&watch.tick(at(9000))), "");
}

#[test]
fn a_spent_quota_is_told_every_ten_minutes_with_how_many_came_between_and_ends_with_an_answer() {
    let mut watch = Watch::default();
    watch.see(CallId(1), at(0), &opened("a"));
    let mut spent = |seconds| short(&watch.see(CallId(1), at(seconds), &fault(Fault::QuotaSpent, None)));
    assert_eq!([spent(0), spent(1), spent(599)], ["+quota_spent 0s", "", ""]);
    assert_eq!(spent(600), "+quota_spent 600s (2)");
    assert_eq!(spent(700), "");
    // A call that passes untouched is answered with the same, and says nothing else of it.
    watch.see(CallId(2), at(790), &opened("a"));
    let head = |status| Event::HeadArrived { send: 1, status, request_id: None };
    assert!(Watch::concerns(&head(429)) && !Watch::concerns(&head(200)));
    watch.see(CallId(2), at(790), &head(429));
    assert_eq!(short(&watch.see(CallId(2), at(790), &Event::Committed { send: 1 })), "");
    assert_eq!(short(&watch.see(CallId(1), at(800), &Event::Committed { send: 2 })), "-quota_spent 800s (1)");
    assert_eq!(short(&watch.see(CallId(1), at(801), &Event::Committed { send: 2 })), "");
}

#[test]
fn a_parked_lane_is_told_once_with_its_time_and_neither_as_closed_nor_for_its_long_waits() {
    let mut watch = Watch::default();
    watch.see(CallId(1), at(0), &opened("a"));
    let Event::FaultSeen { send, evidence, status, code, rule, usage, .. } = fault(Fault::QuotaSpent, None)
    else {
        panic!("it is a fault")
    };
    let told = Some(Duration::from_secs(7200));
    let fault = Fault::QuotaSpent;
    let spent = Event::FaultSeen { send, fault, evidence, status, code, rule, told, usage };
    let alerts = watch.see(CallId(1), at(0), &spent);
    assert_eq!((short(&alerts).as_str(), alerts[0].about.renews), ("+quota_spent 0s", told));
    let parked = Some(Duration::from_secs(7000));
    for call in 2..9 {
        watch.see(CallId(call), at(200), &opened("a"));
        let waits = Event::InLine { send: 1, waiting: 1, parked, fault: None, status: None, code: None };
        watch.see(CallId(call), at(200), &waits);
    }
    watch.lane(of_lane("a"), at(202), Gate::Shut(Shut::Spent));
    assert_eq!(short(&watch.tick(at(7000))), "");
    for call in 2..9 {
        assert_eq!(short(&watch.see(CallId(call), at(7201), &Event::SendStarted { send: 1 })), "");
    }
    watch.see(CallId(2), at(7202), &Event::Committed { send: 1 });
    assert_eq!(short(&watch.lane(of_lane("a"), at(7203), Gate::Opened)), "");
}

#[test]
fn a_rule_is_told_of_where_it_asks_for_it_and_no_other_that_looks_alike() {
    use crate::dialect::{Rule, Sign, Statuses};
    use crate::evidence::Says;
    let own = |number: u32, statuses, upstream: Option<&str>| OwnRule {
        dialect: None,
        upstream: upstream.map(str::to_owned),
        rule: Arc::new(Rule {
            sign: Sign::All(Vec::new()),
            on: Statuses::Chosen { among: vec![statuses], inside: false },
            fault: Fault::Overloaded,
            says: Says::Refused,
            floor: Duration::ZERO,
            source: format!("[[rule]] number {number}").into(),
        }),
        alert: true,
    };
    let mut watch = Watch::default();
    let told = |watch: &mut Watch| {
        watch.see(CallId(1), at(1), &fault(Fault::Overloaded, Some("own rule: the status")))
    };
    watch.see(CallId(1), at(0), &opened("a"));
    assert_eq!(told(&mut watch), []);
    watch.set(AlertSettings::default(), vec![own(1, 500..=599, None), own(2, 429..=429, Some("gemini"))]);
    assert_eq!(told(&mut watch), []);
    watch.set(AlertSettings::default(), vec![own(1, 500..=599, None), own(3, 429..=429, Some("openai"))]);
    let alerts = told(&mut watch);
    assert_eq!(short(&alerts), "+rule 0s");
    assert_eq!(
        (alerts[0].about.rule.as_deref(), alerts[0].about.call),
        (Some("[[rule]] number 3"), Some(CallId(1)))
    );
}

#[test]
fn a_file_that_cannot_be_written_is_told_once_with_the_reason_and_when_it_can() {
    let mut watch = Watch::default();
    let mut is = |seconds, trouble| watch.file("history", at(seconds), trouble);
    assert_eq!(is(0, None), []);
    let alerts = is(1, Some("no space left"));
    assert_eq!(
        (short(&alerts), alerts[0].about.why.as_deref()),
        ("+cannot_write 0s".to_owned(), Some("no space left"))
    );
    assert_eq!([short(&is(2, Some("no space left"))), short(&is(2000, Some("other")))], ["", ""]);
    assert_eq!(short(&is(2001, None)), "-cannot_write 2000s");
}

#[test]
fn only_the_kinds_that_are_wanted_are_told() {
    let closing = Closing { maybe_billed_twice: 1, ..Closing::new(Outcome::Served) };
    let run = |watch: &mut Watch, call, seconds| {
        watch.see(CallId(call), at(seconds), &opened("a"));
        short(&watch.see(CallId(call), at(seconds), &Event::CallClosed(closing)))
    };
    let mut watch = Watch::default();
    assert_eq!(run(&mut watch, 1, 0), "");
    let kinds = BTreeSet::from([Kind::MaybeBilledTwice]);
    watch.set(AlertSettings { kinds, ..AlertSettings::default() }, Vec::new());
    assert_eq!([run(&mut watch, 2, 1), run(&mut watch, 3, 2)], ["+maybe_billed_twice 0s", ""]);
    assert_eq!(run(&mut watch, 4, 700), "+maybe_billed_twice 0s (1)");
    watch.lane(of_lane("a"), at(800), shut());
    assert_eq!(watch.tick(at(9000)), []);
}

#[test]
fn what_is_kept_in_mind_is_bounded() {
    let mut watch = Watch::default();
    for call in 0..12_000_u64 {
        let lane = call.to_string();
        watch.see(CallId(call), at(0), &opened(&lane));
        watch.see(CallId(call), at(0), &fault(Fault::QuotaSpent, None));
        watch.lane(of_lane(&lane), at(0), shut());
    }
    assert_eq!(
        (watch.calls.len(), watch.lanes.len(), watch.cases.len()),
        (MOST_OPEN, MOST_CASES, MOST_CASES)
    );
    for call in 0..12_000_u64 {
        watch.see(CallId(call), at(1), &Event::Committed { send: 1 });
        watch.see(CallId(call), at(1), &Event::CallClosed(Closing::new(Outcome::Served)));
        watch.lane(of_lane(&call.to_string()), at(1), Gate::Opened);
    }
    watch.tick(at(700));
    assert_eq!((watch.calls.len(), watch.lanes.len(), watch.cases.len()), (0, 0, 0));
}

#[derive(Debug, Clone)]
enum Step {
    Open(u64, u8),
    Quota(u64),
    Wait(u64),
    Send(u64),
    Answer(u64),
    Close(u64, bool),
    Shut(u8),
    Opens(u8),
    File(bool),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    let (call, lane) = (0..6_u64, 0..3_u8);
    prop_oneof![
        (call.clone(), lane.clone()).prop_map(|(call, lane)| Step::Open(call, lane)),
        call.clone().prop_map(Step::Quota),
        call.clone().prop_map(Step::Wait),
        call.clone().prop_map(Step::Send),
        call.clone().prop_map(Step::Answer),
        (call, any::<bool>()).prop_map(|(call, twice)| Step::Close(call, twice)),
        lane.clone().prop_map(Step::Shut),
        lane.prop_map(Step::Opens),
        any::<bool>().prop_map(Step::File),
        Just(Step::Tick),
    ]
}

fn played(watch: &mut Watch, step: &Step, now: Moment) -> Vec<Alert> {
    match step {
        Step::Open(call, lane) => watch.see(CallId(*call), now, &opened(&lane.to_string())),
        Step::Quota(call) => watch.see(CallId(*call), now, &fault(Fault::QuotaSpent, None)),
        Step::Wait(call) => watch.see(CallId(*call), now, &in_line()),
        Step::Send(call) => watch.see(CallId(*call), now, &Event::SendStarted { send: 1 }),
        Step::Answer(call) => watch.see(CallId(*call), now, &Event::Committed { send: 1 }),
        Step::Close(call, twice) => {
            let closing = Closing { maybe_billed_twice: u32::from(*twice), ..Closing::new(Outcome::Served) };
            watch.see(CallId(*call), now, &Event::CallClosed(closing))
        }
        Step::Shut(lane) => watch.lane(of_lane(&lane.to_string()), now, shut()),
        Step::Opens(lane) => watch.lane(of_lane(&lane.to_string()), now, Gate::Opened),
        Step::File(fine) => watch.file("log", now, (!fine).then_some("full")),
        Step::Tick => watch.tick(now),
    }
}

proptest! {
    /// Whatever happens: of a kind and lane no two within the time, nothing is over that was not told, and nothing is told
    /// twice to be over.
    #[test]
    fn nobody_is_told_too_often(steps in prop::collection::vec((step(), 0..200_u64), 1..300)) {
        let mut watch = Watch::default();
        watch.set(
            AlertSettings { kinds: Kind::ALL.into(), ..AlertSettings::default() },
            Vec::new(),
        );
        let mut now = 0;
        let mut told: BTreeMap<(Kind, String), (Moment, bool)> = BTreeMap::new();
        for (step, later) in &steps {
            now += later;
            for alert in played(&mut watch, step, at(now)) {
                let of = alert.about.lane.as_deref().or(alert.about.what).unwrap_or_default().to_owned();
                let before = told.get(&(alert.kind, of.clone())).copied();
                match alert.state {
                    State::Raised => {
                        if let Some((last, _)) = before {
                            prop_assert!(at(now).since(last) >= Duration::from_secs(600), "{alert:?}");
                        }
                        told.insert((alert.kind, of), (at(now), true));
                    }
                    State::Resolved => {
                        prop_assert!(before.is_some_and(|(_, stands)| stands), "{alert:?}");
                        told.insert((alert.kind, of), (before.unwrap().0, false));
                    }
                }
            }
        }
    }

    /// Whatever happened before, a lane that stays closed for as long as both times together is told of.
    #[test]
    fn no_long_closure_is_missed(steps in prop::collection::vec((step(), 0..200_u64), 0..100)) {
        let mut watch = Watch::default();
        let mut now = 0;
        for (step, later) in &steps {
            now += later;
            played(&mut watch, step, at(now));
        }
        watch.lane(of_lane("0"), at(now), Gate::Opened);
        watch.lane(of_lane("0"), at(now), shut());
        let mut told = Vec::new();
        for later in 0..=900 {
            told.extend(watch.tick(at(now + later)));
        }
        let of = |alert: &&Alert| alert.kind == Kind::LaneClosed && alert.about.lane.as_deref() == Some("0");
        prop_assert_eq!(told.iter().filter(of).count(), 1);
    }
}
