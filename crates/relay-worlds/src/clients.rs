//! Who asks: groups of clients, how long their requests take, and when they ask again.

use std::time::Duration;

use relay_core::moment::Moment;

use crate::chance::{Chance, Stream, seconds};

/// A group of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clients {
    /// A person who reads for 20 s before the next question.
    OneUser,
    /// Ten agents, each a session of its own, that go on after 3 s.
    TenAgents,
    /// Thirty such agents in five sessions of 14, 8, 4, 3 and 1.
    FiveSessions,
    /// A hundred requests at once, three times.
    HundredAtOnce,
    /// A hundred requests by four workers.
    Batch,
    /// One session of sixty agents that never rest, and ten that think for 10 s and wait for 90 s at most.
    Mixed,
}

/// How big the services are that this group meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Slots of a pool that others use too.
    pub shared: usize,
    /// Slots of the group's own.
    pub own: usize,
    /// Slots of its own where refusals stick to sessions too.
    pub own_sticky: usize,
    /// Requests a second of a rate limit.
    pub rate: f64,
}

/// How a group behaves.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Agents by session; each thinks, asks, and waits for its answer.
    Loop { sessions: &'static [usize], think: f64 },
    /// So many requests by so many workers, one after the other.
    Batch { total: usize, workers: usize },
    /// So many requests at once, so many times, with this time between.
    Burst { at_once: usize, times: usize, every: f64 },
    /// A session of many agents that hardly rest, and sessions of one agent.
    Mixed { heavy: usize, light: usize, think: f64 },
}

/// A batch begins at some moment of this time.
const BATCH_BEGINS_WITHIN: f64 = 200.0;
/// A worker of a batch needs this long for the next request, in seconds.
const WORKER_PAUSE: f64 = 0.05;
/// An agent of the heavy session rests for so long, in seconds.
const HEAVY_PAUSE: f64 = 0.1;
/// A person at one of the light sessions waits for so long.
const LIGHT_PATIENCE: Duration = Duration::from_secs(90);

impl Clients {
    /// Every group.
    pub const ALL: [Self; 6] =
        [Self::OneUser, Self::TenAgents, Self::FiveSessions, Self::HundredAtOnce, Self::Batch, Self::Mixed];

    /// The name in tables and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneUser => "1-user",
            Self::TenAgents => "10-agents",
            Self::FiveSessions => "5-sessions",
            Self::HundredAtOnce => "100-at-once",
            Self::Batch => "batch-100",
            Self::Mixed => "60+10",
        }
    }

    /// For how long new requests come.
    #[must_use]
    pub const fn until(self) -> Duration {
        Duration::from_secs(match self {
            Self::OneUser | Self::TenAgents => 3600,
            Self::FiveSessions | Self::Mixed => 1800,
            Self::HundredAtOnce => 2700,
            Self::Batch => 4000,
        })
    }

    /// How big its services are.
    #[must_use]
    pub const fn sizes(self) -> Sizes {
        match self {
            Self::OneUser => Sizes { shared: 40, own: 1, own_sticky: 1, rate: 0.05 },
            Self::TenAgents => Sizes { shared: 40, own: 8, own_sticky: 8, rate: 0.5 },
            Self::FiveSessions => Sizes { shared: 60, own: 20, own_sticky: 18, rate: 1.5 },
            Self::HundredAtOnce => Sizes { shared: 80, own: 20, own_sticky: 20, rate: 1.0 },
            Self::Batch => Sizes { shared: 40, own: 3, own_sticky: 3, rate: 0.25 },
            Self::Mixed => Sizes { shared: 80, own: 20, own_sticky: 20, rate: 1.5 },
        }
    }

    const fn shape(self) -> Shape {
        match self {
            Self::OneUser => Shape::Loop { sessions: &[1], think: 20.0 },
            Self::TenAgents => Shape::Loop { sessions: &[1; 10], think: 3.0 },
            Self::FiveSessions => Shape::Loop { sessions: &[14, 8, 4, 3, 1], think: 3.0 },
            Self::HundredAtOnce => Shape::Burst { at_once: 100, times: 3, every: 1200.0 },
            Self::Batch => Shape::Batch { total: 100, workers: 4 },
            Self::Mixed => Shape::Mixed { heavy: 60, light: 10, think: 10.0 },
        }
    }
}

/// How long the service works on a request, in seconds: median 8, from 2 to 60.
pub fn takes(chance: &mut Chance) -> f64 {
    chance.lognormal(8.0, 0.8).clamp(2.0, 60.0)
}

/// The mean of [`takes`], roughly: what other users' load is reckoned with.
pub const MEAN_TAKES: f64 = 11.0;

/// How long it takes until the first byte of an answer, in seconds: median 1.2.
pub fn first_byte(chance: &mut Chance) -> f64 {
    chance.lognormal(1.2, 0.5).clamp(0.3, 60.0)
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Who asks.
    pub client: usize,
    /// The session it belongs to.
    pub session: u64,
    /// Whether that is the heaviest session.
    pub heavy: bool,
    /// How long its client waits, where that is not what the world says.
    pub patience: Option<Duration>,
    /// How long it runs once it was accepted.
    pub takes: Duration,
    /// How long it is until the first byte of its answer.
    pub first_byte: Duration,
}

/// The clients of one world.
#[derive(Debug)]
pub struct Crowd {
    shape: Shape,
    ends: Moment,
    chance: Vec<Chance>,
    left: usize,
}

