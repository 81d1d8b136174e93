//! A model service that keeps running out of capacity: the world of the demo.
//!
//! It has a fixed number of slots, one for each answer under way, and shares them with other customers. Most of
//! the time these leave room; in an episode they take all of it, but for a second now and then. Who comes and
//! finds no slot is refused at once, in one of the four ways that services use. What the others do is drawn from
//! a seed and depends on nothing but the time since the start: two services of one seed are the same service.
//!
//! All times in here are the service's own, which may run faster than the clock on the wall ([`Speed`]).

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::fixtures::{anthropic, chat, codex};
use crate::scene::{Ask, Scene};
use crate::script::{Event, Reply, Script};
use crate::upstream::{Seen, Upstream};

/// How many answers the service can work on at once.
pub const SLOTS: usize = 8;
/// How many seconds are drawn; then it all begins again.
const DRAWN: usize = 900;
/// How many slots the others take while there is room.
const CALM: std::ops::RangeInclusive<usize> = 1..=3;
/// For how many seconds there is room.
const CALM_FOR: std::ops::RangeInclusive<usize> = 10..=22;
/// How many seconds an episode takes.
pub const EPISODE_FOR: std::ops::RangeInclusive<usize> = 4..=16;
/// In how many seconds of an episode a slot comes free.
const GAPS: f64 = 0.12;
/// From the request to the refusal.
const REFUSED_AFTER: Duration = Duration::from_millis(150);
/// Pauses in a stream are gathered until they are worth a timer, which counts in milliseconds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// How many times faster than the clock on the wall the service's time runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed(pub NonZeroU32);

impl Speed {
    /// What the clock on the wall shows for a time of the service.
    #[must_use]
    pub fn wall(self, service: Duration) -> Duration {
        service / self.0.get()
    }

    /// What it is to the service for the clock on the wall to show this.
    #[must_use]
    pub fn service(self, wall: Duration) -> Duration {
        wall * self.0.get()
    }
}

/// What the other customers do, second by second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The slots they take.
    taken: Vec<usize>,
    /// The seconds of each episode.
    episodes: Vec<std::ops::Range<usize>>,
}

impl Load {
    /// The load of this seed. It begins with room.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let (mut taken, mut episodes) = (Vec::with_capacity(DRAWN), Vec::new());
        while taken.len() < DRAWN {
            for _ in 0..dice.usize(CALM_FOR) {
                taken.push(dice.usize(CALM));
            }
            let began = taken.len();
            for _ in 0..dice.usize(EPISODE_FOR) {
                taken.push(if dice.f64() < GAPS { SLOTS - 1 } else { SLOTS });
            }
            episodes.push(began..taken.len());
        }
        Self { taken, episodes }
    }

    /// The slots that the others take.
    #[must_use]
    pub fn taken(&self, at: Duration) -> usize {
        self.taken[self.second(at)]
    }

    /// Whether it is one of the times when next to nobody is served.
    #[must_use]
    pub fn in_episode(&self, at: Duration) -> bool {
        let second = self.second(at);
        self.episodes.iter().any(|episode| episode.contains(&second))
    }

    fn second(&self, at: Duration) -> usize {
        usize::try_from(at.as_secs()).unwrap_or(usize::MAX) % self.taken.len()
    }
}

/// The hard limit on what is under way at once.
#[derive(Debug)]
struct Gate {
    load: Load,
    /// When each of our answers will be done.
    busy_until: Vec<Duration>,
}

impl Gate {
    /// Whether a request that comes `at` gets a slot; it keeps it for as long as its answer takes.
    fn admits(&mut self, at: Duration, takes: Duration) -> bool {
        self.busy_until.retain(|until| *until > at);
        let free = self.busy_until.len() + self.load.taken(at) < SLOTS;
        if free {
            self.busy_until.push(at + takes);
        }
        free
    }
}

