//! Calls are played with the core, recorded as the history does, and decided again.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use relay_core::call::{Call, Plan, Step};
use relay_core::client::{Client, Kind};
use relay_core::dialect::{self, Reply};
use relay_core::event::{CallId, Event, Labels, Outcome, Transport};
use relay_core::evidence::{Nature, Operation};
use relay_core::failure::{Failure, Told};
use relay_core::{Config, Dice as _, Evidence, Fault, Lang, Moment, SeededDice};

use super::read::{self, Unreadable};
use super::{Replayed, replay, report};
use crate::history::assemble::Assembler;
use crate::history::record::CallRecord;
use crate::settings::{Flags, NO_VARIABLES, load};
use crate::wishes::Wishes;

/// The settings of this file.
fn settings(text: &str) -> Config {
    let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
    load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec())).unwrap().config
}

/// A relay's evening: one call as it would be decided live, with answers and turns in line by chance.
struct Evening<'a> {
    config: &'a Config,
    dice: SeededDice,
    /// Its credential is the relay's own, which is renewed now and then.
    renews: bool,
    /// Answers that do not come by chance: status, code, seconds to wait.
    answers: Vec<(u16, &'static str, Option<u64>)>,
}

const ANSWERS: &[(u16, &str, Option<u64>)] = &[
    (503, "server_is_overloaded", None),
    (503, "server_is_overloaded", Some(7)),
    (503, "", None),
    (529, "overloaded_error", None),
    (429, "rate_limit_exceeded", Some(20)),
    (429, "rate_limit_exceeded", None),
    (429, "rate_limit_exceeded", Some(900)),
    (429, "insufficient_quota", None),
    (500, "server_error", None),
    (502, "", None),
    (504, "", None),
    (401, "invalid_api_key", None),
    (400, "invalid_request_error", None),
    (418, "teapot", None),
    // No answer: what became of the send.
    (0, "dns", None),
    (0, "reset", None),
    (0, "no_answer", None),
];