impl Crowd {
    /// The clients of this seed; the last new request comes at `until`.
    #[must_use]
    pub fn new(clients: Clients, until: Duration, seed: u64) -> Self {
        let shape = clients.shape();
        let (count, left) = match shape {
            Shape::Loop { sessions, .. } => (sessions.iter().sum(), 0),
            Shape::Batch { total, workers } => (workers, total),
            Shape::Burst { at_once, .. } => (at_once, 0),
            Shape::Mixed { heavy, light, .. } => (heavy + light, 0),
        };
        let chance = (0..count).map(|client| Chance::new(seed, Stream::Client(client))).collect();
        Self { shape, ends: Moment::after_start(until), chance, left }
    }

    /// When each client asks for the first time; one client may do so several times.
    pub fn begin(&mut self, start: &mut Chance) -> Vec<(Moment, usize)> {
        let within = |chance: &mut Chance, most| Moment::after_start(seconds(chance.between(0.0, most)));
        let each = self.chance.iter_mut().enumerate();
        match self.shape {
            Shape::Loop { think, .. } => {
                each.map(|(client, chance)| (within(chance, think.max(10.0)), client)).collect()
            }
            Shape::Mixed { .. } => each.map(|(client, chance)| (within(chance, 30.0), client)).collect(),
            Shape::Batch { workers, .. } => {
                let first = within(start, BATCH_BEGINS_WITHIN);
                (0..workers).map(|client| (first, client)).collect()
            }
            Shape::Burst { at_once, times, every } => {
                let first = within(start, every / 2.0);
                let moment = |time: usize| first + seconds(every).mul_f64(time as f64);
                let at = |time| (0..at_once).map(move |client| (moment(time), client));
                (0..times).flat_map(at).collect()
            }
        }
    }

    /// The request this client makes now; none where the batch is empty.
    pub fn request(&mut self, client: usize) -> Option<Request> {
        if matches!(self.shape, Shape::Batch { .. }) {
            self.left = self.left.checked_sub(1)?;
        }
        let session = self.session(client);
        let heavy = match self.shape {
            Shape::Mixed { .. } => session == 0,
            Shape::Loop { sessions, .. } => {
                session == 0 && sessions.first().is_some_and(|agents| *agents > 1)
            }
            Shape::Batch { .. } | Shape::Burst { .. } => false,
        };
        let patience = (matches!(self.shape, Shape::Mixed { .. }) && !heavy).then_some(LIGHT_PATIENCE);
        let chance = self.chance.get_mut(client)?;
        let (takes, first_byte) = (takes(chance), first_byte(chance));
        let (takes, first_byte) = (seconds(takes.max(first_byte)), seconds(first_byte));
        Some(Request { client, session, heavy, patience, takes, first_byte })
    }

    /// When this client asks again after its request ended now; never, where there is nothing left to ask.
    pub fn again(&mut self, client: usize, now: Moment) -> Option<Moment> {
        let chance = self.chance.get_mut(client)?;
        let pause = match self.shape {
            Shape::Loop { think, .. } => chance.exponential(think),
            Shape::Mixed { heavy, .. } if client < heavy => HEAVY_PAUSE,
            Shape::Mixed { think, .. } => chance.exponential(think),
            Shape::Batch { .. } if self.left > 0 => WORKER_PAUSE,
            Shape::Batch { .. } | Shape::Burst { .. } => return None,
        };
        let moment = now + seconds(pause);
        (matches!(self.shape, Shape::Batch { .. }) || moment <= self.ends).then_some(moment)
    }

    fn session(&self, client: usize) -> u64 {
        match self.shape {
            Shape::Loop { sessions, .. } => {
                let mut upto = 0;
                let ended = sessions.iter().take_while(|agents| {
                    upto += **agents;
                    upto <= client
                });
                ended.count() as u64
            }
            Shape::Mixed { heavy, .. } if client < heavy => 0,
            Shape::Mixed { .. } | Shape::Batch { .. } | Shape::Burst { .. } => client as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_have_the_agents_they_should() {
        let count = |clients: Clients| {
            let mut crowd = Crowd::new(clients, clients.until(), 1);
            let mut by_session = std::collections::BTreeMap::<u64, usize>::new();
            for client in 0..crowd.chance.len() {
                *by_session.entry(crowd.request(client).unwrap().session).or_default() += 1;
            }
            by_session.into_values().collect::<Vec<_>>()
        };
        assert_eq!(count(Clients::FiveSessions), [14, 8, 4, 3, 1]);
        assert_eq!(count(Clients::TenAgents), [1; 10]);
        assert_eq!(count(Clients::OneUser), [1]);
        assert_eq!(count(Clients::Batch), [1; 4]);
        assert_eq!(count(Clients::Mixed), [[60].as_slice(), &[1; 10]].concat());
    }

    #[test]
    fn a_request_takes_as_long_as_other_load_is_reckoned_with() {
        let mut chance = Chance::new(1, Stream::Client(0));
        let mean = (0..100_000).map(|_| takes(&mut chance)).sum::<f64>() / 100_000.0;
        assert!((mean - MEAN_TAKES).abs() < 0.5, "{mean}");
    }

    #[test]
    fn a_batch_ends_and_a_burst_comes_three_times() {
        let mut batch = Crowd::new(Clients::Batch, Clients::Batch.until(), 1);
        assert_eq!((0..1000).filter(|worker| batch.request(worker % 4).is_some()).count(), 100);
        assert_eq!(batch.again(0, Moment::ZERO), None);
        let mut burst = Crowd::new(Clients::HundredAtOnce, Clients::HundredAtOnce.until(), 1);
        let begin = burst.begin(&mut Chance::new(1, Stream::Start));
        assert_eq!(begin.len(), 300);
        let apart = begin[299].0.since(begin[0].0).as_secs_f64();
        assert!((apart - 2400.0).abs() < 1e-3, "{apart}");
    }
}
