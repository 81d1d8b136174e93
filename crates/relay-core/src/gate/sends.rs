//! Sends that are under way: made, and without a sign of acceptance or refusal yet; in the order they were made.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
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
    /// A head that tells of no refusal has come.
    pub(super) heard: bool,
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

/// The sends under way.
#[derive(Debug, Default)]
pub(super) struct Sends {
    sent: BTreeMap<CallId, (u64, Sent)>,
    next: u64,
    /// How many by the clock are without a sign.
    timers: usize,
    /// Those that are no plain ones, without a sign: by when they were made, and by their number.
    unsure: BTreeSet<Unsure>,
}

/// Without a sign.
type Unsure = (Moment, u64, CallId);

/// What comes after all that were made then.
const fn behind(at: Moment) -> Unsure {
    (at, u64::MAX, CallId(u64::MAX))
}

impl Sends {
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn add(&mut self, sent: Sent) {
        let (number, call) = (self.next, sent.waiting.call);
        self.next += 1;
        self.timers += usize::from(sent.reason == Reason::Timer);
        if sent.reason != Reason::Plain {
            self.unsure.insert((sent.at, number, call));
        }
        self.sent.insert(call, (number, sent));
    }

    pub(super) fn take(&mut self, call: CallId) -> Option<Sent> {
        let (number, sent) = self.sent.remove(&call)?;
        if self.unsure.remove(&(sent.at, number, call)) {
            self.timers -= usize::from(sent.reason == Reason::Timer);
        }
        Some(sent)
    }

    pub(super) fn heard(&mut self, call: CallId) {
        if let Some((_, sent)) = self.sent.get_mut(&call) {
            sent.heard = true;
        }
    }

    /// What allowed the send of a call.
    pub(super) fn reason(&self, call: CallId) -> Option<Reason> {
        self.get(call).map(|sent| sent.reason)
    }

    fn get(&self, call: CallId) -> Option<&Sent> {
        self.sent.get(&call).map(|(_, sent)| sent)
    }

    /// How many by the clock are without a sign.
    pub(super) const fn timers(&self) -> usize {
        self.timers
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
        let young = self.unsure.iter().rev().take_while(|(at, ..)| now.since(*at) < age);
        let asks = young.filter(|(at, _, call)| match self.reason(*call) {
            Some(Reason::Timer) => true,
            Some(Reason::Open) => since.is_none_or(|since| *at > since),
            Some(Reason::Follow | Reason::Completion | Reason::Plain) | None => false,
        });
        asks.map(|(at, ..)| *at + age).nth(most.saturating_sub(1))
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

    /// How many were made after `since`.
    pub(super) fn after(&self, since: Moment) -> usize {
        self.unsure.range((Excluded(behind(since)), Unbounded)).count()
    }

    /// Whether one that was made after `since` is without a sign.
    pub(super) fn any_after(&self, since: Option<Moment>) -> bool {
        self.unsure.last().is_some_and(|(at, ..)| since.is_none_or(|since| *at > since))
    }

    /// Whether one that was made after `since` and whose first byte would tell is older than `age`, and nothing was
    /// heard of it.
    pub(super) fn any_slow(&self, since: Option<Moment>, age: Duration, now: Moment) -> bool {
        let from = since.map_or(Unbounded, |since| Excluded(behind(since)));
        let old = self.unsure.range((from, Unbounded)).take_while(|(at, ..)| now.since(*at) > age);
        old.filter_map(|(.., call)| self.get(*call)).any(|sent| sent.waiting.streams && !sent.heard)
    }

    /// Counts sends as accepted from now on. Returns how many, and when there will be the next one.
    pub(super) fn presume(&mut self, which: Presumed, now: Moment) -> (usize, Option<Moment>) {
        let Presumed { since, age, heard, completions } = which;
        let from = since.map_or(Unbounded, |since| Excluded(behind(since)));
        let mut told = Vec::new();
        let mut next = None;
        for key @ (at, _, call) in self.unsure.range((from, Unbounded)) {
            let Some(sent) = self.get(*call) else { continue };
            if (heard && !sent.heard) || (sent.reason == Reason::Completion && !completions) {
                continue;
            }
            if now.since(*at) < age {
                next = Some(*at + age);
                break;
            }
            told.push(*key);
        }
        for key in &told {
            self.unsure.remove(key);
            if let Some((_, sent)) = self.sent.get_mut(&key.2) {
                sent.presumed = true;
                self.timers -= usize::from(sent.reason == Reason::Timer);
            }
        }
        (told.len(), next)
    }
}
