//! The causes that a support engineer tells apart, each as the facts that it leaves behind.

use relay_core::Lang;

use super::evidence::{Evidence, Unseen};
use super::facts::{Facts, History};
use super::issue::{Hidden, markdown};
use super::judge::judge;
use super::report;
use super::{Cause, Verdict};
use crate::doctor::facts::{Answered, Asked, Facts as Way, Here, Step, Unreached};
use crate::history::record::{
    CallRecord, ClosedRecord, FailedRecord, SendRecord, State, Tokens, WaitRecord, WaitWhy,
};
use crate::settings::Shown;

mod mixed;

/// Noon of some day.
const NOW: u64 = 1_772_366_400_000;
const MINUTE: u64 = 60_000;

/// Calls of the last hour, the first so many minutes ago.
struct Story {
    calls: Vec<CallRecord>,
    ago: u64,
}

/// A failure: fault, evidence, status, code.
type Failed = (&'static str, &'static str, u16, &'static str);

const FULL: Failed = ("at_capacity", "refused", 503, "server_is_overloaded");
const OVERLOADED: Failed = ("overloaded", "refused", 529, "overloaded_error");
const THROTTLED: Failed = ("throttled", "refused", 429, "rate_limit_exceeded");

impl Story {
    fn new(ago: u64) -> Self {
        Self { calls: Vec::new(), ago }
    }

    /// A call to this model that failed like this so often, and then ended like this; a minute after the last one.
    fn call(mut self, model: &str, failures: (Failed, usize), outcome: &str, why: Option<&str>) -> Self {
        let (failed, times) = failures;
        let served = outcome == "served";
        let mut sends: Vec<_> = (0..times).map(|nth| send(nth, Some(failed))).collect();
        if served {
            sends.push(send(times, None));
        }
        let spent = sends.len() as u64;
        let closed = ClosedRecord {
            outcome: outcome.to_owned(),
            why: why.map(str::to_owned),
            status: Some(if served { 200 } else { failed.2 }).filter(|status| *status > 0),
            sends: u32::try_from(spent).unwrap(),
            waited: spent * 10_000,
            took: spent * 10_000 + 500,
            last_fault: (times > 0).then(|| failed.0.to_owned()),
            capacity_faults: 0,
            maybe_billed_twice: 0,
            received: 1000,
            sent: 1000,
            tokens: served.then_some(Tokens { input: 10, cached: 0, output: 5 }),
        };
        let number = self.calls.len() as u64 + 1;
        let opened = NOW - self.ago * MINUTE + number * MINUTE;
        let committed = served.then_some(spent * 10_000);
        self.calls.push(CallRecord {
            run: Some(7),
            call: number,
            opened,
            client: "codex".to_owned(),
            dialect: "openai_responses".to_owned(),
            operation: "generation".to_owned(),
            transport: "http".to_owned(),
            upstream: "openai".to_owned(),
            model: Some(model.to_owned()),
            profile: "interactive".to_owned(),
            lane: format!("{model}-1"),
            request_id: None,
            pool: None,
            bound: None,
            inherited_sends: 0,
            inherited_failed: 0,
            inherited_resends: 0,
            state: State::Closed,
            sends,
            left_out: 0,
            committed,
            closed: Some(closed),
        });
        self
    }

    fn served(self, model: &str) -> Self {
        self.call(model, (FULL, 0), "served", None)
    }

    /// Changes the last call.
    fn but(mut self, change: impl FnOnce(&mut CallRecord)) -> Self {
        change(self.calls.last_mut().unwrap());
        self
    }

    fn facts(self) -> Facts {
        let answered = Answered { status: 401, ahead: Some(0), ..Answered::default() };
        Facts {
            now: NOW,
            since: NOW - 60 * MINUTE,
            calls: self.calls,
            way: Way {
                at: "127.0.0.1:8787".to_owned(),
                upstreams: vec![asked("openai", Ok(answered))],
                ..Way::default()
            },
            ..Facts::default()
        }
    }

    fn verdict(self) -> Verdict {
        judge(Lang::English, &self.facts())
    }
}

fn send(nth: usize, failed: Option<Failed>) -> SendRecord {
    let at = nth as u64 * 10_000;
    let wait = WaitRecord {
        why: WaitWhy::Line,
        began: at.saturating_sub(9_000),
        planned: None,
        took: Some(9_000),
        waiting: Some(1),
        notices: 0,
    };
    SendRecord {
        send: u32::try_from(nth).unwrap() + 1,
        wait: (nth > 0).then_some(wait),
        began: Some(at),
        moved: None,
        may_run_twice: false,
        way: None,
        head: Some(at + 400),
        status: Some(failed.map_or(200, |failed| failed.2)).filter(|status| *status > 0),
        request_id: Some(format!("req_{nth}")),
        failed: failed.map(|(fault, evidence, status, code)| FailedRecord {
            at: at + 400,
            fault: fault.to_owned(),
            evidence: (!evidence.is_empty()).then(|| evidence.to_owned()),
            code: (!code.is_empty()).then(|| code.to_owned()),
            rule: (status > 0).then(|| match code {
                "" => "the status".to_owned(),
                code => format!("code `{code}`"),
            }),
            told: None,
            tokens: None,
        }),
    }
}

fn asked(name: &str, answer: Result<Answered, Unreached>) -> Asked {
    Asked {
        name: name.to_owned(),
        origin: format!("https://{name}.example"),
        path: "/v1/models".to_owned(),
        via: None,
        is_used: true,
        answer,
        lost: Vec::new(),
    }
}

fn unreached(step: Step, detail: &str) -> Result<Answered, Unreached> {
    Err(Unreached { step, detail: detail.to_owned() })
}

/// The facts with another answer of the upstream.
fn with_way(story: Story, answer: Result<Answered, Unreached>) -> Facts {
    let mut facts = story.facts();
    facts.way.upstreams = vec![asked("openai", answer)];
    facts
}

fn cause(facts: &Facts) -> Cause {
    judge(Lang::English, facts).cause
}

#[test]
fn a_model_at_capacity_while_others_are_well() {
    let story = Story::new(20).served("gpt-y").call("gpt-x", (FULL, 5), "gave_up", Some("patience_spent"));
    let verdict = story.served("gpt-y").call("gpt-x", (FULL, 4), "served", None).verdict();
    assert_eq!((verdict.cause, verdict.model.as_deref()), (Cause::ModelAtCapacity, Some("gpt-x")));
    assert!(verdict.is_sure);
    let well = Evidence::OtherModel { model: "gpt-y".to_owned(), calls: 2, well: 2 };
    assert!(verdict.evidence.contains(&well), "{:?}", verdict.evidence);
    let Evidence::Failed { failed: 9, sends: 10, codes, .. } = &verdict.evidence[0] else {
        panic!("{:?}", verdict.evidence)
    };
    assert_eq!(codes, &["503", "server_is_overloaded"]);
}

#[test]
fn a_model_at_capacity_whatever_the_service_calls_it_while_others_are_well() {
    let story = Story::new(20).served("y").call("x", (OVERLOADED, 5), "gave_up", Some("patience_spent"));
    assert_eq!(story.served("y").verdict().cause, Cause::ModelAtCapacity);
    // Alone it is what it is called, and what was not asked is said.
    let alone = |failed| Story::new(20).call("x", (failed, 5), "gave_up", Some("patience_spent")).verdict();
    assert_eq!(alone(FULL).cause, Cause::ModelAtCapacity);
    assert!(alone(FULL).unseen.contains(&Unseen::OtherModels("openai".to_owned())));
    assert!(!alone(FULL).is_sure);
    assert_eq!(alone(OVERLOADED).cause, Cause::ServiceOverloaded);
}

#[test]
fn a_service_overloaded_for_every_model() {
    let story = Story::new(20).call("gpt-x", (FULL, 5), "gave_up", Some("patience_spent"));
    let verdict = story.call("gpt-y", (FULL, 5), "gave_up", Some("patience_spent")).verdict();
    assert_eq!((verdict.cause, verdict.model), (Cause::ServiceOverloaded, None));
    // That another model went well an hour before says nothing.
    let story = Story::new(59).served("gpt-y");
    let mut story = Story { ago: 20, ..story };
    story = story.call("gpt-x", (OVERLOADED, 5), "gave_up", Some("patience_spent"));
    assert_eq!(story.verdict().cause, Cause::ServiceOverloaded);
}

#[test]
fn a_service_that_fails_by_itself() {
    let failed = ("server_failed", "failed", 500, "server_error");
    let story =
        Story::new(20).call("x", (failed, 3), "returned", None).call("x", (failed, 3), "returned", None);
    assert_eq!(story.verdict().cause, Cause::ServiceFailing);
    let broken = ("broken_stream", "maybe_ran", 0, "reset");
    let story = Story::new(20).call("x", (broken, 2), "returned", None).call("x", (FULL, 0), "broken", None);
    assert_eq!(story.verdict().cause, Cause::ServiceFailing);
}

#[test]
fn a_model_that_is_being_loaded() {
    let loading = ("model_loading", "refused", 503, "model_loading");
    let open = Story::new(5).call("llama", (loading, 4), "served", None).but(|call| {
        call.sends.pop();
        (call.closed, call.committed, call.state) = (None, None, State::Waiting);
    });
    let verdict = open.verdict();
    assert_eq!((verdict.cause, verdict.model.as_deref()), (Cause::ModelLoading, Some("llama")));
}

#[test]
fn a_rate_limit_of_the_account() {
    let told = |call: &mut CallRecord| {
        for failed in call.sends.iter_mut().filter_map(|of| of.failed.as_mut()) {
            failed.told = Some(20_000);
        }
    };
    let mut story = Story::new(20);
    for _ in 0..3 {
        story = story.call("x", (THROTTLED, 3), "served", None).but(told);
    }
    // Another account is well.
    let story = story.served("x").but(|call| {
        call.lane = "x-2".to_owned();
        call.opened -= 2 * MINUTE;
    });
    let verdict = story.verdict();
    assert_eq!((verdict.cause, verdict.is_sure), (Cause::RateLimited, true));
    assert!(verdict.evidence.contains(&Evidence::Told { wait: 20_000 }), "{:?}", verdict.evidence);
    assert!(
        verdict.evidence.contains(&Evidence::OtherAccount { calls: 1, well: 1 }),
        "{:?}",
        verdict.evidence
    );
}

#[test]
fn a_quota_that_is_spent() {
    let spent = ("quota_spent", "", 429, "insufficient_quota");
    let story = Story::new(20).served("x").call("x", (spent, 1), "passed", None);
    assert_eq!(story.call("x", (spent, 1), "passed", None).verdict().cause, Cause::QuotaSpent);
}

#[test]
fn a_credential_that_is_refused() {
    let refused = ("authentication", "", 401, "invalid_api_key");
    assert_eq!(
        Story::new(9).call("x", (refused, 1), "passed", None).verdict().cause,
        Cause::CredentialRefused
    );
    let forbidden = ("authentication", "", 403, "");
    assert_eq!(
        Story::new(9).call("x", (forbidden, 1), "passed", None).verdict().cause,
        Cause::CredentialRefused
    );
}

#[test]
fn a_model_that_is_not_there_or_not_for_this_account() {
    for failed in [
        ("bad_request", "", 404, "model_not_found"),
        ("bad_request", "", 404, "not_found_error"),
        ("bad_request", "", 400, "unsupported_model"),
        ("authentication", "", 403, "model_not_allowed"),
    ] {
        let verdict = Story::new(9).served("y").call("x", (failed, 1), "passed", None).served("y").verdict();
        assert_eq!((verdict.cause, verdict.model.as_deref()), (Cause::NoSuchModel, Some("x")), "{failed:?}");
    }
}

#[test]
fn a_request_that_is_too_long_or_wrong() {
    let long = ("too_long", "", 400, "context_length_exceeded");
    assert_eq!(Story::new(9).call("x", (long, 1), "passed", None).verdict().cause, Cause::RequestTooLong);
    for failed in
        [("bad_request", "", 400, "invalid_request_error"), ("content_refused", "", 400, "content_filter")]
    {
        let story = Story::new(9).served("x").call("x", (failed, 1), "passed", None);
        // What goes well afterwards is another request.
        let verdict = story.served("x").served("x").served("x").verdict();
        assert_eq!(verdict.cause, Cause::RequestRefused, "{failed:?}");
    }
}

#[test]
fn a_network_that_is_down() {
    for (step, detail) in [(Step::Dns, "no such host"), (Step::Connect, "refused"), (Step::Answer, "silent")]
    {
        let verdict = judge(Lang::English, &with_way(Story::new(9), unreached(step, detail)));
        assert_eq!((verdict.cause, verdict.upstream.as_deref()), (Cause::Unreachable, Some("openai")));
        let said = verdict.evidence[0].said(Lang::English);
        assert!(said.contains(detail), "{said}");
    }
    // By what calls met alone.
    let dns = ("never_sent", "never_sent", 0, "dns");
    let story = Story::new(3).call("x", (dns, 8), "gave_up", Some("patience_spent"));
    assert_eq!(story.verdict().cause, Cause::Unreachable);
    // What is wrong now comes before what was wrong; but a call that was served just now knows better.
    let full = || Story::new(40).call("x", (FULL, 5), "gave_up", Some("patience_spent"));
    assert_eq!(cause(&with_way(full(), unreached(Step::Dns, ""))), Cause::Unreachable);
    let fresh = Story { ago: 3, ..full() }.served("x");
    assert_eq!(cause(&with_way(fresh, unreached(Step::Dns, ""))), Cause::ModelAtCapacity);
}

#[test]
fn a_proxy_or_a_certificate_in_the_way() {
    for step in [Step::Tls, Step::Certificate, Step::Proxy] {
        assert_eq!(cause(&with_way(Story::new(9), unreached(step, "why"))), Cause::InTheWay, "{step:?}");
    }
    for (code, why) in [("certificate", "certificate"), ("proxy_refused", "proxy")] {
        let barred = ("never_sent", "never_sent", 0, code);
        let story = Story::new(3).call("x", (barred, 1), "refused", Some(why));
        assert_eq!(story.verdict().cause, Cause::InTheWay, "{code}");
    }
}

#[test]
fn an_edge_or_a_portal() {
    let challenge = ("challenge", "", 403, "");
    assert_eq!(Story::new(9).call("x", (challenge, 1), "passed", None).verdict().cause, Cause::Edge);
    // A page in place of the list of models, and answers that say no tokens.
    let page = Answered { status: 200, is_page: true, ..Answered::default() };
    let odd = Story::new(9).served("x").but(|call| {
        call.closed.as_mut().unwrap().tokens = None;
    });
    assert_eq!(cause(&with_way(odd, Ok(page.clone()))), Cause::Edge);
    assert_eq!(cause(&with_way(Story::new(9), Ok(Answered { status: 511, ..page.clone() }))), Cause::Edge);
    // A gateway that has a page for what it does not know, and answers calls.
    assert_eq!(cause(&with_way(Story::new(9).served("x").served("x"), Ok(page))), Cause::NothingWrong);
    // A bare 403 is the edge's where it answers with its page, and the service's where it does not.
    let forbidden = || Story::new(9).call("x", (("authentication", "", 403, ""), 1), "passed", None);
    let edge = Answered { status: 403, is_challenge: true, ..Answered::default() };
    assert_eq!(cause(&with_way(forbidden(), Ok(edge))), Cause::Edge);
    let portal = ("server_failed", "", 511, "");
    assert_eq!(Story::new(9).call("x", (portal, 1), "passed", None).verdict().cause, Cause::Edge);
}

#[test]
fn a_clock_that_is_wrong() {
    let off = || Answered { status: 401, ahead: Some(-7200), ..Answered::default() };
    let refused = ("authentication", "", 401, "invalid_token");
    let harmed = Story::new(9).call("x", (refused, 1), "passed", None);
    let verdict = judge(Lang::English, &with_way(harmed, Ok(off())));
    assert_eq!(verdict.cause, Cause::ClockWrong);
    assert_eq!(verdict.evidence[0].said(Lang::English), "this machine's clock is 7200 s behind");
    let early = unreached(Step::Certificate, "invalid peer certificate: certificate not valid yet");
    assert_eq!(cause(&with_way(Story::new(9), early)), Cause::ClockWrong);
    // Where all goes well it is no more than a remark.
    let well = judge(Lang::English, &with_way(Story::new(9).served("x").served("x"), Ok(off())));
    assert!(well.cause == Cause::NothingWrong && well.evidence.contains(&Evidence::Clock { ahead: -7200 }));
}

/// A client that left after so many milliseconds, without an answer.
fn left(story: Story, took: u64) -> Story {
    story.call("x", (FULL, 2), "client_left", None).but(|call| {
        call.closed.as_mut().unwrap().took = took;
    })
}

#[test]
fn a_client_that_hangs_up() {
    let story = left(left(left(Story::new(20), 30_010), 29_900), 30_500);
    let verdict = story.verdict();
    assert_eq!((verdict.cause, verdict.who.as_deref()), (Cause::ClientHangsUp, Some("codex")));
    assert_eq!(
        verdict.evidence[0],
        Evidence::HungUp { client: "codex".to_owned(), calls: 3, least: 29_900, most: 30_500 }
    );
    // A person who presses Esc does so at any time.
    assert_eq!(left(left(Story::new(20), 3_000), 41_000).verdict().cause, Cause::ModelAtCapacity);
    assert_eq!(left(left(Story::new(20), 300), 310).verdict().cause, Cause::ModelAtCapacity);
}

#[test]
fn a_relay_that_refuses_or_gives_up_too_soon() {
    let broken = ("broken_stream", "maybe_ran", 0, "reset");
    let story = Story::new(9).call("x", (broken, 1), "refused", Some("may_have_run"));
    assert_eq!(story.verdict().cause, Cause::RelayRefuses);
    let soon = |why, told| {
        let story = Story::new(9).call("x", (THROTTLED, 1), "gave_up", Some(why)).but(|call| {
            call.sends[0].failed.as_mut().unwrap().told = told;
        });
        story.verdict()
    };
    for (why, told) in
        [("sends_spent", None), ("patience_spent", None), ("told_to_wait_longer", Some(90_000))]
    {
        let verdict = soon(why, told);
        assert_eq!(
            (verdict.cause, verdict.who.as_deref()),
            (Cause::RelayGivesUp, Some("interactive")),
            "{why}"
        );
    }
    assert_eq!(soon("told_to_wait_longer", Some(7_200_000)).cause, Cause::RateLimited);
    assert_eq!(soon("stopping", None).cause, Cause::NothingWrong);
    // After long patience it is the service.
    let story = Story::new(9).call("x", (THROTTLED, 9), "gave_up", Some("patience_spent"));
    assert_eq!(story.verdict().cause, Cause::RateLimited);
}

#[test]
fn a_relay_whose_settings_are_wrong() {
    let mut facts = Story::new(9).facts();
    facts.way.settings.errors = vec![("config.toml:1: no such key".to_owned(), "mend it".to_owned())];
    assert_eq!(cause(&facts), Cause::RelaySettings);
    assert_eq!(cause(&with_way(Story::new(9), unreached(Step::Itself, ""))), Cause::RelaySettings);
    let mut facts = Story::new(9).facts();
    facts.way.here = Here::Taken(None);
    assert_eq!(cause(&facts), Cause::RelaySettings);
    // Who starts clients with `run` needs no port.
    facts.calls = Story::new(9).served("x").calls;
    assert_eq!(cause(&facts), Cause::NothingWrong);
}

#[test]
fn nothing_wrong_and_too_little() {
    assert_eq!(Story::new(9).served("x").served("x").verdict().cause, Cause::NothingWrong);
    let few = Story::new(9).served("x").call("x", (FULL, 2), "served", None).verdict();
    assert!(
        few.cause == Cause::NothingWrong && matches!(few.evidence[1], Evidence::Failed { failed: 2, .. })
    );
    // It is over.
    let over = Story::new(30).call("x", (FULL, 5), "gave_up", Some("patience_spent")).served("x").served("x");
    assert_eq!(Story { ago: 30, calls: over.calls.clone() }.verdict().cause, Cause::ModelAtCapacity);
    let verdict = over.served("x").verdict();
    assert_eq!(verdict.cause, Cause::NothingWrong);
    let said: Vec<_> = verdict.evidence.iter().map(|evidence| evidence.said(Lang::English)).collect();
    assert!(said.iter().any(|said| said.starts_with("model_at_capacity ended 28 min")), "{said:?}");
    let mut none = Story::new(9).facts();
    none.before = Some(NOW - 7 * 60 * MINUTE);
    none.history = History::Off;
    let verdict = judge(Lang::English, &none);
    assert_eq!(verdict.cause, Cause::TooLittle);
    assert_eq!(
        verdict.evidence[0].said(Lang::English),
        "there was no call in the last 1 h 0 min; the last one was 7 h 0 min ago"
    );
    for unseen in [Unseen::NoHistory, Unseen::NoRelay("127.0.0.1:8787".to_owned()), Unseen::Models] {
        assert!(verdict.unseen.contains(&unseen), "{unseen:?}");
    }
}

#[test]
fn the_last_trouble_counts_most() {
    let quota = ("quota_spent", "", 429, "insufficient_quota");
    let mut story = Story::new(59);
    for _ in 0..3 {
        story = story.call("x", (FULL, 5), "gave_up", Some("patience_spent"));
    }
    let story = Story { ago: 5, ..story };
    assert_eq!(story.call("x", (quota, 1), "passed", None).verdict().cause, Cause::QuotaSpent);
}

#[test]
fn the_verdict_for_people_and_for_programs() {
    let story = Story::new(20).served("gpt-y").call("gpt-x", (FULL, 5), "gave_up", Some("patience_spent"));
    let facts = story.served("gpt-y").facts();
    let verdict = judge(Lang::English, &facts);
    insta::assert_snapshot!(report::text(Lang::English, &verdict), @r"
    verdict: most likely the model: gpt-x at openai is at capacity
      -  5 of 5 sends to gpt-x at openai failed: the model is at capacity (503,
         server_is_overloaded), last 17 min 19 s ago
      -  gpt-y at the same time: 2 of 2 calls served at once
      -  of 1 call to gpt-x at openai: 0 served, 1 not served, 0 open
      -  openai: /v1/models answers 401 to a request without a key
      -  only 1 call says so
    do: wait, or use another model for now; the relay sends again for as long as the
    profile's `patience` lasts
    not looked at:
      -  calls of more than 1 h 0 min ago (`--since`)
      -  a running relay: none is at 127.0.0.1:8787
      -  the models themselves: nothing was sent to any
      -  the clients' own settings: `steady-relay doctor` reads them
    ");
    insta::assert_snapshot!(report::text(Lang::Chinese, &judge(Lang::Chinese, &facts)), @r"
    结论：很可能是：模型：openai 的 gpt-x 容量已满
      -  发往 openai 的 gpt-x 的 5 次发送中有 5 次失败：模型容量已满（503,
         server_is_overloaded），最近一次在 17 分 19 秒前
      -  同一时间的 gpt-y：2 次请求中有 2 次一次成功
      -  发往 openai 的 gpt-x 的 1 次请求：0 次得到响应，1 次没有，0 次仍在进行
      -  openai：/v1/models 对不带密钥的请求返回 401
      -  只有 1 次请求能说明这一点
    建议：等待，或暂时换用其他模型；在策略的 `patience` 耗尽之前，中继会继续重新发送
    未检查：
      -  1 小时 0 分之前的请求（`--since`）
      -  正在运行的中继：127.0.0.1:8787 处没有
      -  模型本身：没有向任何模型发送请求
      -  客户端自己的设置：由 `steady-relay doctor` 检查
    ");
    let json = report::json(&verdict, &facts);
    assert_eq!(
        (&json["v"], &json["verdict"], &json["whose"], &json["model"], &json["calls"]),
        (&1.into(), &"model_at_capacity".into(), &"model".into(), &"gpt-x".into(), &3.into())
    );
    assert_eq!((&json["evidence"][0]["what"], &json["evidence"][0]["failed"]), (&"failed".into(), &5.into()));
}

#[test]
fn every_cause_has_its_words_and_its_row_on_the_page() {
    const PAGE: &str = include_str!("../../../../docs/diagnose.md");
    let (_, section) = PAGE.split_once("\n## The verdicts\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let listed: Vec<_> = rows.map(|(name, rest)| (name, rest.split(" |").next().unwrap())).collect();
    assert_eq!(listed, Cause::ALL.map(|cause| (cause.name(), cause.whose().name())));
    for cause in Cause::ALL {
        for lang in Lang::ALL {
            let verdict =
                Verdict { upstream: Some("up".into()), model: Some("m".into()), ..Verdict::of(cause) };
            let text = report::text(lang, &verdict);
            assert!(text.lines().all(|line| crate::terminal::width(line) <= 80), "{text}");
        }
    }
}

#[test]
fn the_report_holds_no_secret_no_home_and_no_user() {
    let story = Story::new(9).call("gpt-x", (FULL, 2), "gave_up", Some("patience_spent"));
    let mut facts = story.facts();
    facts.way.settings.errors =
        vec![("/home/mallory/x.toml: Bearer canary-secret-1234567".to_owned(), String::new())];
    let shown = |key: &str, value: &str, origin: &str| Shown {
        section: "[relay]".to_owned(),
        nth: 0,
        key: key.to_owned(),
        value: Some(value.to_owned()),
        origin: origin.to_owned(),
    };
    let shown = [
        shown("port", "9000", "config.toml:1"),
        shown("listen", "\"localhost\"", "default"),
        shown("token", "\"canary-token\"", "config.toml:2"),
        shown("ca_file", "\"/home/mallory/ca.pem\"", "config.toml:3"),
        shown("note", "\"C:\\\\Users\\\\mallory\\\\sk-canary0123456789\"", "config.toml:4"),
    ];
    let hidden = Hidden::found(|name| match name {
        "HOME" => Some("/home/mallory".to_owned()),
        "USER" => Some("mallory".to_owned()),
        _ => None,
    });
    let verdict = judge(Lang::English, &facts);
    let text = markdown(&verdict, &facts, &shown, &hidden);
    for canary in ["canary", "mallory", "/home/"] {
        assert!(!text.contains(canary), "{canary}: {text}");
    }
    assert!(text.contains("port = 9000") && !text.contains("localhost\""), "{text}");
    assert!(text.contains("~/ca.pem"), "{text}");
    // Its calls can be replayed.
    let lines = text.split("```jsonl\n").nth(1).unwrap().split("```").next().unwrap();
    let call: CallRecord = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!(call, facts.calls[0]);
    let story: Vec<_> = text.lines().filter(|line| line.starts_with("- +")).collect();
    assert_eq!(story.len(), 5, "{story:?}");
    assert!(story[1].contains("503 at_capacity, refused, code server_is_overloaded"), "{story:?}");
}
