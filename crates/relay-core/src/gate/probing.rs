//! How far apart a shut lane is asked: often enough to hear of its recovery soon, seldom enough not to trouble it.

use std::time::Duration;

use super::backoff::scatter;
use super::line::Left;
use super::numbers::span;
use super::terms::Terms;
use crate::dice::Dice;
use crate::moment::Moment;

/// What the time to the next probe depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    /// The mean time to recovery, in seconds.
    pub(super) recovery: f64,
    /// How long a refusal usually takes, in seconds: so long the call that asks is kept from anything better.
    pub(super) refusal_takes: f64,
    /// How many calls wait for nothing but the lane.
    pub(super) ready: usize,
    pub(super) shut_for: Duration,
    /// The sends that all have left, and when the last call ends.
    pub(super) left: Option<(Left, Moment)>,
}

impl Spacing {
    /// The time to the next probe. With N calls waiting for a recovery that takes m in the mean, probes that are t apart
    /// cost t/2 of waiting each and m/t sends in all; the sum is least at the square root of 2·m·price/N.
    pub(super) fn next(&self, terms: &Terms, now: Moment, dice: &mut dyn Dice) -> Duration {
        let waiting = self.ready.max(1) as f64;
        let price = terms.price / waiting.min(terms.crowd) + self.refusal_takes / waiting;
        let best = (2.0 * self.recovery * price).sqrt();
        let mut apart = best.clamp(terms.shortest.as_secs_f64(), terms.longest.as_secs_f64());
        if let Some(rationed) = self.rationed(now) {
            apart = apart.max(rationed);
        }
        span(apart * scatter(dice))
    }

    /// Where a shut time lasts long, or half of the sends are gone: what is left, spread over the time that is left.
    fn rationed(&self, now: Moment) -> Option<f64> {
        let (left, last) = self.left?;
        let is_long = self.shut_for.as_secs_f64() > 3.0 * self.recovery;
        if !is_long && 2 * left.free >= left.total {
            return None;
        }
        let sends = if left.free > 0 { left.free } else { left.all.max(1) };
        Some(last.since(now).as_secs_f64() / sends as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Preset;

    struct Middle;
    impl Dice for Middle {
        fn share(&mut self) -> f64 {
            0.5
        }
    }

    const SPACING: Spacing =
        Spacing { recovery: 10.0, refusal_takes: 0.0, ready: 1, shut_for: Duration::ZERO, left: None };

    fn next(spacing: Spacing, preset: Preset) -> f64 {
        spacing.next(preset.terms(), Moment::ZERO, &mut Middle).as_secs_f64()
    }

    #[test]
    fn the_spacing_is_the_square_root_of_recovery_and_price() {
        assert!((next(SPACING, Preset::Interactive) - 10f64.sqrt()).abs() < 1e-6);
        assert!((next(SPACING, Preset::Strict) - 160f64.sqrt()).abs() < 1e-6);
        let crowd = Spacing { ready: 400, ..SPACING };
        assert!((next(crowd, Preset::Interactive) - 2.5f64.sqrt()).abs() < 1e-6);
        let slow = Spacing { refusal_takes: 3.5, ..SPACING };
        assert!((next(slow, Preset::Interactive) - 80f64.sqrt()).abs() < 1e-6);
        let long = Spacing { recovery: 1e9, ..SPACING };
        assert_eq!((next(long, Preset::Interactive), next(long, Preset::Strict)), (30.0, 60.0));
        assert_eq!(next(Spacing { recovery: 1e-9, ..SPACING }, Preset::Interactive), 0.25);
    }

    #[test]
    fn a_long_shut_time_spreads_the_sends_that_are_left() {
        let end = Moment::after_start(Duration::from_secs(600));
        let full = Left { free: 38, all: 40, total: 38 };
        let with = |left, shut_for| Spacing { left: Some((left, end)), shut_for, ..SPACING };
        let (short, long) = (Duration::from_secs(30), Duration::from_secs(31));
        assert!(next(with(full, short), Preset::Interactive) < 4.0);
        assert!((next(with(full, long), Preset::Interactive) - 600.0 / 38.0).abs() < 1e-6);
        let half = Left { free: 18, all: 20, total: 38 };
        assert!((next(with(half, short), Preset::Interactive) - 600.0 / 18.0).abs() < 1e-6);
        let reserve = Left { free: 0, all: 2, total: 38 };
        assert!((next(with(reserve, short), Preset::Interactive) - 300.0).abs() < 1e-6);
    }
}
