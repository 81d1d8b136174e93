//! The rate lane: what a rate limit leaves is measured, and sends are spaced by it. A rate limit shuts nothing.

use std::time::Duration;

use super::numbers::span;
use crate::moment::Moment;

/// Nothing is slower, and nothing faster, in sends a second.
pub(super) const BOUNDS: (f64, f64) = (0.02, 1e6);
/// Where nothing is measured yet, nothing slower is taken for the rate.
const FIRST: f64 = 1.0;
/// How far back acceptances are counted, in seconds.
const WINDOW: usize = 60;

/// Acceptances of the last minute, second by second.
#[derive(Debug, Clone)]
struct Accepted {
    seconds: [u32; WINDOW],
    /// The second that was counted last.
    last: u64,
}

impl Accepted {
    fn forget(&mut self, now: Moment) {
        let now = now.since_start().as_secs();
        let gone = now.saturating_sub(self.last).min(WINDOW as u64);
        for ago in 0..gone {
            if let Some(second) = self.seconds.get_mut(slot(now - ago)) {
                *second = 0;
            }
        }
        self.last = self.last.max(now);
    }

    fn count(&mut self, now: Moment) {
        self.forget(now);
        if let Some(second) = self.seconds.get_mut(slot(now.since_start().as_secs())) {
            *second = second.saturating_add(1);
        }
    }

    /// Acceptances a second.
    fn rate(&mut self, now: Moment) -> f64 {
        self.forget(now);
        self.seconds.iter().map(|count| f64::from(*count)).sum::<f64>() / WINDOW as f64
    }
}

fn slot(second: u64) -> usize {
    usize::try_from(second % WINDOW as u64).unwrap_or(0)
}

/// The rate, and what it is measured by.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    rate: Option<f64>,
    next: Moment,
    /// Nothing goes before then, since a refusal said so.
    floor: Moment,
    accepted: Accepted,
    /// Acceptances since the rate was changed.
    since_change: u32,
    /// When the rate was changed, and when the send whose refusal changed it was made.
    changed: Option<(Moment, Moment)>,
    /// Sends since then that were not refused for their rate.
    passed: u32,
    /// Somebody waited all the time since then.
    backlogged: bool,
}

impl Rate {
    pub(super) const fn new(learned: Option<f64>) -> Self {
        Self {
            rate: learned,
            next: Moment::ZERO,
            floor: Moment::ZERO,
            accepted: Accepted { seconds: [0; WINDOW], last: 0 },
            since_change: 0,
            changed: None,
            passed: 0,
            backlogged: false,
        }
    }

    /// The rate that is kept, in sends a second.
    pub(super) const fn known(&self) -> Option<f64> {
        self.rate
    }

    /// When the next send may go, where it may not go now.
    pub(super) fn holds_until(&self, now: Moment) -> Option<Moment> {
        (self.rate.is_some() && now < self.next).then_some(self.next)
    }

    /// A send is made. A pause earns two sends that follow each other at once.
    pub(super) fn sent(&mut self, now: Moment) {
        self.passed = self.passed.saturating_add(1);
        if let Some(rate) = self.rate {
            self.next = self.next.max(now - span(2.0 / rate)) + span(1.0 / (0.97 * rate));
        }
    }

    /// A send was not made after all.
    pub(super) fn give_back(&mut self) {
        self.passed = self.passed.saturating_sub(1);
        if let Some(rate) = self.rate {
            self.next = (self.next - span(1.0 / (0.97 * rate))).max(self.floor);
        }
    }

    /// A send was accepted: the limit may leave more. A little more at first, then quickly more.
    pub(super) fn accepted(&mut self, now: Moment) {
        self.accepted.count(now);
        self.since_change = self.since_change.saturating_add(1);
        if let Some(rate) = &mut self.rate {
            *rate = (*rate * if self.since_change <= 20 { 1.005 } else { 1.03 }).min(BOUNDS.1);
        }
    }

    /// Nobody waits.
    pub(super) const fn idle(&mut self) {
        self.backlogged = false;
    }

