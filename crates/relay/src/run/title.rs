//! What the terminal's title says while a call of the client is held: what it waits for, for how long, and when it is
//! tried next. The client has the screen; the title is the one place beside it where the person looks.
//!
//! The title that was there is put on the terminal's stack (`CSI 22;2t`) and comes back at the end (`CSI 23;2t`).
//! Everything is written whole, in one write, so that it never stands in the middle of what the client writes.

use std::io::Write as _;
use std::time::Duration;

use relay_core::Lang;

use crate::held::line_and_more;
use crate::sessions::said::Page;
use crate::terminal::controlling;

/// How long a call is held before the title says so.
const AFTER: f64 = 10.0;
/// The longest title: a tab shows less.
const LONGEST: usize = 100;
/// How long the terminal may take for it: one that stands still is not waited for.
const WITHIN: Duration = Duration::from_millis(500);

const PUSH: &str = "\x1b[22;2t";
const POP: &str = "\x1b[23;2t";

/// The title of the terminal that we were started from.
#[derive(Debug, Default)]
pub(super) struct Title {
    shown: Option<String>,
}

impl Title {
    /// Says how the session is, where that is something else than before.
    pub(super) async fn show(&mut self, lang: Lang, page: Option<&Page>) {
        let words = page.and_then(|page| words(lang, page));
        if words == self.shown {
            return;
        }
        write(sequence(self.shown.is_some(), words.as_deref())).await;
        self.shown = words;
    }

    /// Puts the title back that was there.
    pub(super) async fn restore(mut self) {
        if self.shown.take().is_some() {
            write(sequence(true, None)).await;
        }
    }
}

/// What makes a terminal show these words, or what it showed before.
fn sequence(is_ours: bool, words: Option<&str>) -> String {
    match words {
        Some(words) => {
            let push = if is_ours { "" } else { PUSH };
            let plain: String = words.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
            format!("{push}\x1b]2;{plain}\x07")
        }
        None => POP.to_owned(),
    }
}

async fn write(sequence: String) {
    let writing = tokio::task::spawn_blocking(move || {
        // A terminal that is gone has no title.
        let _unseen = controlling().map(|mut terminal| terminal.write_all(sequence.as_bytes()));
    });
    // Late or not, the client goes on.
    let _in_time = tokio::time::timeout(WITHIN, writing).await;
}

/// The title for a session; `None` where no call is held for long.
fn words(lang: Lang, page: &Page) -> Option<String> {
    let longest = page.held.iter().find(|held| held.held_s >= AFTER)?;
    Some(line_and_more(lang, longest, page.held.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::said::Held;

    #[test]
    fn a_call_that_is_held_for_long_is_in_the_title() {
        let held = |held_s| Held {
            call: "c1".to_owned(),
            model: Some("gpt-x".to_owned()),
            upstream: "openai".to_owned(),
            fault: None,
            held_s,
            next_try_in_s: Some(0.2),
            sending: false,
            noticed: false,
        };
        let words = |held| words(Lang::English, &Page { held, ..Page::default() });
        assert_eq!(words(vec![]), None);
        assert_eq!(words(vec![held(9.9)]), None);
        let two = words(vec![held(12.0), held(11.0)]);
        assert_eq!(two.as_deref(), Some("gpt-x is busy, held 12 s, next try in 0 s (+1)"));
    }

    #[test]
    fn it_is_one_write_that_nothing_can_break_out_of() {
        assert_eq!(sequence(false, Some("a")), "\x1b[22;2t\x1b]2;a\x07");
        assert_eq!(sequence(true, Some("b")), "\x1b]2;b\x07");
        assert_eq!(sequence(true, None), "\x1b[23;2t");
        assert_eq!(sequence(true, Some("a\x07\x1b]0;x\n")), "\x1b]2;a]0;x\x07");
        assert_eq!(sequence(true, Some(&"ä".repeat(500))).chars().count(), LONGEST + 5);
    }
}
