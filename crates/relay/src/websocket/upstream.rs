//! The upstream's side of a session: what it says while something is on its way to it waits here.

use std::pin::pin;

use super::leg::{End, From, Got, Leg, Said, To};
use super::queue::Queue;

/// The upstream's side.
pub(super) struct Upstream {
    to: To,
    from: From,
    queue: Queue,
    /// How it ended, where that was heard while something was on its way.
    end: Option<End>,
}

impl Upstream {
    /// With so many bytes that nobody has asked for nothing more is read.
    pub(super) fn new(leg: Leg, limit: usize) -> Self {
        Self { to: leg.to, from: leg.from, queue: Queue::new(limit), end: None }
    }

    /// The side as a whole, to be closed.
    pub(super) fn into_leg(self) -> Leg {
        Leg { to: self.to, from: self.from }
    }

    /// What comes next. Nothing is lost where this is dropped before it is ready.
    async fn next(&mut self) -> Got {
        match (self.queue.pop(), self.end.take()) {
            (Some(message), end) => {
                self.end = end;
                Got::Said(message)
            }
            (None, Some(end)) => Got::End(end),
            (None, None) => self.from.next().await,
        }
    }

    /// Sends it a message, and takes in what it says meanwhile: a service that writes before it reads must not block
    /// both. Where it does not arrive, what comes next tells why: the last words, or the end.
    pub(super) async fn send(&mut self, message: Said) {
        let Self { to, from, queue, end } = self;
        let mut sending = pin!(to.send(message));
        loop {
            let reads = end.is_none() && !queue.is_full();
            tokio::select! {
                biased;
                // A connection that takes nothing any more may have words left.
                _sent = &mut sending => return,
                got = from.next(), if reads => match got {
                    Got::Said(message) => queue.push(message),
                    Got::End(how) => *end = Some(how),
                },
            }
        }
    }
}

/// What comes next from the upstream; never where there is none. A side that has ended is there no longer.
pub(super) async fn next_of(upstream: &mut Option<Upstream>) -> Got {
    let Some(side) = upstream else { return std::future::pending().await };
    let got = side.next().await;
    if let Got::End(end) = &got
        && let Some(side) = upstream.take()
    {
        side.into_leg().take_leave(end);
    }
    got
}
