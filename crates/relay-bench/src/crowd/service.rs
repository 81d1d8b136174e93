//! The service: answers take their time and come in pieces, and who comes when there is no capacity is refused.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use relay_sim::fixtures::{chat, codex};
use relay_sim::{Event, Reply, Script, Seen, Signal, Upstream};

use super::clients::{CALL, call_of};
use super::world::{Given, SLOTS, Short, World};

/// From a request to its refusal, in seconds of the world.
const REFUSED_AFTER: f64 = 0.15;
/// The pieces of an answer after its first byte.
const PIECES: u32 = 6;

/// What the service saw.
#[derive(Debug, Clone, Default)]
pub(super) struct Sends {
    /// All requests.
    pub(super) all: usize,
    /// When it refused one.
    pub(super) refused: Vec<f64>,
}

/// The service, listening on a free port of loopback.
pub(super) struct Service {
    upstream: Upstream,
    state: Arc<State>,
}

struct State {
    world: World,
    capacity: Mutex<Capacity>,
    sends: Mutex<Sends>,
}

enum Capacity {
    /// The answers under way, and when each is over even if nobody took all of it.
    Slots(Vec<(Signal, f64)>),
    Episodes(Vec<Range<f64>>),
}

impl Service {
    pub(super) async fn start(world: &World, short: Short) -> Result<Self> {
        let capacity = match short {
            Short::Slots => Capacity::Slots(Vec::new()),
            Short::Episodes => Capacity::Episodes(world.episodes(world.until + super::LAST_CALLS)),
        };
        let state =
            Arc::new(State { world: world.clone(), capacity: Mutex::new(capacity), sends: Mutex::default() });
        let answering = Arc::clone(&state);
        let script = Script::by(move |seen, _| answering.reply(seen)).forgetting_bodies();
        Ok(Self { upstream: Upstream::start(script).await?, state })
    }

    /// `host:port`.
    pub(super) fn address(&self) -> String {
        self.upstream.addr().to_string()
    }

    pub(super) fn seen(&self) -> Sends {
        lock(&self.state.sends).clone()
    }
}

impl State {
    fn reply(&self, seen: &Seen) -> Reply {
        let Some((client, number)) = seen.header(CALL).and_then(call_of) else {
            return Reply::status(404).json(chat::error("invalid_request_error", "no call of the crowd"));
        };
        let given = self.world.given(client, number);
        let now = self.world.now();
        let admitted = lock(&self.capacity).admit(now, given.takes);
        let mut sends = lock(&self.sends);
        sends.all += 1;
        let Some(over) = admitted else {
            sends.refused.push(now);
            return codex::overloaded_503().after(self.world.real(REFUSED_AFTER));
        };
        drop(sends);
        let text = "word ".repeat(PIECES as usize);
        // Before the first word there are one event or four.
        let (events, first) = if seen.path().ends_with("/responses") {
            (codex::turn(&text), 4)
        } else {
            (chat::stream(&text), 1)
        };
        self.answer(events, first, given, over)
    }

    /// All up to the `first` word comes with the first byte, and then one event at a time, until the end comes at once.
    fn answer(&self, events: Vec<Event>, first: usize, given: Given, over: Signal) -> Reply {
        let pause = self.world.real(given.takes - given.first) / PIECES;
        let mut paced = Vec::with_capacity(events.len() + PIECES as usize + 1);
        for (place, event) in events.into_iter().enumerate() {
            if (first + 1..=first + PIECES as usize).contains(&place) {
                paced.push(Event::pause(pause));
            }
            paced.push(event);
        }
        // The slot is free before anybody hears of the end.
        paced.insert(paced.len() - 1, Event::tell(over));
        Reply::sse(paced).after(self.world.real(given.first))
    }
}

impl Capacity {
    /// Whether a request is answered; and what is to be told when the answer is over.
    fn admit(&mut self, now: f64, takes: f64) -> Option<Signal> {
        let over = Signal::new();
        let admitted = match self {
            Self::Slots(busy) => {
                busy.retain(|(over, late)| !over.released() && *late > now);
                let free = busy.len() < SLOTS;
                if free {
                    busy.push((over.clone(), now + 2.0 * takes));
                }
                free
            }
            Self::Episodes(episodes) => !episodes.iter().any(|episode| episode.contains(&now)),
        };
        admitted.then_some(over)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_when_its_answer_is_over_and_not_before() {
        let mut capacity = Capacity::Slots(Vec::new());
        let held: Vec<_> = (0..SLOTS).map(|_| capacity.admit(0.0, 10.0).unwrap()).collect();
        assert!(capacity.admit(10.0, 10.0).is_none());
        held[3].release();
        assert!(capacity.admit(10.0, 10.0).is_some() && capacity.admit(10.0, 10.0).is_none());
    }

    #[test]
    fn an_episode_refuses_everybody() {
        let mut capacity = Capacity::Episodes(vec![5.0..6.0]);
        let admitted = [4.9, 5.0, 5.9, 6.0].map(|at| capacity.admit(at, 1.0).is_some());
        assert_eq!(admitted, [true, false, false, true]);
    }
}
