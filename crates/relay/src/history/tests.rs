//! What the tests of the history share, and those of its parts together.

use std::time::Duration;

use relay_core::event::{
    CallId, Closing, Detour, Event, HeldBy, Inherited, Labels, Left, Leg, Missed, Outcome, Transport,
};
use relay_core::usage::Usage;
use relay_core::{Evidence, Fault, Moment};

use super::assemble::Assembler;
use super::record::{CallRecord, MOST_SENDS, State, WaitWhy};
use super::{Recorder, Writer};
use crate::observe::Observer as _;

/// A call.
pub(crate) fn call(number: u64, state: State) -> CallRecord {
    CallRecord {
        run: None,
        call: number,
        opened: 1_000_000 + number,
        client: "codex".to_owned(),
        dialect: "openai_responses".to_owned(),
        operation: "generation".to_owned(),
        transport: "http".to_owned(),
        upstream: "openai".to_owned(),
        model: Some("gpt-x".to_owned()),
        profile: "interactive".to_owned(),
        lane: "0f".to_owned(),
        request_id: None,
        pool: None,
        bound: None,
        inherited_sends: 0,
        inherited_failed: 0,
        inherited_resends: 0,
        state,
        sends: Vec::new(),
        left_out: 0,
        committed: None,
        closed: None,
    }
}

/// It was accepted.
pub(crate) fn opened() -> Event {
    let labels = Labels {
        client: "codex",
        dialect: "openai_responses",
        operation: relay_core::evidence::Operation::Generation,
        transport: Transport::Http,
        upstream: "openai".into(),
        model: Some("gpt-x".into()),
        profile: "interactive".into(),
        lane: "0f".into(),
        request_id: Some("client-1".into()),
        pool: None,
        bound: None,
        trace: None,
    };
    Event::CallOpened {
        labels: labels.into(),
        inherited: Inherited { sends: 1, ..Inherited::default() },
        wall: 5_000,
    }
}

/// A send was refused, and the upstream asked to wait so many seconds.
pub(crate) fn refused(send: u32, told: Option<u64>) -> Event {
    Event::FaultSeen {
        send,
        fault: Fault::AtCapacity,
        evidence: Some(Evidence::Refused),
        status: Some(503),
        code: Some("server_is_overloaded".into()),
        rule: Some("code `server_is_overloaded`".into()),
        told: told.map(Duration::from_secs),
        usage: None,
    }
}

/// Its next send waits so many seconds.
pub(crate) fn waits(send: u32, seconds: u64) -> Event {
    let wait = Duration::from_secs(seconds);
    Event::WaitStarted { send, wait, fault: Fault::AtCapacity, status: Some(503), code: None }
}

/// It was served.
pub(super) fn served(sends: u32, seconds: u64) -> Event {
    let usage = Some(Usage { input: 100, cached: 60, output: 9 });
    let took = Duration::from_secs(seconds);
    let last_fault = (sends > 1).then_some(Fault::AtCapacity);
    let status = Some(200);
    Event::CallClosed(Closing {
        sends,
        took,
        last_fault,
        status,
        sent: 512,
        usage,
        ..Closing::new(Outcome::Served)
    })
}

const BEGAN: Moment = Moment::after_start(Duration::from_secs(100));

fn see(assembler: &mut Assembler, seconds: u64, event: &Event) {
    let seen = assembler.see(CallId(7), BEGAN + Duration::from_secs(seconds), event);
    assert!(seen, "{event:?}");
}

