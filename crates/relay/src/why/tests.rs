//! Tests of the wording, over records of every fault and every outcome.

use relay_core::call::{Stop, Why};
use relay_core::event::Outcome;

use super::*;
use crate::history::record::{ClosedRecord, FailedRecord, SendRecord, State, Tokens, WaitRecord, WaitWhy};
use crate::history::tests::call;

const KNOWN: Known<'_> =
    Known { when: "2026-11-30 14:02:11", zone: None, kind: Some("serve"), run_ended: false };

fn closed(outcome: Outcome) -> ClosedRecord {
    ClosedRecord {
        outcome: outcome.name().to_owned(),
        why: None,
        status: None,
        sends: 2,
        waited: 12_000,
        took: 14_500,
        last_fault: None,
        capacity_faults: 0,
        maybe_billed_twice: 0,
        received: 1_204,
        sent: 0,
        tokens: None,
    }
}

fn failed(fault: Fault) -> FailedRecord {
    FailedRecord {
        at: 240,
        fault: fault.name().to_owned(),
        evidence: Some("refused".to_owned()),
        code: None,
        rule: None,
        told: None,
        tokens: None,
    }
}

fn send(number: u32, failed: Option<FailedRecord>) -> SendRecord {
    SendRecord { send: number, began: Some(10), failed, ..SendRecord::default() }
}

fn wait(why: WaitWhy, took: Option<u64>) -> Option<WaitRecord> {
    Some(WaitRecord { why, began: 250, planned: None, took, waiting: None, notices: 0 })
}

/// A call of which the first send failed like this, and that ended like that.
fn ended(fault: Option<Fault>, outcome: Outcome) -> CallRecord {
    let fault = fault.map(failed);
    let sends =
        vec![send(1, fault), SendRecord { wait: wait(WaitWhy::Backoff, Some(12_000)), ..send(2, None) }];
    CallRecord { run: Some(7), sends, closed: Some(closed(outcome)), ..call(12, State::Closed) }
}

/// A call in which everything happened.
fn full() -> CallRecord {
    let tokens = Tokens { input: 51_200, cached: 48_000, output: 912 };
    let told = FailedRecord {
        code: Some("server_is_overloaded".to_owned()),
        rule: Some("code `server_is_overloaded`".to_owned()),
        told: Some(4_000),
        tokens: Some(Tokens { input: 100, cached: 0, output: 0 }),
        ..failed(Fault::AtCapacity)
    };
    let broken =
        FailedRecord { at: 21_000, evidence: Some("maybe_ran".to_owned()), ..failed(Fault::BrokenStream) };
    let line = WaitRecord { waiting: Some(5), notices: 2, ..wait(WaitWhy::Line, Some(61_000)).unwrap() };
    let sends = vec![
        SendRecord {
            head: Some(230),
            status: Some(503),
            request_id: Some("req_011CU".to_owned()),
            ..send(1, Some(told.clone()))
        },
        SendRecord {
            wait: wait(WaitWhy::Told, Some(4_300)),
            began: Some(4_550),
            head: Some(5_000),
            status: Some(200),
            ..send(2, Some(broken))
        },
        SendRecord {
            wait: Some(WaitRecord { began: 21_000, ..line }),
            began: Some(82_000),
            may_run_twice: true,
            head: Some(83_500),
            status: Some(200),
            ..send(3, None)
        },
    ];
    let closed = ClosedRecord {
        status: Some(200),
        sends: 3,
        waited: 65_300,
        took: 92_000,
        maybe_billed_twice: 1,
        sent: 18_332,
        tokens: Some(tokens),
        ..closed(Outcome::Served)
    };
    CallRecord {
        run: Some(7),
        request_id: Some("client-1".to_owned()),
        inherited_sends: 1,
        sends,
        committed: Some(84_000),
        closed: Some(closed),
        ..call(12, State::Closed)
    }
}

