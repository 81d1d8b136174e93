//! A lane as a person sees it.

use std::time::Duration;

use super::line::Waiting;
use super::{Gate, Parked};
use crate::breaker::Circuit;
use crate::event::CallId;
use crate::fault::Fault;
use crate::moment::Moment;

/// So long after its next call would be sent at once a lane that nobody asks is no longer shown as shut: clients that were
/// sent away come again sooner.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Why a lane is shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shut {
    /// Different sessions were refused in a row: with this fault the last time.
    Refused(Fault),
    /// A send stays without a sign for longer than any before it.
    Slow,
    /// As many calls run as ran when it was full the last time.
    Full,
    /// Its quota is spent: it is parked until there is one again, or asked whether there is.
    Spent,
}

impl Shut {
    /// The name in status and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused(fault) => fault.name(),
            Self::Slow => "slow",
            Self::Full => "full",
            Self::Spent => Fault::QuotaSpent.name(),
        }
    }
}

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The call.
    pub call: CallId,
    /// Its session, as a number that only tells it from others.
    pub session: u64,
    /// Its place in line, from 1.
    pub position: usize,
    /// Its own earliest moment, where that is still to come.
    pub not_before: Option<Moment>,
}

/// A lane at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Why it is shut and since when; `None`: it is open, or nobody asks it any more.
    pub shut: Option<(Shut, Moment)>,
    /// When the next call is sent, as far as time alone decides it.
    pub next: Option<Moment>,
    /// The upstream asked that nothing is sent before.
    pub hold: Option<Moment>,
    /// Since when it is parked, and until when.
    pub parked: Option<Parked>,
    /// How many calls wait.
    pub waiting: usize,
    /// Those that wait, in their order; no more than were asked for.
    pub line: Vec<Place>,
    /// Sends without a sign yet.
    pub pending: usize,
    /// Accepted calls that are being answered.
    pub running: usize,
    /// The most that may run at once, where the settings say so.
    pub max_running: Option<usize>,
    /// The usual time until a shut lane takes calls again, where one was seen.
    pub recovery: Option<Duration>,
    /// The rate that a rate limit leaves, in sends a second.
    pub rate: Option<f64>,
    /// It refuses at random: holding others back would gain nothing.
    pub random: bool,
    /// What its breaker says, which is not the gate's to know.
    pub circuit: Circuit,
}

impl Gate {
    /// The lane as it stands, with the first `most` calls of its line. It costs more than a logarithm.
    #[must_use]
    pub fn view(&mut self, most: usize, now: Moment) -> View {
        self.seat_newcomer();
        let hold = self.hold(now);
        let probe = self.shut.map(|shut| shut.due()).filter(|_| !self.line.is_empty());
        let floor = hold.max(if self.rules.rate { self.rate.holds_until(now) } else { None });
        let own = if self.line.ready() == 0 { self.line.next_ready() } else { None };
        let lane = if self.line.is_empty() { None } else { probe.max(floor).max(own) };
        let next = if lane.is_some() { lane } else { self.plain.next_ready() };
        let place = |(index, waiting): (usize, &Waiting)| Place {
            call: waiting.call,
            session: waiting.session,
            position: index + 1,
            not_before: (waiting.not_before > now).then_some(waiting.not_before),
        };
        let mut line = self.line.shown(most);
        line.extend(self.plain.shown(most.saturating_sub(line.len())));
        View {
            shut: self.shown_shut(now),
            next,
            hold,
            parked: self.parked(now),
            waiting: self.waiting(),
            line: line.into_iter().enumerate().map(place).collect(),
            pending: self.sends.len(),
            running: self.running.len(),
            // What no server has is no number.
            max_running: self.rules.max_running.filter(|most| *most < u32::MAX as usize),
            recovery: self.recovery.shown(),
            rate: self.rate.known().filter(|_| self.rules.rate),
            random: self.is_random(),
            circuit: Circuit::Closed,
        }
    }

    /// Why the lane is shut and since when, for those who look at it. Not where the next call would be sent at once, and
    /// has been awaited for a minute: what was heard last is old, and holds nobody. The gate itself keeps it in mind, so
    /// that of many calls which come then one asks first.
    #[must_use]
    pub fn shown_shut(&self, now: Moment) -> Option<(Shut, Moment)> {
        self.shut().filter(|_| self.forgotten_at().is_none_or(|at| now < at))
    }

    /// When that is; `None`: it is open, or in use.
    #[must_use]
    pub fn forgotten_at(&self) -> Option<Moment> {
        let shut = self.shut.filter(|_| self.is_idle())?;
        let rate = if self.rules.rate { self.rate.holds_until(self.busy) } else { None };
        let free = shut.due().max(self.hold).max(self.busy);
        Some(rate.map_or(free, |rate| rate.max(free)) + FORGOTTEN)
    }
}
