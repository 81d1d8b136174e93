//! What the end of a call says of the relay and of the service. This is the one place that tells which calls count, and as
//! what: `stats`, the status page, `top` and the dashboard's charts all add these up.
//!
//! Success is the share of the calls that were served, of all that are judged; without the relay it is that of the calls
//! that their first send alone would have served. The extra wait is that of the calls that waited.

use relay_core::event::Outcome;

use super::record::{CallRecord, WaitWhy};

/// How a call ended, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its client got a real answer, and would have got it from its first send alone.
    ServedByFirst,
    /// Its client got a real answer, and without the relay it would not have.
    Saved,
    /// Its client got a definite error of the service, which says nothing of its capacity.
    Passed,
    /// Its failure went back as it was.
    Returned,
    /// It was refused or given up.
    Lost,
    /// Its answer broke off.
    Broken,
    /// It was cut; the client resumes in another one, and that one counts.
    Cut,
    /// Its client left after a fault or a wait.
    LeftWaiting,
    /// Its client left before either.
    Left,
}

/// What is asked of a call that ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Way {
    /// Something was done for it: it was sent again, or an earlier answer of its turn was cut.
    pub was_helped: bool,
    /// It met a fault, or waited.
    pub was_troubled: bool,
}

impl Fate {
    /// That of a call with this outcome; `None` is what another version calls by another name.
    #[must_use]
    pub const fn of(outcome: Option<Outcome>, way: Way) -> Self {
        match outcome {
            Some(Outcome::Served) if way.was_helped => Self::Saved,
            Some(Outcome::Served) => Self::ServedByFirst,
            Some(Outcome::Passed) => Self::Passed,
            Some(Outcome::Returned) => Self::Returned,
            Some(Outcome::Refused | Outcome::GaveUp) => Self::Lost,
            Some(Outcome::Cut) => Self::Cut,
            Some(Outcome::ClientLeft) if way.was_troubled => Self::LeftWaiting,
            Some(Outcome::ClientLeft) => Self::Left,
            Some(Outcome::Broken) | None => Self::Broken,
        }
    }

    /// The same, by the outcome's name.
    #[must_use]
    pub fn named(outcome: &str, way: Way) -> Self {
        Self::of(Outcome::ALL.into_iter().find(|known| known.name() == outcome), way)
    }

    /// That of a call; `None`: it has no end.
    #[must_use]
    pub fn of_call(call: &CallRecord) -> Option<Self> {
        let closed = call.closed.as_ref()?;
        let has_failed = call.sends.iter().any(|of| of.failed.is_some());
        let way = Way {
            was_helped: !first_send_serves(call),
            was_troubled: has_failed || closed.waited > 0 || closed.last_fault.is_some(),
        };
        Some(Self::named(&closed.outcome, way))
    }

    /// Whether its client got a real answer.
    #[must_use]
    pub const fn is_served(self) -> bool {
        matches!(self, Self::ServedByFirst | Self::Saved)
    }

    /// Whether it shows that the relay, or the service alone, did well or not.
    #[must_use]
    pub const fn is_judged(self) -> bool {
        match self {
            Self::ServedByFirst
            | Self::Saved
            | Self::Returned
            | Self::Lost
            | Self::Broken
            | Self::LeftWaiting => true,
            Self::Passed | Self::Cut | Self::Left => false,
        }
    }
}

/// Whether nothing had to be done for a call that was served: its first send went through, and no earlier answer of its
/// turn had been cut.
fn first_send_serves(call: &CallRecord) -> bool {
    call.sends.first().is_none_or(|first| {
        let after_cut = first.wait.as_ref().is_some_and(|wait| wait.why == WaitWhy::Cut);
        first.failed.is_none() && !after_cut && first.send <= 1
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use relay_core::event::{CallId, Closing, Event};
    use relay_core::{Fault, Moment};

    use super::*;
    use crate::history::assemble::Assembler;
    use crate::history::tests::{opened, refused, waits};
    use crate::history::{Point, record::CallRecord};
    use crate::observe::Observer as _;
    use crate::observe::status::{Status, Totals};
    use crate::stats::Slot;
    use crate::stats::tally::{Sums, Tally};

    /// The events of a call that fails so often, after another one was cut or not, and ends like this.
    fn events(faults: u32, after_cut: bool, outcome: Outcome) -> Vec<Event> {
        let mut all = vec![opened()];
        if after_cut {
            all.push(waits(1, 3));
        }
        for send in 1..=faults {
            all.extend([Event::SendStarted { send }, refused(send, None), waits(send + 1, 2)]);
        }
        all.push(Event::SendStarted { send: faults + 1 });
        let waited = Duration::from_secs(u64::from(faults) * 2 + if after_cut { 3 } else { 0 });
        all.push(Event::CallClosed(Closing {
            sends: faults + 1,
            waited,
            last_fault: (faults > 0).then_some(Fault::AtCapacity),
            capacity_faults: faults,
            took: waited,
            ..Closing::new(outcome)
        }));
        all
    }

    /// Calls that end in every way, as the history and the status page see them.
    pub(crate) fn ends() -> (Vec<CallRecord>, Totals) {
        let (mut assembler, status) = (Assembler::default(), Status::default());
        let mut id = 0;
        for outcome in Outcome::ALL {
            for (faults, after_cut) in [(0, false), (0, true), (2, false), (2, true)] {
                id += 1;
                for event in events(faults, after_cut, outcome) {
                    assembler.see(CallId(id), Moment::ZERO, &event);
                    status.see(CallId(id), Moment::ZERO, &event);
                }
            }
        }
        (assembler.take_changed(), status.totals())
    }

    #[test]
    fn the_status_page_and_the_statistics_and_the_charts_count_alike() {
        let (calls, totals) = ends();
        let mut tally = Tally::default();
        calls.iter().for_each(|call| tally.see(call, None, &|_| Slot { weekday: 0, hour: 0, day: 0 }));
        let Sums { judged, served, served_by_first, waits, .. } = tally.all;
        assert_eq!(
            (totals.calls_judged, totals.calls_served, totals.calls_saved, totals.calls_waited),
            (judged, served, served - served_by_first, waits.count())
        );
        assert!((totals.waited_s * 1000.0 - waits.sum() as f64).abs() < 0.5);
        // Of four that are served, one needs nothing; five other outcomes are judged, of which one only after trouble.
        assert_eq!((judged, served, served_by_first, waits.count()), (4 + 4 * 4 + 3, 4, 1, 8 * 3));
        let fates: Vec<_> = calls.iter().filter_map(|call| Point::of(call).fate).collect();
        let count = |of: fn(Fate) -> bool| fates.iter().filter(|fate| of(**fate)).count() as u64;
        assert_eq!((count(Fate::is_judged), count(Fate::is_served)), (judged, served));
    }

    #[test]
    fn what_another_version_calls_differently_was_not_served() {
        let fate = Fate::named("sung", Way::default());
        assert!(fate.is_judged() && !fate.is_served());
    }
}