    /// A send was refused for its rate; `later`: the sends under way that were made after it.
    pub(super) fn refused(
        &mut self,
        sent: Moment,
        told: Option<Duration>,
        later: impl FnOnce() -> usize,
        now: Moment,
    ) {
        self.passed = self.passed.saturating_sub(1);
        if self.changed.is_some_and(|(changed, _)| sent <= changed) {
            return;
        }
        let later = u32::try_from(later()).unwrap_or(u32::MAX);
        let between = self.passed.saturating_sub(later);
        let since = self.changed.map_or(sent.since_start(), |(_, before)| sent.since(before)).as_secs_f64();
        let rate = match (self.rate, told) {
            (known, _) if self.backlogged && between >= 3 && since > 0.0 => {
                let seen = f64::from(between) / since;
                0.7 * seen + 0.3 * known.map_or(seen, |known| known.min(2.0 * seen))
            }
            (Some(known), _) => (0.8 * known).max(0.8 * self.accepted.rate(now)),
            // A long pause is one pause, which the lane keeps; it is no time between any two sends.
            (None, Some(told)) if told > Duration::from_millis(200) => (1.0 / told.as_secs_f64()).max(FIRST),
            (None, _) => FIRST,
        };
        let rate = rate.clamp(BOUNDS.0, BOUNDS.1);
        self.rate = Some(rate);
        self.floor = now + span(1.0 / rate);
        self.next = self.next.max(self.floor);
        self.changed = Some((now, sent));
        (self.since_change, self.passed, self.backlogged) = (0, later, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::after_start(span(seconds))
    }

    #[test]
    fn without_a_limit_nothing_is_held() {
        let mut rate = Rate::new(None);
        for second in 0..100 {
            rate.sent(at(f64::from(second)));
            rate.accepted(at(f64::from(second)));
        }
        assert_eq!((rate.known(), rate.holds_until(at(100.0))), (None, None));
    }

    #[test]
    fn the_first_refusal_sets_the_rate_by_what_it_says_else_one_a_second() {
        for (told, expected) in [(None, 1.0), (Some(0.1), 1.0), (Some(0.25), 4.0), (Some(900.0), 1.0)] {
            let mut rate = Rate::new(None);
            rate.sent(at(10.0));
            rate.refused(at(10.0), told.map(span), || 0, at(10.2));
            assert_eq!(rate.known(), Some(expected));
            assert_eq!(rate.holds_until(at(10.2)), Some(at(10.2 + 1.0 / expected)));
        }
    }

    #[test]
    fn while_somebody_waits_the_rate_is_measured() {
        let mut rate = Rate::new(None);
        rate.sent(at(0.0));
        rate.refused(at(0.0), None, || 0, at(0.2));
        for second in 1..=20 {
            rate.sent(at(f64::from(second) / 2.0));
        }
        rate.sent(at(10.2));
        rate.refused(at(10.2), None, || 0, at(10.4));
        let known = rate.known().unwrap();
        assert!((known - (0.7 * 20.0 / 10.2 + 0.3)).abs() < 0.01, "{known}");
        // A second refusal of the same crowd changes nothing.
        rate.refused(at(10.3), None, || 0, at(10.5));
        assert_eq!(rate.known(), Some(known));
    }

    #[test]
    fn where_nobody_waited_the_rate_falls_by_a_fifth_but_not_below_what_passes() {
        let mut rate = Rate::new(Some(10.0));
        rate.sent(at(1.0));
        rate.refused(at(1.0), None, || 0, at(1.1));
        assert_eq!(rate.known(), Some(8.0));
        for step in 0..600 {
            rate.accepted(at(100.0 + f64::from(step) / 10.0));
        }
        rate.idle();
        rate.rate = Some(0.5);
        rate.refused(at(160.0), None, || 0, at(160.1));
        let known = rate.known().unwrap();
        assert!((7.5..8.1).contains(&known), "{known}");
        rate.idle();
        rate.refused(at(400.0), None, || 0, at(400.1));
        assert!((rate.known().unwrap() - 0.8 * known).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_sent_holds_nobody() {
        let mut rate = Rate::new(Some(0.5));
        for _ in 0..3 {
            rate.sent(at(10.0));
        }
        let held = rate.holds_until(at(10.0));
        rate.sent(at(10.0));
        assert!(rate.holds_until(at(10.0)) > held);
        rate.give_back();
        let again = rate.holds_until(at(10.0)).unwrap();
        assert!(again.since(held.unwrap()) < Duration::from_micros(1));
    }

    #[test]
    fn a_rate_grows_with_what_is_accepted() {
        let mut rate = Rate::new(Some(1.0));
        for _ in 0..21 {
            rate.accepted(at(1.0));
        }
        assert!((rate.known().unwrap() - 1.005f64.powi(20) * 1.03).abs() < 1e-9);
    }
}
