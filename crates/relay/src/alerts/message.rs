//! An alert as it is told: as words, as JSON, and as variables of a program. Pure.

use std::time::Duration;

use relay_core::Lang;
use relay_core::alert::{Alert, Kind, State};
use serde_json::{Map, Value, json};

use crate::clock::tenths;
use crate::words::alerts as words;

/// The version of the JSON.
const VERSION: u32 = 1;

/// What somebody is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    /// One sentence.
    pub(super) text: String,
    /// All of it, the sentence too: one object, flat, without what there is not.
    pub(super) json: String,
    /// The same as variables.
    pub(super) variables: Vec<(String, String)>,
}

impl Message {
    /// What is told of an alert at this time, in milliseconds since 1970.
    pub(super) fn of(alert: &Alert, at: u64, lang: Lang) -> Self {
        let text = text(alert, lang);
        let about = &alert.about;
        let name = |name: &Option<Box<str>>| name.as_deref().map(Value::from);
        let fields = [
            ("v", Some(json!(VERSION))),
            ("kind", Some(alert.kind.name().into())),
            ("state", Some(alert.state.name().into())),
            ("at", Some(at.into())),
            ("text", Some(text.as_str().into())),
            ("lasted_s", Some(tenths(alert.lasted).into())),
            ("held_back", Some(alert.held_back.into())),
            ("upstream", name(&about.upstream)),
            ("model", name(&about.model)),
            ("lane", name(&about.lane)),
            ("call", about.call.map(|call| call.to_string().into())),
            ("fault", about.fault.map(Value::from)),
            ("until", about.renews.map(|renews| later(at, renews).into())),
            ("rule", name(&about.rule)),
            ("what", about.what.map(Value::from)),
            ("why", name(&about.why)),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Self::with(text, fields.collect())
    }

    /// What somebody is told who tries the ways out.
    pub(super) fn test(at: u64, lang: Lang) -> Self {
        let text = words::test(lang);
        let fields = json!({
            "v": VERSION, "kind": "test", "state": "raised", "at": at, "text": text, "lasted_s": 0.0, "held_back": 0,
        });
        let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        Self::with(text, fields)
    }

    fn with(text: String, fields: Map<String, Value>) -> Self {
        let variables = fields.iter().map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (format!("STEADY_ALERT_{}", name.to_ascii_uppercase()), value)
        });
        let variables = variables.collect();
        Self { variables, json: Value::Object(fields).to_string(), text }
    }
}

fn later(at: u64, by: Duration) -> u64 {
    at.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX))
}

/// One sentence, and what it leaves out.
fn text(alert: &Alert, lang: Lang) -> String {
    let about = &alert.about;
    let who = match (about.model.as_deref(), about.upstream.as_deref()) {
        (Some(model), Some(upstream)) => words::model_at(lang, model, upstream),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    };
    let span = words::span(lang, alert.lasted.as_secs());
    let what = about.what.unwrap_or_default();
    let told = match (alert.kind, alert.state) {
        (Kind::LaneClosed, State::Raised) => {
            words::lane_closed(lang, &who, &span, about.fault.unwrap_or_default())
        }
        (Kind::LaneClosed, State::Resolved) => words::lane_open(lang, &who, &span),
        (Kind::CircuitOpen, State::Raised) => {
            words::circuit_open(lang, &who, about.fault.unwrap_or_default())
        }
        (Kind::CircuitOpen, State::Resolved) => words::circuit_closed(lang, &who, &span),
        (Kind::LongWaits, State::Raised) => words::long_waits(lang, &who),
        (Kind::LongWaits, State::Resolved) => words::short_waits(lang, &who),
        (Kind::QuotaSpent, State::Raised) => match about.renews {
            Some(renews) => words::quota_spent_for(lang, &who, &words::span(lang, renews.as_secs())),
            None => words::quota_spent(lang, &who),
        },
        (Kind::QuotaSpent, State::Resolved) => words::quota_back(lang, &who),
        (Kind::Rule, State::Raised) => words::rule(lang, &who, about.rule.as_deref().unwrap_or_default()),
        (Kind::Rule, State::Resolved) => words::rule_over(lang, &who),
        (Kind::CannotWrite, State::Raised) => {
            words::cannot_write(lang, what, about.why.as_deref().unwrap_or_default())
        }
        (Kind::CannotWrite, State::Resolved) => words::written_again(lang, what),
        // It is over as it begins.
        (Kind::MaybeBilledTwice, State::Raised | State::Resolved) => words::billed_twice(lang, &who),
    };
    if alert.held_back > 0 { words::and_held_back(lang, &told, alert.held_back) } else { told }
}

#[cfg(test)]
mod tests {
    use relay_core::alert::About;
    use relay_core::event::CallId;

    use super::*;

    fn alert(kind: Kind, state: State) -> Alert {
        let about = About {
            upstream: Some("openai".into()),
            model: Some("gpt-x".into()),
            lane: Some("9f86d081884c7d65".into()),
            call: Some(CallId(7)),
            fault: Some("at_capacity"),
            ..About::default()
        };
        Alert { kind, state, about, lasted: Duration::from_millis(312_345), held_back: 2 }
    }

    #[test]
    fn an_alert_is_one_flat_object_and_the_same_as_variables() {
        let message = Message::of(&alert(Kind::LaneClosed, State::Raised), 1_700_000_000_000, Lang::English);
        let json: Value = serde_json::from_str(&message.json).unwrap();
        let text = "gpt-x at openai has taken no calls for 5 min 12 s (at_capacity); 2 more were held back";
        let expected = json!({
            "v": 1, "kind": "lane_closed", "state": "raised", "at": 1_700_000_000_000_u64, "text": text,
            "lasted_s": 312.3, "held_back": 2, "upstream": "openai", "model": "gpt-x", "lane": "9f86d081884c7d65",
            "call": "c7", "fault": "at_capacity",
        });
        assert_eq!(json, expected);
        let variable = |name: &str| {
            message.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(message.variables.len(), expected.as_object().unwrap().len());
        assert_eq!(variable("STEADY_ALERT_TEXT"), Some(text));
        assert_eq!(
            (variable("STEADY_ALERT_HELD_BACK"), variable("STEADY_ALERT_CALL")),
            (Some("2"), Some("c7"))
        );
    }

    #[test]
    fn a_spent_quota_names_when_there_is_one_again() {
        let spent = alert(Kind::QuotaSpent, State::Raised);
        let about = About { renews: Some(Duration::from_secs(7500)), ..spent.about };
        let spent = Alert { about, held_back: 0, ..spent };
        let message = Message::of(&spent, 1_700_000_000_000, Lang::English);
        let json: Value = serde_json::from_str(&message.json).unwrap();
        assert_eq!(json["until"], 1_700_007_500_000_u64);
        assert_eq!(message.text, "the quota or plan is spent at gpt-x at openai, for another 2 h 5 min");
    }

    #[test]
    fn each_kind_and_state_has_a_sentence_of_its_own_in_both_languages() {
        let all = || Kind::ALL.into_iter().flat_map(|kind| [(kind, State::Raised), (kind, State::Resolved)]);
        for lang in Lang::ALL {
            let told: std::collections::BTreeSet<_> = all()
                .filter(|of| *of != (Kind::MaybeBilledTwice, State::Resolved))
                .map(|(kind, state)| text(&alert(kind, state), lang))
                .collect();
            assert_eq!(told.len(), 2 * Kind::ALL.len() - 1, "{told:#?}");
        }
    }
}
