//! One failed send, as a value: the fault, the evidence, and what the upstream said about coming back.

use std::borrow::Cow;

use crate::evidence::Evidence;
use crate::fault::Fault;
use crate::plain::is_unfit;
use crate::redact::{is_no_id, is_no_name, names_a_secret, unescaped, without_path_at_home};
use crate::retry_after::Advice;
use crate::usage::Usage;
use std::time::Duration;

/// The code of a failure of the relay's own: it had no credential for the request, which therefore never left.
pub const CREDENTIAL: &str = "credential";

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
    /// The relay's own credential for the service cannot be had.
    Credential,
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
    /// The credential that it was sent with was refused, and the relay, whose own that was, has a newer one.
    pub renewed: bool,
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
            renewed: false,
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

/// The longest label, in letters.
const LABEL: usize = 64;
/// What stands in a label beside letters and digits.
const SIGNS: &str = "_-.:/@[]";
/// What is shown in place of a secret.
const REDACTED: &str = "redacted";

/// A structured code as a label; `None` where it is none, but a sentence or something else in a code's place.
#[must_use]
pub fn code(text: &str) -> Option<Box<str>> {
    let text = text.trim();
    let is_code = (1..=LABEL).contains(&text.len()) && !text.contains(char::is_whitespace);
    is_code.then(|| label(text))
}

/// A name that came from outside, cut to what a log line may hold: 64 letters and digits of any script (256 bytes at
/// the most) and `_ - . : / @ [ ]`, and no key or address of a person that was put where a name belongs.
#[must_use]
pub fn label(text: &str) -> Box<str> {
    labelled(text, is_no_name)
}

/// The same for the id of a request, which may look more random than a name.
#[must_use]
pub fn id(text: &str) -> Box<str> {
    labelled(text, is_no_id)
}

fn labelled(text: &str, is_random: fn(&str) -> bool) -> Box<str> {
    // A name may be as long as a request. What comes later than this is in no label.
    let text = &text[..text.floor_char_boundary(1024)];
    // What nobody sees may be all that hides a secret.
    let seen: Cow<'_, str> = if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        text.into()
    } else {
        text.chars().filter(|c| c.is_whitespace() || !is_unfit(*c)).collect()
    };
    // A model that lies in somebody's home is called by its file.
    let seen = without_path_at_home(&seen);
    let is_shown = |c: &char| c.is_alphanumeric() && !is_unfit(*c) || SIGNS.contains(*c);
    let plain: Cow<'_, str> = if seen.chars().all(|c| is_shown(&c)) {
        (&*seen).into()
    } else {
        seen.chars().filter(is_shown).collect()
    };
    let unescaped = unescaped(&seen);
    let is_secret = |it: &str| names_a_secret(it, is_random);
    if is_secret(&seen) || plain != seen && is_secret(&plain) || unescaped != seen && is_secret(&unescaped) {
        return REDACTED.into();
    }
    let end = plain.char_indices().nth(LABEL).map_or(plain.len(), |(end, _)| end);
    plain[..end].into()
}

#[cfg(test)]
mod tests {
    use super::{REDACTED, code, id, label};

    #[test]
    fn a_label_is_short_and_plain() {
        assert_eq!(&*label("gpt-5.6-sol"), "gpt-5.6-sol");
        assert_eq!(&*label("evil\nline \u{1b}[31m Bearer"), "evilline[31mBearer");
        assert_eq!(label(&"x".repeat(30)).len(), 30);
        assert_eq!(label(&"x-".repeat(500)).len(), 64);
        assert_eq!(label(&"容".repeat(500)).len(), 192);
        assert_eq!(&*label(&"\u{20ac}".repeat(1 << 20)), "");
        assert_eq!(&*label("/home/jane/models/llama.gguf"), "llama.gguf");
        assert_eq!(&*label(r"C:\Users\jane\models\llama.gguf"), "llama.gguf");
        assert_eq!(&*label("file:///Users/jane/llama.gguf"), "llama.gguf");
        assert_eq!(&*label("/root/llama.gguf"), "llama.gguf");
        assert_eq!(&*label("/home/jane"), "");
    }

    #[test]
    fn a_label_keeps_the_letters_of_every_script() {
        for name in [
            "/v1/responses",
            "Meta-Llama-3.1-405B-Instruct-Turbo-FP8",
            "ProvisionedThroughputExceededException",
            "claude-sonnet-4-5@20250929",
            "workers-ai/@cf/meta/llama-3.1-8b",
            "claude-opus-4-1[1m]",
            "pplx-70b-online",
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-v1:0",
            "模型-容量-5",
            "通义千问",
            "модель-ё",
            "モデル-٥",
        ] {
            let plain: String = name.chars().take(64).collect();
            assert_eq!(*label(name), *plain);
            assert_eq!(label(&label(name)), label(name));
        }
        for hidden in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{200b}', '\u{9b}', '\u{3164}', '\u{1f600}', ' ']
        {
            assert_eq!(&*label(&format!("模型{hidden}-5")), "模型-5", "{hidden:?}");
        }
    }

    #[test]
    fn no_secret_and_no_person_is_a_label() {
        let random = "qzjxkvbwpfhgmtydnclsraeiouqzjxkvbwpfhgmt";
        let behind = |start: &str| format!("{start}{random}");
        let starts =
            ["csk-", "nvapi-", "pplx-", "r8_", "npm_", "AQ.", "xapp-", "fw_", "tgp_v1_", "sess-", "Bearer "];
        let secrets = starts.map(behind).into_iter().chain(
            [
                random,
                "Bearer sk-proj-abcdef12345",
                "s\u{1}k-proj-abcdef12345",
                "sk\u{200b}-proj-abcdef12345",
                "sk\u{202e}-proj-abcdef12345",
                "sk%2Dproj%2Dabcdef12345",
                "Bearer x",
                "Bear\u{200b}er\u{a0}x",
                "basic x",
                "api_key=zzzzzzzz",
                "jane.doe@example.com",
                "jane.doe%40example.com",
                "jane@\u{200b}example.com",
                "张三@例子.公司",
                "org/jane@mail.example.com/x",
            ]
            .map(str::to_owned),
        );
        for secret in secrets {
            for name in [secret.clone(), format!("x/{secret}"), format!("{secret}:y")] {
                assert_eq!(&*label(&name), REDACTED, "{name:?}");
                assert_eq!(&*id(&name), REDACTED, "{name:?}");
                assert_eq!(code(&name).as_deref().unwrap_or(REDACTED), REDACTED, "{name:?}");
            }
        }
        let hexadecimal = "0123456789abcdef0123456789abcdef";
        assert_eq!(&*label(hexadecimal), REDACTED);
        for plain in [hexadecimal, "req_011CSHoEeqs5C35K2UUqR7Fy", "8f1b-AMS", &format!("req_{hexadecimal}")]
        {
            assert_eq!(&*id(plain), plain);
        }
    }

    #[test]
    fn a_code_is_one_short_word() {
        assert_eq!(code("server_is_overloaded").as_deref(), Some("server_is_overloaded"));
        assert_eq!(code(" 503\n").as_deref(), Some("503"));
        assert_eq!(code(&"x-".repeat(32)).as_deref(), Some("x-".repeat(32).as_str()));
        for text in ["", " ", "the words of my prompt", "one\ttab", "two\nlines", &"x".repeat(65)] {
            assert_eq!(code(text), None, "{text:?}");
        }
    }
}
