//! What a call does in its lane: it comes, its turn comes, its send ends. The gate hears of all of it, and the breaker of
//! what tells whether the upstream works.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use relay_core::breaker::{self, Breaker, Passage};
use relay_core::call::Waiting;
use relay_core::event::CallId;
use relay_core::failure::Failure;
use relay_core::gate::{Arrival, Gate, Refusal, Settled};

use super::{Lane, Turn};
use crate::clock::RealDice;
use crate::quota::{Remembered, Spent};

/// A call's place in its lane, from its arrival to its end. Dropped, it is given up, wherever it was.
pub(crate) struct Ticket {
    lane: Arc<Lane>,
    call: CallId,
    /// Its turn has come, and its send has begun.
    sent: bool,
    /// That send is the probe of the lane's breaker.
    probes: bool,
    entered: bool,
}

impl Ticket {
    pub(crate) const fn new(lane: Arc<Lane>, call: CallId) -> Self {
        Self { lane, call, sent: false, probes: false, entered: false }
    }

    /// Whether it is one of this lane.
    pub(crate) fn is_in(&self, lane: &Arc<Lane>) -> bool {
        Arc::ptr_eq(&self.lane, lane)
    }

    /// The call comes to its lane.
    pub(crate) fn enter(&mut self, arrival: Arrival, waiting: Waiting) -> Turn {
        self.entered = true;
        self.lane.enter(self.call, waiting, |gate, now, _| gate.arrive(arrival, now))
    }

    /// Whether its lane is parked.
    pub(crate) fn is_parked(&self) -> bool {
        self.lane.state().gate.parked(self.lane.clock.now()).is_some()
    }

    /// What was answered to the call, which parks its lane when it is settled.
    pub(crate) fn remember(&self, spent: Spent) {
        self.lane.state().spent = Some(Arc::new(spent));
    }

    /// What was answered when its lane was parked.
    pub(crate) fn remembered(&self) -> Remembered {
        self.lane.state().spent.clone()
    }

    /// Its turn has come: whether the breaker lets it go, too. Of many whose turn comes at once, one is the probe.
    pub(crate) fn passes(&mut self) -> bool {
        let mut passage = Passage::Free;
        if self.lane.strained.load(Ordering::Relaxed) {
            self.lane.breaks(|breaker, now| {
                passage = breaker.passes(now);
                None
            });
        }
        self.probes = passage == Passage::Probe;
        passage != Passage::Barred
    }

    /// Its send begins.
    pub(crate) fn sends(&mut self) {
        self.sent = true;
        if !self.probes && self.lane.strained.load(Ordering::Relaxed) {
            let probes = &mut self.probes;
            self.lane.breaks(|breaker, now| {
                *probes = breaker.sends(now);
                None
            });
        }
    }

    /// Its send failed; what the breaker makes of that goes by these rules, where it has one.
    pub(crate) fn failed(&mut self, failure: &Failure, rules: Option<&breaker::Rules>) {
        let probed = std::mem::take(&mut self.probes);
        match rules.filter(|_| breaker::is_hard(failure)) {
            Some(rules) => {
                self.lane.breaks(|breaker, now| breaker.failed(failure.fault, probed, rules, now));
            }
            None => self.probed_in_vain(probed),
        }
    }

    fn probed_in_vain(&self, probed: bool) {
        if probed {
            self.lane.breaks(|breaker, _| {
                breaker.said_nothing(probed);
                None
            });
        }
    }

    /// A success's head came.
    pub(crate) fn heard(&self) {
        self.lane.tell(|gate, _, _| gate.heard(self.call));
    }

    /// Its answer was committed.
    pub(crate) fn accepted(&mut self) {
        self.lane.tell(|gate, now, _| gate.accepted(self.call, now));
        self.lane.state().closed.accepts(self.lane.clock.now());
        self.probes = false;
        if self.lane.strained.load(Ordering::Relaxed) {
            self.lane.breaks(Breaker::answered);
        }
    }

    /// Its answer came to its end, whole.
    pub(crate) fn served(&self) {
        if self.lane.strained.load(Ordering::Relaxed) {
            self.lane.breaks(Breaker::succeeded);
        }
    }

    /// Its send is over. It waits again, or has left.
    pub(crate) fn settled(&mut self, settled: Settled, waiting: Option<Waiting>) -> Option<Turn> {
        let call = self.call;
        self.sent = false;
        let tell = |gate: &mut Gate, now, dice: &mut RealDice| gate.settled(call, settled, now, dice);
        if let Some(waiting) = waiting {
            return Some(self.lane.enter(call, waiting, tell));
        }
        self.entered = false;
        self.lane.tell(tell);
        None
    }

    /// Its answer told of a want of capacity after its beginning, and is over.
    pub(crate) fn refused_late(&mut self, refusal: Refusal) {
        self.entered = false;
        self.lane.tell(|gate, now, dice| gate.refused_late(self.call, refusal, now, dice));
    }

    /// The call is over, wherever it was.
    pub(crate) fn leave(&mut self) {
        let probed = std::mem::take(&mut self.probes);
        self.probed_in_vain(probed);
        if std::mem::take(&mut self.entered) {
            let call = self.call;
            let unsent = !self.sent;
            self.lane.tell(|gate, now, _| gate.left(call, unsent, now));
            self.lane.state().waiters.remove(&call);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.leave();
    }
}
