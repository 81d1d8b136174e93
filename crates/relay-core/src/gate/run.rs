//! Different sessions that were refused in a row, with nothing accepted between them: what shuts a lane.

use crate::moment::Moment;

/// So many different sessions shut a lane.
const SESSIONS: usize = 2;

/// The refusals in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    sessions: usize,
    /// When the first and the last of them were sent.
    first: Moment,
    last: Option<Moment>,
}

impl Run {
    /// A session that was not being refused is refused.
    pub(super) fn refused(&mut self, sent: Moment) {
        self.first = if self.sessions == 0 { sent } else { self.first.min(sent) };
        self.sessions += 1;
        self.last = self.last.max(Some(sent));
    }

    /// A send was accepted.
    pub(super) fn accepted(&mut self, sent: Moment) {
        if sent >= self.first {
            self.sessions = self.sessions.saturating_sub(1);
        }
    }

    /// Whether a send that was accepted comes after all that were refused.
    pub(super) fn is_over(&self, sent: Moment) -> bool {
        self.last.is_none_or(|last| sent > last)
    }

    /// Whether an acceptance, which counts for one of them, leaves enough to shut a lane.
    pub(super) const fn is_long(&self) -> bool {
        self.sessions >= SESSIONS
    }

    pub(super) const fn end(&mut self) {
        self.sessions = 0;
    }

    pub(super) const fn first(&self) -> Moment {
        self.first
    }

    /// From so many silent sends on, a lane is not shut whatever else there is.
    pub(super) const fn matters(&self) -> usize {
        self.sessions + 1
    }

    /// Whether the lane is to blame. `silent`: sends since the first refusal that a shut lane would have refused by
    /// now. `young`: sends that it may still refuse.
    pub(super) const fn shuts(&self, silent: usize, young: usize) -> bool {
        self.sessions >= SESSIONS + 2 * silent + young / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    #[test]
    fn two_sessions_in_a_row_shut_a_lane() {
        let mut run = Run::default();
        assert!(!run.shuts(0, 0));
        run.refused(at(5));
        assert!(!run.shuts(0, 0));
        run.refused(at(4));
        assert!(run.shuts(0, 3) && !run.shuts(0, 4) && !run.shuts(1, 0));
        assert_eq!(run.first(), at(4));
        run.refused(at(6));
        assert!(run.shuts(0, 4));
        run.accepted(at(7));
        assert!(run.is_long());
        run.accepted(at(7));
        assert!(!run.is_long());
    }

    #[test]
    fn what_was_sent_before_the_refusals_says_nothing_about_them() {
        let mut run = Run::default();
        run.refused(at(5));
        run.refused(at(6));
        run.accepted(at(4));
        assert!(run.shuts(0, 0) && !run.is_over(at(6)));
        run.accepted(at(5));
        assert!(!run.shuts(0, 0) && run.is_over(at(7)));
        run.end();
        run.refused(at(8));
        assert!(!run.shuts(0, 0));
    }
}
