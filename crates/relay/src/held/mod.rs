//! Calls that are held, as a person is told of them: in words that the title of a terminal and a notice on the desktop
//! have in common, and when and how the desktop is told. Not which calls those are: a session or the status knows.
//!
//! ```text
//!  run:   page of the session  ---.                                     .--> notify-send | osascript | PowerShell
//!                                  >--> telling (pure: when, what) --> desktop
//!  serve: watch: status, no session'                                    '--> the log, once, where nobody can be told
//! ```

mod desktop;
mod telling;
mod watch;

use std::time::Duration;

use relay_core::config::Desktop;
use relay_core::{Fault, Lang};

pub(crate) use desktop::show;
pub(crate) use telling::{Message, Telling};
pub use watch::{Sources, Watch};

use crate::sessions::said::Held;
use crate::words::held as words;

/// Where somebody sees what is held whose clients were pointed at a relay for good.
#[must_use]
pub fn how_to_see(lang: Lang, desktop: Desktop) -> String {
    match desktop {
        Desktop::Auto | Desktop::On => words::how_to_see_beside_notices(lang),
        Desktop::Off => words::how_to_see(lang),
    }
}

/// A held call: `gpt-x at capacity, held 40 s, next try in 14 s`.
pub(crate) fn line(lang: Lang, held: &Held) -> String {
    let (what, for_how_long) = (what(lang, held), span(lang, held.held_s));
    match (held.sending, held.next_try_in_s) {
        (true, _) => words::held_trying(lang, &what, &for_how_long),
        (false, Some(next)) => words::held_next(lang, &what, &for_how_long, &span(lang, next)),
        (false, None) => words::held_in_line(lang, &what, &for_how_long),
    }
}

/// The same, and how many more there are.
pub(crate) fn line_and_more(lang: Lang, held: &Held, more: usize) -> String {
    let words = line(lang, held);
    if more == 0 { words } else { format!("{words} (+{more})") }
}

/// What is the matter: `gpt-x at capacity`.
fn what(lang: Lang, held: &Held) -> String {
    let model = held.model.as_deref().unwrap_or(&held.upstream);
    let fault = held.fault.as_deref();
    match Fault::ALL.iter().find(|known| Some(known.name()) == fault) {
        Some(Fault::AtCapacity) => words::is_at_capacity(lang, model),
        Some(Fault::Overloaded) => words::is_overloaded(lang, model),
        Some(Fault::ModelLoading) => words::is_loading(lang, model),
        Some(Fault::Throttled | Fault::QuotaSpent) => words::is_throttled(lang, model),
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
        ) => words::is_failing(lang, model),
        None => words::is_busy(lang, model),
    }
}

/// A time to the second up to two minutes, then to the minute.
fn span(lang: Lang, seconds: f64) -> String {
    let seconds = rounded_seconds(seconds);
    if seconds < 120 { words::seconds(lang, seconds) } else { words::minutes(lang, seconds / 60) }
}

/// Whole seconds.
pub(crate) fn rounded_seconds(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds + 0.5).map_or(0, |span| span.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn held(call: &str, held_s: f64) -> Held {
        Held {
            call: call.to_owned(),
            model: Some("gpt-x".to_owned()),
            upstream: "openai".to_owned(),
            fault: Some("at_capacity".to_owned()),
            held_s,
            next_try_in_s: Some(14.0),
            sending: false,
            noticed: false,
        }
    }

    #[test]
    fn a_line_says_what_how_long_and_when() {
        let en = |held: &Held| line(Lang::English, held);
        let call = held("c1", 40.2);
        assert_eq!(en(&call), "gpt-x at capacity, held 40 s, next try in 14 s");
        assert_eq!(line(Lang::Chinese, &call), "gpt-x 容量已满，已等待 40 秒，14 秒后重试");
        let next = |held_s, next_try_in_s| Held { next_try_in_s, ..held("c1", held_s) };
        assert_eq!(en(&next(400.0, None)), "gpt-x at capacity, held 6 min, waits for its turn");
        let sending = Held { sending: true, ..next(12.0, None) };
        assert_eq!(en(&sending), "gpt-x at capacity, held 12 s, trying now");
        let other = Held { model: None, fault: Some("server_failed".to_owned()), ..next(12.0, Some(130.0)) };
        assert_eq!(en(&other), "openai fails, held 12 s, next try in 2 min");
        let behind = Held { fault: None, ..next(12.0, Some(0.2)) };
        assert_eq!(
            line_and_more(Lang::English, &behind, 1),
            "gpt-x is busy, held 12 s, next try in 0 s (+1)"
        );
    }
}
