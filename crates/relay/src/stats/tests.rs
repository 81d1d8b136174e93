//! Tests of the sums, against a plain reckoning of the same, and of how they are told.

use std::collections::BTreeSet;

use proptest::prelude::*;
use relay_core::event::Outcome;
use relay_core::{Fault, Lang};

use super::best::{Best, DAYS, HOURS, SENDS, best};
use super::export::Export;
use super::morning::Morning;
use super::tally::{Cell, Hours, OTHERS, Sums, Tally};
use super::*;
use crate::history::record::{
    CallRecord, ClosedRecord, FailedRecord, MovedRecord, SendRecord, State, Tokens, WaitRecord, WaitWhy,
};
use crate::history::tests::call;
use crate::terminal::width;

const HOUR: u64 = 3_600_000;

/// A week that begins with 1970, as if that had been a Monday.
fn slot(ms: u64) -> Slot {
    let hours = ms / HOUR;
    let at = |number: u64| usize::try_from(number).unwrap();
    Slot { weekday: at(hours / 24 % 7), hour: at(hours % 24), day: i32::try_from(hours / 24).unwrap() }
}

fn failed(fault: Fault, tokens: Option<Tokens>) -> FailedRecord {
    let fault = fault.name().to_owned();
    FailedRecord { at: 100, fault, evidence: None, code: None, rule: None, told: None, tokens }
}

/// A call that was refused so often and then ended like this.
fn ended(number: u64, refused: u32, outcome: &str) -> CallRecord {
    let wait = |why| {
        Some(WaitRecord { why, began: 100, planned: None, took: Some(2_000), waiting: None, notices: 0 })
    };
    let one = |send: u32| SendRecord {
        send,
        wait: (send > 1).then(|| wait(WaitWhy::Backoff)).flatten(),
        began: Some(u64::from(send - 1) * 2_100),
        failed: (send <= refused).then(|| failed(Fault::AtCapacity, None)),
        ..SendRecord::default()
    };
    let sends = refused + u32::from(outcome == "served");
    let closed = ClosedRecord {
        outcome: outcome.to_owned(),
        why: None,
        status: Some(200),
        sends,
        waited: 2_000 * u64::from(sends.saturating_sub(1)),
        took: 9_000,
        last_fault: (refused > 0).then(|| "at_capacity".to_owned()),
        capacity_faults: refused,
        maybe_billed_twice: 0,
        received: 1,
        sent: 1,
        tokens: None,
    };
    CallRecord { sends: (1..=sends).map(one).collect(), closed: Some(closed), ..call(number, State::Closed) }
}

fn tally(calls: &[CallRecord], by: Option<By>) -> Tally {
    let mut tally = Tally::default();
    calls.iter().for_each(|call| tally.see(call, by, &slot));
    tally
}

prop_compose! {
    fn any_tokens()(input in 0u64..1000, cached in 0u64..1000, output in 0u64..1000) -> Tokens {
        Tokens { input, cached, output }
    }
}

prop_compose! {
    fn any_send()(
        fault in prop::option::of(prop::sample::select(Fault::ALL.to_vec())),
        tokens in prop::option::of(any_tokens()),
        began in prop::option::weighted(0.9, 0u64..8 * HOUR),
        cut in prop::bool::weighted(0.1),
    ) -> SendRecord {
        let wait = cut.then_some(WaitRecord {
            why: WaitWhy::Cut, began: 0, planned: None, took: None, waiting: None, notices: 0,
        });
        SendRecord { began, wait, failed: fault.map(|fault| failed(fault, tokens)), ..SendRecord::default() }
    }
}

prop_compose! {
    fn any_closed()(
        outcome in prop::sample::select(Outcome::ALL.map(Outcome::name).to_vec()),
        waited in prop_oneof![Just(0), 0u64..100, 0u64..10_000_000],
        (sends, faults, twice) in (0u32..9, 0u32..9, 0u32..3),
        fault in prop::option::of(Just("at_capacity".to_owned())),
        tokens in prop::option::of(any_tokens()),
    ) -> ClosedRecord {
        ClosedRecord {
            outcome: outcome.to_owned(), why: None, status: None, sends, waited, took: waited, last_fault: fault,
            capacity_faults: faults, maybe_billed_twice: twice, received: 0, sent: 0, tokens,
        }
    }
}