#[test]
fn a_call_is_told_from_its_beginning_to_its_end() {
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    see(&mut assembler, 0, &Event::SendStarted { send: 1 });
    let missed = vec![Missed { by: "http://p.example:3128".into(), why: "refused" }];
    let detour = Detour { by: Some("direct".into()), missed };
    see(&mut assembler, 0, &Event::WayTaken { send: 1, detour });
    let head = Event::HeadArrived { send: 1, status: 503, request_id: Some("req-1".into()) };
    see(&mut assembler, 1, &head);
    see(&mut assembler, 1, &refused(1, Some(4)));
    see(&mut assembler, 1, &waits(2, 5));
    let waiting = assembler.take_changed().remove(0);
    assert_eq!((waiting.state, waiting.opened, waiting.sends.len()), (State::Waiting, 5_000, 2));
    assert_eq!(waiting.sends[1].wait.as_ref().unwrap().took, None);
    see(&mut assembler, 6, &Event::GrantTaken { send: 2 });
    see(&mut assembler, 6, &Event::SendStarted { send: 2 });
    see(&mut assembler, 7, &refused(2, None));
    let in_line = Event::InLine {
        send: 3,
        waiting: 4,
        parked: None,
        fault: Some(Fault::AtCapacity),
        status: Some(503),
        code: None,
    };
    see(&mut assembler, 7, &in_line);
    see(&mut assembler, 8, &Event::NoticeGiven { send: 3, notices: 1, fault: None });
    see(&mut assembler, 9, &Event::SendStarted { send: 3 });
    see(&mut assembler, 10, &Event::Committed { send: 3 });
    see(&mut assembler, 12, &served(3, 12));
    let changed = assembler.take_changed();
    assert_eq!(changed.len(), 1);
    insta::assert_snapshot!("a_call", serde_json::to_string_pretty(&changed[0]).unwrap());
    assert_eq!(assembler.take_changed(), []);
    assert!(!assembler.see(CallId(7), BEGAN, &Event::SendStarted { send: 4 }), "it is over");
}

#[test]
fn why_it_waits_is_told() {
    let why = |told: Option<u64>, wait: u64| {
        let mut assembler = Assembler::default();
        see(&mut assembler, 0, &opened());
        see(&mut assembler, 0, &Event::SendStarted { send: 1 });
        see(&mut assembler, 1, &refused(1, told));
        see(&mut assembler, 1, &waits(2, wait));
        assembler.take_changed()[0].sends[1].wait.as_ref().unwrap().why
    };
    assert_eq!(why(Some(4), 5), WaitWhy::Told);
    assert_eq!(why(Some(0), 5), WaitWhy::Backoff);
    assert_eq!(why(None, 5), WaitWhy::Backoff);
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    see(&mut assembler, 1, &waits(1, 5));
    assert_eq!(assembler.take_changed()[0].sends[0].wait.as_ref().unwrap().why, WaitWhy::Cut);
}

#[test]
fn a_wait_for_a_quota_is_told_with_its_time() {
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    let parked = Some(Duration::from_secs(600));
    see(
        &mut assembler,
        1,
        &Event::InLine { send: 1, waiting: 2, parked, fault: None, status: None, code: None },
    );
    let wait = assembler.take_changed()[0].sends[0].wait.clone().unwrap();
    assert_eq!((wait.why, wait.planned, wait.waiting), (WaitWhy::Parked, Some(600_000), Some(2)));
    assert_eq!(serde_json::to_value(wait.why).unwrap(), "parked");
}

#[test]
fn a_wait_for_a_breaker_stays_one_until_its_send() {
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    let cut_off =
        Event::HeldBack { send: 1, by: HeldBy::Circuits, wait: Some(Duration::from_secs(30)), fault: None };
    let line = |send| Event::InLine { send, waiting: 3, parked: None, fault: None, status: None, code: None };
    see(&mut assembler, 1, &cut_off);
    see(&mut assembler, 31, &line(1));
    see(&mut assembler, 32, &Event::SendStarted { send: 1 });
    see(&mut assembler, 33, &refused(1, None));
    see(&mut assembler, 33, &line(2));
    let record = assembler.take_changed().remove(0);
    let first = record.sends[0].wait.clone().unwrap();
    assert_eq!((first.why, first.began, first.took), (WaitWhy::Circuit, 1_000, Some(31_000)));
    assert_eq!((first.planned, first.waiting), (Some(30_000), Some(3)));
    assert_eq!(record.sends[1].wait.as_ref().unwrap().why, WaitWhy::Line);
    assert_eq!(serde_json::to_value(first.why).unwrap(), "circuit");
}

