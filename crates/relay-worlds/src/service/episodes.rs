//! Episodes that come and go; a refused send may prolong one.

use std::time::Duration;

use relay_core::moment::Moment;

use crate::chance::{Chance, seconds};

/// The shortest episode, in seconds.
const SHORTEST: f64 = 5.0;
/// The longest one, in seconds, where the mean is short.
const LONGEST: f64 = 180.0;
/// From this mean on, the longest one is four times the mean.
const LONG: f64 = 150.0;
/// Sends prolong an episode by no more than this.
const MOST_PROLONGED: Duration = Duration::from_secs(600);

/// Episodes with healthy times between.
#[derive(Debug)]
pub(super) struct Episodes {
    healthy: f64,
    overloaded: f64,
    refusing: bool,
    /// When it changes, as far as is known.
    changes: Moment,
    /// When the episode ends, with what prolonged it.
    ends: Moment,
    prolonged: Duration,
    chance: Chance,
}

impl Episodes {
    /// Healthy at first.
    pub(super) fn new(healthy: f64, overloaded: f64, mut chance: Chance) -> Self {
        let changes = Moment::after_start(seconds(chance.exponential(healthy)));
        let (ends, prolonged) = (Moment::ZERO, Duration::ZERO);
        Self { healthy, overloaded, refusing: false, changes, ends, prolonged, chance }
    }

    pub(super) fn advance(&mut self, now: Moment) {
        while self.changes <= now {
            if self.refusing && self.ends > self.changes && self.prolonged < MOST_PROLONGED {
                self.changes = self.ends;
            } else if self.refusing {
                self.refusing = false;
                self.changes = self.changes + seconds(self.chance.exponential(self.healthy));
            } else {
                self.refusing = true;
                let longest = if self.overloaded > LONG { 4.0 * self.overloaded } else { LONGEST };
                let lasts = self.chance.exponential(self.overloaded).clamp(SHORTEST, longest);
                self.changes = self.changes + seconds(lasts);
                self.ends = self.changes;
                self.prolonged = Duration::ZERO;
            }
        }
    }

    pub(super) const fn refusing(&self) -> bool {
        self.refusing
    }

    /// A refused send prolongs the episode by so many seconds.
    pub(super) fn prolong(&mut self, by: f64) {
        self.ends = self.ends + seconds(by);
        self.prolonged += seconds(by);
    }

    pub(super) const fn next_change(&self) -> Moment {
        self.changes
    }
}
