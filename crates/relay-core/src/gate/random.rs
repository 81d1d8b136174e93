//! Whether a lane refuses at random, in which case shutting it gains nothing: refusals come right after the end of a
//! shut time, and neither timed probes nor own completions predict an acceptance.
//!
//! Where slots are short and the service is far away, a probe sometimes takes the place that a call of ours has left
//! before the next one of ours gets there. So sends after own completions are refused now and then, and that is random
//! only where probes fare no better.

use super::numbers::Share;
use crate::moment::Moment;

/// From this share of false ends on a lane may be random.
const FALSE_ENDS: f64 = 0.3;
/// And from this share of refusals, of probes and of sends after own completions alike.
const REFUSED: f64 = 0.15;
/// From this share of what probes are refused on, own completions predict nothing.
const AS_PROBES: f64 = 0.5;
/// So many outcomes decide whether an end was real.
const OUTCOMES: u8 = 3;

/// What a lane has seen of its own judgement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Judgement {
    pub(super) after_completion: Share,
    pub(super) probes: Share,
    /// Ends of shut times: false ones, all.
    pub(super) ends: Share,
    /// Outcomes still to come that decide about the last end, and since when they count.
    watch: Option<(u8, Moment)>,
}

impl Judgement {
    /// A send after an own completion came back.
    pub(super) fn completion_used(&mut self, refused: bool) {
        self.after_completion.saw(refused, 0.99);
    }

    /// A timed probe came back.
    pub(super) fn probed(&mut self, refused: bool) {
        self.probes.saw(refused, 0.98);
    }

    /// A send other than after an own completion, of a session that was not being refused, came back.
    pub(super) fn came_back(&mut self, sent: Moment, refused: bool) {
        let Some((left, since)) = self.watch else { return };
        if sent <= since {
            return;
        }
        if refused || left <= 1 {
            self.watch = None;
            self.ends.saw(refused, 0.9);
        } else {
            self.watch = Some((left - 1, since));
        }
    }

    /// A shut time ended, as it seems.
    pub(super) fn ended(&mut self, now: Moment) {
        self.watch.get_or_insert((OUTCOMES, now));
    }

    /// The share of sends after own completions that are refused.
    pub(super) fn refused_after_completion(&self) -> f64 {
        self.after_completion.with_prior(0.75, 3.0)
    }

    pub(super) fn is_random(&self) -> bool {
        let (completions, probes) = (self.refused_after_completion(), self.probes.with_prior(0.75, 3.0));
        self.ends.with_prior(0.25, 4.0) > FALSE_ENDS
            && completions.min(probes) > REFUSED
            && completions > AS_PROBES * probes
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
    fn an_end_is_false_with_one_refusal_and_true_with_three_acceptances() {
        let mut judgement = Judgement::default();
        judgement.ended(at(10));
        judgement.came_back(at(10), true);
        assert_eq!(judgement.ends.all, 0.0);
        for sent in 11..14 {
            judgement.came_back(at(sent), false);
        }
        assert_eq!((judgement.ends.yes, judgement.ends.all), (0.0, 1.0));
        judgement.ended(at(20));
        judgement.came_back(at(21), true);
        judgement.came_back(at(22), true);
        assert_eq!((judgement.ends.yes, judgement.ends.all), (1.0, 1.9));
    }

    #[test]
    fn places_that_probes_take_now_and_then_are_no_chance() {
        let mut judgement = Judgement::default();
        for turn in 0..20 {
            judgement.ended(at(2 * turn));
            judgement.came_back(at(2 * turn + 1), true);
            judgement.probed(true);
            judgement.completion_used(turn % 4 == 0);
        }
        assert!(judgement.refused_after_completion() > REFUSED && !judgement.is_random());
        for turn in 0..40 {
            judgement.completion_used(turn % 4 != 0);
        }
        assert!(judgement.is_random(), "where they fare no better than probes, they are");
    }

    #[test]
    fn false_ends_make_a_lane_random_unless_something_predicts_acceptance() {
        let mut judgement = Judgement::default();
        assert!(!judgement.is_random());
        for second in 0..4 {
            judgement.ended(at(2 * second));
            judgement.came_back(at(2 * second + 1), true);
        }
        assert!(judgement.is_random());
        let mut own_places = judgement;
        for _ in 0..20 {
            own_places.completion_used(false);
        }
        assert!(!own_places.is_random());
        for _ in 0..20 {
            judgement.probed(false);
        }
        assert!(!judgement.is_random());
    }
}
