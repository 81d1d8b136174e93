//! Slots, and other users who come and go. Others that find no slot try four times more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use relay_core::dice::Dice as _;
use relay_core::moment::Moment;

use crate::chance::{Chance, Stream, seconds};
use crate::clients::{MEAN_TAKES, takes};

use super::Outside;

/// The load of others stays within these shares of what the slots can do.
const WITHIN: (f64, f64) = (0.1, 1.8);
/// How often a user who finds no slot tries again.
const TRIES: u8 = 4;

/// Slots.
#[derive(Debug)]
pub(super) struct Pool {
    slots: usize,
    used: usize,
    others: Option<Others>,
}

/// The other users.
#[derive(Debug)]
struct Others {
    load: Outside,
    /// How far the load is from its mean, in deviations.
    astray: f64,
    /// New ones a second.
    rate: f64,
    /// What happens next; the number keeps the order of what happens at once.
    due: BinaryHeap<Reverse<(Moment, u64, Step)>>,
    count: u64,
    mood: Chance,
    chance: Chance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The load changes a little.
    Drift,
    /// A new user comes.
    Comes,
    /// One who found no slot tries again, for the so many-th time.
    Again(u8),
    /// A slot becomes free.
    Leaves,
}

impl Pool {
    pub(super) fn new(slots: usize, outside: Option<Outside>, seed: u64) -> Self {
        let Some(load) = outside else { return Self { slots, used: 0, others: None } };
        let mut mood = Chance::new(seed, Stream::Service);
        let mut others = Others {
            load,
            astray: mood.normal(),
            rate: 0.0,
            due: BinaryHeap::new(),
            count: 0,
            mood,
            chance: Chance::new(seed, Stream::Outside),
        };
        // As full as in the mean, so that there is no beginning to wait for.
        let used = ((load.mean * slots as f64) as usize).min(slots.saturating_sub(1));
        for _ in 0..used {
            let left = takes(&mut others.chance) * others.chance.share();
            others.push(Moment::ZERO, left, Step::Leaves);
        }
        others.push(Moment::ZERO, 0.0, Step::Drift);
        others.push(Moment::ZERO, 0.01, Step::Comes);
        Self { slots, used, others: Some(others) }
    }

    pub(super) fn advance(&mut self, now: Moment) {
        let Some(others) = &mut self.others else { return };
        while let Some((moment, step)) = others.pop(now) {
            match step {
                Step::Drift => others.drift(moment, self.slots),
                Step::Leaves => self.used -= 1,
                Step::Comes => {
                    let next = others.chance.exponential(1.0 / others.rate);
                    others.push(moment, next, Step::Comes);
                    others.try_one(moment, 0, &mut self.used, self.slots);
                }
                Step::Again(tries) => others.try_one(moment, tries, &mut self.used, self.slots),
            }
        }
    }

    pub(super) const fn has_room(&self) -> bool {
        self.used < self.slots
    }

    /// Takes a slot, if one is free.
    pub(super) const fn take(&mut self) -> bool {
        super::take(&mut self.used, self.slots)
    }

    pub(super) const fn give_back(&mut self) {
        self.used -= 1;
    }

    /// When other users do something next.
    pub(super) fn next_change(&self) -> Option<Moment> {
        self.others.as_ref()?.due.peek().map(|Reverse((moment, ..))| *moment)
    }

    #[cfg(test)]
    pub(super) const fn used(&self) -> usize {
        self.used
    }
}

impl Others {
    fn push(&mut self, from: Moment, after: f64, step: Step) {
        self.count += 1;
        self.due.push(Reverse((from + seconds(after), self.count, step)));
    }

    fn pop(&mut self, now: Moment) -> Option<(Moment, Step)> {
        if self.due.peek()?.0.0 > now {
            return None;
        }
        self.due.pop().map(|Reverse((moment, _, step))| (moment, step))
    }

    /// One second of a walk that is drawn back to its mean (Ornstein and Uhlenbeck).
    fn drift(&mut self, now: Moment, slots: usize) {
        let memory = self.load.memory;
        self.astray += (2.0 / memory).sqrt() * self.mood.normal() - self.astray / memory;
        let share = (self.load.mean + self.load.deviation * self.astray).clamp(WITHIN.0, WITHIN.1);
        self.rate = share * slots as f64 / MEAN_TAKES;
        self.push(now, 1.0, Step::Drift);
    }

    fn try_one(&mut self, now: Moment, tries: u8, used: &mut usize, slots: usize) {
        if super::take(used, slots) {
            let takes = takes(&mut self.chance);
            self.push(now, takes, Step::Leaves);
        } else if tries < TRIES {
            let wait = 0.5 * f64::from(1_u32 << tries) * self.chance.between(0.75, 1.0) + 0.2;
            self.push(now, wait, Step::Again(tries + 1));
        }
    }
}
