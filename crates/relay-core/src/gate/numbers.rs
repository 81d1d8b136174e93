//! Times as seconds and back, and means that forget.

use std::time::Duration;

/// Seconds as a span; what is no span is none, and nothing is longer than a thousand years.
pub(super) fn span(seconds: f64) -> Duration {
    const LONGEST: f64 = 3.2e10;
    if seconds > 0.0 { Duration::from_secs_f64(seconds.min(LONGEST)) } else { Duration::ZERO }
}

/// How long something usually takes, and how far from that it usually lies (as TCP does it: RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usual {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) count: u32,
}

impl Usual {
    /// Nothing seen yet; these are the guesses.
    pub(super) const fn guessed(mean: f64, deviation: f64) -> Self {
        Self { mean, deviation, count: 0 }
    }

    pub(super) fn saw(&mut self, seconds: f64) {
        if self.count == 0 {
            (self.mean, self.deviation) = (seconds, seconds / 2.0);
        } else {
            self.deviation += 0.25 * ((seconds - self.mean).abs() - self.deviation);
            self.mean += 0.125 * (seconds - self.mean);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Longer than it usually takes, by so many deviations.
    pub(super) fn at_most(&self, deviations: f64) -> f64 {
        self.mean + deviations * self.deviation
    }
}

/// How often something turned out so, of late.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Share {
    pub(super) yes: f64,
    pub(super) all: f64,
}

impl Share {
    /// One more; what came before counts `decay` of what it did.
    pub(super) fn saw(&mut self, yes: bool, decay: f64) {
        self.yes = decay * self.yes + f64::from(u8::from(yes));
        self.all = decay * self.all + 1.0;
    }

    /// The share, where `yes` of `all` were taken for granted before the first was seen.
    pub(super) fn with_prior(&self, yes: f64, all: f64) -> f64 {
        (self.yes + yes) / (self.all + all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_span_is_none() {
        for seconds in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(span(seconds), Duration::ZERO);
        }
        assert_eq!(span(1.5), Duration::from_millis(1500));
        assert!(span(f64::INFINITY) > Duration::from_secs(1_000_000_000));
    }

    #[test]
    fn the_first_sample_takes_the_place_of_the_guess_and_later_ones_move_it() {
        let mut usual = Usual::guessed(1.5, 0.5);
        usual.saw(4.0);
        assert_eq!((usual.mean, usual.deviation), (4.0, 2.0));
        usual.saw(12.0);
        assert_eq!((usual.mean, usual.deviation), (5.0, 3.5));
        assert!((usual.at_most(2.0) - 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_share_begins_at_its_prior_and_forgets() {
        let mut share = Share::default();
        assert!((share.with_prior(0.75, 3.0) - 0.25).abs() < 1e-9);
        for _ in 0..1000 {
            share.saw(true, 0.9);
        }
        assert!((share.all - 10.0).abs() < 1e-6 && (share.yes - 10.0).abs() < 1e-6);
    }
}
