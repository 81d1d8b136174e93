//! The keys of `[[rule]]`: what an answer looks like, and what it means. Not how rules are asked (that is the core's
//! `dialect::rule`); a user's rule becomes one of the very type that ships.

use super::read::{Given, Key};
use relay_core::dialect::{self, Rule, Sign, Statuses, Test, amount};
use relay_core::evidence::Says;
use relay_core::units::Invalid;
use relay_core::{Fault, config};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// What a `[[rule]]` says. The upstream's name is not yet looked up.
#[derive(Debug, Default)]
pub(super) struct RuleDraft {
    status: Vec<RangeInclusive<u16>>,
    header: Option<Sign>,
    path: Option<Sign>,
    phrase: Option<Sign>,
    inside: bool,
    dialect: Option<&'static str>,
    pub(super) upstream: Option<String>,
    fault: Option<Fault>,
    resend: Option<Says>,
    floor: Duration,
    alert: bool,
}

/// Faults that an answer can tell of. The others are those of connections and of answers that broke off.
const FAULTS: [Fault; 11] = [
    Fault::AtCapacity,
    Fault::Overloaded,
    Fault::ModelLoading,
    Fault::Throttled,
    Fault::QuotaSpent,
    Fault::Authentication,
    Fault::BadRequest,
    Fault::TooLong,
    Fault::ContentRefused,
    Fault::Challenge,
    Fault::ServerFailed,
];

const RESENDS: [(&str, Says); 4] = [
    ("refused", Says::Refused),
    ("failed", Says::Failed),
    ("maybe_ran", Says::MaybeRan),
    ("final", Says::Final),
];

/// `[[rule]]`.
pub(super) const RULE: &[Key<RuleDraft>] = &[
    Key {
        name: "status",
        shape: "number, class or list",
        default: "",
        doc: "Fits answers with this status: `503`, a class such as `\"5xx\"`, or a list of these. For an error inside \
              a 2xx answer it is the status that the error names as its code. Not set: every status of 400 and more.",
        set: |rule, given| statuses(given).map(|among| rule.status = among),
    },
    Key {
        name: "header",
        shape: "test",
        default: "",
        doc: "Fits answers with this header: `{ name = \"x-load\", equals = \"high\" }`. In place of `equals`, where a \
              `*` at the end stands for any rest: `contains`, or `at_least`, for a number, a share (`98%`) or a part \
              (`4/4`).",
        set: |rule, given| {
            let (name, test) = test(given, "name")?;
            let name: http::HeaderName = name.parse().map_err(|_not_a_name| {
                Invalid::new("has a `name` that is no header's", "a name has letters, digits and hyphens")
            })?;
            rule.header = Some(Sign::Header(name.as_str().to_owned().into(), test));
            Ok(())
        },
    },
    Key {
        name: "path",
        shape: "test",
        default: "",
        doc: "Fits answers, or events of a stream, with this value in their JSON: \
              `{ at = \"error.code\", equals = \"1302\" }`. A number in the path is an item of a list, `*` every item. \
              In place of `equals`: `contains` or `at_least`.",
        set: |rule, given| {
            let (at, test) = test(given, "at")?;
            if at.split('.').any(str::is_empty) {
                let hint = "write names, numbers and * with dots between: \"error.details.*.reason\"";
                return Err(Invalid::new("has an `at` that is no path", hint));
            }
            rule.path = Some(Sign::Path(at.to_owned().into(), test));
            Ok(())
        },
    },
    Key {
        name: "phrase",
        shape: "text",
        default: "",
        doc: "Fits answers with these words in the error's message, in capitals or not. An answer of a model is never \
              looked through.",
        set: |rule, given| {
            let words = given.text()?.trim().to_lowercase();
            if words.is_empty() {
                return Err(Invalid::new("is empty", "write the words to look for, or leave it out"));
            }
            rule.phrase = Some(Sign::Sentence(words.into()));
            Ok(())
        },
    },
    Key {
        name: "inside",
        shape: "true or false",
        default: "false",
        doc: "Whether the rule holds inside a 2xx answer as well, before anything of it has reached the client: for an \
              error there, and, where it asks for nothing but `header` and `path`, for any answer.",
        set: |rule, given| given.flag().map(|value| rule.inside = value),
    },
    Key {
        name: "dialect",
        shape: "choice",
        default: "",
        doc: "Fits answers of this dialect: `openai_responses`, `openai_chat`, `anthropic`, `gemini`, `ollama` or \
              `generic`. Not set: every dialect.",
        set: |rule, given| {
            let names = dialect::ALL.map(|dialect| (dialect.name(), dialect.name()));
            given.choice(&names).map(|name| rule.dialect = Some(name))
        },
    },
    Key {
        name: "upstream",
        shape: "name",
        default: "",
        doc: "Fits answers of this `[upstream.NAME]`. Not set: every upstream.",
        set: |rule, given| given.text().map(|text| rule.upstream = Some(text.to_owned())),
    },
    Key {
        name: "fault",
        shape: "choice",
        default: "",
        doc: "What such an answer means; needed. `at_capacity`, `overloaded`, `model_loading` and `throttled` heal by \
              waiting; `server_failed` may; `quota_spent`, `authentication`, `bad_request`, `too_long`, \
              `content_refused` and `challenge` do not.",
        set: |rule, given| {
            given.choice(&FAULTS.map(|fault| (fault.name(), fault))).map(|fault| rule.fault = Some(fault))
        },
    },
    Key {
        name: "resend",
        shape: "choice",
        default: "",
        doc: "What it says about the request: `refused`, it did not run; `failed`, it failed, and may have run where \
              that came late; `maybe_ran`; or `final`, it goes back as it is. Not set: `refused` for what heals by \
              waiting, `failed` for `server_failed`, else `final`. An answer that has begun to reach the client, and \
              one that never came, are no matter of rules.",
        set: |rule, given| given.choice(&RESENDS).map(|says| rule.resend = Some(says)),
    },
    Key {
        name: "floor",
        shape: "time",
        default: "\"0s\"",
        doc: "The shortest wait before the request is sent again. Where the answer names a longer one, that holds. What \
              is `final` has none.",
        set: |rule, given| given.duration(super::keys::ANY_TIME).map(|value| rule.floor = value),
    },
    Key {
        name: "alert",
        shape: "true or false",
        default: "false",
        doc: "Whether a person is told of such an answer, by what `[alerts]` says.",
        set: |rule, given| given.flag().map(|value| rule.alert = value),
    },
];

