//! A rule is data: what an answer looks like -> what went wrong and what that says about execution.
//! Built-in rows are const tables; a user's rows have the same type and come first.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

use crate::evidence::Says;
use crate::fault::Fault;
use crate::json::{ErrorFields, texts_at};

/// The statuses that a rule is about. An error inside a 2xx answer has the one that it names as its code
/// (`"code":503`), or none, and then counts as [`Inside`].
///
/// [`Inside`]: Statuses::Inside
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statuses {
    /// Any, and inside a 2xx answer.
    Any,
    /// Any but those that settle the matter: 401, a credential that was not accepted, and 413, a request that is
    /// too long (Groq has `rate_limit_exceeded` on one that never fits), whatever comes with them.
    Unsettled,
    /// An error that a wait may heal by its status: 429 and 5xx, and inside a 2xx answer.
    MayHeal,
    /// 400 to 428, and inside a 2xx answer.
    RequestsFault,
    /// Inside a 2xx answer only, where no status is named: it says less than any status does.
    Inside,
    /// Exactly this one.
    Only(u16),
    /// A user's choice; an empty list is any.
    Chosen {
        /// The statuses of the answer, or those that an error inside a 2xx answer names.
        among: Vec<RangeInclusive<u16>>,
        /// Whether it holds inside a 2xx answer.
        inside: bool,
    },
}

impl Statuses {
    /// Whether it can have held for an answer with this status; which one an error inside a 2xx answer named is not known
    /// any more.
    #[must_use]
    pub fn may_be(&self, status: u16) -> bool {
        let inside = matches!(self, Self::Chosen { inside: true, .. }) && (200..300).contains(&status);
        inside || self.hold(Some(status), false)
    }

    fn hold(&self, status: Option<u16>, is_inside: bool) -> bool {
        match (self, status) {
            (Self::Any, _) => true,
            (Self::Unsettled, Some(status)) => status != 401 && status != 413,
            (Self::MayHeal, Some(status)) => status == 429 || status >= 500,
            (Self::RequestsFault, Some(status)) => (400..429).contains(&status),
            (Self::Only(one), Some(status)) => *one == status,
            (Self::Inside, Some(_)) | (Self::Only(_), None) => false,
            (Self::Unsettled | Self::MayHeal | Self::RequestsFault | Self::Inside, None) => true,
            (Self::Chosen { inside: false, .. }, _) if is_inside => false,
            (Self::Chosen { among, .. }, status) => {
                among.is_empty()
                    || status.is_some_and(|status| among.iter().any(|range| range.contains(&status)))
            }
        }
    }
}

/// How a value is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// It is this, without regard to case; a `*` at the end stands for any rest.
    Is(Cow<'static, str>),
    /// It has these words in it, in lower case.
    Has(Cow<'static, str>),
    /// It is a number, a share (`98%`) or a part (`4/4`), and no less than this.
    AtLeast(f64),
}

impl Test {
    fn holds(&self, value: &str) -> bool {
        match self {
            Self::Is(pattern) => same(pattern, value.trim()),
            Self::Has(words) => value.to_lowercase().contains(&**words),
            Self::AtLeast(least) => amount(value).is_some_and(|amount| amount >= *least),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => write!(out, "is `{value}`"),
            Self::Has(words) => write!(out, "has \"{words}\" in it"),
            Self::AtLeast(least) => write!(out, "is at least {least}"),
        }
    }
}

/// Whether a value is what a pattern says: the same without regard to case, or with a `*` its beginning.
fn same(pattern: &str, value: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => value.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
        None => pattern.eq_ignore_ascii_case(value),
    }
}

/// The number that a text is: `0.95`, `98%` as 0.98, `4/4` as 1.
#[must_use]
pub fn amount(text: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let text = text.trim();
    if let Some(share) = text.strip_suffix('%') {
        return number(share).map(|share| share / 100.0);
    }
    match text.split_once('/') {
        Some((part, whole)) => Some(number(part)? / number(whole).filter(|whole| *whole > 0.0)?),
        None => number(text),
    }
}