impl Evening<'_> {
    fn chance(&mut self, of: f64) -> bool {
        self.dice.share() < of
    }

    fn among(&mut self, count: usize) -> usize {
        (self.dice.share() * count as f64) as usize
    }

    fn failure(&mut self, took: Duration) -> Failure {
        let (status, code, told) = match self.answers.first().copied() {
            Some(answer) => {
                self.answers.remove(0);
                answer
            }
            None => ANSWERS[self.among(ANSWERS.len())],
        };
        if status == 0 {
            let (fault, evidence) = match code {
                "dns" => (Fault::NeverSent, Evidence::NeverSent),
                "reset" => (Fault::BrokenStream, Evidence::MaybeRan),
                _ => (Fault::NoAnswer, Evidence::NoAnswer),
            };
            return Failure { code: Some(code.into()), ..Failure::of_transport(fault, evidence) };
        }
        let mut headers = HeaderMap::new();
        if let Some(told) = told {
            headers.insert("retry-after", HeaderValue::from(told));
        }
        // Beside a rule of the user's it cannot be told from another `resend` of that rule.
        if self.answers.is_empty() && status != 418 && self.chance(0.05) {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        let body = if code.is_empty() {
            String::new()
        } else {
            serde_json::json!({ "error": { "type": code, "code": code, "message": "no" } }).to_string()
        };
        let rules = self.config.rules_for("openai_responses", "openai");
        let reply = Reply {
            told: Told::ByStatus,
            status,
            headers: &headers,
            body: body.as_bytes(),
            took,
            wall: SystemTime::UNIX_EPOCH,
            rules: &rules,
        };
        let mut failure = dialect::judge(dialect::named("openai_responses").unwrap(), &reply);
        let own_rule = failure.rule.as_deref().is_some_and(|rule| rule.starts_with("own rule: "));
        let is_refused = self.renews && status == 401 && failure.evidence.is_none() && !own_rule;
        failure.renewed = is_refused && self.chance(0.5);
        failure
    }

    /// Who asks, and what for.
    fn asked(&mut self, kind: Kind) -> (Plan, Labels) {
        let mut headers = HeaderMap::new();
        let (name, value) = match kind {
            Kind::ClaudeCode => ("user-agent", "claude-cli/2.1.0"),
            Kind::Stainless => ("x-stainless-lang", "python"),
            Kind::GeminiCli => ("user-agent", "GeminiCLI/0.61"),
            Kind::Codex => ("originator", if self.chance(0.3) { "codex_exec" } else { "codex_cli_rs" }),
            Kind::GoogleGenai | Kind::Ollama | Kind::Other => ("user-agent", "other"),
        };
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        let mut client = Client::of(&headers);
        client.company = self.config.waiting.interim.filter(|_| client.kind.skips_interim());
        crate::profile::limit(self.config, &mut client);
        let by = self.config.route("/v1/responses", client.kind, Some("gpt-x"));
        let (profile_name, profile) = crate::profile::of(self.config, by, &client, &Wishes::default());
        let client_limit = crate::profile::client_limit(&client);
        let nature = Nature { operation: Operation::Generation, self_contained: true, kept: true };
        let plan = Plan {
            profile,
            nature,
            client_limit,
            before: relay_core::budget::Spent::default(),
            not_before: None,
            places: false,
            notices: None,
        };
        let labels = Labels {
            client: client.kind.name(),
            dialect: "openai_responses",
            operation: Operation::Generation,
            transport: Transport::Http,
            upstream: "openai".into(),
            model: Some("gpt-x".into()),
            profile: profile_name.into(),
            lane: "0f".into(),
            request_id: None,
            pool: None,
            bound: None,
            trace: None,
        };
        (plan, labels)
    }

    /// A call that fails at random, or with the answers that are set and is served then.
    fn call(&mut self, number: u64, kind: Kind) -> CallRecord {
        let scripted = !self.answers.is_empty();
        let (plan, labels) = self.asked(kind);
        let (mut call, mut now) = (Call::new(plan, Moment::ZERO), Moment::ZERO);
        let (mut book, id) = (Assembler::default(), CallId(number));
        let (labels, inherited) = (labels.into(), relay_core::event::Inherited::default());
        book.see(id, now, &Event::CallOpened { labels, inherited, wall: 1_772_366_400_000 + number });
        let outcome = loop {
            let step = call.next(now);
            for event in call.take_events() {
                book.see(id, now, &event);
            }
            match step {
                Step::End(ending) => break ending.outcome(),
                Step::Wait(waiting) => {
                    let line = if waiting.in_line && call.sends() > 0 {
                        Duration::from_millis(self.among(20_000) as u64)
                    } else {
                        Duration::ZERO
                    };
                    if !line.is_zero() {
                        call.stands_in_line(3, None);
                    }
                    let lateness = Duration::from_millis(self.among(3) as u64);
                    let turn = waiting.not_before.unwrap_or(now).max(now + line) + lateness;
                    for event in call.take_events() {
                        book.see(id, now, &event);
                    }
                    if !scripted && call.sends() > 0 && self.chance(0.03) {
                        now = now + turn.since(now).mul_f64(self.dice.share());
                        break Outcome::ClientLeft;
                    }
                    if turn >= waiting.until {
                        now = waiting.until;
                    } else {
                        now = turn;
                        call.granted(now);
                    }
                }
                Step::Send { .. } => {
                    let longest = if self.chance(0.1) { 40_000 } else { 2_000 };
                    let took = Duration::from_millis(200 + self.among(longest) as u64);
                    now = now + took;
                    let is_good = if scripted { self.answers.is_empty() } else { self.chance(0.25) };
                    if is_good {
                        call.head_arrived(200, None);
                        call.committed();
                        for event in call.take_events() {
                            book.see(id, now, &event);
                        }
                        now = now + Duration::from_secs(3);
                        break Outcome::Served;
                    }
                    let failure = self.failure(took);
                    call.failed(failure, now, &mut self.dice);
                }
            }
        };
        for event in call.take_events() {
            book.see(id, now, &event);
        }
        book.see(id, now, &Event::CallClosed(call.closing(outcome, now)));
        book.take_changed().remove(0)
    }
}

/// Calls that were decided with these settings.
fn evening(config: &Config, seed: u64, count: u64) -> Vec<CallRecord> {
    with_credentials(config, seed, count, false)
}

fn with_credentials(config: &Config, seed: u64, count: u64, renews: bool) -> Vec<CallRecord> {
    let mut evening = Evening { config, dice: SeededDice::new(seed), renews, answers: Vec::new() };
    (0..count).map(|number| evening.call(number, Kind::ALL[number as usize % Kind::ALL.len()])).collect()
}

