//! How long a refused call waits by itself, where its lane is not to blame.

use std::time::Duration;

use super::numbers::span;
use crate::dice::Dice;
use crate::moment::Moment;

/// The mean of the first wait, in seconds. With the constant below, the means are those of full jitter from 1 s on,
/// the first ones a fifth shorter; the smaller scatter makes it faster at the same number of sends.
const FIRST: f64 = 0.4;
/// No mean grows past this.
const LONGEST: f64 = 15.0;
/// On top of each.
const ALWAYS: f64 = 0.25;

/// When a call that was sent at `sent` and refused for the `refusals`-th time, from 1, may be sent again. The time
/// that the refusal took counts.
pub(super) fn own(sent: Moment, refusals: u32, now: Moment, dice: &mut dyn Dice) -> Moment {
    let doublings = i32::try_from(refusals.saturating_sub(1).min(20)).unwrap_or(20);
    let mean = (FIRST * 2f64.powi(doublings)).min(LONGEST);
    (sent + span(ALWAYS + mean * scatter(dice))).max(now)
}

/// Chance that leaves a mean as it is: three quarters to five quarters of it.
pub(super) fn scatter(dice: &mut dyn Dice) -> f64 {
    0.75 + 0.5 * dice.share()
}

/// What is added to a time that an upstream names, so that not everybody comes back in the same moment: a tenth of
/// it, but at most half a second, and a twentieth of a second.
pub(super) fn spread(told: Duration, dice: &mut dyn Dice) -> Duration {
    span((0.05 + 0.1 * told.as_secs_f64().min(5.0)) * dice.share())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SeededDice;

    #[test]
    fn the_means_double_to_fifteen_seconds_and_scatter_by_a_quarter() {
        let sent = Moment::after_start(Duration::from_secs(100));
        for (refusals, mean) in [(1, 0.4), (2, 0.8), (3, 1.6), (6, 12.8), (7, 15.0), (4_000_000_000, 15.0)] {
            let mut dice = SeededDice::new(7);
            let waits: Vec<f64> = (0..4000)
                .map(|_| own(sent, refusals, sent, &mut dice).since(sent).as_secs_f64() - 0.25)
                .collect();
            let average = waits.iter().sum::<f64>() / 4000.0;
            assert!((average / mean - 1.0).abs() < 0.02, "{refusals}: {average}");
            assert!(waits.iter().all(|wait| (0.749 * mean..1.251 * mean).contains(wait)));
        }
    }

    #[test]
    fn the_time_of_a_slow_refusal_counts_and_nothing_lies_in_the_past() {
        let (sent, now) = (Moment::ZERO, Moment::after_start(Duration::from_secs(60)));
        assert_eq!(own(sent, 3, now, &mut SeededDice::new(1)), now);
    }
}
