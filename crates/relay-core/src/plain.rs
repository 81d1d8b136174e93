//! What a file, a service or a client said, fit for a terminal: nothing in it moves the cursor, changes colours, or
//! turns the order of what is read. All text from elsewhere passes through here before a person sees it. Not what takes
//! secrets out (that is [`crate::redact`]).

use std::borrow::Cow;
use std::fmt::Write as _;

/// What stands in the place of a sign that is not shown.
const INSTEAD: char = '?';

/// Whether a sign does more, or less, than show itself: a control sign of either set, or one that nobody sees, of which
/// some turn the direction of writing. The joiners of emoji and of Persian stay.
#[must_use]
pub const fn is_unfit(sign: char) -> bool {
    matches!(sign,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
        | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text of several lines.
#[must_use]
pub fn text(words: &str) -> Cow<'_, str> {
    let mut signs = words.char_indices();
    let ends_a_line = |at: usize| words[at..].starts_with("\r\n");
    let is_out = |at: usize, sign: char| is_unfit(sign) && !(matches!(sign, '\n' | '\t') || ends_a_line(at));
    if !signs.any(|(at, sign)| is_out(at, sign)) {
        return Cow::Borrowed(words);
    }
    words.char_indices().map(|(at, sign)| if is_out(at, sign) { INSTEAD } else { sign }).collect()
}

/// A name, or a text that has to stay on its line.
#[must_use]
pub fn line(words: &str) -> Cow<'_, str> {
    if words.contains(is_unfit) { Cow::Owned(words.replace(is_unfit, "?")) } else { Cow::Borrowed(words) }
}

/// Written JSON, with an escape for each such sign: it says the same, and what is a sign of its own for programs is none
/// for the terminal that it may be printed on.
#[must_use]
pub fn json(written: &str) -> Cow<'_, str> {
    // Outside of its texts, JSON has these alone.
    let is_out = |sign: char| is_unfit(sign) && !matches!(sign, '\n' | '\r' | '\t');
    if !written.contains(is_out) {
        return Cow::Borrowed(written);
    }
    let mut out = String::with_capacity(written.len() + 16);
    for sign in written.chars() {
        if is_out(sign) {
            for unit in sign.encode_utf16(&mut [0; 2]) {
                // Writing to a text cannot fail.
                let _always = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(sign);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{json, line, text};

    /// Every sign of Unicode's `Cc` and `Bidi_Control`, and more.
    const UNFIT: [char; 22] = [
        '\0',
        '\x07',
        '\x08',
        '\x1b',
        '\x7f',
        '\u{80}',
        '\u{85}',
        '\u{9b}',
        '\u{9f}',
        '\u{ad}',
        '\u{61c}',
        '\u{200b}',
        '\u{200e}',
        '\u{200f}',
        '\u{202a}',
        '\u{202e}',
        '\u{2028}',
        '\u{2066}',
        '\u{2069}',
        '\u{feff}',
        '\u{e0041}',
        '\u{e01ef}',
    ];

    #[test]
    fn what_a_terminal_would_obey_is_not_shown() {
        for sign in UNFIT {
            let words = format!("a{sign}b");
            assert_eq!((&*text(&words), &*line(&words)), ("a?b", "a?b"), "{sign:?}");
        }
        assert_eq!(text("one\r\n\ttwo\rthree\n"), "one\r\n\ttwo?three\n");
        assert_eq!(line("one\ttwo\n"), "one?two?");
        assert!((0..=0x10_ffff).filter_map(char::from_u32).filter(|it| it.is_control()).all(super::is_unfit));
    }

    #[test]
    fn what_people_write_stays() {
        for words in ["模型-容量-5", "Übergrößenträger", "می‌خواهم", "👨‍👩‍👧 ❤️", "naïve — “quoted” \u{a0}…", ""]
        {
            assert_eq!((&*text(words), &*line(words), &*json(words)), (words, words, words));
        }
    }

    #[test]
    fn json_says_the_same_in_signs_that_are_fit() {
        let all: String = UNFIT.iter().chain(&['"', '\\', '模']).collect();
        let value = serde_json::json!({ all.clone(): [all] });
        for written in [value.to_string(), format!("{value:#}")] {
            let fit = json(&written);
            assert_eq!(text(&fit), fit);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&fit).unwrap(), value);
        }
    }
}
