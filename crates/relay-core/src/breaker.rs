//! The circuit breaker of one lane: after enough hard failures nothing is sent there for a while, and then one probe
//! says whether it works again.
//!
//! What it is not: the gate. A service that refuses for a want of capacity works, and is asked again when the gate says
//! so; a breaker counts connections that fail and answers that are errors of the server. Nor does it count what is wrong
//! with a request.
//!
//! ```text
//!  closed --more than enough failures in the window--> open --the pause is over, one probe--> half open
//!    ^                                                   ^--------------- it fails -------------|
//!    '------------------------------------ it is answered --------------------------------------'
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::failure::{CREDENTIAL, Failure};
use crate::fault::Fault;
use crate::moment::Moment;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// It opens at so many hard failures within the window.
    pub failures: u32,
    /// How far back failures count.
    pub window: Duration,
    /// How long nothing is sent.
    pub pause: Duration,
    /// Whether it cuts off an upstream that no other one could stand in for.
    pub alone: bool,
}

impl Default for Rules {
    /// Five in a minute are no accident, and with another way through little is lost by half a minute. Where there is no
    /// other way, a call is better held than turned away.
    fn default() -> Self {
        Self { failures: 5, window: Duration::from_secs(60), pause: Duration::from_secs(30), alone: false }
    }
}

/// The most failures that can be counted: each is a moment that is kept.
pub const MOST_FAILURES: u32 = 1000;

/// Whether something may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    /// Whatever comes.
    Closed,
    /// One send, which is the probe.
    HalfOpen,
    /// Nothing before this moment: the pause ends then, or the probe that is under way may have told.
    Open(Moment),
}

/// How a send goes past it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Like any other.
    Free,
    /// As the probe.
    Probe,
    /// It does not: the breaker is open, or another one probes.
    Barred,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It opened, after so many failures.
    Opened {
        /// How many.
        failures: u32,
        /// When a probe is let through.
        until: Moment,
    },
    /// Its probe failed, and it is open for as long again.
    StaysOpen {
        /// When the next probe is let through.
        until: Moment,
    },
    /// It is closed again.
    Closed {
        /// How long it was open.
        after: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    /// `probe`: since when one is under way.
    Open {
        since: Moment,
        until: Moment,
        probe: Option<Moment>,
    },
}

/// So long a probe is waited for before another one may go: one whose answer is begun late must not shut out all others.
const PROBE: Duration = Duration::from_secs(60);

/// Whoever waits for what a probe tells looks again so soon.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// One breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    state: State,
    /// When it failed, oldest first.
    failures: VecDeque<Moment>,
    last: Option<Fault>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { state: State::Closed, failures: VecDeque::new(), last: None }
    }
}

impl Breaker {
    /// Whether something may be sent now.
    #[must_use]
    pub fn circuit(&self, now: Moment) -> Circuit {
        match self.state {
            State::Closed => Circuit::Closed,
            State::Open { until, .. } if now < until => Circuit::Open(until),
            // That may be told any moment.
            State::Open { probe: Some(began), .. } if now < began + PROBE => {
                Circuit::Open((began + PROBE).min(now + LOOK_AGAIN))
            }
            State::Open { .. } => Circuit::HalfOpen,
        }
    }

    /// Whether anything has failed that it remembers.
    #[must_use]
    pub fn is_strained(&self) -> bool {
        self.state != State::Closed || !self.failures.is_empty()
    }

    /// The last fault that was counted.
    #[must_use]
    pub const fn last(&self) -> Option<Fault> {
        self.last
    }

    /// A person wants to know whether it works again: the next send may go as a probe. False: nothing holds it.
    pub fn ask_now(&mut self, now: Moment) -> bool {
        match &mut self.state {
            State::Open { until, probe: None, .. } => {
                *until = now.min(*until);
                true
            }
            // One is on its way, and tells.
            State::Open { probe: Some(_), .. } | State::Closed => false,
        }
    }

    /// A send is about to begin that heeds it. Of many that come as the pause ends, one goes.
    pub fn passes(&mut self, now: Moment) -> Passage {
        match self.circuit(now) {
            Circuit::Closed => Passage::Free,
            Circuit::HalfOpen if self.sends(now) => Passage::Probe,
            Circuit::HalfOpen | Circuit::Open(_) => Passage::Barred,
        }
    }

    /// A send begins, whether it was asked or not: the probe, where it is half open. True: it is one. While one is under way
    /// another is none, and tells nothing of how that ends.
    pub fn sends(&mut self, now: Moment) -> bool {
        let is_one = self.circuit(now) == Circuit::HalfOpen;
        if let (State::Open { probe, .. }, true) = (&mut self.state, is_one) {
            *probe = Some(now);
        }
        is_one
    }

    /// An answer came to its end, whole.
    pub fn succeeded(&mut self, now: Moment) -> Option<Change> {
        self.failures.clear();
        self.answered(now)
    }

    /// A send is being answered: it works, as far as one can see by then. The answer may still break off, so what failed
    /// before is not forgotten.
    pub fn answered(&mut self, now: Moment) -> Option<Change> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => None,
            State::Open { since, .. } => Some(Change::Closed { after: now.since(since) }),
        }
    }

    /// A send ended in a way that says nothing; `probe`: it was one.
    pub fn said_nothing(&mut self, probed: bool) {
        if let (State::Open { probe, .. }, true) = (&mut self.state, probed) {
            *probe = None;
        }
    }

    /// A send failed hard; `probed`: it was a probe. What was under way when it opened tells nothing new.
    pub fn failed(&mut self, fault: Fault, probed: bool, rules: &Rules, now: Moment) -> Option<Change> {
        self.last = Some(fault);
        match &mut self.state {
            State::Open { until, probe, .. } => {
                if !probed {
                    return None;
                }
                (*until, *probe) = (now + rules.pause, None);
                Some(Change::StaysOpen { until: *until })
            }
            State::Closed => {
                self.failures.push_back(now);
                while self.failures.front().is_some_and(|at| now.since(*at) > rules.window) {
                    self.failures.pop_front();
                }
                let enough = rules.failures.clamp(1, MOST_FAILURES);
                if self.failures.len() < usize::try_from(enough).unwrap_or(usize::MAX) {
                    return None;
                }
                self.failures.clear();
                let until = now + rules.pause;
                self.state = State::Open { since: now, until, probe: None };
                Some(Change::Opened { failures: enough, until })
            }
        }
    }
}

/// Whether a failure is one of the way or of the server: hard failures are all that counts.
#[must_use]
pub fn is_hard(failure: &Failure) -> bool {
    match failure.fault {
        // What lacks a credential has not set out.
        Fault::NeverSent => failure.code.as_deref() != Some(CREDENTIAL),
        Fault::ServerFailed | Fault::BrokenStream | Fault::NoAnswer => true,
        Fault::AtCapacity
        | Fault::Overloaded
        | Fault::ModelLoading
        | Fault::Throttled
        | Fault::QuotaSpent
        | Fault::Authentication
        | Fault::BadRequest
        | Fault::TooLong
        | Fault::ContentRefused
        | Fault::Challenge
        | Fault::EmptyAnswer => false,
    }
}

#[cfg(test)]
mod tests;
