//! Takes known secrets out of what others say before anybody gets to see it.

use std::borrow::Cow;

use relay_core::config::Secret;

/// What stands where a secret stood.
const GONE: &str = "…";
/// One that was escaped more often is not found; nobody has reason to.
const ESCAPED_AT_MOST: usize = 3;

/// Texts that are not to be repeated.
#[derive(Default)]
pub(super) struct Blank(Vec<Secret>);

impl Blank {
    /// Nor is this one.
    pub(super) fn also(&mut self, secret: &str) {
        if !secret.is_empty() {
            self.0.push(Secret::new(secret.to_ascii_lowercase()));
        }
    }

    /// The text without them, in letters of either case, and as JSON or a form escapes them: where one shows only once that
    /// is undone, it is undone for all of the text.
    pub(super) fn of(&self, text: &str) -> String {
        let mut found = self.without(text);
        let mut plain = Cow::Borrowed(text);
        for _ in 0..ESCAPED_AT_MOST {
            let next = unescaped(&plain);
            if next == *plain {
                break;
            }
            plain = Cow::Owned(next);
            if self.holds(&plain) {
                found = self.without(&plain);
            }
        }
        found
    }

    fn holds(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.0.iter().any(|secret| text.contains(secret.expose()))
    }

    fn without(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            // It is as long as the text itself, byte for byte.
            let lower = text.to_ascii_lowercase();
            let mut found = String::with_capacity(text.len());
            let mut done = 0;
            for (at, secret) in lower.match_indices(secret.expose()) {
                found.push_str(&text[done..at]);
                found.push_str(GONE);
                done = at + secret.len();
            }
            found.push_str(&text[done..]);
            text = found;
        }
        text
    }
}

/// `%2B`, `\u002b` and `\/` as what they stand for, once.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (one, taken) = match (byte, bytes.get(at + 1)) {
            (b'%', Some(_)) => (of_hex(bytes, at + 1, 2), 3),
            (b'\\', Some(b'u')) => (of_hex(bytes, at + 2, 4), 6),
            (b'\\', Some(sign @ (b'/' | b'\\' | b'"'))) => (Some(*sign), 2),
            (_, _) => (None, 1),
        };
        plain.push(one.unwrap_or(byte));
        at += if one.is_some() { taken } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// A byte in so many digits.
fn of_hex(bytes: &[u8], at: usize, digits: usize) -> Option<u8> {
    let digits = bytes.get(at..at + digits)?;
    let value =
        digits.iter().try_fold(0_u32, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?));
    value.and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blanked(text: &str) -> String {
        let mut blank = Blank::default();
        for secret in ["", "a+b/c", "Secret", "x\"y"] {
            blank.also(secret);
        }
        blank.of(text)
    }

    #[test]
    fn secrets_are_taken_out_however_they_are_written() {
        for (text, expected) in [
            ("nothing of it", "nothing of it"),
            ("100% \\ über", "100% \\ über"),
            ("a+b/c", "…"),
            ("is <a+b/ca+b/c>, SECRET", "is <……>, …"),
            ("a%2Bb%2fc", "…"),
            ("a%252Bb%252Fc", "…"),
            ("a+b\\/c or a\\u002Bb/c", "… or …"),
            ("ü x\\\"y ü", "ü … ü"),
        ] {
            assert_eq!(blanked(text), expected);
        }
    }
}
