//! What the terminal's title says while a call of the client is held: what it waits for, for how long, and when it is
//! tried next. The client has the screen; the title is the one place beside it where the person looks.
//!
//! The title that was there is put on the terminal's stack (`CSI 22;2t`) and comes back at the end (`CSI 23;2t`).
//! Everything is written whole, in one write, so that it never stands in the middle of what the client writes.

use std::io::Write as _;
use std::time::Duration;

use relay_core::{Fault, Lang};

use crate::sessions::said::{Held, Page};
use crate::terminal::controlling;
use crate::words::run;

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
    let what = what(lang, longest);
    let held = span(lang, longest.held_s);
    let words = match (longest.sending, longest.next_try_in_s) {
        (true, _) => run::held_trying(lang, &what, &held),
        (false, Some(next)) => run::held_next(lang, &what, &held, &span(lang, next)),
        (false, None) => run::held_in_line(lang, &what, &held),
    };
    match page.held.len() - 1 {
        0 => Some(words),
        more => Some(format!("{words} (+{more})")),
    }
}

/// What is the matter: `gpt-x at capacity`.
pub(super) fn what(lang: Lang, held: &Held) -> String {
    let model = held.model.as_deref().unwrap_or(&held.upstream);
    let fault = held.fault.as_deref();
    match Fault::ALL.iter().find(|known| Some(known.name()) == fault) {
        Some(Fault::AtCapacity) => run::is_at_capacity(lang, model),
        Some(Fault::Overloaded) => run::is_overloaded(lang, model),
        Some(Fault::ModelLoading) => run::is_loading(lang, model),
        Some(Fault::Throttled | Fault::QuotaSpent) => run::is_throttled(lang, model),
        Some(
            Fault::Authentication
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::ContentRefused
            | Fault::Challenge
            | Fault::ServerFailed
            | Fault::BrokenStream
            | Fault::EmptyAnswer
            | Fault::NoAnswer
            | Fault::NeverSent,
        ) => run::is_failing(lang, model),
        None => run::is_busy(lang, model),
    }
}

/// A time as a title says it: to the second up to two minutes, then to the minute.
pub(super) fn span(lang: Lang, seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds + 0.5).map_or(0, |span| span.as_secs());
    if seconds < 120 { run::seconds(lang, seconds) } else { run::minutes(lang, seconds / 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(held_s: f64, next: Option<f64>) -> Held {
        Held {
            call: "c1".to_owned(),
            model: Some("gpt-x".to_owned()),
            upstream: "openai".to_owned(),
            fault: Some("at_capacity".to_owned()),
            held_s,
            next_try_in_s: next,
            sending: false,
        }
    }

    fn said(lang: Lang, held: Vec<Held>) -> Option<String> {
        words(lang, &Page { held, ..Page::default() })
    }

    #[test]
    fn the_title_says_what_how_long_and_when() {
        let en = |held| said(Lang::English, held);
        let is = |words: &str| Some(words.to_owned());
        assert_eq!(en(vec![]), None);
        assert_eq!(en(vec![held(9.9, Some(1.0))]), None);
        let line = en(vec![held(40.2, Some(14.0))]);
        assert_eq!(line, is("gpt-x at capacity, held 40 s, next try in 14 s"));
        let zh = said(Lang::Chinese, vec![held(40.2, Some(14.0))]);
        assert_eq!(zh, is("gpt-x 容量已满，已等待 40 秒，14 秒后重试"));
        assert_eq!(en(vec![held(400.0, None)]), is("gpt-x at capacity, held 6 min, waits for its turn"));
        let sending = Held { sending: true, ..held(12.0, None) };
        assert_eq!(en(vec![sending]), is("gpt-x at capacity, held 12 s, trying now"));
        let other = Held { model: None, fault: Some("server_failed".to_owned()), ..held(12.0, Some(130.0)) };
        assert_eq!(en(vec![other]), is("openai fails, held 12 s, next try in 2 min"));
        let behind = Held { fault: None, ..held(12.0, Some(0.2)) };
        assert_eq!(en(vec![behind, held(11.0, None)]), is("gpt-x is busy, held 12 s, next try in 0 s (+1)"));
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
