//! Sends that are under way: made, and without a sign of acceptance or refusal yet; in the order they were made.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{self, Excluded, Unbounded};
use std::time::Duration;

use super::line::Waiting;
use crate::event::CallId;
use crate::moment::Moment;

/// What allowed a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The lane was open.
    Open,
    /// It was time to ask.
    Timer,
    /// One that was accepted let it follow.
    Follow,
    /// A call of ours ended and left its place.
    Completion,
    /// Its own curve, and nothing of the lane.
    Plain,
}

/// A send under way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) at: Moment,
    pub(super) reason: Reason,
    pub(super) waiting: Waiting,
    /// It has outlived every usual refusal since: it counts as accepted until more is known.
    pub(super) presumed: bool,
    /// How long the shut lane had gone unwatched.
    pub(super) exposure: Duration,
    /// A refusal would be news about the lane.
    pub(super) news: bool,
}

/// Which sends count as accepted although no sign came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Presumed {
    /// Those made after this.
    pub(super) since: Option<Moment>,
    /// Those as old as this.
    pub(super) age: Duration,
    /// Only those that were heard of.
    pub(super) heard: bool,
    /// Those after own completions too.
    pub(super) completions: bool,
}

/// When a send was made, its number, and its call.
type Key = (Moment, u64, CallId);

/// Sends in the order they were made.
type Order = BTreeSet<Key>;

/// The sends under way. Each question has an order of its own, so that none looks at all of them.
#[derive(Debug, Default)]
pub(super) struct Sends {
    sent: BTreeMap<CallId, (u64, Sent)>,
    next: u64,
    /// Those that are no plain ones, without a sign.
    unsure: Order,
    /// Of these, those sent by the clock.
    timers: Order,
    /// Those sent into the open lane.
    opens: Order,
    /// Those that were heard of.
    heard: Order,
    /// Those that were not, and whose first byte would tell.
    silent: Order,
}

impl Sends {
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn add(&mut self, sent: Sent) {
        let call = sent.waiting.call;
        let key = (sent.at, self.next, call);
        if sent.reason != Reason::Plain {
            self.unsure.insert(key);
            if sent.waiting.streams {
                self.silent.insert(key);
            }
        }
        match sent.reason {
            Reason::Timer => _ = self.timers.insert(key),
            Reason::Open => _ = self.opens.insert(key),
            Reason::Follow | Reason::Completion | Reason::Plain => {}
        }
        self.sent.insert(call, (self.next, sent));
        self.next += 1;
    }

    pub(super) fn take(&mut self, call: CallId) -> Option<Sent> {
        let (number, sent) = self.sent.remove(&call)?;
        self.is_sure((sent.at, number, call));
        Some(sent)
    }

    /// There is a sign of it.
    fn is_sure(&mut self, key: Key) {
        if self.unsure.remove(&key) {
            for order in [&mut self.timers, &mut self.opens, &mut self.heard, &mut self.silent] {
                order.remove(&key);
            }
        }
    }

    pub(super) fn heard(&mut self, call: CallId) {
        let Some((number, sent)) = self.sent.get(&call) else { return };
        let key = (sent.at, *number, call);
        if self.unsure.contains(&key) {
            self.silent.remove(&key);
            self.heard.insert(key);
        }
    }

    /// What allowed the send of a call.
    pub(super) fn reason(&self, call: CallId) -> Option<Reason> {
        self.sent.get(&call).map(|(_, sent)| sent.reason)
    }

    /// How many by the clock are without a sign.
    pub(super) fn timers(&self) -> usize {
        self.timers.len()
    }

    /// Where `most` or more that ask (by the clock, or sent into the open lane after `since`) are without a sign and
    /// younger than `age`: when there will be fewer.
    pub(super) fn too_young(
        &self,
        most: usize,
        since: Option<Moment>,
        age: Duration,
        now: Moment,
    ) -> Option<Moment> {
        let is_young = |(at, ..): &&Key| now.since(*at) < age;
        let timers = self.timers.iter().rev().take_while(is_young).take(most);
        let opens = self.opens.range(later_than(since)).rev().take_while(is_young).take(most);
        let mut asks: Vec<Moment> = timers.chain(opens).map(|(at, ..)| *at).collect();
        asks.sort_unstable();
        asks.iter().rev().nth(most.saturating_sub(1)).map(|at| *at + age)
    }

    /// How many were made no earlier than `since` and are older than `age`; counted to `most`.
    pub(super) fn silent(&self, since: Moment, age: Duration, most: usize, now: Moment) -> usize {
        let from = self.unsure.range((since, 0, CallId(0))..);
        from.take_while(|(at, ..)| now.since(*at) >= age).take(most).count()
    }

    /// How many are younger than `age`; counted to `most`.
    pub(super) fn young(&self, age: Duration, most: usize, now: Moment) -> usize {
        self.unsure.iter().rev().take_while(|(at, ..)| now.since(*at) < age).take(most).count()
    }

    /// How many were made after `since`. It looks at each of them.
    pub(super) fn after(&self, since: Moment) -> usize {
        self.unsure.range(later_than(Some(since))).count()
    }

    /// Whether one that was made after `since` is without a sign.
    pub(super) fn any_after(&self, since: Option<Moment>) -> bool {
        self.unsure.last().is_some_and(|(at, ..)| since.is_none_or(|since| *at > since))
    }

    /// Whether one that was made after `since` and whose first byte would tell is older than `age`, and nothing was
    /// heard of it.
    pub(super) fn any_slow(&self, since: Option<Moment>, age: Duration, now: Moment) -> bool {
        self.silent.range(later_than(since)).next().is_some_and(|(at, ..)| now.since(*at) > age)
    }

    /// Counts sends as accepted from now on. Returns how many, and when there will be the next one.
    pub(super) fn presume(&mut self, which: Presumed, now: Moment) -> (usize, Option<Moment>) {
        let Presumed { since, age, heard, completions } = which;
        let mut told = Vec::new();
        let mut next = None;
        let order = if heard { &self.heard } else { &self.unsure };
        for key @ (at, _, call) in order.range(later_than(since)) {
            if self.reason(*call) == Some(Reason::Completion) && !completions {
                continue;
            }
            if now.since(*at) < age {
                next = Some(*at + age);
                break;
            }
            told.push(*key);
        }
        for key in &told {
            self.is_sure(*key);
            if let Some((_, sent)) = self.sent.get_mut(&key.2) {
                sent.presumed = true;
            }
        }
        (told.len(), next)
    }
}

/// Those made after `since`, or all.
fn later_than(since: Option<Moment>) -> (Bound<Key>, Bound<Key>) {
    (since.map_or(Unbounded, |since| Excluded((since, u64::MAX, CallId(u64::MAX)))), Unbounded)
}
