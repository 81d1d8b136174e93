//! What the demo asks of a service: one dialogue, one batch, some long streams. And who asks: clients that know
//! nothing of each other, at most so many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::Request;
use crate::overload::{Overloaded, Speed};
use crate::sdk::Sdk;

/// One call, and what its answer will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Whether the answer is a stream.
    pub streams: bool,
    /// How long the service works on it, in the service's time.
    pub takes: Duration,
    /// How many words it has; in a stream, each is an event.
    pub words: usize,
}

impl Ask {
    /// The request. The service tells calls apart by their number.
    #[must_use]
    pub fn request(&self, number: usize) -> Request {
        let metadata = json!({ "call": number.to_string() });
        let words = format!("question {number} of the demo");
        let message = json!([{ "role": "user", "content": words }]);
        if self.streams {
            let body = json!({"model": "demo", "stream": true, "input": message, "metadata": metadata});
            return Request::post("/v1/responses").json(body);
        }
        let body = json!({"model": "demo", "messages": message, "metadata": metadata});
        Request::post("/v1/chat/completions").json(body)
    }
}

/// A scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// Its name.
    pub name: &'static str,
    /// The name for programs.
    pub id: &'static str,
    /// How many calls are open at once.
    pub at_once: usize,
    /// What a person needs to read an answer and ask again.
    pub pause: Duration,
    /// The calls, in order.
    pub asks: Vec<Ask>,
}

/// The three scenes. Quick ones have fewer calls.
#[must_use]
pub fn all(seed: u64, quick: bool) -> [Scene; 3] {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut asks = |calls, streams, seconds: std::ops::Range<f64>, words: std::ops::Range<usize>| {
        let mut ask = || {
            let share = dice.f64();
            let takes = Duration::from_secs_f64(seconds.start + share * (seconds.end - seconds.start));
            Ask { streams, takes, words: dice.usize(words.clone()) }
        };
        (0..calls).map(|_| ask()).collect::<Vec<_>>()
    };
    let calls = |full, few| if quick { few } else { full };
    [
        Scene {
            name: "single dialogue",
            id: "dialogue",
            at_once: 1,
            pause: Duration::from_secs(3),
            asks: asks(calls(16, 8), true, 1.5..3.5, 20..60),
        },
        Scene {
            name: "batch of 100",
            id: "batch",
            at_once: 5,
            pause: Duration::ZERO,
            asks: asks(100, false, 2.0..5.0, 20..40),
        },
        Scene {
            name: "long streams",
            id: "streams",
            at_once: 4,
            pause: Duration::ZERO,
            asks: asks(calls(24, 12), true, 10.0..18.0, 200..400),
        },
    ]
}

/// How far a scene has come; read while it is played.
#[derive(Debug, Default)]
pub struct Board {
    served: AtomicUsize,
    failed: AtomicUsize,
}

impl Board {
    /// Calls that were served.
    #[must_use]
    pub fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// Calls that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Played {
    /// Whether its client got a whole answer.
    pub served: bool,
    /// Whether it was cut off by the end of the scene.
    pub unfinished: bool,
    /// How often the service got it.
    pub sends: u32,
    /// From the client's first request to the slot that it was served in, in the service's time.
    pub extra: Duration,
}

/// A scene that is played against one service.
#[derive(Clone)]
pub struct Stage {
    /// What is asked.
    pub scene: Arc<Scene>,
    /// Who asks, and whom.
    pub sdk: Sdk,
    /// The service behind it all.
    pub service: Arc<Overloaded>,
    /// Where the progress is noted.
    pub board: Arc<Board>,
    /// How long the scene may take, on the wall.
    pub within: Duration,
}

impl Stage {
    /// Plays the scene; the calls in order.
    pub async fn play(self, speed: Speed) -> Vec<Played> {
        let calls = self.scene.asks.len();
        let until = Instant::now() + self.within;
        let (next, mut clients) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
        for _ in 0..self.scene.at_once {
            let (stage, next) = (self.clone(), Arc::clone(&next));
            clients.spawn(async move {
                let mut played = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        return played;
                    }
                    played.push((number, stage.call(number, until).await));
                    sleep(speed.wall(stage.scene.pause)).await;
                }
            });
        }
        let mut all = vec![Played::default(); calls];
        while let Some(client) = clients.join_next().await {
            for (number, played) in client.unwrap_or_default() {
                all[number] = played;
            }
        }
        all
    }

    async fn call(&self, number: usize, until: Instant) -> Played {
        let asked_at = self.service.now();
        let call = self.sdk.call(&self.scene.asks[number], number);
        let ended = timeout_at(until, call).await;
        let served = matches!(ended, Ok(true));
        let done = if served { &self.board.served } else { &self.board.failed };
        done.fetch_add(1, Ordering::Relaxed);
        let record = self.service.record(number);
        let extra = record.slot_at.unwrap_or_default().saturating_sub(asked_at);
        Played { served, unfinished: ended.is_err(), sends: record.sends, extra }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_play() {
        assert_eq!(all(5, false), all(5, false));
        assert_ne!(all(5, false), all(6, false));
        let counts = |quick| all(1, quick).map(|scene| scene.asks.len());
        assert_eq!((counts(false), counts(true)), ([16, 100, 24], [8, 100, 12]));
    }
}
