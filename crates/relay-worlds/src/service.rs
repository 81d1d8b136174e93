//! Services that run short, each in its own way. A service changes by itself as time passes, answers each send at once
//! with what will come of it, and is told when a request it accepted is over.
//!
//! What changes by itself draws from streams of its own: what a service does in a run does not depend on who is sent
//! when, except where it should.

mod bucket;
mod episodes;
mod moods;
mod pool;

use std::collections::VecDeque;
use std::time::Duration;

use relay_core::dice::Dice as _;
use relay_core::event::CallId;
use relay_core::fault::Fault;
use relay_core::moment::Moment;

use crate::admission::{Class, Foresight};
use crate::chance::{Chance, Stream, seconds};
use crate::clients::{Clients, Sizes};

use bucket::Tokens;
use episodes::Episodes;
use moods::Moods;
use pool::Pool;

/// What a service is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// Slots, which others use too where an outside load is named.
    Slots {
        /// How many.
        slots: usize,
        /// The load of the others.
        outside: Option<Outside>,
    },
    /// Episodes of overload.
    Overload(Overload),
    /// A limit of requests a second.
    Bucket(Bucket),
    /// Nothing is served until it has loaded, which the first send starts; then it has slots.
    Loading {
        /// How many.
        slots: usize,
    },
    /// Each send is refused with this probability; without one, it jumps about every minute.
    Random {
        /// The probability.
        share: Option<f64>,
    },
    /// A refusal sticks to its session for a while; other sessions are served.
    Sticky {
        /// It has no more slots than these, too.
        slots: Option<usize>,
        /// It has episodes of overload, too.
        episodes: bool,
    },
    /// Nothing is refused: what is more than this waits in the service's own line.
    Queue {
        /// So many run at once.
        slots: usize,
    },
}

/// The load of other users: it wanders around a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outside {
    /// The mean, as a share of what the slots can do.
    pub mean: f64,
    /// How far it strays.
    pub deviation: f64,
    /// How many seconds it takes to come back.
    pub memory: f64,
}

/// Episodes of overload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overload {
    /// Seconds between two, in the mean.
    pub healthy: f64,
    /// Seconds of one, in the mean.
    pub overloaded: f64,
    /// The share it refuses meanwhile.
    pub refuses: f64,
    /// A refusal takes from 10 to 190 s.
    pub slow: bool,
    /// Seconds by which every refused send prolongs it.
    pub prolongs: f64,
}

/// A limit of requests a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Requests a second.
    pub rate: f64,
    /// So many at once after a pause.
    pub burst: f64,
    /// What it says about when to come back.
    pub hint: Hint,
    /// So many requests a refused one costs.
    pub cost: f64,
    /// Whether it says that this is a rate limit.
    pub typed: bool,
}

/// The Retry-After of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Hint {
    /// None.
    Absent,
    /// Always zero.
    Zero,
    /// The time until the next request will be accepted, so many times.
    Times(f64),
}

/// What comes of a send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// It runs.
    Accepted,
    /// It waits in the service's own line.
    Queued,
    /// It is refused.
    Refused(Refusal),
}

/// A refusal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusal {
    /// How long it takes to arrive.
    pub takes: Duration,
    /// What kind it says it is.
    pub class: Class,
    /// When to come back, if it says so.
    pub told: Option<Duration>,
}

/// The shortest and the longest time a quick refusal takes, in seconds.
const QUICK: (f64, f64) = (0.1, 0.35);
/// The same of a slow one.
const SLOW: (f64, f64) = (10.0, 190.0);
/// The shortest and the longest time loading takes, in seconds.
const LOADING: (f64, f64) = (20.0, 30.0);
/// The probabilities a service jumps between that refuses at random.
const SHARES: [f64; 5] = [0.0, 0.1, 0.3, 0.6, 0.9];
/// The mean time between two jumps, in seconds.
const JUMPS: f64 = 60.0;

/// A service in one world.
#[derive(Debug)]
pub struct Service {
    kind: Kind,
    now: Moment,
    answers: Chance,
}

#[derive(Debug)]
enum Kind {
    Slots(Pool),
    Overload { model: Overload, episodes: Episodes },
    Bucket(Tokens),
    Loading { slots: usize, used: usize, ready: Option<Moment> },
    Random { share: f64, jumps: Option<Moment>, chance: Chance },
    Sticky { moods: Moods, slots: usize, used: usize, episodes: Option<Episodes> },
    Queue { slots: usize, used: usize, line: VecDeque<CallId> },
}

