//! The client's side of a session: what it sends while nobody wants it yet, and what keeps it waiting.

use std::pin::pin;
use std::time::Duration;

use relay_core::dialect::responses_socket::KEEPALIVE;
use tokio::time::{Instant, sleep_until};

use super::leg::{End, From, Got, Leg, Said, To};
use super::queue::Queue;

/// Signs of life for a client that waits.
struct Beat {
    every: Duration,
    next: Instant,
    /// It is an event, for clients that take a ping for none.
    is_event: bool,
}

/// The client's side.
pub(super) struct Client {
    to: To,
    from: From,
    queue: Queue,
    beat: Option<Beat>,
}

impl Client {
    /// `every`: how often it gets a sign of life while it waits; `counts_events`: it takes events for one and pings for
    /// none.
    pub(super) fn new(leg: Leg, limit: usize, every: Option<Duration>, counts_events: bool) -> Self {
        let beat = every.map(|every| Beat { every, next: Instant::now() + every, is_event: counts_events });
        Self { to: leg.to, from: leg.from, queue: Queue::new(limit), beat }
    }

    /// The side as a whole, to be closed.
    pub(super) fn into_leg(self) -> Leg {
        Leg { to: self.to, from: self.from }
    }

    /// Its next message.
    pub(super) async fn next(&mut self) -> Result<Said, End> {
        match self.queue.pop() {
            Some(message) => Ok(message),
            None => match self.from.next().await {
                Got::Said(message) => Ok(message),
                Got::End(end) => Err(end),
            },
        }
    }

    /// Its next message that belongs to the answer under way: any but another request, which has to wait.
    pub(super) async fn next_beside(&mut self) -> Result<Said, End> {
        loop {
            if let Some(message) = self.queue.pop_beside() {
                return Ok(message);
            }
            take_in(&mut self.from, &mut self.queue).await?;
        }
    }

    /// Sends it a message, and takes in what it sends meanwhile: a client that writes before it reads must not block
    /// both.
    pub(super) async fn send(&mut self, message: Said) -> Result<(), End> {
        self.begins_to_wait();
        let Self { to, from, queue, .. } = self;
        leaves(to.send(message), from, queue).await
    }

    async fn beat(&mut self, is_event: bool) -> Result<(), End> {
        if is_event {
            return self.send(Said::text(KEEPALIVE)).await;
        }
        self.begins_to_wait();
        let Self { to, from, queue, .. } = self;
        leaves(to.ping(), from, queue).await
    }

    /// A wait begins: the first sign of life comes after a whole interval.
    pub(super) fn begins_to_wait(&mut self) {
        if let Some(beat) = &mut self.beat {
            beat.next = Instant::now() + beat.every;
        }
    }

    /// Does `work` while the client waits for it and is told that it lives.
    ///
    /// # Errors
    /// Where it goes away; the work is dropped then.
    pub(super) async fn awaits<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        self.awaits_with(work, true).await
    }

    /// The same, once the answer has begun: nothing comes in between.
    pub(super) async fn awaits_quietly<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        self.awaits_with(work, false).await
    }

    async fn awaits_with<T>(&mut self, work: impl Future<Output = T>, beats: bool) -> Result<T, End> {
        let mut work = pin!(work);
        loop {
            let due = self.beat.as_ref().filter(|_| beats).map(|beat| (beat.next, beat.is_event));
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                taken = take_in(&mut self.from, &mut self.queue) => taken?,
                is_event = due_now(due) => self.beat(is_event).await?,
            }
        }
    }
}

/// Ready when a sign of life is due.
async fn due_now(due: Option<(Instant, bool)>) -> bool {
    match due {
        Some((at, is_event)) => {
            sleep_until(at).await;
            is_event
        }
        None => std::future::pending().await,
    }
}

/// Sees that something is sent, and takes in what comes meanwhile.
async fn leaves(
    sending: impl Future<Output = Result<(), String>>,
    from: &mut From,
    queue: &mut Queue,
) -> Result<(), End> {
    let mut sending = pin!(sending);
    loop {
        tokio::select! {
            biased;
            sent = &mut sending => return sent.map_err(|detail| End::Lost { reset: false, detail }),
            taken = take_in(from, queue) => taken?,
        }
    }
}

/// Takes the client's next message into the queue. With a full queue nothing is read any more, and whether the client
/// is there shows when it is written to.
async fn take_in(from: &mut From, queue: &mut Queue) -> Result<(), End> {
    if queue.is_full() {
        return std::future::pending().await;
    }
    match from.next().await {
        Got::Said(message) => {
            queue.push(message);
            Ok(())
        }
        Got::End(end) => Err(end),
    }
}
