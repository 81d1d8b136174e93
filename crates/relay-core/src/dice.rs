//! Chance as a value. The relay hands in real dice, a test hands in a seed.

use std::time::Duration;

/// A source of chance.
pub trait Dice {
    /// A number in `[0, 1)`, evenly spread.
    fn share(&mut self) -> f64;

    /// A length of time in `[0, most)`, evenly spread.
    fn up_to(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.share().clamp(0.0, 1.0))
    }
}

/// Dice with a seed (SplitMix64, Steele, Lea and Flood 2014): the same seed rolls the same numbers everywhere.
#[derive(Debug, Clone)]
pub struct SeededDice(u64);

impl SeededDice {
    /// Dice that start from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Dice for SeededDice {
    fn share(&mut self) -> f64 {
        // The 53 high bits fill a double's fraction exactly.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_dice_stay_inside_the_unit_interval_and_repeat() {
        let (mut one, mut other) = (SeededDice::new(7), SeededDice::new(7));
        for _ in 0..10_000 {
            let share = one.share();
            assert!((0.0..1.0).contains(&share));
            assert_eq!(share.to_bits(), other.share().to_bits());
        }
    }
}
