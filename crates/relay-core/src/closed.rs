//! Since when a lane takes no calls. Pure: how it stands is handed in, and when.
//!
//! It is closed while its gate is shut, while the upstream's own pause holds it, and while its breaker is not closed. A
//! call that is accepted begins the count anew: whatever the gate thinks, the service takes calls.

use std::time::Duration;

use crate::moment::Moment;

/// A lane that was open for less than this has let through the next send, and nobody knows what came of it: a pause that
/// is asked for again and again is one time of being closed.
const GAP: Duration = Duration::from_secs(60);

/// What there is to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Closed {
    /// Since when it is, or was the last time, and when that ends, or ended.
    span: Option<(Moment, Moment)>,
    accepted: Option<Moment>,
}

impl Closed {
    /// How the lane stands: shut, which has no end that is known, or held until a moment.
    pub fn sees(&mut self, shut: bool, held: Option<Moment>, now: Moment) {
        let end = if shut { Some(Moment::LAST) } else { held.filter(|end| *end > now) };
        self.span = match (self.span, end) {
            (Some((since, until)), Some(end)) if now <= until.min(now) + GAP => Some((since, end)),
            (Some(_) | None, Some(end)) => Some((now, end)),
            (Some((since, until)), None) => Some((since, until.min(now))),
            (None, None) => None,
        };
    }

    /// A call was accepted.
    pub fn accepts(&mut self, now: Moment) {
        self.accepted = Some(now);
        self.span = self.span.filter(|(_, until)| *until > now).map(|(_, until)| (now, until));
    }

    /// Since when it is closed; `None`: it is not.
    #[must_use]
    pub fn since(&self, now: Moment) -> Option<Moment> {
        self.span.filter(|(_, until)| *until > now).map(|(since, _)| since)
    }

    /// When it accepted a call the last time.
    #[must_use]
    pub const fn accepted(&self) -> Option<Moment> {
        self.accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn it_is_closed_from_the_first_reason_to_the_end_of_the_last() {
        let mut lane = Closed::default();
        lane.sees(false, None, at(1));
        assert_eq!(lane.since(at(1)), None);
        lane.sees(true, None, at(10));
        assert_eq!(lane.since(at(500)), Some(at(10)), "however long nobody looks");
        lane.sees(false, Some(at(700)), at(600));
        assert_eq!((lane.since(at(699)), lane.since(at(700))), (Some(at(10)), None));
        lane.sees(false, None, at(705));
        assert_eq!(lane.since(at(705)), None);
    }

    #[test]
    fn a_pause_that_is_asked_for_again_is_the_same_one() {
        let mut lane = Closed::default();
        lane.sees(false, Some(at(30)), at(0));
        lane.sees(false, Some(at(65)), at(35));
        assert_eq!(lane.since(at(40)), Some(at(0)));
        lane.sees(false, None, at(66));
        lane.sees(true, None, at(70));
        assert_eq!(lane.since(at(70)), Some(at(0)));
        lane.sees(false, None, at(80));
        lane.sees(true, None, at(500));
        assert_eq!(lane.since(at(500)), Some(at(500)), "one that nobody was refused by meanwhile");
        let mut unseen = Closed::default();
        unseen.sees(false, Some(at(30)), at(0));
        unseen.sees(true, None, at(500));
        assert_eq!(unseen.since(at(500)), Some(at(500)), "nor where nobody saw it end");
    }

    #[test]
    fn a_call_that_is_accepted_begins_it_anew() {
        let mut lane = Closed::default();
        lane.sees(true, None, at(0));
        lane.accepts(at(100));
        lane.sees(true, None, at(100));
        assert_eq!((lane.since(at(110)), lane.accepted()), (Some(at(100)), Some(at(100))));
        lane.sees(false, None, at(120));
        lane.accepts(at(121));
        lane.sees(true, None, at(130));
        assert_eq!(lane.since(at(130)), Some(at(130)));
    }
}
