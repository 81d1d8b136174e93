//! The notice that a held call is held, for a client that shows what it is told between two tries.
//!
//! Codex prints the message of a failure that it retries below `Reconnecting... 1/5`, and leaves it there for as long
//! as the next try lasts (measured with 0.171.0 and 0.144.6). So a held call of a person's is answered with such a
//! failure once in a while, and its next try goes on where this one stood. Each takes one of the five tries that Codex
//! has for an answer, so there are few of them, and two are left for cuts and real failures. Over a WebSocket the first is not
//! shown, and costs as much.

use std::time::Duration;

use crate::dialect::{failed_event, failed_message};
use crate::fault::Fault;
use crate::moment::Moment;
use crate::words::Lang;

/// How many notices an answer may have, less the cuts of its turn.
pub const MOST: u32 = 3;
/// So many tries Codex has after the first one for an answer, however the relay takes them (`stream_max_retries`).
pub const TRIES: u32 = 5;

/// After how long the text is shown anew: it is the same one, but the client counts its time from there.
const AGAIN: [Duration; 2] = [Duration::from_secs(5 * 60), Duration::from_secs(30 * 60)];

/// The notices of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notices {
    after: Duration,
    first_unseen: bool,
    left: u32,
    given: u32,
}

impl Notices {
    /// At most `left` of them, the first once the call was held for `after`. `first_unseen`: the client does not show
    /// the first one, which is followed by the second at once.
    #[must_use]
    pub const fn new(after: Duration, first_unseen: bool, left: u32) -> Self {
        Self { after, first_unseen, left, given: 0 }
    }

    /// When the next one is due for a call that is held since then.
    #[must_use]
    pub fn due(&self, held: Moment) -> Option<Moment> {
        if self.given >= self.left {
            return None;
        }
        let seen = self.given.saturating_sub(u32::from(self.first_unseen));
        let again = seen.checked_sub(1).and_then(|shown| usize::try_from(shown).ok());
        let after = match again {
            None => self.after,
            Some(shown) => self.after.max(*AGAIN.get(shown)?),
        };
        Some(held + after)
    }

    /// One is given; how many that makes.
    pub const fn give(&mut self) -> u32 {
        self.given = self.given.saturating_add(1);
        self.given
    }
}

/// Why a call is held, in words for the person who waits.
#[must_use]
pub fn message(lang: Lang, model: Option<&str>, fault: Option<Fault>) -> String {
    let who = model.map_or_else(|| words::the_model(lang), str::to_owned);
    let why = match fault {
        Some(Fault::AtCapacity) | None => words::at_capacity(lang, &who),
        Some(Fault::Overloaded) => words::overloaded(lang, &who),
        Some(Fault::Throttled) => words::throttled(lang, &who),
        Some(Fault::ModelLoading) => words::loading(lang, &who),
        Some(
            Fault::QuotaSpent
            | Fault::Authentication
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::ContentRefused
            | Fault::Challenge
            | Fault::ServerFailed
            | Fault::BrokenStream
            | Fault::EmptyAnswer
            | Fault::NoAnswer
            | Fault::NeverSent,
        ) => words::failing(lang, &who),
    };
    // Codex reads its pause from these words; in a message without them it waits twice as long each time.
    format!("{} Please try again in 0.2s.", words::held(lang, &why))
}

/// The code that Codex retries with `Rate limit exceeded:` in front, in every version measured.
const CODE: &str = "rate_limit_exceeded";

/// The notice as the event that ends a stream.
#[must_use]
pub fn event(message: &str) -> String {
    failed_event(CODE, message)
}

/// The notice as a message on a WebSocket.
#[must_use]
pub fn socket_message(message: &str) -> String {
    failed_message(CODE, message)
}

/// The words of a notice. Of some 150 signs the client shows all.
pub mod words {
    crate::words! {
        table TABLE "notice";

        /// What a call is held for that names no model.
        the_model() {
            en: "The model";
            zh: "模型";
        }

        /// No room for one more.
        at_capacity(model: &str) {
            en: "{model} is at capacity";
            zh: "{model} 容量已满";
        }

        /// The whole service is short.
        overloaded(model: &str) {
            en: "{model} is overloaded";
            zh: "{model} 的服务过载";
        }

        /// Too many requests of this account.
        throttled(model: &str) {
            en: "{model} is limiting your rate";
            zh: "{model} 正在限制请求速率";
        }

        /// A local model is not ready yet.
        loading(model: &str) {
            en: "{model} is being loaded";
            zh: "{model} 正在加载";
        }

        /// Anything else.
        failing(model: &str) {
            en: "{model} does not answer right now";
            zh: "{model} 暂时没有响应";
        }

        /// What the relay does about it. It stays true for as long as it stands.
        held(why: &str) {
            en: "{why}. Steady Relay holds this turn and sends it as soon as it may; Esc cancels.";
            zh: "{why}。Steady Relay 正在保留本轮请求，一有机会就发送；按 Esc 取消。";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Moment = Moment::after_start(Duration::from_secs(100));

    /// When they come, in seconds since the call is held.
    fn times(mut notices: Notices) -> Vec<u64> {
        std::iter::from_fn(|| {
            let due = notices.due(HELD)?;
            notices.give();
            Some(due.since(HELD).as_secs())
        })
        .take(10)
        .collect()
    }

    #[test]
    fn they_are_few_and_far_between() {
        let after = Duration::from_secs(15);
        assert_eq!(times(Notices::new(after, false, MOST)), [15, 300, 1800]);
        assert_eq!(times(Notices::new(after, false, 1)), [15]);
        assert_eq!(times(Notices::new(after, false, 0)), [0; 0]);
        assert_eq!(times(Notices::new(after, false, 9)), [15, 300, 1800], "no more are planned");
        assert_eq!(times(Notices::new(Duration::from_secs(600), false, 3)), [600, 600, 1800]);
    }

    #[test]
    fn one_that_is_not_shown_is_followed_by_the_next_at_once() {
        assert_eq!(times(Notices::new(Duration::from_secs(15), true, MOST)), [15, 15, 300]);
    }

    #[test]
    fn the_words_are_short_and_keep_the_pause_that_codex_reads() {
        assert_eq!(words::TABLE.flaws(), [""; 0]);
        for lang in Lang::ALL {
            for fault in [None, Some(Fault::AtCapacity), Some(Fault::Throttled), Some(Fault::ServerFailed)] {
                let text = message(lang, Some("gpt-x-codex"), fault);
                assert!(
                    text.chars().count() <= 150 && text.ends_with(" Please try again in 0.2s."),
                    "{text}"
                );
            }
        }
        assert_eq!(
            message(Lang::English, None, Some(Fault::Overloaded)),
            "The model is overloaded. Steady Relay holds this turn and sends it as soon as it may; Esc \
             cancels. Please try again in 0.2s."
        );
    }
}