/// What is wrong with a rule as a whole: it lacks a value for any of these keys, or has one too many.
pub(super) struct Lack {
    pub(super) of: &'static [&'static str],
    /// The key that is in the way, where it is one.
    pub(super) at: Option<&'static str>,
    pub(super) what: Invalid,
}

/// What a rule of the file is called; they count from 1.
pub(crate) fn own_rule(number: usize) -> String {
    format!("[[rule]] number {number}")
}

const CONDITIONS: &[&str] = &["status", "header", "path", "phrase"];

impl RuleDraft {
    /// The rule, or what it lacks. `number` counts the rules of the file from 1.
    pub(super) fn finish(self, number: usize) -> Result<config::OwnRule, Lack> {
        let Some(fault) = self.fault else {
            let hint = "say what such an answer means: fault = \"overloaded\"";
            return Err(Lack { of: &["fault"], at: None, what: Invalid::new("has no `fault`", hint) });
        };
        let signs: Vec<_> = [self.header, self.path, self.phrase].into_iter().flatten().collect();
        if signs.is_empty() && self.status.is_empty() {
            let hint = "name at least one of `status`, `header`, `path` and `phrase`";
            return Err(Lack { of: CONDITIONS, at: None, what: Invalid::new("fits every answer", hint) });
        }
        let says = self.resend.unwrap_or(if fault.heals_by_waiting() {
            Says::Refused
        } else if fault == Fault::ServerFailed {
            Says::Failed
        } else {
            Says::Final
        });
        if says == Says::Final && !self.floor.is_zero() {
            let hint = "leave out `floor`, or say that it is sent again: resend = \"refused\"";
            let what = Invalid::new("has a `floor`, and what it fits is final: nothing is sent again", hint);
            return Err(Lack { of: &[], at: Some("floor"), what });
        }
        let rule = Arc::new(Rule {
            sign: Sign::All(signs),
            on: Statuses::Chosen { among: self.status, inside: self.inside },
            fault,
            says,
            floor: self.floor,
            source: own_rule(number).into(),
        });
        Ok(config::OwnRule { dialect: self.dialect, upstream: self.upstream, rule, alert: self.alert })
    }
}

const STATUS: &str = "write a status of 400 or more, a class such as \"5xx\", or a list: [429, \"5xx\"]";

fn statuses(given: &Given<'_>) -> Result<Vec<RangeInclusive<u16>>, Invalid> {
    let among = given.each_or_one().iter().map(status).collect::<Result<Vec<_>, _>>()?;
    if among.is_empty() { Err(Invalid::new("is empty", STATUS)) } else { Ok(among) }
}

fn status(given: &Given<'_>) -> Result<RangeInclusive<u16>, Invalid> {
    match given.text() {
        Ok("4xx") => Ok(400..=499),
        Ok("5xx") => Ok(500..=599),
        Ok(_) => Err(Invalid::new("holds what is no status", STATUS)),
        Err(_not_text) => {
            let number =
                given.count(400..=599).map_err(|_other| Invalid::new("holds what is no status", STATUS))?;
            u16::try_from(number)
                .map(|status| status..=status)
                .map_err(|_large| Invalid::new("holds what is no status", STATUS))
        }
    }
}

/// Reads `{ KEY = "where", equals = … }`, or with `contains` or `at_least`.
fn test<'a>(given: &Given<'a>, key: &str) -> Result<(&'a str, Test), Invalid> {
    let hint =
        || format!("write it as {{ {key} = \"…\", equals = \"…\" }}, or with `contains` or `at_least`");
    let wrong = |why: String| Invalid::new(why, hint());
    let (mut place, mut test) = (None, None);
    for (name, given) in given.members(&hint())? {
        let read = match name {
            _ if name == key => {
                place = Some(given.text()?);
                continue;
            }
            "equals" => Test::Is(given.plain()?.into()),
            "contains" => Test::Has(given.text()?.to_lowercase().into()),
            "at_least" => Test::AtLeast(
                amount(&given.plain()?)
                    .ok_or_else(|| wrong("has an `at_least` that is no number".to_owned()))?,
            ),
            other => return Err(wrong(format!("has an unknown `{}`", other.escape_default()))),
        };
        if test.replace(read).is_some() {
            return Err(wrong("has more than one test".to_owned()));
        }
    }
    match (place, test) {
        (Some(place), Some(test)) => Ok((place, test)),
        (None, _) => Err(wrong(format!("has no `{key}`"))),
        (_, None) => Err(wrong("has no test".to_owned())),
    }
}