prop_compose! {
    fn any_call()(
        opened in 0u64..60 * 24 * HOUR,
        model in prop::option::of(prop::sample::select(vec!["a", "b", "c"])),
        mut sends in prop::collection::vec(any_send(), 0..5),
        closed in prop::option::weighted(0.9, any_closed()),
    ) -> CallRecord {
        for (send, number) in sends.iter_mut().zip(1..) {
            send.send = number;
        }
        CallRecord { opened, model: model.map(str::to_owned), sends, closed, ..call(1, State::Closed) }
    }
}

/// The same by loops over everything, one question at a time.
fn plainly(calls: &[CallRecord], sums: &Sums) {
    let over: Vec<_> = calls.iter().filter_map(|call| Some((call, call.closed.as_ref()?))).collect();
    let count = |test: &dyn Fn(&CallRecord, &ClosedRecord) -> bool| {
        over.iter().filter(|(call, closed)| test(call, closed)).count() as u64
    };
    let by = |names: &[&str]| count(&|_, closed| names.contains(&closed.outcome.as_str()));
    let capacity = |send: &SendRecord| {
        let names = ["at_capacity", "overloaded", "throttled"];
        send.failed.as_ref().is_some_and(|failed| names.contains(&failed.fault.as_str()))
    };
    let untroubled = |call: &CallRecord| match call.sends.first() {
        Some(first) => first.failed.is_none() && first.wait.is_none(),
        None => true,
    };
    assert_eq!(sums.calls, calls.len() as u64);
    assert_eq!(sums.open, (calls.len() - over.len()) as u64);
    assert_eq!(
        (sums.served, sums.passed, sums.returned),
        (by(&["served"]), by(&["passed"]), by(&["returned"]))
    );
    assert_eq!(
        (sums.lost, sums.broken, sums.cut),
        (by(&["refused", "gave_up"]), by(&["broken"]), by(&["cut"]))
    );
    assert_eq!(sums.left + sums.left_waiting, by(&["client_left"]));
    let in_peace = count(&|call, closed| {
        closed.outcome == "client_left"
            && closed.waited == 0
            && closed.last_fault.is_none()
            && call.sends.iter().all(|send| send.failed.is_none())
    });
    assert_eq!(sums.left, in_peace);
    let by_first = count(&|call, closed| closed.outcome == "served" && untroubled(call));
    assert_eq!((sums.served_by_first, sums.saved()), (by_first, by(&["served"]) - by_first));
    let of_open = |test: &dyn Fn(&SendRecord) -> bool| {
        let open = calls.iter().filter(|call| call.closed.is_none());
        open.flat_map(|call| &call.sends).filter(|send| test(send)).count() as u64
    };
    let total = |number: &dyn Fn(&ClosedRecord) -> u32| {
        over.iter().map(|(_, closed)| u64::from(number(closed))).sum::<u64>()
    };
    assert_eq!(sums.sends, total(&|closed| closed.sends) + of_open(&|send| send.began.is_some()));
    assert_eq!(sums.refusals, total(&|closed| closed.capacity_faults) + of_open(&capacity));
    assert_eq!(sums.second_runs, total(&|closed| closed.maybe_billed_twice));
    assert_eq!(sums.billed_twice, count(&|_, closed| closed.maybe_billed_twice > 0));
    let mut waits: Vec<_> = over.iter().map(|(_, closed)| closed.waited).filter(|wait| *wait > 0).collect();
    waits.sort_unstable();
    assert_eq!((sums.waits.count(), sums.waits.sum()), (waits.len() as u64, waits.iter().sum::<u64>()));
    for percent in [0, 50, 95, 100] {
        let exact = waits.get((waits.len() * percent).div_ceil(100).max(1) - 1).copied();
        let told = sums.waits.percentile(percent as u64);
        let near = |exact: u64, told: u64| exact <= told && told <= exact + exact / 16;
        assert!(
            exact.zip(told).map_or(exact == told, |(exact, told)| near(exact, told)),
            "{exact:?} {told:?}"
        );
    }
    let input = |tokens: &[Option<Tokens>]| tokens.iter().flatten().map(|tokens| tokens.input).sum::<u64>();
    let served: Vec<_> = over
        .iter()
        .filter(|(_, closed)| closed.outcome == "served")
        .map(|(_, closed)| closed.tokens)
        .collect();
    let unserved = over.iter().filter(|(_, closed)| closed.outcome != "served").map(|(call, closed)| {
        let told = call.sends.last().and_then(|send| send.failed.as_ref()).and_then(|failed| failed.tokens);
        if told == closed.tokens { None } else { closed.tokens }
    });
    let sends = calls.iter().flat_map(|call| &call.sends).filter_map(|send| send.failed.as_ref());
    let wasted: Vec<_> = sends.map(|failed| failed.tokens).chain(unserved).collect();
    assert_eq!((sums.tokens.input, sums.failed_tokens.input), (input(&served), input(&wasted)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn sums_are_those_of_a_plain_reckoning(calls in prop::collection::vec(any_call(), 0..40)) {
        let by_upstream = tally(&calls, Some(By::Upstream));
        plainly(&calls, &by_upstream.all);
        prop_assert_eq!(by_upstream.rows.values().map(|sums| sums.calls).sum::<u64>(), calls.len() as u64);
        for by in [None, Some(By::Hour), Some(By::Model)] {
            let tally = tally(&calls, by);
            plainly(&calls, &tally.all);
            for (name, sums) in &tally.rows {
                let is_one = |call: &&CallRecord| match by {
                    Some(By::Hour) => format!("{:02}", slot(call.opened).hour) == *name,
                    _ => call.model.as_deref().unwrap_or("-") == name,
                };
                let its: Vec<_> = calls.iter().filter(is_one).cloned().collect();
                plainly(&its, sums);
            }
            let rows: u64 = tally.rows.values().map(|sums| sums.calls).sum();
            prop_assert_eq!(rows, if by.is_some() { calls.len() as u64 } else { 0 });
        }
    }

    #[test]
    fn hours_are_those_of_a_plain_reckoning(calls in prop::collection::vec(any_call(), 0..40)) {
        let tally = tally(&calls, None);
        let sends = |call: &CallRecord| {
            let opened = call.opened;
            let sent = call.sends.clone().into_iter().filter_map(move |send| Some((slot(opened + send.began?), send)));
            sent.collect::<Vec<_>>()
        };
        let all: Vec<_> = calls.iter().flat_map(sends).collect();
        for weekday in 0..7 {
            for hour in 0..24 {
                let its = || all.iter().filter(|(slot, _)| (slot.weekday, slot.hour) == (weekday, hour));
                let refused = its().filter(|(_, send)| {
                    let names = ["at_capacity", "overloaded", "throttled"];
                    send.failed.as_ref().is_some_and(|failed| names.contains(&failed.fault.as_str()))
                });
                let cell = Cell { sends: its().count() as u64, refused: refused.count() as u64 };
                prop_assert_eq!(tally.hours.cells()[weekday][hour], cell);
            }
        }
        for hour in 0..24 {
            let its = || all.iter().filter(|(slot, _)| slot.hour == hour);
            let days: BTreeSet<_> = its().map(|(slot, _)| slot.day).collect();
            let (cell, known) = tally.hours.of_day(hour);
            prop_assert_eq!((cell.sends, known), (its().count() as u64, days.len()));
        }
        let of_models = tally.models.values().fold(Cell::default(), |all, hours| all.and(hours.all()));
        prop_assert_eq!(of_models, tally.hours.all());
    }

    #[test]
    fn what_is_best_is_never_worse_than_what_is_worst(calls in prop::collection::vec(any_call(), 0..40), times in 1u64..40) {
        let mut tally = Tally::default();
        for round in 0..times {
            for call in &calls {
                let day = round * 24 * HOUR;
                tally.see(&CallRecord { opened: call.opened % (24 * HOUR) + day, ..call.clone() }, None, &slot);
            }
        }
        if let Best::Hours { quiet, busy } = best(&tally.hours) {
            prop_assert!(quiet.cell.share() < busy.cell.share(), "{:?} {:?}", quiet, busy);
        }
    }

    #[test]
    fn whatever_calls_there_are_the_text_fits(calls in prop::collection::vec(any_call(), 0..40)) {
        for lang in Lang::ALL {
            for by in [By::Hour, By::Model, By::Upstream, By::Client] {
                let text = text::text(lang, &tally(&calls, Some(by)), Some(by), ("2026-11-23 14:02:11", "2026-11-30 14:02:11"));
                for line in text.lines() {
                    prop_assert!(width(line) <= 80, "{}", line);
                }
            }
        }
    }
}

/// Days on which the evening is bad: so many calls in each hour.
fn evenings(days: u64, each: u64) -> Vec<CallRecord> {
    let hour = |at: u64| (0..each).map(move |nth| (at, nth));
    let of = |(at, nth): (u64, u64)| {
        let is_evening = (20..22).contains(&(at % 24));
        let is_afternoon = (12..20).contains(&(at % 24));
        let refused = u32::from(is_evening && nth % 2 == 0 || is_afternoon && nth % 10 == 0);
        CallRecord { opened: at * HOUR + nth, ..ended(at * each + nth, refused, "served") }
    };
    (0..days * 24).flat_map(hour).map(of).collect()
}

#[test]
fn a_call_that_another_model_answered_is_told_from_those_of_either() {
    let mut call = ended(1, 2, "served");
    call.model = Some("gpt-x".to_owned());
    call.sends[2].moved = Some(MovedRecord {
        upstream: "openai".to_owned(),
        lane: "l".to_owned(),
        model: Some("gpt-y".to_owned()),
        why: "shut".to_owned(),
    });
    let tally = tally(&[call], Some(By::Model));
    assert_eq!(tally.rows.keys().collect::<Vec<_>>(), ["gpt-x > gpt-y"]);
    let of = |model: &str| tally.models[model].all();
    assert_eq!((of("gpt-x").sends, of("gpt-x").refused), (2, 2));
    assert_eq!((of("gpt-y").sends, of("gpt-y").refused), (1, 0));
}

fn moved(upstream: &str) -> Option<MovedRecord> {
    let upstream = upstream.to_owned();
    Some(MovedRecord { upstream, lane: "l".to_owned(), model: None, why: "failed".to_owned() })
}

/// Calls of a pool of three: at home, moved once, there and back, lost elsewhere, and moved before the first send.
fn of_a_pool() -> Vec<CallRecord> {
    let home = ended(1, 0, "served");
    let mut once = ended(2, 1, "served");
    once.sends[1].moved = moved("second");
    let mut back = ended(3, 2, "served");
    back.sends[1].moved = moved("second");
    back.sends[2].moved = moved("openai");
    let mut lost = ended(4, 3, "gave_up");
    lost.sends[2].moved = moved("third");
    let mut at_once = ended(5, 0, "served");
    at_once.sends[0].moved = moved("second");
    let mut open = CallRecord { closed: None, ..ended(6, 1, "served") };
    open.sends[1].moved = moved("second");
    vec![home, once, back, lost, at_once, open]
}

#[test]
fn a_call_counts_for_who_had_it_at_last_and_a_send_for_where_it_went() {
    let tally = tally(&of_a_pool(), Some(By::Upstream));
    let of = |name: &str| {
        let sums = &tally.rows[name];
        (sums.calls, sums.sends, sums.refusals, sums.moved_here, sums.moved_away)
    };
    assert_eq!(of("openai"), (2, 7, 5, 1, 5));
    assert_eq!(of("second"), (3, 4, 1, 4, 1));
    assert_eq!(of("third"), (1, 1, 1, 1, 0));
    let (one, two) = (&tally.rows["openai"], &tally.rows["second"]);
    assert_eq!((one.served, one.saved(), two.served, two.saved()), (2, 1, 2, 1));
    assert_eq!((tally.rows["third"].lost, tally.all.moved_here, tally.all.moved_away), (1, 6, 6));
    let json = json::json(&tally, Some(By::Upstream), (0, 1));
    let row = json["rows"].as_array().unwrap().iter().find(|row| row["upstream"] == "second").unwrap();
    assert_eq!((&row["sums"]["moved_here"], &row["sums"]["sends"]), (&4.into(), &4.into()));
    // Sends that are left out, and those of a record that says nothing of them, are in some row.
    let mut long = ended(7, 3, "gave_up");
    long.sends[2].moved = moved("second");
    (long.left_out, long.closed.as_mut().unwrap().sends) = (40, 43);
    let tally = self::tally(&[long], Some(By::Upstream));
    assert_eq!(tally.rows.values().map(|sums| sums.sends).sum::<u64>(), 43);
    assert_eq!(tally.rows["openai"].sends, 2);
}

#[test]
fn the_moves_of_a_pool_are_a_table_of_their_own() {
    let page = |lang, calls: &[CallRecord]| {
        text::text(lang, &tally(calls, Some(By::Upstream)), Some(By::Upstream), ("a", "b"))
    };
    let part = |page: &str, of: &str| {
        let from = page.find(of).unwrap();
        page[from..].split("\n\n").take(2).collect::<Vec<_>>().join("\n\n")
    };
    insta::assert_snapshot!(part(&page(Lang::English, &of_a_pool()), "  upstream"), @r"
    upstream                 calls  success  without      mean wait  saved   lost
    second                       3  100.0 %   50.0 %          2.0 s      1      0
    openai                       2  100.0 %   50.0 %          4.0 s      1      0
    third                        1    0.0 %    0.0 %          4.0 s      0      1

    upstream                 sends   refused   moved here   moved away
    second                       4    25.0 %            4            1
    openai                       7    71.4 %            1            5
    third                        1   100.0 %            1            0
    ");
    let chinese = page(Lang::Chinese, &of_a_pool());
    assert!(chinese.contains("转入") && chinese.contains("转出"), "{chinese}");
    // One that came back to where it began was elsewhere all the same.
    let mut back = ended(1, 2, "served");
    back.sends[1].moved = moved("second");
    back.sends[2].moved = moved("openai");
    insta::assert_snapshot!(part(&page(Lang::English, &[back]), "  upstream"), @r"
    upstream                 calls  success  without      mean wait  saved   lost
    openai                       1  100.0 %    0.0 %          4.0 s      1      0
    second                       0        -        -              -      0      0

    upstream                 sends   refused   moved here   moved away
    openai                       2    50.0 %            1            1
    second                       1   100.0 %            1            1
    ");
    let alone = page(Lang::English, &[ended(1, 2, "served")]);
    assert!(!alone.contains("moved here"), "{alone}");
}

#[test]
fn the_page_for_people() {
    let mut calls = evenings(14, 10);
    calls.extend([
        ended(90_001, 8, "gave_up"),
        ended(90_002, 1, "client_left"),
        ended(90_003, 0, "passed"),
        ended(90_004, 0, "broken"),
        CallRecord { model: None, client: "claude_code".to_owned(), ..call(90_005, State::Sending) },
    ]);
    let mut costly = ended(90_006, 1, "served");
    let closed = costly.closed.as_mut().unwrap();
    closed.maybe_billed_twice = 1;
    closed.tokens = Some(Tokens { input: 1_203_000, cached: 900_000, output: 50_311 });
    costly.sends[0].failed =
        Some(failed(Fault::BrokenStream, Some(Tokens { input: 812, cached: 0, output: 44 })));
    calls.push(costly);
    let time = ("2026-11-16 14:02:11", "2026-11-30 14:02:11");
    let page = |lang, by| text::text(lang, &tally(&calls, by), by, time);
    let plain = |lang, by| anstream::adapter::strip_str(&page(lang, by)).to_string();
    insta::assert_snapshot!("english", plain(Lang::English, Some(By::Client)));
    insta::assert_snapshot!("chinese", plain(Lang::Chinese, Some(By::Hour)));
    assert!(page(Lang::English, None).contains("\u{1b}[33m 33\u{1b}[0m"), "the evening stands out");
    assert_eq!(text::text(Lang::English, &Tally::default(), None, time), "no call since 2026-11-16 14:02:11");
    let quiet = text::text(Lang::English, &tally(&[ended(1, 0, "served")], None), None, time);
    assert!(quiet.contains("100.0 % with the relay, 100.0 % without"), "{quiet}");
    // A map of one hour would be empty: it is told in words.
    let few = text::text(Lang::English, &tally(&[ended(2, 1, "served")], None), None, time);
    assert!(few.contains("gpt-x: sends refused for want of capacity, by local hour: "), "{few}");
    assert!(few.contains(" 50.0 %") && !few.contains("blank: nothing sent"), "{few}");
    assert!(quiet.contains("no call waited") && quiet.contains("No send was refused"), "{quiet}");
}

#[test]
fn programs_get_the_same() {
    let told = json::json(&tally(&evenings(14, 10), Some(By::Model)), Some(By::Model), (1, 2));
    assert_eq!((&told["v"], &told["from"], &told["by"]), (&1.into(), &1.into(), &"model".into()));
    assert_eq!((&told["sums"]["calls"], &told["rows"][0]["model"]), (&3360.into(), &"gpt-x".into()));
    assert_eq!(told["overload"]["models"][0]["hours"].as_array().map(Vec::len), Some(7));
    assert_eq!(told["overload"]["all"]["hours"][0][20], serde_json::json!({"sends": 30, "refused": 10}));
    let best = &told["overload"]["models"][0]["best"];
    assert_eq!(
        (&best["is"], &best["busy"]["from_hour"], &best["busy"]["to_hour"]),
        (&"hours".into(), &20.into(), &22.into())
    );
    let morning = Morning { took: 8 * HOUR, refusals: 37, ..Morning::default() };
    let told = json::of_run(7, "serve", morning);
    assert_eq!((&told["v"], &told["run"], &told["refusals"]), (&1.into(), &7.into(), &37.into()));
}

#[test]
fn a_cut_turn_counts_once_as_the_call_that_resumes_it() {
    let mut resumed = ended(2, 0, "served");
    let wait =
        WaitRecord { why: WaitWhy::Cut, began: 0, planned: None, took: Some(9), waiting: None, notices: 0 };
    resumed.sends[0].wait = Some(wait);
    let sums = tally(&[ended(1, 0, "cut"), resumed], None).all;
    assert_eq!(
        (sums.judged, sums.success(), sums.success_without(), sums.saved()),
        (1, Some(1.0), Some(0.0), 1)
    );
}

#[test]
fn what_is_best_is_said_only_where_enough_is_known() {
    let hours = |calls: &[CallRecord]| tally(calls, None).hours;
    assert_eq!(best(&Hours::default()), Best::Unknown { known: 0 });
    assert_eq!(best(&hours(&evenings(DAYS as u64 - 1, 100))), Best::Unknown { known: 0 }, "too few days");
    assert_eq!(best(&hours(&evenings(DAYS as u64, SENDS / 6))), Best::Unknown { known: 0 }, "too few sends");
    let some: Vec<_> =
        evenings(9, 10).into_iter().filter(|call| slot(call.opened).hour < HOURS - 1).collect();
    assert_eq!(best(&hours(&some)), Best::Unknown { known: HOURS - 1 }, "too few hours");
    let Best::Hours { quiet, busy } = best(&hours(&evenings(9, 10))) else { panic!("enough is known") };
    assert_eq!((busy.from, busy.to), (20, 22));
    // The night, beyond midnight, and no longer than eight hours.
    assert_eq!(((quiet.to + 24 - quiet.from) % 24, quiet.cell.refused), (8, 0));
    let even = (0..240).flat_map(|at| (0..10).map(move |nth| (at, nth)));
    let even: Vec<_> = even
        .into_iter()
        .map(|(at, nth)| CallRecord {
            opened: at * HOUR,
            ..ended(at * 10 + nth, u32::from(nth == 0), "served")
        })
        .collect();
    assert!(matches!(best(&hours(&even)), Best::Even(Cell { sends: 2_640, refused: 240 })));
}

#[test]
fn the_memory_does_not_grow_with_names() {
    let of = |number: u64| CallRecord { model: Some(format!("m{number}")), ..ended(number, 1, "served") };
    let mut tally = Tally::default();
    (0..1_000).for_each(|number| tally.see(&of(number), Some(By::Model), &slot));
    assert_eq!((tally.rows.len(), tally.models.len()), (201, 201));
    assert_eq!(tally.rows[OTHERS].calls, 800);
    let text = text::text(Lang::English, &tally, None, ("a", "b"));
    assert!(text.contains("198 more models refused sends, too"), "{text}");
}

#[test]
fn numbers_of_every_size_have_their_place() {
    let of = |waited: u64| {
        let closed = ClosedRecord { waited, ..ended(1, 0, "served").closed.unwrap() };
        CallRecord { closed: Some(closed), ..ended(1, 0, "served") }
    };
    for power in 0..64 {
        for waited in [1_u64 << power, (1 << power) + (1 << power) / 3, u64::MAX >> power] {
            // The larger one keeps the first from being told as it is.
            let waits = tally(&[of(waited), of(u64::MAX)], None).all.waits;
            let told = waits.percentile(50).unwrap();
            assert!(waited <= told && told - waited <= waited / 16, "{waited} {told}");
        }
    }
    assert_eq!(tally(&[of(u64::MAX), of(u64::MAX)], None).all.waits.sum(), u64::MAX);
}

#[test]
fn a_night_in_one_line() {
    let night =
        Morning { took: 8 * HOUR, refusals: 37, waited: 8_040_000, lost: 0, sends: 61, billed_twice: 1 };
    let line = "8 h: 37 refusals, 2 h 14 min waited, 0 turns lost, 61 sends, 1 may have been billed twice";
    assert_eq!(night.line(Lang::English), line);
    assert_eq!(
        night.line(Lang::Chinese),
        "8 小时：37 次拒绝，共等待 2 小时 14 分，失败 0 次，共发送 61 次，其中 1 次可能被重复计费"
    );
    let quiet = Morning { took: 40 * 60_000, sends: 1, lost: 1, refusals: 1, ..Morning::default() };
    assert_eq!(quiet.line(Lang::English), "40 min: 1 refusal, 0 s waited, 1 turn lost, 1 send");
    let sums = tally(&evenings(1, 10), None).all;
    assert_eq!(
        Morning::of(&sums, 5),
        Morning { took: 5, refusals: 18, waited: 36_000, sends: 258, ..Morning::default() }
    );
    // Whoever waited and got no answer has lost a turn, whatever it is called elsewhere.
    let lost =
        Sums { judged: 9, served: 5, returned: 1, broken: 1, left_waiting: 1, lost: 1, ..Sums::default() };
    let others = Sums { passed: 2, left: 4, cut: 1, ..lost };
    assert_eq!(Morning::of(&others, 5).lost, 4);
}

fn exported(calls: &[CallRecord], form: Form) -> String {
    let mut to = Vec::new();
    let mut export = Export::start(&mut to, form, |ms| format!("at {ms}")).unwrap();
    calls.iter().for_each(|call| export.see(call).unwrap());
    export.end().unwrap();
    String::from_utf8(to).unwrap()
}

#[test]
fn records_are_written_a_line_each() {
    let calls = [ended(1, 2, "served"), call(2, State::Waiting)];
    let text = exported(&calls, Form::Jsonl);
    let read: Vec<CallRecord> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, calls);
    assert_eq!(exported(&[], Form::Jsonl), "");
}

#[test]
fn retries_are_written_as_codex_retry_has_them() {
    let mut timed_out = ended(3, 1, "gave_up");
    timed_out.sends[0].failed = Some(failed(Fault::NoAnswer, None));
    timed_out.sends.push(SendRecord { send: 2, began: Some(5_000), ..SendRecord::default() });
    let text = exported(&[ended(1, 2, "served"), ended(2, 0, "served"), timed_out], Form::RetryStats);
    insta::assert_snapshot!("retries", text);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read.as_array().map(Vec::len), Some(3));
    assert_eq!(exported(&[], Form::RetryStats), "[]\n");
}
