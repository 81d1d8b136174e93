//! A scene: a service that behaves in one known way, clients that come and wait, and a clock that goes from one thing
//! to the next. A [`Book`] is kept of it too, so that every law is asked for here as well.

use std::collections::BTreeMap;
use std::time::Duration;

use relay_core::event::CallId;
use relay_core::gate::{Arrival, Class, Poll, Preset, Reason, Refusal, Report, Rules};
use relay_core::{Fault, Moment, SeededDice};

use crate::book::{Book, Kept};

/// A send, as the service sees it.
pub(crate) struct Asked<'s> {
    pub(crate) session: u64,
    /// Since the scene began.
    pub(crate) at: Duration,
    /// So many calls have a place already.
    pub(crate) taken: usize,
    pub(crate) dice: &'s mut SeededDice,
}

/// What the service does with a send.
pub(crate) enum Answer {
    /// Accepted after the first time, over after the second.
    Takes(Duration, Duration),
    /// Refused after so long.
    Refuses(Duration),
}

enum Thing {
    Arrives(Arrival),
    Accepted(CallId, Duration),
    Refused(CallId),
    Over(CallId),
}

/// What became of a call.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) session: u64,
    pub(crate) came: Duration,
    /// It was the lane's first impression: it was shut.
    pub(crate) found_shut: bool,
    pub(crate) sends: Vec<(Duration, Reason)>,
    pub(crate) accepted: bool,
}

pub(crate) struct Scene<'s> {
    pub(crate) book: Book,
    start: Moment,
    agenda: BTreeMap<(Moment, u64), Thing>,
    numbers: u64,
    service: Box<dyn FnMut(Asked<'_>) -> Answer + 's>,
    /// How soon another call follows one that is over, by its session.
    pub(crate) follows: fn(u64) -> Option<Duration>,
    pub(crate) refusal: Refusal,
    taken: usize,
    dice: SeededDice,
    pub(crate) stories: BTreeMap<CallId, Story>,
}

/// A call with nothing special about it.
pub(crate) fn call(number: u64, session: u64, now: Moment) -> Arrival {
    Arrival {
        call: CallId(number),
        session,
        since: now,
        deadline: None,
        preset: Preset::Interactive,
        weight: 1.0,
        sends: 0,
        budget: None,
        not_before: None,
        streams: true,
        plain: false,
    }
}

impl<'s> Scene<'s> {
    pub(crate) fn new(rules: Rules, seed: u64, service: impl FnMut(Asked<'_>) -> Answer + 's) -> Self {
        let start = Moment::after_start(Duration::from_secs(5000));
        let mut book = Book::new(rules, seed, start);
        book.watchful = true;
        Self {
            book,
            start,
            agenda: BTreeMap::new(),
            numbers: 0,
            service: Box::new(service),
            follows: |_| None,
            refusal: Refusal {
                class: Class::Capacity(Fault::AtCapacity),
                told: None,
                floor: Duration::ZERO,
                first_wait: Duration::from_secs(1),
            },
            taken: 0,
            dice: SeededDice::new(seed ^ 0xA5A5),
            stories: BTreeMap::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn plan(&mut self, after: Duration, thing: Thing) {
        let number = self.number();
        self.agenda.insert((self.book.now + after, number), thing);
    }

    /// A call comes so long after the beginning.
    pub(crate) fn comes(&mut self, at: Duration, session: u64, with: impl FnOnce(&mut Arrival)) -> CallId {
        let number = self.number();
        let mut arrival = call(number, session, self.start + at);
        with(&mut arrival);
        self.agenda.insert((self.start + at, number), Thing::Arrives(arrival));
        CallId(number)
    }

    fn since_start(&self) -> Duration {
        self.book.now.since(self.start)
    }

    /// Plays until then, or until nothing is left to happen.
    pub(crate) fn plays_until(&mut self, end: Duration) -> Kept {
        let end = self.start + end;
        loop {
            self.book.drain()?;
            for (call, reason) in std::mem::take(&mut self.book.sent) {
                self.asks(call, reason);
            }
            let wake = match self.book.rest {
                Some(Poll::Wait(at)) => Some(at),
                Some(Poll::Send(_) | Poll::Idle) | None => None,
            };
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let Some(at) = next.into_iter().chain(wake).min().filter(|at| *at <= end) else {
                self.book.now = end;
                return Ok(());
            };
            self.book.now = at;
            if next == Some(at)
                && let Some((_, thing)) = self.agenda.pop_first()
            {
                self.happens(thing)?;
            }
        }
    }

    fn asks(&mut self, call: CallId, reason: Reason) {
        let at = self.since_start();
        let Some(story) = self.stories.get_mut(&call) else { return };
        story.sends.push((at, reason));
        let asked = Asked { session: story.session, at, taken: self.taken, dice: &mut self.dice };
        match (self.service)(asked) {
            Answer::Takes(after, runs) => {
                self.taken += 1;
                self.plan(after, Thing::Accepted(call, runs));
            }
            Answer::Refuses(after) => self.plan(after, Thing::Refused(call)),
        }
    }

    fn happens(&mut self, thing: Thing) -> Kept {
        match thing {
            Thing::Arrives(arrival) => {
                let story = Story {
                    session: arrival.session,
                    came: self.since_start(),
                    found_shut: self.book.gate.shut().is_some(),
                    sends: Vec::new(),
                    accepted: false,
                };
                self.stories.insert(arrival.call, story);
                self.book.arrive(arrival)
            }
            Thing::Accepted(call, runs) => {
                if let Some(story) = self.stories.get_mut(&call) {
                    story.accepted = true;
                }
                self.plan(runs, Thing::Over(call));
                self.book.accepted(call)
            }
            Thing::Refused(call) => {
                let report = Report::Refused(self.refusal);
                self.book.settled(call, report, Some(self.book.now))
            }
            Thing::Over(call) => {
                self.taken -= 1;
                let session = self.stories.get(&call).map_or(0, |story| story.session);
                if let Some(after) = (self.follows)(session) {
                    let at = self.since_start() + after;
                    self.comes(at, session, |_| ());
                }
                self.book.left(call, false)
            }
        }
    }
}
