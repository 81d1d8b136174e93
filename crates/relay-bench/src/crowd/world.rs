//! What the ways of one seed have in common: its time, its calls, and when the service is short of capacity.

use std::ops::Range;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

/// The most answers at once, where slots are what is short.
pub(super) const SLOTS: usize = 8;
/// Means of an exponential distribution: how long the service is well, and how long it is overloaded.
const WELL_FOR: f64 = 70.0;
const OVERLOADED_FOR: f64 = 30.0;
/// How long a person, or a tool, takes between an answer and the next call; the mean of the same.
const THINKS_FOR: f64 = 3.0;
/// How long an answer takes from the request to its end: lognormal, within bounds.
const TAKES: LogNormal = LogNormal { median: 8.0, sigma: 0.8, within: 2.0..60.0 };
/// And until its first byte.
const FIRST_BYTE: LogNormal = LogNormal { median: 1.2, sigma: 0.4, within: 0.4..5.0 };

/// What the service is short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Short {
    /// It has a few slots, all of them ours, and refuses whoever comes when they are taken.
    Slots,
    /// It is overloaded now and then, and refuses everybody meanwhile.
    Episodes,
}

impl Short {
    pub(super) const ALL: [Self; 2] = [Self::Slots, Self::Episodes];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Slots => "slots",
            Self::Episodes => "episodes",
        }
    }
}

/// One seed.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) seed: u64,
    /// Second zero.
    pub(super) begin: Instant,
    /// How many of its seconds go into one outside.
    pub(super) rate: f64,
    /// No call is made later than this.
    pub(super) until: f64,
}

/// What is given of a call, whoever makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Given {
    /// The time before it.
    pub(super) thought: f64,
    /// From the request to the first byte.
    pub(super) first: f64,
    /// From the request to the end.
    pub(super) takes: f64,
}

impl World {
    /// The present second; negative before the beginning.
    pub(super) fn now(&self) -> f64 {
        let now = Instant::now();
        let after = now.saturating_duration_since(self.begin).as_secs_f64();
        (after - self.begin.saturating_duration_since(now).as_secs_f64()) * self.rate
    }

    /// What a span of its seconds is outside.
    pub(super) fn real(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds.max(0.0) / self.rate)
    }

    /// Waits until its clock shows this.
    pub(super) async fn reach(&self, second: f64) {
        sleep_until((self.begin + self.real(second)).into()).await;
    }

    pub(super) async fn sleep(&self, seconds: f64) {
        tokio::time::sleep(self.real(seconds)).await;
    }

    /// The n-th call of a client.
    pub(super) fn given(&self, client: usize, number: usize) -> Given {
        let mut dice = self.dice(((client as u64) << 32) + number as u64 + 1);
        let takes = TAKES.roll(&mut dice);
        Given {
            thought: exponential(&mut dice, THINKS_FOR),
            first: FIRST_BYTE.roll(&mut dice).min(takes * 0.6),
            takes,
        }
    }

    /// The episodes of overload, in their order, for as long as anybody may ask.
    pub(super) fn episodes(&self, until: f64) -> Vec<Range<f64>> {
        let mut dice = self.dice(0);
        let (mut episodes, mut at) = (Vec::new(), 0.0);
        while at < until {
            let began = at + exponential(&mut dice, WELL_FOR);
            at = began + exponential(&mut dice, OVERLOADED_FOR);
            episodes.push(began..at);
        }
        episodes
    }

    fn dice(&self, what: u64) -> fastrand::Rng {
        // Neighbours begin alike: one roll takes them apart.
        let mut dice = fastrand::Rng::with_seed(what);
        fastrand::Rng::with_seed(dice.u64(..) ^ self.seed)
    }
}

fn exponential(dice: &mut fastrand::Rng, mean: f64) -> f64 {
    -mean * (1.0 - dice.f64()).ln()
}

struct LogNormal {
    median: f64,
    sigma: f64,
    within: Range<f64>,
}

impl LogNormal {
    fn roll(&self, dice: &mut fastrand::Rng) -> f64 {
        let radius = (-2.0 * (1.0 - dice.f64()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * dice.f64()).cos();
        (self.median * (self.sigma * normal).exp()).clamp(self.within.start, self.within.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::percentile;

    fn world(seed: u64) -> World {
        World { seed, begin: Instant::now(), rate: 30.0, until: 600.0 }
    }

    #[test]
    fn a_seed_is_a_world() {
        assert_eq!(world(1).given(3, 7), world(1).given(3, 7));
        assert_eq!(world(1).episodes(600.0), world(1).episodes(600.0));
        assert_ne!(world(1).given(3, 7), world(2).given(3, 7));
        assert_ne!(world(1).given(3, 7), world(1).given(7, 3));
    }

    #[test]
    fn calls_and_episodes_are_as_long_as_they_are_said_to_be() {
        let world = world(1);
        let given: Vec<Given> = (0..30)
            .flat_map(|it| (0..300).map(move |n| (it, n)))
            .map(|(client, number)| world.given(client, number))
            .collect();
        let middle = |of: fn(&Given) -> f64| percentile(&mut given.iter().map(of).collect::<Vec<_>>(), 0.5);
        assert!((7.7..8.3).contains(&middle(|given| given.takes)));
        assert!((1.15..1.25).contains(&middle(|given| given.first)));
        assert!(given.iter().all(|given| given.first < given.takes && (2.0..=60.0).contains(&given.takes)));
        let thought = given.iter().map(|given| given.thought).sum::<f64>() / given.len() as f64;
        assert!((2.9..3.1).contains(&thought), "{thought}");
        let overloaded: f64 =
            world.episodes(1e6).iter().map(|episode| episode.end - episode.start).sum::<f64>() / 1e6;
        assert!((0.28..0.32).contains(&overloaded), "{overloaded}");
    }
}