#[test]
fn a_call_is_told_from_its_beginning_to_its_end() {
    insta::assert_snapshot!("english", text(Lang::English, &full(), KNOWN));
    insta::assert_snapshot!("chinese", text(Lang::Chinese, &full(), KNOWN));
}

#[test]
fn a_call_that_was_not_sent_since_its_lane_was_parked_says_so_and_until_when() {
    let parked = WaitRecord { planned: Some(3_600_000), ..wait(WaitWhy::Parked, Some(0)).unwrap() };
    let sends = vec![SendRecord { send: 1, wait: Some(parked), ..SendRecord::default() }];
    let closed = ClosedRecord {
        why: Some("quota_parked".to_owned()),
        status: Some(429),
        sends: 0,
        last_fault: Some("quota_spent".to_owned()),
        ..closed(Outcome::Passed)
    };
    let call = CallRecord { sends, closed: Some(closed), ..call(12, State::Closed) };
    insta::assert_snapshot!("parked_english", text(Lang::English, &call, KNOWN));
    insta::assert_snapshot!("parked_chinese", text(Lang::Chinese, &call, KNOWN));
    let zone = Zone::of_system();
    let known = Known { zone: Some(&zone), ..KNOWN };
    let until = zone.shown(call.opened + 250 + 3_600_000);
    assert!(text(Lang::English, &call, known).replace('\n', " ").contains(&until[..10]), "{until}");
}

#[test]
fn every_fault_has_its_last_line() {
    let mut said = String::new();
    for fault in Fault::ALL {
        for lang in Lang::ALL {
            let call = ended(Some(fault), Outcome::Served);
            said += &format!("{}: {}\n", fault.name(), verdict(lang, &call, false));
            let page = text(lang, &call, KNOWN);
            assert!(page.contains(fault.meaning_in(lang)) && page.contains(fault.name()), "{page}");
        }
    }
    insta::assert_snapshot!(said);
}

#[test]
fn every_outcome_has_its_last_line() {
    let mut said = String::new();
    let mut tell = |name: &str, call: &CallRecord| {
        for lang in Lang::ALL {
            said += &format!("{name}: {}\n", verdict(lang, call, false));
            let page = text(lang, call, KNOWN);
            for line in page.lines() {
                assert!(terminal::width(line) <= COLUMNS, "{line}");
            }
        }
    };
    for outcome in Outcome::ALL {
        for fault in [Some(Fault::AtCapacity), None] {
            let with = if fault.is_some() { "" } else { " without a fault" };
            tell(&format!("{}{with}", outcome.name()), &ended(fault, outcome));
        }
    }
    tell(
        "cut in an answer",
        &CallRecord { committed: Some(9), ..ended(Some(Fault::Overloaded), Outcome::Cut) },
    );
    let because = |outcome, why: &str| {
        let mut call = ended(Some(Fault::ServerFailed), outcome);
        call.closed = Some(ClosedRecord { why: Some(why.to_owned()), ..closed(outcome) });
        call
    };
    for stop in Stop::ALL {
        tell(stop.name(), &because(Outcome::GaveUp, stop.name()));
    }
    for why in Why::ALL {
        tell(why.name(), &because(Outcome::Refused, why.name()));
    }
    let unknown = ClosedRecord { outcome: "sung".to_owned(), ..closed(Outcome::Served) };
    tell("of another version", &CallRecord { closed: Some(unknown), ..ended(None, Outcome::Served) });
    insta::assert_snapshot!(said);
}

