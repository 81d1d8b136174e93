//! How many calls of ours ran when the lane was full the last time: an open lane does not run into that again at once.

use std::time::Duration;

use crate::moment::Moment;

/// In this time the remembered number doubles.
const DOUBLES: Duration = Duration::from_secs(120);

/// The remembered number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    found: Option<(f64, Moment)>,
}

impl Room {
    /// The lane refused a call while so many were running.
    pub(super) fn full_at(&mut self, running: usize, now: Moment) {
        if running > 0 {
            self.found = Some((running as f64, now));
        }
    }

    /// So many are running.
    pub(super) fn holds(&mut self, running: usize, now: Moment) {
        if let Some((most, _)) = self.found
            && running as f64 >= most
        {
            self.found = Some((running as f64, now));
        }
    }

    /// Whether one more than these would be one more than there was room for, as far as is remembered.
    pub(super) fn is_full(&self, taken: usize, now: Moment) -> bool {
        self.found.is_some_and(|(most, at)| {
            let doublings = now.since(at).as_secs_f64() / DOUBLES.as_secs_f64();
            taken as f64 >= (most * 2f64.powf(doublings)).floor().max(1.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_full_grows_again_with_time_and_with_what_runs() {
        let at = |seconds| Moment::after_start(Duration::from_secs(seconds));
        let mut room = Room::default();
        assert!(!room.is_full(1000, at(0)));
        room.full_at(0, at(0));
        assert!(!room.is_full(1000, at(0)));
        room.full_at(8, at(0));
        assert!(room.is_full(8, at(1)) && !room.is_full(7, at(1)));
        assert!(room.is_full(15, at(119)) && !room.is_full(8, at(119)));
        assert!(!room.is_full(15, at(120)));
        room.holds(12, at(100));
        assert!(room.is_full(12, at(101)));
    }
}
