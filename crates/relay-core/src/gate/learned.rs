//! What a lane has learned and is worth keeping over a restart.

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
