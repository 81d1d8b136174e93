//! The policies the gate is compared with. Each decides for one request alone, after each of its refusals; one of them
//! has a breaker for all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use relay_core::dice::Dice;
use relay_core::event::CallId;
use relay_core::moment::Moment;

use crate::admission::{Admission, Class, Foresight, Newcomer, Poll, Refused};
use crate::chance::seconds;

/// A policy that decides for one request alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Baseline {
    /// One send.
    Once,
    /// The Node proxy: doubling waits from 1 s, a second of chance on top, nothing heard of a Retry-After, and a send
    /// without an answer is cut after 120 s.
    NodeProxy {
        /// The most sends.
        sends: u32,
        /// The longest wait in seconds.
        cap: f64,
    },
    /// codex-retry: doubling waits from 1.5 s, 120 s in all, 60 s for an answer.
    CodexRetry {
        /// After eleven failures within 5 minutes everything fails for 10.
        breaker: bool,
    },
    /// opencodex's retry layer: three sends, short waits.
    OpenCodex,
    /// What a client's own resends are like: doubling waits from 0.5 s, up to a quarter longer.
    Client {
        /// The most resends.
        resends: u32,
        /// The longest wait in seconds.
        cap: f64,
    },
    /// Any wait up to one that doubles, for as long as the client waits.
    FullJitter {
        /// The longest wait in seconds.
        cap: f64,
    },
}

impl Baseline {
    /// How long a refused call waits before it is sent again; not at all, and it fails.
    pub fn wait(self, refused: &Refused, dice: &mut dyn Dice) -> Option<Duration> {
        let sends = refused.sends;
        let told = refused.told.unwrap_or_default().as_secs_f64();
        let mut between = |low: f64, high: f64| low + (high - low) * dice.share();
        let wait = match self {
            Self::Once => return None,
            Self::NodeProxy { sends: most, cap } => {
                (sends < most).then(|| doubled(1.0, sends).min(cap) + between(0.0, 1.0))?
            }
            Self::CodexRetry { .. } => {
                let resends = if refused.class == Class::Rate { 3 } else { 5 };
                let wait = match refused.told {
                    Some(told) => told.as_secs_f64().clamp(1.5, 300.0),
                    None => (doubled(1.5, sends) + between(0.0, 1.0)).min(60.0),
                };
                let wait = wait + between(-0.3, 0.3);
                (sends <= resends && refused.waited.as_secs_f64() + wait <= 120.0).then_some(wait)?
            }
            Self::OpenCodex => {
                let wait = doubled(0.4, sends).min(5.0) * between(0.8, 1.2);
                (sends < 3 && refused.took <= Duration::from_secs(15) && told <= 60.0)
                    .then_some(wait.max(told))?
            }
            Self::Client { resends, cap } => {
                let wait = doubled(0.5, sends).min(cap) * between(1.0, 1.25);
                (sends <= resends && told <= 60.0).then_some(wait.max(told))?
            }
            Self::FullJitter { cap } => between(0.0, doubled(1.0, sends).min(cap)).max(told).max(0.05),
        };
        (!refused.late).then(|| seconds(wait))
    }

    /// A send without an answer is given up after this time.
    #[must_use]
    pub const fn cuts_after(self) -> Option<Duration> {
        match self {
            Self::NodeProxy { .. } => Some(Duration::from_secs(120)),
            Self::CodexRetry { .. } => Some(Duration::from_secs(60)),
            Self::Once | Self::OpenCodex | Self::Client { .. } | Self::FullJitter { .. } => None,
        }
    }

    /// All calls of a world under this policy.
    #[must_use]
    pub fn admission(self) -> Alone {
        let breaker = (self == Self::CodexRetry { breaker: true }).then(Breaker::default);
        Alone { policy: self, due: BTreeSet::new(), moments: BTreeMap::new(), breaker }
    }
}

/// `base`, doubled with each send after the first.
fn doubled(base: f64, sends: u32) -> f64 {
    base * f64::from(1_u32 << sends.saturating_sub(1).min(20))
}

/// Calls that know nothing of each other, and when each is due.
#[derive(Debug)]
pub struct Alone {
    policy: Baseline,
    due: BTreeSet<(Moment, CallId)>,
    moments: BTreeMap<CallId, Moment>,
    breaker: Option<Breaker>,
}

impl Alone {
    fn put(&mut self, call: CallId, moment: Moment) {
        self.due.insert((moment, call));
        self.moments.insert(call, moment);
    }

    fn take(&mut self, call: CallId) {
        if let Some(moment) = self.moments.remove(&call) {
            self.due.remove(&(moment, call));
        }
    }
}

