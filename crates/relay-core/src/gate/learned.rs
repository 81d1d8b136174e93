//! What a lane has learned and is worth keeping over a restart.

use super::rate;
use serde::{Deserialize, Serialize};

/// What a lane has learned. Numbers alone: nothing here tells who asked for what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// Recoveries seen, each counting less with every later one.
    pub recoveries: f64,
    /// Seconds that the lane was watched while shut, decayed alike.
    pub exposure: f64,
    /// The rate that a rate limit leaves, in sends a second; `None`: no limit met.
    pub rate: Option<f64>,
    /// How many sends an accepted one lets follow.
    pub growth: f64,
    /// How many sends a call of our own that ended lets follow.
    pub per_completion: f64,
    /// Refused and all sends that followed a call of our own that ended.
    pub after_completion: [f64; 2],
    /// Refused and all timed probes.
    pub probes: [f64; 2],
    /// False and all ends of shut times.
    pub ends: [f64; 2],
}

impl Learned {
    /// Whether a lane can have learned this.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        // What is no number equals nothing.
        self.sound() == *self
    }

    /// As far as it can be true: a file may hold anything, and no lane is to wait for ever because of it.
    pub(super) fn sound(&self) -> Self {
        let within = |value: f64, from: f64, to: f64, instead: f64| {
            if (from..=to).contains(&value) { value } else { instead }
        };
        let share = |[yes, all]: [f64; 2]| {
            if (0.0..=1e3).contains(&all) && (0.0..=all).contains(&yes) { [yes, all] } else { [0.0, 0.0] }
        };
        Self {
            recoveries: within(self.recoveries, 0.0, 1e3, 0.0),
            exposure: within(self.exposure, 0.0, 1e9, 0.0),
            rate: self.rate.filter(|rate| (rate::BOUNDS.0..=rate::BOUNDS.1).contains(rate)),
            growth: within(self.growth, 0.1, 8.0, 2.0),
            per_completion: within(self.per_completion, 0.1, 1.0, 1.0),
            after_completion: share(self.after_completion),
            probes: share(self.probes),
            ends: share(self.ends),
        }
    }
}