impl Service {
    /// A service of this seed.
    #[must_use]
    pub fn new(model: Model, seed: u64) -> Self {
        let chance = Chance::new(seed, Stream::Service);
        let kind = match model {
            Model::Slots { slots, outside } => Kind::Slots(Pool::new(slots, outside, seed)),
            Model::Overload(model) => {
                Kind::Overload { model, episodes: Episodes::new(model.healthy, model.overloaded, chance) }
            }
            Model::Bucket(bucket) => Kind::Bucket(Tokens::new(bucket)),
            Model::Loading { slots } => Kind::Loading { slots, used: 0, ready: None },
            Model::Random { share: Some(share) } => Kind::Random { share, jumps: None, chance },
            Model::Random { share: None } => Kind::Random { share: 0.0, jumps: Some(Moment::ZERO), chance },
            Model::Sticky { slots, episodes } => Kind::Sticky {
                moods: Moods::new(seed),
                slots: slots.unwrap_or(usize::MAX),
                used: 0,
                episodes: episodes.then(|| Episodes::new(70.0, 30.0, chance)),
            },
            Model::Queue { slots } => Kind::Queue { slots, used: 0, line: VecDeque::new() },
        };
        Self { kind, now: Moment::ZERO, answers: Chance::new(seed, Stream::Answers) }
    }

    /// Lets time pass until now.
    pub fn advance(&mut self, now: Moment) {
        self.now = now;
        match &mut self.kind {
            Kind::Slots(pool) => pool.advance(now),
            Kind::Overload { episodes, .. } => episodes.advance(now),
            Kind::Bucket(tokens) => tokens.refill(now),
            Kind::Random { share, jumps: Some(jumps), chance } => {
                while *jumps <= now {
                    *jumps = *jumps + seconds(chance.exponential(JUMPS));
                    *share =
                        SHARES.get((chance.share() * SHARES.len() as f64) as usize).copied().unwrap_or(0.0);
                }
            }
            Kind::Sticky { episodes: Some(episodes), .. } => episodes.advance(now),
            Kind::Random { jumps: None, .. }
            | Kind::Sticky { episodes: None, .. }
            | Kind::Loading { .. }
            | Kind::Queue { .. } => {}
        }
    }

    /// A send of this call, of this session, arrives now.
    pub fn send(&mut self, call: CallId, session: u64) -> Answer {
        let now = self.now;
        let quick = seconds(self.answers.between(QUICK.0, QUICK.1));
        let refused =
            |fault| Answer::Refused(Refusal { takes: quick, class: Class::Capacity(fault), told: None });
        match &mut self.kind {
            Kind::Slots(pool) => {
                if pool.take() {
                    Answer::Accepted
                } else {
                    refused(Fault::AtCapacity)
                }
            }
            Kind::Overload { model, episodes } => {
                if !episodes.refusing() || self.answers.share() >= model.refuses {
                    return Answer::Accepted;
                }
                episodes.prolong(model.prolongs);
                let takes = if model.slow { seconds(self.answers.log_even(SLOW.0, SLOW.1)) } else { quick };
                Answer::Refused(Refusal { takes, class: Class::Capacity(Fault::Overloaded), told: None })
            }
            Kind::Bucket(tokens) => match tokens.take() {
                Ok(()) => Answer::Accepted,
                Err(told) => Answer::Refused(Refusal { takes: quick, class: tokens.class(), told }),
            },
            Kind::Loading { slots, used, ready } => {
                let ready =
                    *ready.get_or_insert_with(|| now + seconds(self.answers.between(LOADING.0, LOADING.1)));
                if ready <= now && take(used, *slots) {
                    Answer::Accepted
                } else {
                    refused(Fault::ModelLoading)
                }
            }
            Kind::Random { share, .. } if self.answers.share() < *share => refused(Fault::AtCapacity),
            Kind::Random { .. } => Answer::Accepted,
            Kind::Sticky { moods, slots, used, episodes } => {
                let overloaded = episodes.as_ref().is_some_and(Episodes::refusing);
                if !moods.stuck(session, now) && !overloaded && take(used, *slots) {
                    Answer::Accepted
                } else {
                    refused(Fault::AtCapacity)
                }
            }
            Kind::Queue { slots, used, line } => {
                if take(used, *slots) {
                    return Answer::Accepted;
                }
                line.push_back(call);
                Answer::Queued
            }
        }
    }

    /// A request it accepted is over; gives the one of its own line that begins now.
    pub fn finished(&mut self) -> Option<CallId> {
        match &mut self.kind {
            Kind::Slots(pool) => pool.give_back(),
            Kind::Loading { used, .. } | Kind::Sticky { used, .. } => *used -= 1,
            Kind::Queue { used, line, .. } => {
                let next = line.pop_front();
                if next.is_none() {
                    *used -= 1;
                }
                return next;
            }
            Kind::Overload { .. } | Kind::Bucket(_) | Kind::Random { .. } => {}
        }
        None
    }
}

impl Foresight for Service {
    fn would_accept(&self) -> bool {
        match &self.kind {
            Kind::Slots(pool) => pool.has_room(),
            Kind::Overload { episodes, .. } => !episodes.refusing(),
            Kind::Bucket(tokens) => tokens.has_one(),
            Kind::Loading { slots, used, ready } => {
                ready.is_none_or(|ready| ready <= self.now && used < slots)
            }
            Kind::Sticky { slots, used, episodes, .. } => {
                used < slots && !episodes.as_ref().is_some_and(Episodes::refusing)
            }
            Kind::Random { .. } | Kind::Queue { .. } => true,
        }
    }

