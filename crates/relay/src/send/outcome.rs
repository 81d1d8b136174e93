//! What became of the one call: an observer that keeps its end, the exit code that follows, and the summary.

use std::time::Duration;

use relay_core::call::Why;
use relay_core::event::{CallId, Closing, Event, Outcome};
use relay_core::failure::Bar;
use relay_core::{Lang, Moment};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::clock::tenths;
use crate::observe::{Notice, Observer};
use crate::words::send;

/// How long the end of a call may stay away when its answer is here.
const SOON: Duration = Duration::from_secs(2);

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// It was a call, and this is its summary.
    Call(Closing),
    /// The relay itself turned the request away.
    TurnedAway {
        /// The status of the answer.
        status: u16,
        /// Why, in one word.
        code: &'static str,
    },
}

/// Sees the end of the first call.
#[derive(Debug, Default)]
pub struct Watcher {
    end: watch::Sender<Option<End>>,
}

impl Watcher {
    /// The end, which comes no later than a moment after the answer's.
    pub async fn end(&self) -> Option<End> {
        let mut end = self.end.subscribe();
        let known = tokio::time::timeout(SOON, end.wait_for(Option::is_some)).await;
        known.ok()?.ok().and_then(|end| *end)
    }

    fn ended(&self, end: End) {
        self.end.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(end);
            first
        });
    }
}

impl Observer for Watcher {
    fn see(&self, _call: CallId, _at: Moment, event: &Event) {
        if let Event::CallClosed(closing) = event {
            self.ended(End::Call(*closing));
        }
    }

    fn notice(&self, notice: &Notice) {
        if let Notice::TurnedAway { status, code, .. } = notice {
            self.ended(End::TurnedAway { status: *status, code });
        }
    }
}

/// What came of it: the answer's status, if there was an answer, and the end of the call, if it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Came {
    /// The status of the answer.
    pub status: Option<u16>,
    /// The answer came whole.
    pub whole: bool,
    /// How the call ended.
    pub end: Option<End>,
}

impl Came {
    /// The exit code of the program.
    ///
    /// 0 served; 1 the answer broke off, or something between here and the service does not let it through; 2 the relay
    /// was told nothing that it could send; 3 sends or patience were spent; 4 not sent again, since it may have run;
    /// 5 the service said no.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if let (None, Some(End::Call(Closing { outcome: Outcome::Returned, .. }))) = (self.status, self.end) {
            // The connection was cut, as the service's was: what was sent may have run.
            return 4;
        }
        let Some(status) = self.status.filter(|_| self.whole) else { return 1 };
        let refused = status >= 400;
        match self.end {
            None => u8::from(refused) * 5,
            Some(End::TurnedAway { .. }) => 2,
            Some(End::Call(closing)) => match closing.outcome {
                Outcome::Served if refused => 5,
                Outcome::Served => 0,
                Outcome::Passed => 5,
                Outcome::Returned | Outcome::GaveUp => 3,
                Outcome::Refused if is_barred(closing.why) => 1,
                Outcome::Refused => 4,
                Outcome::Broken | Outcome::Cut | Outcome::ClientLeft => 1,
            },
        }
    }

    /// What to say of how it ended, where it did not end well, and of what may cost twice.
    #[must_use]
    pub fn words(&self, lang: Lang) -> Option<String> {
        let twice = match self.end {
            Some(End::Call(Closing { maybe_billed_twice: twice @ 1.., .. })) => {
                Some(send::billed_twice(lang, u64::from(twice)))
            }
            Some(End::Call(_) | End::TurnedAway { .. }) | None => None,
        };
        let all: Vec<String> = self.ending(lang).into_iter().chain(twice).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    fn ending(&self, lang: Lang) -> Option<String> {
        let code = self.exit_code();
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let Some(End::Call(closing)) = self.end else {
            return match code {
                0 => None,
                1 => Some(send::broke_off(lang)),
                2 => Some(send::turned_away(lang, &status)),
                _ => Some(send::said_no(lang, &status)),
            };
        };
        let fault = closing.last_fault.map_or("-", relay_core::Fault::name);
        let waited = tenths(closing.waited);
        match code {
            0 => None,
            3 => Some(send::gave_up(lang, u64::from(closing.sends), waited, fault, &status)),
            4 => Some(send::not_again(lang, closing.why.unwrap_or(fault))),
            5 => Some(send::said_no(lang, &status)),
            _ if closing.outcome == Outcome::Refused => {
                Some(send::barred(lang, closing.why.unwrap_or(fault)))
            }
            _ => Some(send::broke_off(lang)),
        }
    }

    /// The summary for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut all = json!({
            "v": 1,
            "event": "summary",
            "exit": self.exit_code(),
            "status": self.status,
            "whole": self.whole,
        });
        let more = match self.end {
            None => json!({}),
            Some(End::TurnedAway { code, .. }) => json!({ "outcome": "turned_away", "why": code }),
            Some(End::Call(closing)) => json!({
                "outcome": closing.outcome.name(),
                "why": closing.why,
                "sends": closing.sends,
                "waited_s": tenths(closing.waited),
                "took_s": tenths(closing.took),
                "fault": closing.last_fault.map(relay_core::Fault::name),
                "maybe_billed_twice": closing.maybe_billed_twice,
            }),
        };
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        all
    }
}

