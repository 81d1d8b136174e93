//! A rule is data: what an answer looks like -> what went wrong and what that says about execution.
//! Built-in rows are const tables; a user's rows have the same type.

use std::borrow::Cow;

use http::HeaderMap;

use crate::evidence::Says;
use crate::fault::Fault;
use crate::json::ErrorFields;

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
}

impl Statuses {
    const fn hold(&self, status: Option<u16>) -> bool {
        match (self, status) {
            (Self::Any, _) => true,
            (Self::Unsettled, Some(status)) => status != 401 && status != 413,
            (Self::MayHeal, Some(status)) => status == 429 || status >= 500,
            (Self::RequestsFault, Some(status)) => status >= 400 && status < 429,
            (Self::Only(one), Some(status)) => *one == status,
            (Self::Inside, Some(_)) | (Self::Only(_), None) => false,
            (Self::Unsettled | Self::MayHeal | Self::RequestsFault | Self::Inside, None) => true,
        }
    }
}

/// What a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// A structured code, type or status name, compared without regard to case.
    Code(Cow<'static, str>),
    /// The same together with words inside the message, in lower case: for a code that says too little.
    CodeAnd(Cow<'static, str>, Cow<'static, str>),
    /// Words inside the error's message, in lower case; asked only where there is no structured code.
    Phrase(Cow<'static, str>),
    /// A header (lower case name) with this value.
    Header(Cow<'static, str>, Cow<'static, str>),
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it looks at.
    pub sign: Sign,
    /// Where it holds.
    pub on: Statuses,
    /// What went wrong.
    pub fault: Fault,
    /// What that says about execution.
    pub says: Says,
    /// Where the row comes from.
    pub source: Cow<'static, str>,
}

impl Rule {
    /// A row about a code.
    pub(crate) const fn code(
        code: &'static str,
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self { sign: Sign::Code(Cow::Borrowed(code)), on, fault, says, source: Cow::Borrowed(source) }
    }

    /// A row about `invalid_request_error`, which says little, and words that say the rest.
    pub(crate) const fn invalid(words: &'static str, fault: Fault, source: &'static str) -> Self {
        Self {
            sign: Sign::CodeAnd(Cow::Borrowed("invalid_request_error"), Cow::Borrowed(words)),
            on: Statuses::RequestsFault,
            fault,
            says: Says::Final,
            source: Cow::Borrowed(source),
        }
    }

    /// A row about words, in lower case.
    pub(crate) const fn phrase(
        words: &'static str,
        on: Statuses,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self { sign: Sign::Phrase(Cow::Borrowed(words)), on, fault, says, source: Cow::Borrowed(source) }
    }

    /// A row about a header of a 429.
    pub(crate) const fn header(
        name: &'static str,
        value: &'static str,
        fault: Fault,
        says: Says,
        source: &'static str,
    ) -> Self {
        Self {
            sign: Sign::Header(Cow::Borrowed(name), Cow::Borrowed(value)),
            on: Statuses::Only(429),
            fault,
            says,
            source: Cow::Borrowed(source),
        }
    }
}

/// What rules are asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs<'a> {
    /// The answer's status; inside a 2xx answer the one that the error names, if any.
    pub(crate) status: Option<u16>,
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Its error object.
    pub(crate) fields: Option<&'a ErrorFields>,
}

/// The first row that holds: headers; then codes in the order reason (which narrows the code down), code, type,
/// status name; words last, and only where there is nothing structured. The dialect's own rows come before the
/// shared ones at each step.
pub(crate) fn first<'r>(tables: &[&'r [Rule]], signs: &Signs<'_>) -> Option<&'r Rule> {
    let rows = || tables.iter().flat_map(|table| table.iter()).filter(|row| row.on.hold(signs.status));
    let by_header = rows().find(|row| match &row.sign {
        Sign::Header(name, value) => signs
            .headers
            .get_all(&**name)
            .iter()
            .any(|found| found.to_str().is_ok_and(|found| found.trim().eq_ignore_ascii_case(value))),
        Sign::Code(_) | Sign::CodeAnd(..) | Sign::Phrase(_) => false,
    });
    let codes = signs.fields.map_or([None; 4], |fields| {
        [fields.reason.as_deref(), fields.code.as_deref(), fields.kind.as_deref(), fields.status.as_deref()]
    });
    let message = signs.fields.and_then(|fields| fields.message.as_deref()).unwrap_or("").to_lowercase();
    let by_code = || {
        codes.iter().flatten().find_map(|code| {
            rows().find(|row| match &row.sign {
                Sign::Code(known) => known.eq_ignore_ascii_case(code),
                Sign::CodeAnd(known, words) => known.eq_ignore_ascii_case(code) && message.contains(&**words),
                Sign::Phrase(_) | Sign::Header(..) => false,
            })
        })
    };
    let by_words = || {
        let structured = codes.iter().flatten().any(|code| code.parse::<u32>().is_err());
        if structured {
            return None;
        }
        rows().find(|row| match &row.sign {
            Sign::Phrase(words) => message.contains(&**words),
            Sign::Code(_) | Sign::CodeAnd(..) | Sign::Header(..) => false,
        })
    };
    by_header.or_else(by_code).or_else(by_words)
}