#[test]
fn what_a_served_call_went_through_is_told() {
    let quick = |call: CallRecord, waited| {
        let closed = ClosedRecord { waited, ..closed(Outcome::Served) };
        verdict(Lang::English, &CallRecord { closed: Some(closed), ..call }, false)
    };
    let untroubled = CallRecord { sends: vec![send(1, None)], ..call(1, State::Closed) };
    assert_eq!(
        quick(untroubled.clone(), 0),
        "The service answered the first send; the relay had nothing to do."
    );
    let first = |why| {
        let sends = vec![SendRecord { wait: wait(why, Some(9_000)), ..send(1, None) }];
        quick(CallRecord { sends, ..untroubled.clone() }, 9_000)
    };
    assert!(first(WaitWhy::Line).contains("was refusing other calls like this one"));
    assert!(first(WaitWhy::Cut).contains("broke off an earlier answer of this turn"));
    let at_once = quick(ended(Some(Fault::NeverSent), Outcome::Served), 0);
    assert_eq!(at_once, "The service could not be reached; the relay sent again at once and got the answer.");
}

#[test]
fn what_the_client_left_is_told() {
    let left = |call: CallRecord| {
        let closed = ClosedRecord { took: 61_000, ..closed(Outcome::ClientLeft) };
        verdict(Lang::English, &CallRecord { closed: Some(closed), ..call }, false)
    };
    let waits = |fault: Option<Fault>| {
        let waiting = SendRecord { send: 2, wait: wait(WaitWhy::Backoff, Some(1)), ..SendRecord::default() };
        let mut sends: Vec<_> = fault.map(|fault| send(1, Some(failed(fault)))).into_iter().collect();
        sends.push(waiting);
        CallRecord { sends, ..call(1, State::Closed) }
    };
    let rows = [
        (waits(Some(Fault::Overloaded)), "while the relay waited to send again (the service is overloaded)."),
        (waits(None), "while the relay held the call back, since the service was refusing others."),
        (
            CallRecord { sends: vec![send(1, None)], ..call(1, State::Closed) },
            "while the service had not answered.",
        ),
        (
            CallRecord { committed: Some(1), sends: vec![send(1, None)], ..call(1, State::Closed) },
            "while the answer came.",
        ),
        (call(1, State::Closed), "before anything was sent."),
    ];
    for (call, words) in rows {
        assert_eq!(left(call), format!("The client hung up after 1 min 1 s, {words}"));
    }
}

#[test]
fn an_open_call_says_what_it_does() {
    let said = |state, fault: Option<Fault>| {
        let sends = vec![send(1, fault.map(failed))];
        verdict(Lang::English, &CallRecord { sends, ..call(1, state) }, false)
    };
    insta::assert_snapshot!(
        [
            said(State::Opening, None),
            said(State::Sending, None),
            said(State::Waiting, Some(Fault::AtCapacity)),
            said(State::Waiting, None),
            said(State::Streaming, None),
        ]
        .join("\n")
    );
    let cut_short = verdict(Lang::English, &call(1, State::Sending), true);
    assert_eq!(cut_short, "The relay ended before this call did: what became of it is not known.");
}

#[test]
fn names_of_another_version_and_odd_signs_are_no_trouble() {
    let mut odd = full();
    odd.sends[0].failed = Some(FailedRecord {
        fault: "sung\u{1b}[2J".to_owned(),
        evidence: Some("heard".to_owned()),
        ..failed(Fault::AtCapacity)
    });
    odd.model = Some("m".repeat(300));
    odd.left_out = 9;
    odd.sends[2].send = 12;
    let page = text(Lang::English, &odd, KNOWN);
    assert!(!page.contains('\u{1b}') && page.contains("sung?[2J") && page.contains("heard"), "{page}");
    assert!(page.contains("9 sends in the middle not told"), "{page}");
}

#[test]
fn the_record_is_printed_for_programs() {
    let told = json(&full(), false, 3);
    assert_eq!(
        (&told["v"], &told["others"], &told["call"], &told["run"]),
        (&1.into(), &3.into(), &12.into(), &7.into())
    );
    assert_eq!(told["sends"][0]["failed"]["fault"], "at_capacity");
    let read: CallRecord = serde_json::from_value(told).unwrap();
    assert_eq!(read, full());
}