/// How a service says that it has no capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// 503 with a code.
    Status503,
    /// 529.
    Status529,
    /// 200, and a failure inside the stream.
    InStream,
    /// 200, and an error for a body.
    InBody,
}

impl Refusal {
    /// How this send of this call is refused, if it is.
    fn of(seed: u64, call: usize, send: u32, streams: bool) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed ^ ((call as u64) << 32) ^ u64::from(send));
        match dice.u32(0..100) {
            0..45 => Self::Status503,
            45..60 => Self::Status529,
            60..90 if streams => Self::InStream,
            60.. => Self::InBody,
        }
    }

    fn reply(self) -> Reply {
        match self {
            Self::Status503 => codex::overloaded_503(),
            Self::Status529 => anthropic::overloaded_529(),
            Self::InStream => Reply::sse(codex::overloaded_stream()),
            Self::InBody => Reply::status(200).json(codex::overloaded_body()),
        }
    }
}

/// What the service knows of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// How often it was sent.
    pub sends: u32,
    /// When it last got a slot.
    pub slot_at: Option<Duration>,
}

struct World {
    scene: Arc<Scene>,
    speed: Speed,
    seed: u64,
    load: Load,
    gate: Mutex<Gate>,
    records: Mutex<Vec<Record>>,
}

impl World {
    fn reply(&self, seen: &Seen) -> Reply {
        let call = seen.json()["metadata"]["call"].as_str().and_then(|call| call.parse().ok());
        let Some((call, ask)) = call.and_then(|call: usize| Some((call, self.scene.asks.get(call)?))) else {
            return Reply::status(404)
                .json(chat::error("invalid_request_error", "the demo has no such call"));
        };
        let at = self.speed.service(seen.at);
        let admitted = self.gate.lock().unwrap_or_else(PoisonError::into_inner).admits(at, ask.takes);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let record = &mut records[call];
        record.sends += 1;
        if admitted {
            record.slot_at = Some(at);
            return answer(ask, self.speed);
        }
        let refusal = Refusal::of(self.seed, call, record.sends, ask.streams);
        refusal.reply().after(self.speed.wall(REFUSED_AFTER))
    }
}

/// The service, listening on a free port of loopback.
pub struct Overloaded {
    world: Arc<World>,
    upstream: Upstream,
}

impl Overloaded {
    /// Starts it; its time begins now.
    ///
    /// # Errors
    /// Where the system has no port for it.
    pub async fn start(scene: Arc<Scene>, speed: Speed, seed: u64) -> io::Result<Self> {
        let load = Load::of(seed);
        let world = Arc::new(World {
            gate: Mutex::new(Gate { load: load.clone(), busy_until: Vec::new() }),
            records: Mutex::new(vec![Record::default(); scene.asks.len()]),
            scene,
            speed,
            seed,
            load,
        });
        let answering = Arc::clone(&world);
        let script = Script::by(move |seen, _| answering.reply(seen)).forgetting_bodies();
        Ok(Self { world, upstream: Upstream::start(script).await? })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.upstream.addr()
    }

    /// The time of the service.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.world.speed.service(self.upstream.now())
    }

    /// Whether an episode is on.
    #[must_use]
    pub fn in_episode(&self) -> bool {
        self.world.load.in_episode(self.now())
    }

    /// What became of a call so far.
    #[must_use]
    pub fn record(&self, call: usize) -> Record {
        self.world.records.lock().unwrap_or_else(PoisonError::into_inner)[call]
    }
}

/// A whole answer that takes its time: a fifth until the first word, the rest spread over what follows.
fn answer(ask: &Ask, speed: Speed) -> Reply {
    let takes = speed.wall(ask.takes);
    let text = "word ".repeat(ask.words);
    if !ask.streams {
        return Reply::status(200).json(chat::completion(&text)).after(takes);
    }
    let first = takes / 5;
    let events = codex::turn(&text);
    let each = (takes - first) / u32::try_from(events.len()).unwrap_or(u32::MAX);
    let (mut paced, mut owed) = (Vec::with_capacity(events.len() * 2), Duration::ZERO);
    for event in events {
        owed += each;
        if owed >= SHORTEST_PAUSE {
            paced.push(Event::pause(std::mem::take(&mut owed)));
        }
        paced.push(event);
    }
    Reply::sse(paced).after(first)
}