    fn next_change(&self) -> Option<Moment> {
        match &self.kind {
            Kind::Slots(pool) => pool.next_change(),
            Kind::Overload { episodes, .. } => Some(episodes.next_change()),
            Kind::Bucket(tokens) => Some(tokens.next(self.now)),
            Kind::Loading { ready, .. } => ready.filter(|ready| *ready > self.now),
            Kind::Sticky { episodes, .. } => episodes.as_ref().map(Episodes::next_change),
            Kind::Random { .. } | Kind::Queue { .. } => None,
        }
    }
}

/// Takes one of the slots, if one is free.
const fn take(used: &mut usize, slots: usize) -> bool {
    let free = *used < slots;
    if free {
        *used += 1;
    }
    free
}

/// A service by its name.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// The name in tables and on the command line.
    pub name: &'static str,
    model: fn(Sizes) -> Model,
    /// Too small for a single user: its one request never meets a limit.
    needs_company: bool,
}

impl Named {
    /// The service that these clients meet; none where they never would.
    #[must_use]
    pub fn model(&self, clients: Clients) -> Option<Model> {
        (clients != Clients::OneUser || !self.needs_company).then(|| (self.model)(clients.sizes()))
    }
}

/// The service of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Named> {
    ALL.iter().find(|service| service.name == name)
}

const fn anybody(name: &'static str, model: fn(Sizes) -> Model) -> Named {
    Named { name, model, needs_company: false }
}

const fn company(name: &'static str, model: fn(Sizes) -> Model) -> Named {
    Named { name, model, needs_company: true }
}

/// Short episodes of overload that refuse everything.
const SHORT: Overload =
    Overload { healthy: 70.0, overloaded: 30.0, refuses: 1.0, slow: false, prolongs: 0.0 };

fn limit(sizes: Sizes) -> Bucket {
    let burst = (sizes.rate * 8.0).max(2.0);
    Bucket { rate: sizes.rate, burst, hint: Hint::Absent, cost: 0.0, typed: true }
}

const fn random(share: f64) -> Model {
    Model::Random { share: Some(share) }
}

/// Every service, in the order of the tables.
pub const ALL: [Named; 24] = [
    anybody("U1-shared-slots", |sizes| Model::Slots {
        slots: sizes.shared,
        outside: Some(Outside { mean: 1.0, deviation: 0.25, memory: 90.0 }),
    }),
    company("U1b-own-slots", |sizes| Model::Slots { slots: sizes.own, outside: None }),
    anybody("U2-overload-p1", |_| Model::Overload(SHORT)),
    anybody("U2-overload-p0.8", |_| Model::Overload(Overload { refuses: 0.8, ..SHORT })),
    anybody("U2L-long-overload", |_| {
        Model::Overload(Overload { healthy: 200.0, overloaded: 120.0, ..SHORT })
    }),
    company("U3-rate-RA-accurate", |sizes| Model::Bucket(Bucket { hint: Hint::Times(1.0), ..limit(sizes) })),
    company("U3-rate-RA-absent", |sizes| Model::Bucket(limit(sizes))),
    company("U3-rate-RA-short", |sizes| Model::Bucket(Bucket { hint: Hint::Times(0.3), ..limit(sizes) })),
    company("U3-rate-RA-long", |sizes| Model::Bucket(Bucket { hint: Hint::Times(3.0), ..limit(sizes) })),
    company("U3-rate-rejects-cost", |sizes| Model::Bucket(Bucket { cost: 1.0, ..limit(sizes) })),
    company("U3-rate-RA-zero-untyped", |sizes| {
        Model::Bucket(Bucket { hint: Hint::Zero, typed: false, ..limit(sizes) })
    }),
    anybody("U4-slow-fail", |_| Model::Overload(Overload { slow: true, ..SHORT })),
    anybody("U5-warm-up", |sizes| Model::Loading { slots: sizes.own.max(4) }),
    anybody("U6-sustained", |_| Model::Overload(Overload { prolongs: 0.05, ..SHORT })),
    anybody("R-random-0.06", |_| random(0.06)),
    anybody("R-random-0.2", |_| random(0.2)),
    anybody("R-random-0.4", |_| random(0.4)),
    anybody("R-random-0.6", |_| random(0.6)),
    anybody("R-random-0.8", |_| random(0.8)),
    anybody("R-random-0.9", |_| random(0.9)),
    anybody("R-random-fluct", |_| Model::Random { share: None }),
    anybody("S-sticky", |_| Model::Sticky { slots: None, episodes: false }),
    company("S-sticky+slots", |sizes| Model::Sticky { slots: Some(sizes.own_sticky), episodes: false }),
    anybody("S-sticky+overload", |_| Model::Sticky { slots: None, episodes: true }),
];

#[cfg(test)]
mod tests;