impl Admission for Alone {
    fn arrive(&mut self, newcomer: Newcomer, now: Moment) {
        self.put(newcomer.call, now);
    }

    fn poll(&mut self, now: Moment, _service: &dyn Foresight, _dice: &mut dyn Dice) -> Poll {
        let Some(&(moment, call)) = self.due.first() else { return Poll::Idle };
        if moment > now {
            return Poll::Wait(moment);
        }
        self.take(call);
        if self.breaker.as_ref().is_some_and(|breaker| now < breaker.open_until) {
            return Poll::Fail(call);
        }
        Poll::Send(call)
    }

    fn refused(&mut self, refused: &Refused, now: Moment, dice: &mut dyn Dice) -> bool {
        let wait = self.policy.wait(refused, dice);
        match (wait, &mut self.breaker) {
            (Some(wait), _) => self.put(refused.call, now + wait),
            (None, Some(breaker)) => breaker.failed(now),
            (None, None) => {}
        }
        wait.is_some()
    }

    fn left(&mut self, call: CallId, _now: Moment) {
        self.take(call);
    }

    fn cuts_after(&self) -> Option<Duration> {
        self.policy.cuts_after()
    }
}

/// After so many failures within so long, nothing is sent for so long.
const FAILURES: usize = 10;
const FAILURES_WITHIN: Duration = Duration::from_secs(300);
const OPEN_FOR: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
struct Breaker {
    failures: VecDeque<Moment>,
    open_until: Moment,
}

impl Breaker {
    fn failed(&mut self, now: Moment) {
        self.failures.retain(|moment| now.since(*moment) < FAILURES_WITHIN);
        self.failures.push_back(now);
        if self.failures.len() > FAILURES {
            self.open_until = now + OPEN_FOR;
            self.failures.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relay_core::fault::Fault;

    /// Chance that always falls on the middle.
    struct Middle;

    impl Dice for Middle {
        fn share(&mut self) -> f64 {
            0.5
        }
    }

    fn waits(policy: Baseline, class: Class, told: Option<u64>) -> Vec<f64> {
        let mut waited = Duration::ZERO;
        let mut all = Vec::new();
        for sends in 1..=12 {
            let told = told.map(Duration::from_secs);
            let took = Duration::from_millis(200);
            let refused = Refused { call: CallId(1), sends, class, told, took, waited, late: false };
            let Some(wait) = policy.wait(&refused, &mut Middle) else { break };
            waited += wait;
            all.push(wait.as_secs_f64());
        }
        all
    }

    #[test]
    fn each_waits_as_it_should() {
        let full = Class::Capacity(Fault::AtCapacity);
        assert_eq!(waits(Baseline::Once, full, None), [0.0; 0]);
        let node = Baseline::NodeProxy { sends: 8, cap: 30.0 };
        assert_eq!(waits(node, full, None), [1.5, 2.5, 4.5, 8.5, 16.5, 30.5, 30.5]);
        assert_eq!(waits(node, full, Some(9)), waits(node, full, None));
        let codex = Baseline::CodexRetry { breaker: false };
        assert_eq!(waits(codex, full, None), [2.0, 3.5, 6.5, 12.5, 24.5]);
        assert_eq!(waits(codex, Class::Rate, None), [2.0, 3.5, 6.5]);
        assert_eq!(waits(codex, full, Some(0)), [1.5; 5]);
        assert_eq!(waits(codex, full, Some(50)), [50.0, 50.0], "120 s in all");
        assert_eq!(waits(Baseline::OpenCodex, full, None), [0.4, 0.8]);
        assert_eq!(waits(Baseline::OpenCodex, full, Some(61)), [0.0; 0]);
        let sdk = Baseline::Client { resends: 2, cap: 8.0 };
        assert_eq!(waits(sdk, full, None), [0.5625, 1.125]);
        let jitter = Baseline::FullJitter { cap: 30.0 };
        assert_eq!(waits(jitter, full, None)[..7], [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]);
        assert_eq!(waits(jitter, full, Some(3))[..4], [3.0, 3.0, 3.0, 4.0]);
    }

    #[test]
    fn the_breaker_opens_at_the_eleventh_failure_for_ten_minutes() {
        let mut breaker = Breaker::default();
        let at = |second| Moment::after_start(Duration::from_secs(second));
        (0..10).for_each(|second| breaker.failed(at(second)));
        assert_eq!(breaker.open_until, Moment::ZERO);
        breaker.failed(at(299));
        assert_eq!(breaker.open_until, at(899));
        let mut slow = Breaker::default();
        (0..40).for_each(|number| slow.failed(at(number * 31)));
        assert_eq!(slow.open_until, Moment::ZERO, "never eleven within 5 minutes");
    }
}