/// One call with these answers, and then a good one.
fn call(config: &Config, answers: &[(u16, &'static str, Option<u64>)]) -> CallRecord {
    Evening { config, dice: SeededDice::new(7), renews: false, answers: answers.to_vec() }
        .call(1, Kind::Other)
}

const RULE: &str = "[[rule]]\nstatus = 418\nfault = \"at_capacity\"\nresend = \"refused\"\nfloor = \"3s\"\n";

/// Settings of many kinds.
fn many() -> Vec<Config> {
    let mut all: Vec<_> = ["auto", "interactive", "batch", "patient", "strict", "codex-retry", "opencodex"]
        .map(|profile| settings(&format!("[relay]\nprofile = \"{profile}\"\n")))
        .into();
    all.push(settings("[relay]\ngate = false\n"));
    all.push(settings(&format!("[relay]\nprofile = \"batch\"\n{RULE}")));
    all.push(settings("[client.other]\nlimit = \"45s\"\n[profile.own]\nbased_on = \"batch\"\njitter = \"5s\"\n[[route]]\nmodel = \"gpt-*\"\nprofile = \"own\"\n"));
    all
}

fn told(replayed: &Replayed) -> String {
    report::text(Lang::English, replayed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// What is decided again with the settings that it was decided with comes to the same end.
    #[test]
    fn the_same_settings_make_no_difference(seed in any::<u64>(), other in any::<u64>()) {
        for config in many() {
            let calls = with_credentials(&config, seed, 21, seed % 2 == 0);
            // Those whose middle is left out are not told exactly.
            let calls: Vec<_> = calls.into_iter().filter(|call| call.left_out == 0).collect();
            let replayed = replay(&calls, &config, other);
            prop_assert!(replayed.differing.is_empty(), "{:?} {}\n{}", config.profile, told(&replayed),
                replayed.differing.first().map(|it| serde_json::to_string(calls.iter().find(|call| call.call == it.call).unwrap()).unwrap()).unwrap_or_default());
            prop_assert_eq!(replayed.passed_over, 0);
        }
    }
}

/// Calls that a relay has recorded with the settings that ship.
const RECORDED: &str = include_str!("fixtures/calls.jsonl");

#[test]
fn recorded_calls_come_to_the_same_end_with_the_settings_that_ship() {
    let calls = read::calls(RECORDED.as_bytes()).unwrap();
    let replayed = replay(&calls, &settings(""), 1);
    assert_eq!((replayed.calls, replayed.passed_over, report::exit_code(&replayed)), (calls.len(), 0, 0));
    assert!(replayed.differing.is_empty(), "{}", told(&replayed));
    let outcomes: std::collections::BTreeSet<_> =
        calls.iter().map(|call| call.closed.as_ref().unwrap().outcome.as_str()).collect();
    assert!(outcomes.len() >= 4, "{outcomes:?}");
}

#[test]
fn fewer_sends_give_up_and_more_patience_goes_on() {
    let plain = |more: &str| {
        settings(&format!(
            "[relay]\ngate = false\nprofile = \"own\"\n[profile.own]\nbased_on = \"batch\"\n{more}"
        ))
    };
    let full = (503, "server_is_overloaded", None);
    let served = call(&plain(""), &[full, full, full]);
    assert_eq!(served.closed.as_ref().unwrap().outcome, "served");
    let with = |call: &CallRecord, config: &Config| replay(std::slice::from_ref(call), config, 1);
    assert!(with(&served, &plain("")).differing.is_empty());
    let fewer = with(&served, &plain("sends = 2\n"));
    let would = &fewer.differing[0].would;
    assert_eq!(
        (would.outcome.as_str(), would.why.as_deref(), would.sends),
        ("gave_up", Some("sends_spent"), 2)
    );
    assert_eq!(report::exit_code(&fewer), 1);
    // What a resend would have come to nobody knows.
    let lost = call(&plain("sends = 2\n"), &[full, full]);
    assert_eq!(lost.closed.as_ref().unwrap().why.as_deref(), Some("sends_spent"));
    assert_eq!(with(&lost, &plain("")).differing[0].would.outcome, "goes_on");
    // A wait that was told and not borne.
    let far = call(&plain("patience = \"30s\"\n"), &[(429, "rate_limit_exceeded", Some(90))]);
    assert_eq!(far.closed.as_ref().unwrap().why.as_deref(), Some("told_to_wait_longer"));
    assert_eq!(with(&far, &plain("")).differing[0].would.outcome, "goes_on");
    // The same end after other waits.
    let quick = with(&served, &plain("base = \"10ms\"\ncap = \"10ms\"\njitter = \"0s\"\n"));
    let it = &quick.differing[0];
    assert!(!it.ends && it.would.sends == it.was.sends, "{it:?}");
    assert_eq!(it.would.waited, 30);
}

#[test]
fn a_may_have_run_is_granted_or_refused_by_the_present_profile() {
    let lost = (0, "reset", None);
    let granted = call(&settings(""), &[lost]);
    assert!(granted.sends[1].may_run_twice, "{granted:?}");
    let strict = replay(&[granted], &settings("[relay]\nprofile = \"strict\"\n"), 1);
    let would = &strict.differing[0].would;
    assert_eq!((would.outcome.as_str(), would.why.as_deref()), ("refused", Some("may_have_run")));
    assert_eq!((strict.differing[0].was.maybe_billed_twice, would.maybe_billed_twice), (1, 0));
}

#[test]
fn rules_of_ones_own_are_the_present_ones() {
    let teapot = (418, "teapot", None);
    let plain = settings("[relay]\nprofile = \"batch\"\n");
    let ruled = settings(&format!("[relay]\nprofile = \"batch\"\n{RULE}"));
    let passed = call(&plain, &[teapot]);
    assert_eq!(passed.closed.as_ref().unwrap().outcome, "passed");
    assert_eq!(replay(std::slice::from_ref(&passed), &ruled, 1).differing[0].would.outcome, "goes_on");
    let waited = call(&ruled, &[teapot]);
    assert_eq!(waited.closed.as_ref().unwrap().outcome, "served");
    assert!(replay(std::slice::from_ref(&waited), &ruled, 1).differing.is_empty());
    assert_eq!(replay(&[waited], &plain, 1).differing[0].would.outcome, "passed");
}

#[test]
fn what_cannot_be_decided_is_passed_over() {
    let mut open = call(&settings(""), &[]);
    open.closed = None;
    let mut newer = call(&settings(""), &[(503, "", None)]);
    newer.sends[0].failed.as_mut().unwrap().fault = "of_tomorrow".to_owned();
    let replayed = replay(&[open, newer], &settings(""), 1);
    assert_eq!((replayed.calls, replayed.passed_over), (0, 2));
    assert!(told(&replayed).contains("\npassed over: 2 calls "), "{}", told(&replayed));
}

/// Whatever is in a record, it comes to an end.
#[test]
fn odd_records_are_no_trouble() {
    let base = serde_json::to_value(call(&settings(""), &[(503, "", Some(5)), (503, "", None)])).unwrap();
    for (at, value) in [
        ("/sends/1/wait/took", u64::MAX),
        ("/sends/1/wait/planned", u64::MAX),
        ("/sends/0/failed/told", u64::MAX),
        ("/sends/0/failed/at", 0),
        ("/sends/0/began", u64::MAX),
        ("/sends/0/send", 9),
        ("/closed/took", u64::MAX),
        ("/closed/sends", 0),
        ("/inherited_sends", 4_000_000_000),
        ("/opened", u64::MAX),
    ] {
        let mut odd = base.clone();
        if let Some(place) = odd.pointer_mut(at) {
            *place = value.into();
        }
        let odd: CallRecord = serde_json::from_value(odd).unwrap();
        let replayed = replay(&[odd], &settings(""), 1);
        assert_eq!(replayed.calls + replayed.passed_over, 1, "{at}");
        assert!(!told(&replayed).is_empty());
    }
}

#[test]
fn files_of_calls_are_read_and_others_are_refused_with_the_line() {
    let line = serde_json::to_string(&call(&settings(""), &[])).unwrap();
    let count = |text: &str| read::calls(text.as_bytes()).map(|calls| calls.len());
    assert_eq!(count(&format!("\u{feff}{{\"v\":1,\"from\":5}}\n{line}\n\n{line}")).unwrap(), 2);
    let report = format!("## Report\n```toml\nport = 1\n```\n```jsonl\n{line}\n```\nthe end\n");
    assert_eq!(count(&report).unwrap(), 1);
    let Err(Unreadable::Line { line: 2, why }) = count(&format!("{line}\n{{\"call\":1}}")) else { panic!() };
    assert!(why.contains("missing field"), "{why}");
    assert!(matches!(count(""), Err(Unreadable::Empty)));
    assert!(matches!(read::calls(&b"\xff"[..]), Err(Unreadable::NoText)));
}

#[test]
fn the_report_for_people_and_for_programs() {
    let config = settings("");
    let calls = evening(&config, 11, 14);
    let replayed = replay(&calls, &settings("[relay]\nprofile = \"strict\"\n"), 1);
    insta::assert_snapshot!(told(&replayed));
    let json = report::json(&replayed);
    assert_eq!((&json["v"], &json["calls"]), (&1.into(), &14.into()));
    assert_eq!(json["differ"], json["differing"].as_array().unwrap().len());
    for lang in Lang::ALL {
        for line in report::text(lang, &replayed).lines() {
            assert!(crate::terminal::width(line) <= 80, "{line}");
        }
    }
}
