//! Streams of chance from one seed, and the distributions the worlds are made of.
//!
//! Every part of a world has a stream of its own: what one policy draws does not move what a client or a service draws
//! in the next run with the same seed. Logarithm and exponential are our own, of nothing but sums, products and
//! quotients: those of the standard library come from the platform and may differ in the last bit.

use std::f64::consts::{LN_2, SQRT_2};
use std::time::Duration;

use relay_core::dice::{Dice, SeededDice};

/// Which part of a world draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// How the service changes by itself.
    Service,
    /// Each answer of the service.
    Answers,
    /// The service's other users.
    Outside,
    /// The policy.
    Policy,
    /// When it all begins.
    Start,
    /// One client.
    Client(usize),
    /// How the service treats one session.
    Session(u64),
}

impl Stream {
    /// A number no other stream has.
    const fn number(self) -> u64 {
        match self {
            Self::Service => 1,
            Self::Answers => 2,
            Self::Outside => 3,
            Self::Policy => 4,
            Self::Start => 5,
            Self::Client(client) => (1 << 32) + client as u64,
            Self::Session(session) => (2 << 32) + session,
        }
    }
}

/// One stream of chance.
#[derive(Debug, Clone)]
pub struct Chance(SeededDice);

impl Chance {
    /// The stream of this part of the world of this seed.
    #[must_use]
    pub const fn new(seed: u64, stream: Stream) -> Self {
        let world = SeededDice::new(seed).bits();
        // An odd factor keeps different streams different; the second roll scatters them.
        let part = stream.number().wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Self(SeededDice::new(SeededDice::new(world ^ part).bits()))
    }

    /// Evenly spread in `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// Exponentially spread around this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(1.0 - self.share())
    }

    /// Normally spread, with mean 0 and deviation 1 (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }

    /// A positive number whose logarithm is normally spread with this deviation.
    pub fn lognormal(&mut self, median: f64, deviation: f64) -> f64 {
        median * exp(deviation * self.normal())
    }

    /// Between two positive numbers, each doubling as probable as the next.
    pub fn log_even(&mut self, low: f64, high: f64) -> f64 {
        exp(self.between(ln(low), ln(high)))
    }
}

impl Dice for Chance {
    fn share(&mut self) -> f64 {
        self.0.share()
    }
}

/// This many seconds; none where the number is negative.
#[must_use]
pub fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number.max(0.0))
}

/// The natural logarithm of a positive number that is not subnormal.
#[must_use]
pub fn ln(number: f64) -> f64 {
    let bits = number.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); within a factor of the root of 2, twelve terms are all a double can hold.
    let root = (mantissa - 1.0) / (mantissa + 1.0);
    let square = root * root;
    let series = (0..12).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    2.0 * root * series + f64::from(exponent) * LN_2
}

/// The exponential of a number between -700 and 700.
#[must_use]
pub fn exp(number: f64) -> f64 {
    let doublings = (number / LN_2).round();
    let rest = number - doublings * LN_2;
    let series = (1..=14).rev().fold(1.0, |sum, term| 1.0 + sum * rest / f64::from(term));
    series * f64::from_bits(((doublings as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the standard library's are the measure here")]
    fn logarithm_and_exponential_are_the_usual_ones() {
        let mut chance = Chance::new(1, Stream::Start);
        for _ in 0..100_000 {
            let number = chance.between(-40.0, 40.0);
            assert!((exp(number) / number.exp() - 1.0).abs() < 1e-14, "exp {number}");
            let positive = number.exp();
            assert!((ln(positive) - positive.ln()).abs() < 1e-14 * number.abs().max(1.0), "ln {positive}");
        }
        assert_eq!(ln(1.0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(exp(0.0).to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn each_distribution_has_its_mean() {
        let mut chance = Chance::new(2, Stream::Service);
        let mut mean =
            |draw: fn(&mut Chance) -> f64| (0..200_000).map(|_| draw(&mut chance)).sum::<f64>() / 200_000.0;
        assert!((mean(|chance| chance.between(2.0, 4.0)) - 3.0).abs() < 0.01);
        assert!((mean(|chance| chance.exponential(5.0)) - 5.0).abs() < 0.06);
        assert!(mean(Chance::normal).abs() < 0.01);
        assert!((mean(|chance| chance.normal() * chance.normal().signum()).abs()) < 0.01);
        assert!((mean(|chance| ln(chance.lognormal(8.0, 0.8))) - ln(8.0)).abs() < 0.01);
        assert!(
            (mean(|chance| ln(chance.log_even(10.0, 190.0))) - (ln(10.0) + ln(190.0)) / 2.0).abs() < 0.01
        );
        let mut square = Chance::new(3, Stream::Service);
        let spread = (0..200_000).map(|_| square.normal()).map(|x| x * x).sum::<f64>() / 200_000.0;
        assert!((spread - 1.0).abs() < 0.02, "{spread}");
    }

    #[test]
    fn no_two_streams_are_alike() {
        let streams = [
            Stream::Service,
            Stream::Answers,
            Stream::Outside,
            Stream::Policy,
            Stream::Start,
            Stream::Client(0),
            Stream::Client(1),
            Stream::Session(0),
            Stream::Session(1),
        ];
        let mut firsts: Vec<u64> = (70_000..70_100)
            .flat_map(|seed| streams.map(|stream| Chance::new(seed, stream).share().to_bits()))
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 900);
    }
}