#[test]
fn what_is_left_out_of_a_long_call_does_not_hide_where_it_went() {
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    for send in 1..=200 {
        if send == 50 {
            let to = Leg { upstream: "second".into(), lane: "0e".into(), model: None }.into();
            see(&mut assembler, u64::from(send), &Event::Moved { send, to, why: Left::Failed });
        }
        see(&mut assembler, u64::from(send), &Event::SendStarted { send });
        see(&mut assembler, u64::from(send), &refused(send, None));
    }
    let record = assembler.take_changed().remove(0);
    assert!(record.sends.iter().all(|of| of.send != 50), "it is one of those that are left out");
    assert_eq!(record.last_at(), ("second", Some("gpt-x")));
    assert_eq!(record.sends.iter().filter(|of| of.moved.is_some()).count(), 1);
}

#[test]
fn a_cut_is_told_by_what_it_was_for() {
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    see(&mut assembler, 0, &Event::SendStarted { send: 1 });
    see(&mut assembler, 1, &Event::Committed { send: 1 });
    see(&mut assembler, 2, &Event::StreamCut { fault: Fault::Overloaded, cuts: 1 });
    see(&mut assembler, 2, &Event::CallClosed(Closing::new(Outcome::Cut)));
    let closed = assembler.take_changed().remove(0).closed.unwrap();
    assert_eq!((closed.outcome.as_str(), closed.last_fault.as_deref()), ("cut", Some("overloaded")));
}

#[test]
fn a_long_call_loses_its_middle() {
    let mut assembler = Assembler::default();
    see(&mut assembler, 0, &opened());
    for send in 1..=1000 {
        see(&mut assembler, u64::from(send), &Event::SendStarted { send });
        see(&mut assembler, u64::from(send), &refused(send, None));
    }
    let record = assembler.take_changed().remove(0);
    assert_eq!((record.sends.len(), record.left_out as usize), (MOST_SENDS, 1000 - MOST_SENDS));
    assert_eq!((record.sends[0].send, record.sends[MOST_SENDS - 1].send), (1, 1000));
}

#[test]
fn what_finds_no_room_is_counted_and_slows_nobody() {
    let recorder = Recorder::start(Writer::default()).unwrap();
    for number in 0..40_000_u32 {
        // Slowly enough for each to be recorded.
        recorder.see(CallId(number.into()), BEGAN + Duration::from_millis(1) * number, &opened());
    }
    recorder.close();
    let kept = recorder.recent().since(0).1.len() as u64;
    assert_eq!(kept, super::recent::MOST as u64);
    // Open calls beyond ten thousand, and whatever came while the queue was full.
    assert!(recorder.lost() >= 30_000, "{recorder:?}");
    recorder.see(CallId(1), BEGAN, &served(1, 1));
    assert!(recorder.lost() >= 30_001, "{recorder:?}");
}

#[test]
fn what_was_seen_before_the_end_is_kept() {
    let recorder = Recorder::start(Writer::default()).unwrap();
    recorder.see(CallId(1), BEGAN, &opened());
    recorder.see(CallId(1), BEGAN, &served(1, 1));
    recorder.close();
    assert_eq!(recorder.recent().call(1).map(|call| call.state), Some(State::Closed));
    assert_eq!(recorder.lost(), 0);
}

#[tokio::test]
async fn who_asks_right_after_a_call_learns_its_end() {
    let recorder = Recorder::start(Writer::default()).unwrap();
    recorder.settled().await;
    for call in 1..=50 {
        for event in [opened(), Event::SendStarted { send: 1 }, served(1, 0)] {
            recorder.see(CallId(call), Moment::ZERO, &event);
        }
        recorder.settled().await;
        assert_eq!(recorder.recent().call(call).map(|call| call.state), Some(State::Closed));
    }
    recorder.close();
    recorder.settled().await;
}
