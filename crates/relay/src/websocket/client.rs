//! The client's side of a session: what it sends while nobody wants it yet, and what keeps it waiting.

use std::pin::pin;
use std::time::Duration;

use relay_core::dialect::responses_socket::KEEPALIVE;
use tokio::time::{Instant, sleep_until};

use super::leg::{End, From, Leg, Said, To};
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

    /// Its next message where one is `wanted`; else none, when one more waits for that.
    pub(super) async fn next_if(&mut self, wanted: bool) -> Result<Option<Said>, End> {
        if !wanted {
            return take_in(&mut self.from, &mut self.queue).await.map(|()| None);
        }
        match self.queue.pop() {
            Some(message) => Ok(Some(message)),
            None => self.from.next().await.map(Some),
        }
    }

    /// Sends it a message, and takes in what it sends meanwhile: a client that writes before it reads must not block
    /// both.
    pub(super) async fn send(&mut self, message: Said) -> Result<(), End> {
        self.to.put(message);
        self.leaves().await
    }

    async fn beat(&mut self, is_event: bool) -> Result<(), End> {
        if is_event {
            self.to.put(Said::text(KEEPALIVE));
        } else {
            self.to.put_ping();
        }
        self.leaves().await
    }

    /// Sees that all that is for it leaves.
    async fn leaves(&mut self) -> Result<(), End> {
        self.begins_to_wait();
        while self.to.has_more() {
            tokio::select! {
                biased;
                left = self.to.leave() => left.map_err(|detail| End::Lost { reset: false, detail })?,
                taken = take_in(&mut self.from, &mut self.queue) => taken?,
            }
        }
        Ok(())
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
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                idled = self.idles(true) => idled?,
            }
        }
    }

    /// The same beside an answer: `listens`, what the client says meanwhile can be taken; `beats`, it waits, and is told
    /// that it lives.
    pub(super) async fn awaits_beside<T>(
        &mut self,
        work: impl Future<Output = T>,
        listens: bool,
        beats: bool,
    ) -> Result<First<T>, End> {
        let mut work = pin!(work);
        loop {
            if let Some(message) = listens.then(|| self.queue.pop_beside()).flatten() {
                return Ok(First::Beside(message));
            }
            tokio::select! {
                biased;
                done = &mut work => return Ok(First::Done(done)),
                idled = self.idles(beats) => idled?,
            }
        }
    }

    /// Takes in a message, or gives a sign of life.
    async fn idles(&mut self, beats: bool) -> Result<(), End> {
        let due = self.beat.as_ref().filter(|_| beats).map(|beat| (beat.next, beat.is_event));
        tokio::select! {
            biased;
            taken = take_in(&mut self.from, &mut self.queue) => taken,
            is_event = due_now(due) => self.beat(is_event).await,
        }
    }
}

/// What came first while a client waits.
pub(super) enum First<T> {
    /// The work is done.
    Done(T),
    /// The client said something that belongs to the answer under way: anything but another request, which has to wait.
    Beside(Said),
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

/// Takes the client's next message into the queue. With a full queue nothing is read any more, and whether the client
/// is there shows when it is written to.
async fn take_in(from: &mut From, queue: &mut Queue) -> Result<(), End> {
    if queue.is_full() {
        return std::future::pending().await;
    }
    queue.push(from.next().await?);
    Ok(())
}
