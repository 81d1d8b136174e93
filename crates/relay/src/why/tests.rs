//! Tests of the wording, over records of every fault and every outcome.

use relay_core::call::{Stop, Why};
use relay_core::event::Outcome;

use super::*;
use crate::history::record::{
    ClosedRecord, FailedRecord, MissedRecord, MovedRecord, SendRecord, State, Tokens, WaitRecord, WaitWhy,
    WayRecord,
};
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
            way: Some(WayRecord {
                by: Some("direct".to_owned()),
                missed: vec![MissedRecord {
                    by: "http://p.example:3128".to_owned(),
                    why: "refused".to_owned(),
                }],
            }),
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
fn a_client_that_got_no_answer_was_told_of_nothing() {
    for outcome in [Outcome::GaveUp, Outcome::Refused, Outcome::Returned] {
        for (status, is_told) in [(None, false), (Some(503), true)] {
            let mut call = ended(Some(Fault::AtCapacity), outcome);
            call.closed = Some(ClosedRecord { status, ..closed(outcome) });
            let text = text(Lang::English, &call, KNOWN);
            assert_eq!(text.contains("closed without an answer"), !is_told, "{text}");
        }
    }
}

#[test]
fn what_is_wrapped_stands_below_its_text_however_long_it_took() {
    for (began, hang) in [(9_000, 11), (61_000, 11), (754_000, 13), (40_000_000, 12)] {
        let line = WaitRecord { began, waiting: Some(4), ..wait(WaitWhy::Line, Some(14_000)).unwrap() };
        let told = FailedRecord { told: Some(14_000), ..failed(Fault::AtCapacity) };
        let sends = vec![send(1, Some(told)), SendRecord { wait: Some(line), ..send(2, None) }];
        let page = text(Lang::English, &CallRecord { sends, ..call(1, State::Sending) }, KNOWN);
        let mut lines = page.lines().skip_while(|line| !line.contains("  waited "));
        let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
        let text = second.trim_start();
        assert!(first.find("waited") == Some(hang) && second.len() - text.len() == hang, "{page}");
    }
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
    let missed = vec![MissedRecord { by: "http://p.example:3128".to_owned(), why: "refused".to_owned() }];
    let way = Some(WayRecord { by: Some("direct".to_owned()), missed });
    let around = CallRecord { sends: vec![SendRecord { way, ..send(1, None) }], ..untroubled.clone() };
    assert_eq!(
        quick(around, 0),
        "The first way to the service did not work; the relay sent it by another one, and the service answered."
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

/// The same in one line.
fn unwrapped(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn to(upstream: &str, model: Option<&str>) -> Option<MovedRecord> {
    let (upstream, model) = (upstream.to_owned(), model.map(str::to_owned));
    Some(MovedRecord { upstream, lane: "0e".to_owned(), model, why: "failed".to_owned() })
}

#[test]
fn who_answered_is_named_where_that_is_not_who_was_asked() {
    let said = |moved, lang| {
        let mut call = ended(Some(Fault::AtCapacity), Outcome::Served);
        call.sends[1].moved = moved;
        verdict(lang, &call, false)
    };
    let saved = "The service was at capacity; the relay waited 12 s and got the answer.";
    for (moved, by) in [
        (to("second", None), " That came from second in place of openai."),
        (to("openai", Some("gpt-y")), " That came from gpt-y in place of gpt-x."),
        (to("second", Some("gpt-y")), " That came from gpt-y at second in place of gpt-x at openai."),
        (to("openai", Some("gpt-x")), ""),
        (None, ""),
    ] {
        assert_eq!(said(moved, Lang::English), format!("{saved}{by}"));
    }
    let chinese = said(to("second", Some("gpt-y")), Lang::Chinese);
    assert!(chinese.ends_with("回答来自 second 的 gpt-y，而非 openai 的 gpt-x。"), "{chinese}");
    // Without a fault of its own, that is all there is to tell.
    let sends = vec![SendRecord { moved: to("second", None), ..send(1, None) }];
    let closed = ClosedRecord { waited: 0, ..closed(Outcome::Served) };
    let call = CallRecord { sends, closed: Some(closed), ..call(1, State::Closed) };
    assert_eq!(
        verdict(Lang::English, &call, false),
        "The upstream that comes first took no calls; the relay sent it on at once and got the answer. \
         That came from second in place of openai."
    );
    // Who got no answer has none from anybody.
    let mut lost = ended(Some(Fault::AtCapacity), Outcome::GaveUp);
    lost.sends[1].moved = to("second", None);
    assert!(!verdict(Lang::English, &lost, false).contains("in place of"));
}

#[test]
fn what_an_earlier_call_had_spent_is_told() {
    let with = |sends, failed, resends, outcome| CallRecord {
        inherited_sends: sends,
        inherited_failed: failed,
        inherited_resends: resends,
        ..ended(Some(Fault::ServerFailed), outcome)
    };
    // A client that does not say that it sends again has the counts that may cost money, and no others.
    let weak = with(0, 2, 1, Outcome::Returned);
    let spent = "2 failed sends, 1 resend of what may have run";
    let page = unwrapped(&text(Lang::English, &weak, KNOWN));
    let head = "goes on from an earlier call of the same client; what that has spent counts, too:";
    assert!(page.contains(&format!("{head} {spent}")), "{page}");
    let last = format!("What an earlier call of the same client had spent counted, too: {spent}.");
    assert!(page.ends_with(&last), "{page}");
    let all = verdict(Lang::Chinese, &with(5, 2, 0, Outcome::GaveUp), false);
    assert!(all.ends_with("同一客户端之前的请求已用的额度一并计入：发送 5 次，发送失败 2 次。"), "{all}");
    let served = with(5, 0, 0, Outcome::Served);
    assert!(!verdict(Lang::English, &served, false).contains("earlier call"));
    assert!(unwrapped(&text(Lang::English, &served, KNOWN)).contains(head));
    // Nothing was left for it.
    let closed = ClosedRecord { why: Some(Stop::SendsSpent.name().to_owned()), ..closed(Outcome::GaveUp) };
    let none = CallRecord { sends: Vec::new(), closed: Some(closed), ..with(5, 0, 0, Outcome::GaveUp) };
    assert_eq!(
        verdict(Lang::English, &none, false),
        "The relay did not send it: no send was left. \
         What an earlier call of the same client had spent counted, too: 5 sends."
    );
}

#[test]
fn a_wait_for_a_breaker_is_told() {
    let waits = |waiting| WaitRecord { waiting, ..wait(WaitWhy::Circuit, Some(30_000)).unwrap() };
    let page = |wait, outcome| {
        let sends = vec![SendRecord { wait: Some(wait), began: None, ..send(1, None) }];
        let closed = ClosedRecord { waited: 30_000, took: 30_000, ..closed(outcome) };
        let call = CallRecord { sends, closed: Some(closed), ..call(1, State::Closed) };
        unwrapped(&text(Lang::English, &call, KNOWN))
    };
    let served = page(waits(None), Outcome::Served);
    assert!(served.contains("waited 30 s: the breaker of each upstream was open"), "{served}");
    assert!(served.ends_with("the relay held it for 30 s and got the answer."), "{served}");
    let served = page(waits(Some(1)), Outcome::Served);
    assert!(served.contains("upstream was open; then in the line of its lane, alone"), "{served}");
    for (outcome, words) in [
        (Outcome::GaveUp, "Other calls had failed at each upstream; the relay did not send this one"),
        (Outcome::ClientLeft, "while the relay held the call, since the breaker of each upstream was open."),
    ] {
        let page = page(waits(None), outcome);
        assert!(page.contains(words), "{page}");
    }
    let sends = vec![SendRecord { wait: Some(waits(None)), began: None, ..send(1, None) }];
    let open = CallRecord { sends, ..call(1, State::Waiting) };
    let said = "It is not over: the relay holds it, since the breaker of each upstream is open.";
    assert_eq!(verdict(Lang::English, &open, false), said);
}

#[test]
fn a_credential_that_cannot_be_had_is_the_relays_own_affair() {
    let said = |sends, lang| {
        let why = Some("credential".to_owned());
        let closed = ClosedRecord { why, sends, waited: 0, ..closed(Outcome::Refused) };
        let of = SendRecord { began: None, ..send(1, Some(failed(Fault::NeverSent))) };
        let call = CallRecord { sends: vec![of], closed: Some(closed), ..call(1, State::Closed) };
        verdict(lang, &call, false)
    };
    assert_eq!(
        said(0, Lang::English),
        "The relay's own credential for the service could not be had, so nothing was sent; `steady-relay status` and \
         the log say why."
    );
    assert!(said(0, Lang::Chinese).starts_with("无法取得中继自己"));
    // What was sent before has failed in its own way.
    assert!(
        said(1, Lang::English)
            .starts_with("The service could not be reached. The relay refused to send again")
    );
    let record = MovedRecord { why: "credential".to_owned(), ..to("second", None).unwrap() };
    let on = moved(Lang::English, &record);
    assert_eq!(on, "goes to second: the relay's own credential for the one before was not at hand");
}

#[test]
fn a_wait_for_a_credential_is_told() {
    let waits = || wait(WaitWhy::Credential, None).unwrap();
    let sends = || vec![SendRecord { wait: Some(waits()), began: None, ..send(1, None) }];
    for (outcome, words) in [
        (Outcome::Served, "was being renewed; the relay held the call for 5.0 s and got the answer."),
        (Outcome::GaveUp, "was not had within 5.0 s, so the relay gave up and sent nothing."),
        (
            Outcome::ClientLeft,
            "hung up after 5.0 s, while the relay's own credential for the service was being renewed.",
        ),
    ] {
        let closed = ClosedRecord { sends: 0, waited: 5_000, took: 5_000, ..closed(outcome) };
        let call = CallRecord { sends: sends(), closed: Some(closed), ..call(1, State::Closed) };
        let page = unwrapped(&text(Lang::English, &call, KNOWN));
        assert!(
            page.contains(words) && page.contains("the relay's own credential for the service was being"),
            "{page}"
        );
    }
    let open = CallRecord { sends: sends(), ..call(1, State::Waiting) };
    let said = "It is not over: the relay's own credential for the service is being renewed.";
    assert_eq!(verdict(Lang::English, &open, false), said);
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

/// A call that was refused so often, and then served.
fn refused(times: u32) -> CallRecord {
    let at = |send: u32| u64::from(send - 1) * 240_000;
    let mut sends: Vec<_> = (1..=times)
        .map(|number| SendRecord {
            wait: (number > 1).then(|| {
                let waited = 239_000 + u64::from(number) * 10;
                WaitRecord { began: at(number - 1) + 300, ..wait(WaitWhy::Backoff, Some(waited)).unwrap() }
            }),
            began: Some(at(number)),
            head: Some(at(number) + 200),
            status: Some(503),
            request_id: Some(format!("req_{number}")),
            ..send(number, Some(FailedRecord { at: at(number) + 240, ..failed(Fault::AtCapacity) }))
        })
        .collect();
    sends.push(SendRecord {
        began: Some(at(times + 1)),
        head: Some(at(times + 1) + 900),
        status: Some(200),
        ..send(times + 1, None)
    });
    let closed = ClosedRecord { sends: times + 1, ..closed(Outcome::Served) };
    CallRecord { run: Some(7), sends, closed: Some(closed), ..call(12, State::Closed) }
}

#[test]
fn refusals_that_are_alike_are_told_once_and_then_counted() {
    let page = text(Lang::English, &refused(49), KNOWN);
    assert!(page.lines().count() < 20, "{page}");
    assert!(page.contains("sends 2 to 49: the same × 48, 3 h 12 min"), "{page}");
    assert!(page.contains("waits between them: "), "{page}");
    assert!(page.contains("send 1: 503 after") && page.contains("send 50: 200 after"), "{page}");
    // Three are told one by one, and so is what is different.
    let few = text(Lang::English, &refused(3), KNOWN);
    assert!(few.contains("send 2: 503") && few.contains("send 3: 503"), "{few}");
    let mut odd = refused(12);
    odd.sends[5].failed =
        Some(FailedRecord { at: odd.sends[5].began.unwrap(), ..failed(Fault::BrokenStream) });
    odd.sends[5].status = Some(500);
    odd.sends[9].may_run_twice = true;
    let page = text(Lang::English, &odd, KNOWN);
    for words in ["sends 2 to 5: the same × 4", "send 6: 500", "send 7: 503", "send 10: 503"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    // What lies between is not counted as told.
    let mut long = refused(64);
    long.left_out = 100;
    long.sends.iter_mut().skip(32).for_each(|of| of.send += 100);
    let page = text(Lang::English, &long, KNOWN);
    for words in ["sends 2 to 32: the same × 31", "100 sends in the middle not told", "sends 134 to 164: "] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
}

#[test]
fn a_send_that_is_under_way_is_no_silence() {
    let open = CallRecord { sends: vec![send(1, None)], ..call(1, State::Sending) };
    let page = text(Lang::English, &open, KNOWN);
    assert!(page.contains("send 1: no answer yet") && !page.contains("nothing came"), "{page}");
}

#[test]
fn the_last_call_is_the_newest_that_met_a_fault_wherever_it_is_known() {
    let at = |opened: u64, record: CallRecord| CallRecord { opened, call: opened, run: Some(7), ..record };
    let well = |opened| at(opened, ended(None, Outcome::Served));
    let ill = |opened| at(opened, ended(Some(Fault::AtCapacity), Outcome::Served));
    let last = |recorded, live| found(&Name::Last, recorded, live).remove(0).opened;
    assert_eq!(last(vec![ill(3)], vec![well(4), ill(2)]), 3);
    assert_eq!(last(vec![ill(3)], vec![ill(4), well(5)]), 4);
    assert_eq!(last(vec![well(3)], vec![well(4)]), 4);
    // The same call in both is the one in memory.
    let open = at(3, CallRecord { sends: vec![send(1, None)], ..call(1, State::Sending) });
    assert_eq!(found(&Name::of("c3"), vec![open], vec![well(3), well(4)]), [well(3)]);
    assert_eq!(found(&Name::of("c9"), vec![], vec![well(3)]), []);
}
