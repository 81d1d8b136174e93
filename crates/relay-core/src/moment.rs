//! Time as a value. What it is not: a clock. Nothing in this crate can find out what time it is; whoever
//! calls it says so, which is what lets a test play six hours in a microsecond.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the relay's own time line: the time since some fixed start, sleep of the machine included.
///
/// Not an `Instant`, which cannot be made without reading a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The start of the time line.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The end of the time line, which never comes.
    pub const LAST: Self = Self(Duration::MAX);

    /// The moment that lies `since_start` after the start of the time line.
    #[must_use]
    pub const fn after_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// How long after the start of the time line this is.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to here; zero where `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Saturates: a wait of "for ever" is the last moment there is, not an overflow.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let second = Duration::from_secs(1);
        assert_eq!(Moment::ZERO - second, Moment::ZERO);
        assert_eq!(Moment::after_start(Duration::MAX) + second, Moment::after_start(Duration::MAX));
        assert_eq!(Moment::ZERO.since(Moment::ZERO + second), Duration::ZERO);
    }
}
