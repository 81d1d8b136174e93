//! A relay in an overload, as it would tell of itself.

use std::time::Duration;

use relay_core::{Lang, Moment};
use serde_json::{Value, json};

use crate::history::record::CallRecord;
use crate::top::Now;
use crate::top::feed::{News, Seen};
use crate::top::model::{Key, Model};
use crate::top::page::{Calls, Page};

/// So many seconds after the beginning.
pub(super) fn after(seconds: f64) -> Now {
    let span = Duration::from_secs_f64(seconds);
    Now { at: Moment::after_start(span), wall: 1_700_000_000_000 + u64::try_from(span.as_millis()).unwrap() }
}

/// The status page.
pub(super) fn page() -> Value {
    json!({
        "v": 1, "version": "0.1.0", "uptime_s": 11_520.4,
        "totals": {"calls": 120, "sends": 171, "waits": 52, "waited_s": 603.2, "calls_waited": 15,
                   "calls_judged": 117, "calls_served": 115, "calls_saved": 14, "calls_lost": 1,
                   "calls_handed_back": 1, "maybe_billed_twice": 1},
        "open_calls": [
            {"id": "c117", "age_s": 42.0, "next_send_in_s": 3.6},
            {"id": "c118", "age_s": 12.0, "next_send_in_s": null},
            {"id": "c120", "age_s": 1.0, "next_send_in_s": null}
        ],
        "lanes": [
            {"id": "a1", "upstream": "openai", "model": "gpt-y", "state": "open", "why": null, "waiting": 0, "running": 1,
             "sending": 0, "line": []},
            {"id": "b2", "upstream": "api.anthropic.com", "model": "claude-容量-5", "state": "shut", "why": "overloaded",
             "waiting": 1, "running": 2, "sending": 1, "max_running": 4, "next_send_in_s": 3.6, "held_for_s": 2.2,
             "line": [{"position": 1, "call": "c117"}]},
            {"id": "c3", "upstream": "openai", "model": "gpt-x", "state": "shut", "why": "at_capacity", "waiting": 6,
             "running": 0, "sending": 1, "next_send_in_s": 0.0, "line": [{"position": 3, "call": "c118"}]},
            {"id": "d4", "upstream": "127.0.0.1", "model": null, "state": "open", "why": null, "waiting": 0,
             "circuit": "open", "circuit_open_for_s": 12.0}
        ]
    })
}

fn call(number: u64, model: &str, more: &Value) -> CallRecord {
    let mut call = json!({
        "call": number, "opened": 1_700_000_000_000_u64 - (130 - number) * 3_000, "client": "codex",
        "dialect": "openai_responses", "operation": "generation", "transport": "http", "upstream": "openai",
        "model": model, "profile": "interactive", "lane": "c3", "inherited_sends": 0, "state": "closed", "sends": []
    });
    for (name, value) in more.as_object().unwrap() {
        call[name] = value.clone();
    }
    serde_json::from_value(call).unwrap()
}

/// A call in a line, refused twice; one of each other kind; and some that went well.
pub(in crate::top) fn calls() -> Vec<CallRecord> {
    let refused = |send: u32, at: u64, told: Value| {
        json!({"send": send, "began": at, "head": at + 300, "status": 503, "request_id": "req_1", "failed": {
            "at": at + 310, "fault": "at_capacity", "evidence": "refused", "code": "server_is_overloaded",
            "rule": "openai.at_capacity", "told": told}})
    };
    let mut waiting = refused(2, 1_400, json!(2_000));
    waiting["wait"] = json!({"why": "backoff", "began": 320, "planned": 1_080, "took": 1_080});
    waiting["moved"] = json!({"upstream": "second", "lane": "e5", "model": "gpt-y", "why": "failed"});
    let in_line = json!({"send": 3, "wait": {"why": "line", "began": 1_720, "waiting": 5, "notices": 1}});
    let sends = json!([refused(1, 5, Value::Null), waiting, in_line]);
    let told = json!({"send": 2, "wait": {"why": "told", "began": 400, "planned": 45_200}});
    let ended = |outcome: &str, sends: u32, waited: u64, fault: Value| {
        json!({"outcome": outcome, "sends": sends, "waited": waited, "took": waited + 4_321, "last_fault": fault,
               "capacity_faults": 0, "maybe_billed_twice": 0, "received": 12_345, "sent": 1_234_567, "status": 200,
               "tokens": {"input": 1_200, "cached": 800, "output": 333}})
    };
    let mut all = vec![
        call(
            118,
            "gpt-x",
            &json!({"state": "waiting", "sends": sends, "request_id": "turn-容-7", "pool": "main"}),
        ),
        call(
            117,
            "claude-容量-5",
            &json!({"state": "waiting", "client": "claude_code", "upstream": "api.anthropic.com", "lane": "b2",
                    "dialect": "anthropic", "sends": [
                        {"send": 1, "began": 5, "failed": {"at": 400, "fault": "overloaded"}}, told]}),
        ),
        call(119, "gpt-y", &json!({"lane": "a1", "closed": ended("served", 1, 0, Value::Null)})),
        call(
            120,
            "gpt-y",
            &json!({"lane": "a1", "state": "streaming", "committed": 900,
            "sends": [{"send": 1, "began": 3, "head": 880, "status": 200}]}),
        ),
        call(116, "gpt-x", &json!({"closed": ended("served", 3, 31_000, json!("at_capacity"))})),
        call(115, "gpt-x", &json!({"closed": ended("gave_up", 8, 91_000, json!("at_capacity"))})),
        call(114, "gpt-x", &json!({"closed": ended("client_left", 2, 4_000, json!("rate_limited"))})),
    ];
    all.extend((80..114).map(|number| {
        call(number, "gpt-y", &json!({"lane": "a1", "closed": ended("served", 1, 0, Value::Null)}))
    }));
    all
}

pub(super) fn seen(page: Value, calls: Vec<CallRecord>, anew: bool) -> News {
    let calls = json!({"change": 1, "calls": calls});
    News::Seen(Box::new(Seen { page: Page::of(page), calls: Some(Calls::of(calls)), anew }))
}

/// The model of it at the beginning.
pub(super) fn model(lang: Lang, columns: u16, rows: u16) -> Model {
    let mut model = Model::new(lang, "127.0.0.1:8787".to_owned(), after(0.0));
    model.sized(columns, rows, after(0.0));
    model.update(seen(page(), calls(), true), after(0.0));
    model
}

/// Presses the keys of a word.
pub(super) fn press(model: &mut Model, word: &str) {
    for sign in word.chars() {
        let key = if sign == '\n' { Key::Enter } else { Key::Char(sign) };
        model.key(key, after(0.5));
    }
}
