//! Follows a relay: what it is asked next, and when. Pure, but for [`Feed::next`], which asks.

use std::net::SocketAddr;
use std::time::Duration;

use super::page::{Calls, Page};
use crate::running::{self, Who};

/// How often it is asked.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// The longest pause after answers that did not come.
const RAREST: Duration = Duration::from_secs(8);

/// What came of asking.
#[derive(Debug)]
pub enum News {
    /// An answer.
    Seen(Box<Seen>),
    /// None.
    Lost {
        /// Who is there instead.
        who: Who,
        /// How long it is until it is asked again.
        next: Duration,
    },
}

/// What a relay told.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its status page.
    pub page: Page,
    /// Calls that have changed; `None`: it tells of none.
    pub calls: Option<Calls>,
    /// These calls are all that it knows: what was known before is of another run.
    pub anew: bool,
}

impl News {
    /// How long to wait before asking again.
    #[must_use]
    pub const fn next(&self) -> Duration {
        match self {
            Self::Seen(_) => EVERY,
            Self::Lost { next, .. } => *next,
        }
    }
}

/// What is known of the relay that is followed.
#[derive(Debug, Default)]
pub struct Feed {
    /// The last change that was seen.
    change: u64,
    /// How long it ran then.
    uptime: f64,
    /// Answers that did not come in a row.
    failures: u32,
}

impl Feed {
    /// Asks the relay once.
    pub async fn next(&mut self, at: SocketAddr, token: Option<&str>) -> News {
        let page = match running::look(at, token).await {
            Ok(page) => Page::of(page),
            Err(who) => return self.lost(who),
        };
        let since = self.since(&page);
        match running::calls(at, token, since).await {
            Ok(calls) => self.seen(page, Some(Calls::of(calls)), since),
            Err(Who::Relay) => self.seen(page, None, since),
            Err(who) => self.lost(who),
        }
    }

    /// The change to ask from. A relay that runs for a shorter time than before counts its changes anew, and one that did
    /// not answer may have been another one.
    fn since(&self, page: &Page) -> u64 {
        if self.failures > 0 || page.uptime_s < self.uptime { 0 } else { self.change }
    }

    fn seen(&mut self, page: Page, calls: Option<Calls>, since: u64) -> News {
        let change = calls.as_ref().map_or(0, |calls| calls.change);
        // A number below the one that was asked for is of a relay that has just begun; it told all.
        let anew = since == 0 || change < since;
        *self = Self { change, uptime: page.uptime_s, failures: 0 };
        News::Seen(Box::new(Seen { page, calls, anew }))
    }

    fn lost(&mut self, who: Who) -> News {
        let next = EVERY.saturating_mul(1 << self.failures.min(8)).min(RAREST);
        self.failures = self.failures.saturating_add(1);
        News::Lost { who, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(uptime_s: f64) -> Page {
        Page { uptime_s, ..Page::default() }
    }

    fn seen(feed: &mut Feed, uptime: f64, change: u64) -> (u64, bool) {
        let page = page(uptime);
        let since = feed.since(&page);
        let News::Seen(seen) = feed.seen(page, Some(Calls { change, calls: Vec::new() }), since) else {
            panic!("it was seen")
        };
        (since, seen.anew)
    }

    #[test]
    fn changes_are_asked_for_from_the_last_one_on() {
        let mut feed = Feed::default();
        assert_eq!(seen(&mut feed, 10.0, 7), (0, true));
        assert_eq!(seen(&mut feed, 11.0, 9), (7, false));
        assert_eq!(seen(&mut feed, 12.0, 9), (9, false));
        assert_eq!(seen(&mut feed, 0.4, 2), (0, true), "it was started anew");
        assert_eq!(seen(&mut feed, 0.5, 3), (2, false));
        assert_eq!(seen(&mut feed, 0.6, 1), (3, true), "it began between the two questions");
        feed.lost(Who::Nobody);
        assert_eq!(seen(&mut feed, 99.0, 30), (0, true), "it may be another one");
        let without = feed.seen(page(100.0), None, 30);
        assert!(matches!(without, News::Seen(seen) if seen.calls.is_none()));
        assert_eq!(feed.since(&page(101.0)), 0);
    }

    #[test]
    fn who_does_not_answer_is_asked_less_and_less_often_but_never_rarely() {
        let mut feed = Feed::default();
        let mut next = || feed.lost(Who::Nobody).next().as_secs();
        assert_eq!([next(), next(), next(), next(), next()], [1, 2, 4, 8, 8]);
        for _ in 0..1000 {
            assert_eq!(next(), 8);
        }
        seen(&mut feed, 1.0, 1);
        assert_eq!(feed.lost(Who::Silent).next(), EVERY);
    }
}
