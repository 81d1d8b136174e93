//! How long a shut lane usually takes to accept again, learned from timed probes.

use std::time::Duration;

use super::numbers::span;

/// Before anything is seen: two recoveries within twenty seconds.
const PRIOR: (f64, f64) = (2.0, 20.0);
/// The mean where nothing is learned.
pub(super) const FIXED: f64 = 10.0;

/// Recoveries seen and the time that shut lanes were watched for them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recovery {
    pub(super) seen: f64,
    pub(super) exposure: f64,
}

impl Recovery {
    /// A timed probe came back; `exposure`: how long the lane had gone unwatched when it was sent.
    pub(super) fn probed(&mut self, accepted: bool, exposure: Duration) {
        let exposure = exposure.as_secs_f64();
        if accepted {
            self.seen = 0.9 * self.seen + 1.0;
            self.exposure = 0.9 * self.exposure + exposure;
        } else {
            self.exposure += exposure;
        }
    }

    /// The mean time to recovery, in seconds.
    pub(super) fn mean(&self) -> f64 {
        (self.exposure + PRIOR.1) / (self.seen + PRIOR.0)
    }

    /// The same for a person, once a recovery was seen.
    pub(super) fn shown(&self) -> Option<Duration> {
        (self.seen > 0.0).then(|| span(self.mean()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_begins_at_ten_seconds_and_follows_what_is_seen() {
        let mut recovery = Recovery::default();
        assert!((recovery.mean() - FIXED).abs() < 1e-9);
        assert_eq!(recovery.shown(), None);
        for _ in 0..200 {
            for accepted in [false, false, true] {
                recovery.probed(accepted, Duration::from_secs(20));
            }
        }
        assert!((48.0..49.0).contains(&recovery.mean()), "{}", recovery.mean());
    }
}
