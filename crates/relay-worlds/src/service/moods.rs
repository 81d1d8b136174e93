//! Refusals that stick to a session for a while.

use std::collections::BTreeMap;

use relay_core::dice::Dice as _;
use relay_core::moment::Moment;

use crate::chance::{Chance, Stream, seconds};

/// A session is served for so many seconds, in the mean.
const SERVED: f64 = 150.0;
/// It is refused for at least so many seconds, and at most so many.
const REFUSED: (f64, f64) = (5.0, 120.0);

/// How each session is treated.
#[derive(Debug)]
pub(super) struct Moods {
    seed: u64,
    sessions: BTreeMap<u64, Mood>,
}

#[derive(Debug)]
struct Mood {
    stuck: bool,
    until: Moment,
    chance: Chance,
}

impl Moods {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, sessions: BTreeMap::new() }
    }

    /// Whether this session is refused now.
    pub(super) fn stuck(&mut self, session: u64, now: Moment) -> bool {
        let seed = self.seed;
        let mood = self.sessions.entry(session).or_insert_with(|| Mood::new(seed, session));
        while mood.until <= now {
            mood.stuck = !mood.stuck;
            mood.until = mood.until + seconds(mood.lasts());
        }
        mood.stuck
    }
}

impl Mood {
    /// As it is at some moment of a long time.
    fn new(seed: u64, session: u64) -> Self {
        let mut chance = Chance::new(seed, Stream::Session(session));
        let refused = f64::midpoint(REFUSED.0, REFUSED.1);
        let stuck = chance.share() < refused / (refused + SERVED);
        let mut mood = Self { stuck, until: Moment::ZERO, chance };
        let lasts = mood.lasts();
        // What is left of an exponential time is spread like the whole of it.
        let left = if stuck { lasts * mood.chance.share() } else { lasts };
        mood.until = Moment::after_start(seconds(left));
        mood
    }

    /// How long it stays as it is.
    fn lasts(&mut self) -> f64 {
        if self.stuck { self.chance.between(REFUSED.0, REFUSED.1) } else { self.chance.exponential(SERVED) }
    }
}