/// Whether an answer is what was asked for, and not a refusal with the status of a success.
#[must_use]
pub fn is_whole(ask: &Ask, answer: &crate::Answer) -> bool {
    if answer.status != 200 || answer.ending != crate::Ending::Complete {
        return false;
    }
    if ask.streams {
        return answer.events().last().is_some_and(|(name, _)| name == "response.completed");
    }
    answer.json()["choices"].as_array().is_some_and(|choices| choices.iter().all(Value::is_object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, scene};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_seed_is_a_world() {
        for seed in [0, 1, u64::MAX] {
            assert_eq!(Load::of(seed), Load::of(seed));
        }
        assert_ne!(Load::of(1), Load::of(2));
        // The demo's own seed, to the second: a change here changes what everybody sees.
        let load = Load::of(1);
        let shown: String = (0..70).map(|at| if load.in_episode(s(at)) { '#' } else { '.' }).collect();
        assert_eq!(shown, "..................############............####..............#####.....");
    }

    #[test]
    fn episodes_come_and_go_and_the_load_goes_on_for_ever() {
        for seed in 0..200 {
            let load = Load::of(seed);
            assert!(!load.in_episode(Duration::ZERO));
            assert!(load.episodes.iter().all(|episode| EPISODE_FOR.contains(&episode.len())));
            let full = (0..900).filter(|at| load.in_episode(s(*at))).count();
            assert!((250..550).contains(&full), "seed {seed}: {full} of 900 s");
            assert!((0..5000).all(|at| load.in_episode(s(at)) == (load.taken(s(at)) >= SLOTS - 1)));
        }
    }

    #[test]
    fn never_more_than_the_slots_are_under_way() {
        let mut gate = Gate { load: Load { taken: vec![3], episodes: Vec::new() }, busy_until: Vec::new() };
        let admitted = |gate: &mut Gate, at| (0..9).filter(|_| gate.admits(s(at), s(4))).count();
        assert_eq!([0, 1, 3, 4].map(|at| admitted(&mut gate, at)), [5, 0, 0, 5]);
    }

    #[test]
    fn each_way_of_refusing_is_used_where_it_can_be() {
        let of = |streams| (0..400).map(move |call| Refusal::of(7, call, 1, streams));
        let count = |streams, wanted| of(streams).filter(|refusal| *refusal == wanted).count();
        assert_eq!(count(false, Refusal::InStream), 0);
        for refusal in [Refusal::Status503, Refusal::Status529, Refusal::InStream, Refusal::InBody] {
            assert!(count(true, refusal) > 20, "{refusal:?}");
        }
        assert!(of(true).eq(of(true)));
    }

    #[tokio::test]
    async fn an_admitted_call_is_whole_and_a_refused_one_is_not() {
        for scene in scene::all(1, true) {
            let scene = Arc::new(scene);
            let speed = Speed(NonZeroU32::new(1000).unwrap());
            let service = Overloaded::start(Arc::clone(&scene), speed, 1).await.unwrap();
            let (mut whole, mut refused) = (0, 0);
            for (number, ask) in scene.asks.iter().enumerate().take(40) {
                let mut client = Client::connect(service.addr()).await.unwrap();
                let answer = client.ask(&ask.request(number)).await.unwrap();
                let got = is_whole(ask, &answer);
                assert_eq!(got, service.record(number).slot_at.is_some(), "{}", answer.text());
                *if got { &mut whole } else { &mut refused } += 1;
            }
            assert!(whole > 0, "{}: {whole} served, {refused} refused", scene.name);
        }
    }
}