/// Whether a resend was of no use, rather than a risk.
fn is_barred(why: Option<&'static str>) -> bool {
    let barred =
        [Bar::Certificate, Bar::Proxy, Bar::Unfit, Bar::Credential].map(|bar| Why::Barred(bar).name());
    why.is_some_and(|why| barred.contains(&why))
}

#[cfg(test)]
mod tests {
    use relay_core::Fault;

    use super::*;

    fn closing(outcome: Outcome, why: Option<&'static str>) -> End {
        End::Call(Closing {
            why,
            sends: 3,
            waited: Duration::from_millis(12_340),
            last_fault: Some(Fault::AtCapacity),
            capacity_faults: 2,
            took: Duration::from_secs(13),
            ..Closing::new(outcome)
        })
    }

    fn came(status: u16, end: End) -> Came {
        Came { status: Some(status), whole: true, end: Some(end) }
    }

    #[test]
    fn every_end_has_its_exit_code() {
        let rows = [
            (200, Outcome::Served, None, 0),
            (302, Outcome::Served, None, 0),
            (404, Outcome::Served, None, 5),
            (401, Outcome::Passed, None, 5),
            (503, Outcome::Returned, None, 3),
            (503, Outcome::GaveUp, Some("patience_spent"), 3),
            (429, Outcome::Refused, Some("may_have_run"), 4),
            (429, Outcome::Refused, Some("still_running"), 4),
            (502, Outcome::Refused, Some("certificate"), 1),
            (502, Outcome::Refused, Some("proxy"), 1),
            (502, Outcome::Refused, Some("credential"), 1),
            (200, Outcome::Broken, None, 1),
            (200, Outcome::Cut, None, 1),
            (200, Outcome::ClientLeft, None, 1),
        ];
        for (status, outcome, why, code) in rows {
            let came = came(status, closing(outcome, why));
            assert_eq!(came.exit_code(), code, "{outcome:?} {why:?}");
            assert_eq!(came.words(Lang::English).is_some(), code != 0, "{outcome:?}");
        }
        let away = End::TurnedAway { status: 400, code: "no_upstream" };
        assert_eq!(came(400, away).exit_code(), 2);
        assert_eq!(Came::default().exit_code(), 1);
        let half = Came { whole: false, ..came(200, closing(Outcome::Served, None)) };
        assert_eq!(half.exit_code(), 1);
    }

    #[test]
    fn the_words_are_exact() {
        let words = |status, outcome, why| came(status, closing(outcome, why)).words(Lang::English).unwrap();
        assert_eq!(
            words(503, Outcome::GaveUp, Some("sends_spent")),
            "steady-relay: gave up after 3 sends, 12.3 s waited (at_capacity, status 503)"
        );
        assert_eq!(
            words(429, Outcome::Refused, Some("may_have_run")),
            "steady-relay: not sent again, since it may have run (may_have_run)"
        );
        let json = came(503, closing(Outcome::GaveUp, Some("sends_spent"))).json();
        assert_eq!(
            (&json["exit"], &json["outcome"], &json["sends"]),
            (&3.into(), &"gave_up".into(), &3.into())
        );
    }
}