/// What a rule looks at.
#[derive(Debug, Clone, PartialEq)]
pub enum Sign {
    /// A structured code, type or status name, compared without regard to case; a `*` at the end stands for any
    /// rest.
    Code(Cow<'static, str>),
    /// The same together with words inside the message, in lower case: for a code that says too little.
    CodeAnd(Cow<'static, str>, Cow<'static, str>),
    /// Words inside the error's message, in lower case; asked only where there is no structured code.
    Phrase(Cow<'static, str>),
    /// Words inside the error's message, in lower case, whatever else it says: for sentences of one service.
    Sentence(Cow<'static, str>),
    /// A header (lower case name) with such a value.
    Header(Cow<'static, str>, Test),
    /// A value inside the JSON of the answer or of the event, such as `base_resp.status_code`.
    Path(Cow<'static, str>, Test),
    /// Several that hold together; none at all means that the status says enough.
    All(Vec<Self>),
}

/// How precise a sign is; the more precise is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Header,
    Path,
    Sentence,
    Code,
    Phrase,
}

impl Sign {
    const fn step(&self) -> Step {
        match self {
            Self::Header(..) | Self::All(_) => Step::Header,
            Self::Path(..) => Step::Path,
            Self::Sentence(_) => Step::Sentence,
            Self::Code(_) | Self::CodeAnd(..) => Step::Code,
            Self::Phrase(_) => Step::Phrase,
        }
    }

    /// Whether the sign is a structured one, rather than words or a status that an edge may have made up.
    #[must_use]
    pub fn is_code(&self) -> bool {
        match self {
            Self::Code(_) | Self::CodeAnd(..) | Self::Header(..) | Self::Path(..) => true,
            Self::Phrase(_) | Self::Sentence(_) => false,
            Self::All(signs) => signs.iter().any(Self::is_code),
        }
    }

    /// Whether the sign is in a place that the rule itself names, so that it may be looked for in an answer that
    /// has no shape of an error.
    fn names_its_place(&self) -> bool {
        match self {
            Self::Header(..) | Self::Path(..) => true,
            Self::Code(_) | Self::CodeAnd(..) | Self::Phrase(_) | Self::Sentence(_) => false,
            Self::All(signs) => !signs.is_empty() && signs.iter().all(Self::names_its_place),
        }
    }

    fn is_in(&self, signs: &Signs<'_>) -> bool {
        match self {
            Self::Header(name, test) => signs
                .headers
                .get_all(&**name)
                .iter()
                .any(|found| found.to_str().is_ok_and(|found| test.holds(found))),
            Self::Path(path, test) => texts_at(signs.body, path).iter().any(|found| test.holds(found)),
            Self::Code(pattern) => signs.codes().any(|code| same(pattern, code)),
            Self::CodeAnd(pattern, words) => {
                signs.codes().any(|code| same(pattern, code)) && signs.says(words)
            }
            Self::Sentence(words) => signs.says(words),
            Self::Phrase(words) => !signs.has_code() && signs.says(words),
            Self::All(all) => all.iter().all(|sign| sign.is_in(signs)),
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "code `{code}`"),
            Self::CodeAnd(code, words) => write!(out, "code `{code}` and \"{words}\" in the message"),
            Self::Phrase(words) | Self::Sentence(words) => write!(out, "\"{words}\" in the message"),
            Self::Header(name, test) => write!(out, "header `{name}` {test}"),
            Self::Path(path, test) => write!(out, "`{path}` {test}"),
            Self::All(signs) if signs.is_empty() => write!(out, "the status"),
            Self::All(signs) => {
                for (index, sign) in signs.iter().enumerate() {
                    write!(out, "{}{sign}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it looks at.
    pub sign: Sign,
    /// Where it holds.
    pub on: Statuses,
    /// What went wrong.
    pub fault: Fault,
    /// What that says about execution.
    pub says: Says,
    /// The shortest wait, where the answer itself names no longer one.
    pub floor: Duration,
    /// Where the row comes from.
    pub source: Cow<'static, str>,
}

impl Rule {
    const fn of(sign: Sign, on: Statuses, fault: Fault, says: Says, source: &'static str) -> Self {
        Self { sign, on, fault, says, floor: Duration::ZERO, source: Cow::Borrowed(source) }
    }

    /// A row about a code.
    pub(crate) const fn code(
        code: &'static str,
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self::of(Sign::Code(Cow::Borrowed(code)), on, fault, says, source)
    }

    /// A row about a code and words that say the rest.
    pub(crate) const fn code_and(
        [code, words]: [&'static str; 2],
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self::of(Sign::CodeAnd(Cow::Borrowed(code), Cow::Borrowed(words)), on, fault, says, source)
    }

    /// A row about `invalid_request_error`, which says little, and words that say the rest.
    pub(crate) const fn invalid(words: &'static str, fault: Fault, source: &'static str) -> Self {
        Self::code_and(["invalid_request_error", words], Statuses::RequestsFault, fault, Says::Final, source)
    }

    /// A row about words, in lower case, where there is no code.
    pub(crate) const fn phrase(
        words: &'static str,
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self::of(Sign::Phrase(Cow::Borrowed(words)), on, fault, says, source)
    }

    /// A row about a sentence of one service, in lower case.
    pub(crate) const fn sentence(
        words: &'static str,
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self::of(Sign::Sentence(Cow::Borrowed(words)), on, fault, says, source)
    }

    /// A row about a header of any answer.
    pub(crate) const fn header(
        [name, value]: [&'static str; 2],
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        let sign = Sign::Header(Cow::Borrowed(name), Test::Is(Cow::Borrowed(value)));
        Self::of(sign, on, fault, says, source)
    }

    /// A row about a value inside the JSON.
    pub(crate) const fn path(
        [path, value]: [&'static str; 2],
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        let sign = Sign::Path(Cow::Borrowed(path), Test::Is(Cow::Borrowed(value)));
        Self::of(sign, on, fault, says, source)
    }

    /// A row about words, in lower case, inside a value of the JSON.
    pub(crate) const fn path_has(
        [path, words]: [&'static str; 2],
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        let sign = Sign::Path(Cow::Borrowed(path), Test::Has(Cow::Borrowed(words)));
        Self::of(sign, on, fault, says, source)
    }

    /// Whether the row finds a failure in an answer that has no shape of one: a 2xx with a header, or with a value
    /// in its JSON, that the row names.
    pub(crate) fn finds_inside(&self, signs: &Signs<'_>) -> bool {
        self.sign.names_its_place() && self.on.hold(signs.status, true) && self.sign.is_in(signs)
    }
}

/// What rules are asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs<'a> {
    /// The answer's status; inside a 2xx answer the one that the error names, if any.
    pub(crate) status: Option<u16>,
    /// It is told inside a 2xx answer.
    pub(crate) inside: bool,
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// The body, or the event's data.
    pub(crate) body: &'a [u8],
    /// Its error object.
    pub(crate) fields: Option<&'a ErrorFields>,
}

impl<'a> Signs<'a> {
    /// The codes in the order reason (which narrows the code down), code, type, status name.
    fn codes(&self) -> impl Iterator<Item = &'a str> {
        let codes = self.fields.map_or([None; 4], |fields| {
            [
                fields.reason.as_deref(),
                fields.code.as_deref(),
                fields.kind.as_deref(),
                fields.status.as_deref(),
            ]
        });
        codes.into_iter().flatten()
    }

    fn has_code(&self) -> bool {
        self.codes().any(|code| code.parse::<u32>().is_err())
    }

    fn says(&self, words: &str) -> bool {
        let message = self.fields.and_then(|fields| fields.message.as_deref());
        message.is_some_and(|message| message.to_lowercase().contains(words))
    }
}

/// The first of the built-in rows that holds: headers; then values in their place; sentences; codes, from the most
/// precise on; words last, and only where there is nothing structured. At each step the tables in their order.
pub(crate) fn first<'r>(tables: &[&'r [Rule]], signs: &Signs<'_>) -> Option<&'r Rule> {
    let rows = |step: Step| {
        tables
            .iter()
            .flat_map(|table| table.iter())
            .filter(move |row| row.sign.step() == step && row.on.hold(signs.status, signs.inside))
    };
    let found = |step: Step| rows(step).find(|row| row.sign.is_in(signs));
    let by_code = || {
        signs.codes().find_map(|code| {
            rows(Step::Code).find(|row| match &row.sign {
                Sign::Code(pattern) => same(pattern, code),
                Sign::CodeAnd(pattern, words) => same(pattern, code) && signs.says(words),
                Sign::Phrase(_) | Sign::Sentence(_) | Sign::Header(..) | Sign::Path(..) | Sign::All(_) => {
                    false
                }
            })
        })
    };
    found(Step::Header)
        .or_else(|| found(Step::Path))
        .or_else(|| found(Step::Sentence))
        .or_else(by_code)
        .or_else(|| found(Step::Phrase))
}

/// The first of a user's rows that holds, in their own order.
pub(crate) fn first_of_users<'r>(rows: &'r [Arc<Rule>], signs: &Signs<'_>) -> Option<&'r Rule> {
    rows.iter().map(|row| &**row).find(|row| row.on.hold(signs.status, signs.inside) && row.sign.is_in(signs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        for (text, is) in [
            ("0.95", Some(0.95)),
            ("98%", Some(0.98)),
            (" 98 % ", Some(0.98)),
            ("4/4", Some(1.0)),
            ("1 / 4", Some(0.25)),
            ("-3", Some(-3.0)),
            ("4/0", None),
            ("NaN", None),
            ("inf%", None),
            ("", None),
            ("%", None),
            ("full", None),
        ] {
            assert_eq!(amount(text), is, "{text}");
        }
    }

    #[test]
    fn values_are_tested_as_they_say() {
        let is = |pattern: &'static str| Test::Is(Cow::Borrowed(pattern));
        assert!(is("Overloaded").holds(" overloaded "));
        assert!(!is("overloaded").holds("overloaded now"));
        assert!(is("ThrottlingException*").holds("throttlingException:http://internal/"));
        assert!(is("*").holds(""));
        assert!(!is("\u{e9}*").holds("e"), "no cut inside a character");
        assert!(Test::Has(Cow::Borrowed("per day")).holds("Requests PER DAY"));
        assert!(Test::AtLeast(0.95).holds("98%") && !Test::AtLeast(0.95).holds("94%"));
    }

    #[test]
    fn a_users_choice_of_statuses() {
        let chosen =
            |among: &[RangeInclusive<u16>], inside| Statuses::Chosen { among: among.to_vec(), inside };
        assert!(chosen(&[], false).hold(Some(400), false));
        assert!(!chosen(&[], false).hold(None, true));
        assert!(!chosen(&[], false).hold(Some(503), true), "a status that an error names is inside as well");
        assert!(chosen(&[], true).hold(None, true));
        assert!(chosen(&[500..=599], true).hold(Some(503), true));
        assert!(!chosen(&[500..=599], true).hold(None, true));
        assert!(!chosen(&[500..=599, 429..=429], false).hold(Some(430), false));
    }
}
