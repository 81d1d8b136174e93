//! A token bucket: so many sends at once, so many a second after them.

use std::time::Duration;

use super::numbers::span;
use super::terms::Terms;
use crate::moment::Moment;

/// The bucket. It begins full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// What was taken out and has not flown back.
    taken: f64,
    at: Moment,
}

/// A thousandth of a token: sums of fractions are not exact.
const GRAIN: f64 = 1e-3;

impl Pace {
    pub(super) const fn new() -> Self {
        Self { taken: 0.0, at: Moment::ZERO }
    }

    /// Takes a token, or says when there will be one.
    pub(super) fn take(&mut self, terms: &Terms, now: Moment) -> Result<(), Moment> {
        self.taken = (self.taken - now.since(self.at).as_secs_f64() * terms.refill).max(0.0);
        self.at = self.at.max(now);
        let left = terms.burst - self.taken;
        if left >= 1.0 - GRAIN {
            self.taken += 1.0;
            return Ok(());
        }
        Err(now + span((1.0 - left) / terms.refill).max(Duration::from_micros(1)))
    }

    /// A send that was paid for was not made.
    pub(super) fn give_back(&mut self) {
        self.taken = (self.taken - 1.0).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Preset;

    #[test]
    fn ten_go_at_once_and_fifty_a_second_follow() {
        let terms = Preset::Interactive.terms();
        let mut pace = Pace::new();
        let mut now = Moment::after_start(Duration::from_secs(1000));
        let start = now;
        let mut gone = 0;
        while gone < 110 {
            match pace.take(terms, now) {
                Ok(()) => gone += 1,
                Err(later) => {
                    assert!(later > now);
                    now = later;
                }
            }
            assert!(gone >= 10 || now == start);
        }
        let took = now.since(start).as_secs_f64();
        assert!((1.99..2.05).contains(&took), "{took}");
    }
}
