//! What the terminal's title says while a call of the client is held: what it waits for, for how long, and when it is
//! tried next. The client has the screen; the title is the one place beside it where the person looks.
//!
//! The title that was there is put on the terminal's stack (`CSI 22;2t`) and comes back at the end (`CSI 23;2t`).
//! Everything is written whole, in one write, so that it never stands in the middle of what the client writes. For the
//! same reason it is written about once a second and not more often, although Claude Code writes a title of its own as
//! often while it works (outside tmux, as of 2.1.332), so that the two take turns.
//!
//! Codex writes a new title ten times a second while it works, and a last one when it is done. So it keeps its title: ours
//! would not be seen, and what comes back from the stack after that last one would say for good that it still works.

use std::io::Write as _;
use std::time::Duration;

use relay_core::Lang;
use relay_core::plain::is_unfit;

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

/// After so many looks at the session, words that stay the same are written once more: the client may have written its own.
const AGAIN: u32 = 4;

/// The title of the terminal that we were started from.
#[derive(Debug, Default)]
pub(super) struct Title {
    shown: Option<String>,
    /// The looks since it was written.
    looks: u32,
}

impl Title {
    /// Says how the session is, where that is something else than before.
    pub(super) async fn show(&mut self, lang: Lang, page: Option<&Page>) {
        if let Some(sequence) = self.next(page.and_then(|page| words(lang, page))) {
            write(sequence).await;
        }
    }

    /// What is to be written so that these words are shown, or none.
    fn next(&mut self, words: Option<String>) -> Option<String> {
        self.looks += 1;
        if words == self.shown && (words.is_none() || self.looks < AGAIN) {
            return None;
        }
        self.looks = 0;
        let sequence = sequence(self.shown.is_some(), words.as_deref());
        self.shown = words;
        Some(sequence)
    }

    /// Whether words of ours are shown.
    pub(super) const fn is_shown(&self) -> bool {
        self.shown.is_some()
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
            let plain: String = words.chars().filter(|letter| !is_unfit(*letter)).take(LONGEST).collect();
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
    fn what_stays_the_same_is_written_again_and_what_is_gone_once() {
        let mut title = Title::default();
        let mut next = |words: Option<&str>| title.next(words.map(str::to_owned));
        assert_eq!(
            (next(None), next(None), next(None), next(None), next(None)),
            (None, None, None, None, None)
        );
        assert_eq!(next(Some("a")), Some(sequence(false, Some("a"))));
        assert_eq!(next(Some("b")), Some(sequence(true, Some("b"))));
        assert_eq!((next(Some("b")), next(Some("b")), next(Some("b"))), (None, None, None));
        assert_eq!(next(Some("b")), Some(sequence(true, Some("b"))));
        assert_eq!((next(None), next(None)), (Some(POP.to_owned()), None));
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
