//! What a relay tells, as far as it is shown here. The relay may be of another version: what is missing is empty, and a
//! call that cannot be understood is left out. A name from elsewhere stays a name: nothing in it moves the cursor.

use std::borrow::Cow;
use std::time::Duration;

use relay_core::plain::line;
use serde::Deserialize;
use serde_json::Value;

use crate::history::record::{CallRecord, ClosedRecord, FailedRecord, MovedRecord};

/// The status page.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Page {
    /// The relay's version.
    pub version: String,
    /// Seconds since its start.
    pub uptime_s: f64,
    /// Sums since then.
    pub totals: Totals,
    /// The calls that are open.
    pub open_calls: Vec<OpenCall>,
    /// The lanes.
    pub lanes: Vec<Lane>,
}

/// Sums since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Calls that came in.
    pub calls: u64,
    /// Sends.
    pub sends: u64,
    /// Seconds waited by calls that ended.
    pub waited_s: f64,
    /// Calls that tell whether the relay, or the service alone, did well.
    pub calls_judged: u64,
    /// Those of them that were served.
    pub calls_served: u64,
    /// Those of them that their first send alone would not have served.
    pub calls_saved: u64,
    /// Calls that were refused or given up.
    pub calls_lost: u64,
    /// Calls whose failure went back as it was.
    pub calls_handed_back: u64,
    /// Sends that may have been billed twice.
    pub maybe_billed_twice: u64,
}

/// What the status page knows of a call beyond its record: the time left.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct OpenCall {
    /// Its name in the log.
    pub id: String,
    /// Seconds until its next send.
    pub next_send_in_s: Option<f64>,
    /// Seconds since it was accepted.
    pub age_s: f64,
}

/// A lane.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Lane {
    /// Its id.
    pub id: String,
    /// The upstream.
    pub upstream: String,
    /// The model.
    pub model: Option<String>,
    /// `open` or `shut`.
    pub state: String,
    /// Why it is shut.
    pub why: Option<String>,
    /// Seconds until its next call is sent.
    pub next_send_in_s: Option<f64>,
    /// Seconds for which the service asked to be left alone.
    pub held_for_s: Option<f64>,
    /// Seconds for which it is parked, since its quota is spent.
    pub parked_for_s: Option<f64>,
    /// What its breaker says: `closed`, `open` or `half_open`.
    pub circuit: String,
    /// Seconds until an open breaker lets a probe through.
    pub circuit_open_for_s: Option<f64>,
    /// Calls that wait.
    pub waiting: u64,
    /// Calls without a sign yet.
    pub sending: u64,
    /// Calls that are being answered.
    pub running: u64,
    /// The most that run at once.
    pub max_running: Option<u64>,
    /// The first of those that wait.
    pub line: Vec<Place>,
}

/// A place in a lane's line.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Place {
    /// From 1.
    pub position: u64,
    /// The call's name in the log.
    pub call: String,
}

/// The page of calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    /// The number of the last change.
    pub change: u64,
    /// The calls that have changed, the oldest change first.
    pub calls: Vec<CallRecord>,
}

impl Page {
    /// Of the relay's JSON.
    #[must_use]
    pub fn of(page: Value) -> Self {
        let mut page: Self = serde_json::from_value(page).unwrap_or_default();
        plain(&mut page.version);
        for lane in &mut page.lanes {
            plain(&mut lane.upstream);
            lane.model.as_mut().map(plain);
            lane.why.as_mut().map(plain);
            for name in [&mut lane.id, &mut lane.state] {
                plain(name);
            }
        }
        page
    }
}

impl Lane {
    /// Whether it is short of capacity or cut off, or calls wait in it.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.is_short() || self.waiting > 0
    }

    /// Whether it is short of capacity or cut off.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.is_shut() || self.is_cut_off()
    }

    /// Whether its breaker is not closed.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self.circuit.as_str(), "open" | "half_open")
    }

    /// Whether few calls ask in it.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.state == "shut"
    }
}

impl Calls {
    /// Of the relay's JSON.
    #[must_use]
    pub fn of(mut page: Value) -> Self {
        let calls = page["calls"].take();
        let read = |call: Value| serde_json::from_value(call).ok().map(named);
        let calls = if let Value::Array(calls) = calls { calls } else { Vec::new() };
        let calls = calls.into_iter().filter_map(read).collect();
        Self { change: page["change"].as_u64().unwrap_or(0), calls }
    }
}

/// The record with plain names.
fn named(mut call: CallRecord) -> CallRecord {
    for name in [
        &mut call.client,
        &mut call.dialect,
        &mut call.operation,
        &mut call.transport,
        &mut call.upstream,
        &mut call.profile,
        &mut call.lane,
    ] {
        plain(name);
    }
    for name in [&mut call.model, &mut call.request_id, &mut call.pool, &mut call.bound] {
        name.as_mut().map(plain);
    }
    for send in &mut call.sends {
        send.request_id.as_mut().map(plain);
        if let Some(MovedRecord { upstream, lane, model, why }) = &mut send.moved {
            for name in [upstream, lane, why] {
                plain(name);
            }
            model.as_mut().map(plain);
        }
        if let Some(FailedRecord { fault, evidence, code, rule, .. }) = &mut send.failed {
            plain(fault);
            for name in [evidence, code, rule] {
                name.as_mut().map(plain);
            }
        }
    }
    if let Some(ClosedRecord { outcome, why, last_fault, .. }) = &mut call.closed {
        plain(outcome);
        why.as_mut().map(plain);
        last_fault.as_mut().map(plain);
    }
    call
}

fn plain(name: &mut String) {
    if let Cow::Owned(fit) = line(name) {
        *name = fit;
    }
}

/// A span of the page.
pub(super) fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// The number of a call by its name in the log.
pub(super) fn number(id: &str) -> Option<u64> {
    id.strip_prefix('c')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::top::tests::scene::calls as some;

    #[test]
    fn a_page_of_another_version_is_read_as_far_as_it_goes() {
        for odd in [json!({}), json!({"totals": 3}), json!([]), Value::Null] {
            assert_eq!(Page::of(odd), Page::default());
        }
        let page =
            Page::of(json!({"version": "9", "totals": {"calls": 3, "more": 1}, "lanes": [{"id": "a"}]}));
        assert_eq!((page.version.as_str(), page.totals.calls, page.lanes.len()), ("9", 3, 1));
        let good = serde_json::to_value(&some()[0]).unwrap();
        let calls = Calls::of(json!({"change": 7, "calls": [good, {"call": 2, "state": "dancing"}, 3]}));
        assert_eq!((calls.change, calls.calls.len()), (7, 1));
        assert_eq!(Calls::of(json!({"calls": 1})), Calls::default());
    }

    #[test]
    fn no_name_moves_the_cursor() {
        let mut odd = some().swap_remove(0);
        odd.model = Some("a\u{1b}[2J\u{202e}b容".to_owned());
        let calls = Calls::of(json!({"change": 1, "calls": [odd]}));
        assert_eq!(calls.calls[0].model.as_deref(), Some("a?[2J?b容"));
        let page = Page::of(json!({"lanes": [{"upstream": "u\n", "model": "\u{7}"}]}));
        assert_eq!((page.lanes[0].upstream.as_str(), page.lanes[0].model.as_deref()), ("u?", Some("?")));
    }
}
