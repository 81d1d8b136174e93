//! One failed send, as a value: the fault, the evidence, and what the upstream said about coming back.

use crate::evidence::Evidence;
use crate::fault::Fault;
use crate::redact::{redact, starts_like_a_secret};
use crate::retry_after::Advice;
use crate::usage::Usage;
use std::time::Duration;

/// Where in the exchange the failure was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// By the status of an answer.
    ByStatus,
    /// By an error object in a 2xx JSON body.
    InBody,
    /// By an event of a 2xx stream.
    InStream,
    /// By the connection: nothing, or not all, of an answer came.
    ByTransport,
}

/// What stands in the way of a send, and is for a person to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bar {
    /// A certificate was not accepted.
    Certificate,
    /// The proxy on the way does not let us through.
    Proxy,
    /// What the service sends cannot be passed on, and would come again: too long for us, or broken in its form.
    Unfit,
}

/// One failed send.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What went wrong.
    pub fault: Fault,
    /// What it says about execution; `None`: final, it goes back to the client as it is.
    pub evidence: Option<Evidence>,
    /// When to come back.
    pub advice: Advice,
    /// Where it was told.
    pub told: Told,
    /// The answer's status.
    pub status: Option<u16>,
    /// Whether a structured code named the fault, rather than the status alone.
    pub by_code: bool,
    /// A header says that nothing is left in the bucket of a rate limit.
    pub bucket_empty: bool,
    /// The structured code, as plain and short as a label.
    pub code: Option<Box<str>>,
    /// The upstream's own words. May hold anything: redact before it is shown, never put it into an event.
    pub message: Option<Box<str>>,
    /// What stands in the way where another try is worth nothing, whatever is known of this one.
    pub barred: Option<Bar>,
    /// Where nothing was answered: the last thing that an earlier send of the same call was answered.
    pub earlier: Option<Box<Self>>,
    /// Which rule found it, where an answer told of it; words of ours and of the settings.
    pub rule: Option<Box<str>>,
    /// The tokens that it says were spent.
    pub usage: Option<Usage>,
    /// A quota is spent: in how long there is one again, where that is named; see [`crate::quota`].
    pub renews: Option<Duration>,
}

impl Failure {
    /// A failure that the connection tells.
    #[must_use]
    pub const fn of_transport(fault: Fault, evidence: Evidence) -> Self {
        Self {
            fault,
            evidence: Some(evidence),
            advice: Advice::Silent,
            told: Told::ByTransport,
            status: None,
            by_code: false,
            bucket_empty: false,
            code: None,
            message: None,
            barred: None,
            earlier: None,
            rule: None,
            usage: None,
            renews: None,
        }
    }

    /// The same, with words for a person: what the operating system or the TLS library said.
    #[must_use]
    pub fn saying(mut self, words: impl Into<Box<str>>) -> Self {
        self.message = Some(words.into());
        self
    }
}

/// The longest label.
const LABEL: usize = 64;

/// A structured code as a label; `None` where it is none, but a sentence or something else in a code's place.
#[must_use]
pub fn code(text: &str) -> Option<Box<str>> {
    let text = text.trim();
    let is_code = (1..=LABEL).contains(&text.len()) && !text.contains(char::is_whitespace);
    is_code.then(|| label(&redact(text)))
}

/// A label that came from outside, cut to what a log line may hold: 64 characters of
/// letters, digits and `_ - . : /`, and no key that was put where a name belongs.
#[must_use]
pub fn label(text: &str) -> Box<str> {
    // A name may be as long as a request. What comes later than this is in no label.
    let text = &text[..text.floor_char_boundary(1024)];
    // A model that lies in somebody's home is called by its file: the rest of its path says who that is.
    let is_at_home = ["/home/", "/Users/", "/root/"].iter().any(|home| text.starts_with(home));
    let text = if is_at_home { text.rsplit('/').next().unwrap_or_default() } else { text };
    let plain: String =
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "_-.:/".contains(*c)).take(LABEL).collect();
    // Looked at before and after: what is left out may be all that hides one.
    if starts_like_a_secret(text) || starts_like_a_secret(&plain) {
        return "redacted".into();
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::{code, label};

    #[test]
    fn a_label_is_short_and_plain() {
        assert_eq!(&*label("gpt-5.6-sol"), "gpt-5.6-sol");
        assert_eq!(&*label("evil\nline \u{1b}[31m Bearer"), "evilline31mBearer");
        assert_eq!(label(&"x".repeat(500)).len(), 64);
        assert_eq!(&*label(&"\u{20ac}".repeat(1 << 20)), "");
        assert_eq!(&*label("Bearer sk-proj-abcdef12345"), "redacted");
        for hidden in ["s\u{1}k-proj-abcdef12345", "sk\u{200b}-proj-abcdef12345"] {
            assert_eq!(&*label(hidden), "redacted", "{hidden:?}");
        }
        assert_eq!(&*label("/home/jane/models/llama.gguf"), "llama.gguf");
        assert_eq!(&*label("/v1/responses"), "/v1/responses");
        assert_eq!(
            &*label("Meta-Llama-3.1-405B-Instruct-Turbo-FP8"),
            "Meta-Llama-3.1-405B-Instruct-Turbo-FP8"
        );
    }

    #[test]
    fn a_code_is_one_short_word() {
        assert_eq!(code("server_is_overloaded").as_deref(), Some("server_is_overloaded"));
        assert_eq!(code(" 503\n").as_deref(), Some("503"));
        assert_eq!(code(&"x".repeat(64)).as_deref(), Some("x".repeat(64).as_str()));
        for text in ["", " ", "the words of my prompt", "one\ttab", "two\nlines", &"x".repeat(65)] {
            assert_eq!(code(text), None, "{text:?}");
        }
    }
}
