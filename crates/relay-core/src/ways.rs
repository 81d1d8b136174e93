//! Which of several ways to an upstream is taken: the first in the user's order that is not known to fail, and when one
//! that failed is looked at again. Pure: whoever connects says what time it is and what came of it. Not the connecting,
//! and not the order (that is a setting).
//!
//! ```text
//!           failed                    the pause is over, and a call comes by
//!  Works ------------> Left(pause) ---------------------------------------> Probed
//!    ^                      ^                                                |   |
//!    |                      '------------- failed: twice the pause ----------'   |
//!    '----------------------------------------- worked --------------------------'
//! ```
//! A way that was left is not lost: where all others have failed it is tried all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::dice::Dice;
use crate::moment::Moment;
use crate::profile::Curve;
use crate::wait::raised;

/// The pauses before a way that failed is looked at again. Five seconds: a proxy that is started anew takes about that
/// long. At most five minutes, since a look costs one connection that nobody waits for.
const PAUSES: Curve = Curve {
    base: Duration::from_secs(5),
    factor: 2.0,
    cap: Duration::from_secs(300),
    jitter: Duration::from_secs(1),
};

/// How a way fares that has failed at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not taken, as long as another one works.
    Left {
        since: Moment,
        /// How often it failed in a row, looks included.
        times: u32,
        /// When it is looked at again.
        again: Moment,
    },
    /// It works again.
    Back {
        since: Moment,
        /// How often it had failed, and how long it was left out at last: one that fails soon after is left for longer.
        times: u32,
        pause: Duration,
    },
}

/// How ways fare that are known by such names. What was never heard of works.
#[derive(Debug, Clone)]
pub struct Ways<K> {
    met: BTreeMap<K, State>,
    /// Those that are looked at now.
    probed: BTreeSet<K>,
}

impl<K> Default for Ways<K> {
    fn default() -> Self {
        Self { met: BTreeMap::new(), probed: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Ways<K> {
    /// The place of the way to try next, of `ways` in their order; `None` where all were tried.
    #[must_use]
    pub fn next(&self, ways: &[K], tried: &[usize]) -> Option<usize> {
        let untried = || (0..ways.len()).filter(|at| !tried.contains(at));
        let works = |at: &usize| ways.get(*at).is_some_and(|way| !self.is_left(way));
        untried().find(works).or_else(|| untried().next())
    }

    /// The place of a way that is to be looked at now, of those that come before the one taken. One at a time.
    pub fn begin_probe(&mut self, ways: &[K], taken: usize, now: Moment) -> Option<usize> {
        if ways.iter().any(|way| self.probed.contains(way)) {
            return None;
        }
        let is_due = |way: &K| matches!(self.met.get(way), Some(State::Left { again, .. }) if *again <= now);
        let place = ways.iter().take(taken).position(is_due)?;
        self.probed.extend(ways.get(place).cloned());
        Some(place)
    }

    /// A look ended. For how long the way was left, where it was until now; if it failed again, the next look comes
    /// after a longer pause.
    pub fn probed(&mut self, way: &K, worked: bool, now: Moment, dice: &mut dyn Dice) -> Option<Duration> {
        self.probed.remove(way);
        if worked {
            return self.worked(way, now);
        }
        if let Some(State::Left { times, again, .. }) = self.met.get_mut(way) {
            *times = times.saturating_add(1);
            *again = now + pause(*times, dice);
        }
        None
    }

    /// A connection failed. The pause, where it is left from now on; `None` where it was already.
    pub fn failed(&mut self, way: &K, now: Moment, dice: &mut dyn Dice) -> Option<Duration> {
        let times = match self.met.get(way) {
            Some(State::Left { .. }) => return None,
            Some(State::Back { since, times, pause }) if now.since(*since) < *pause => {
                times.saturating_add(1)
            }
            Some(State::Back { .. }) | None => 1,
        };
        let pause = pause(times, dice);
        self.met.insert(way.clone(), State::Left { since: now, times, again: now + pause });
        Some(pause)
    }

    /// A connection stands. For how long it was left, where it was until now.
    pub fn worked(&mut self, way: &K, now: Moment) -> Option<Duration> {
        let state = self.met.get_mut(way)?;
        let State::Left { since, times, .. } = *state else { return None };
        *state = State::Back { since: now, times, pause: raised(&PAUSES, times.saturating_sub(1)) };
        Some(now.since(since))
    }

    /// Forgets all ways but these, looks that are under way among them. Those that were left.
    pub fn keep_only(&mut self, known: &BTreeSet<K>) -> Vec<K> {
        let others = self.met.keys().filter(|way| !known.contains(way));
        let left = others.filter(|way| self.is_left(way)).cloned().collect();
        self.met.retain(|way, _| known.contains(way));
        self.probed.retain(|way| known.contains(way));
        left
    }

    /// Whether it is known to fail.
    #[must_use]
    pub fn is_left(&self, way: &K) -> bool {
        matches!(self.met.get(way), Some(State::Left { .. }))
    }
}

fn pause(times: u32, dice: &mut dyn Dice) -> Duration {
    raised(&PAUSES, times.saturating_sub(1)) + dice.up_to(PAUSES.jitter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dice::SeededDice;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    #[test]
    fn the_first_that_works_is_taken_and_all_are_tried_before_it_fails() {
        let (mut ways, mut dice) = (Ways::default(), SeededDice::new(1));
        let all = ["a", "b", "c"];
        assert_eq!(ways.next(&all, &[]), Some(0));
        assert!(ways.failed(&"a", at(0), &mut dice).is_some());
        assert!(ways.failed(&"a", at(0), &mut dice).is_none(), "it was left already");
        assert_eq!(ways.next(&all, &[0]), Some(1));
        assert_eq!(ways.next(&all, &[]), Some(1), "the next call does not ask it first");
        assert_eq!(ways.next(&all, &[1]), Some(2));
        assert_eq!(ways.next(&all, &[1, 2]), Some(0), "better than nothing");
        assert_eq!(ways.next(&all, &[1, 2, 0]), None);
        for way in ["b", "c"] {
            ways.failed(&way, at(0), &mut dice);
        }
        assert_eq!(ways.next(&all, &[]), Some(0), "all fail: the order holds");
        assert_eq!(ways.worked(&"c", at(9)), Some(Duration::from_secs(9)));
        assert_eq!(ways.worked(&"c", at(9)), None);
        assert_eq!(ways.next(&all, &[]), Some(2));
    }

    #[test]
    fn one_that_was_left_is_looked_at_after_longer_and_longer_pauses() {
        let (mut ways, mut dice) = (Ways::default(), SeededDice::new(7));
        ways.failed(&"a", at(0), &mut dice);
        let (mut now, mut pauses) = (0, Vec::new());
        while pauses.len() < 9 {
            let due = (now..).find(|second| ways.begin_probe(&["a", "b"], 1, at(*second)).is_some()).unwrap();
            assert_eq!(ways.begin_probe(&["a", "b"], 1, at(due + 1000)), None, "one at a time");
            assert_eq!(ways.probed(&"a", false, at(due), &mut dice), None);
            pauses.push(due - now);
            now = due;
        }
        let least = [5, 10, 20, 40, 80, 160, 300, 300, 300];
        assert!(
            pauses.iter().zip(least).all(|(pause, least)| (least..=least + 1).contains(pause)),
            "{pauses:?}"
        );
    }

    #[test]
    fn one_that_comes_and_goes_is_left_for_longer_and_one_that_lasted_begins_anew() {
        let (mut ways, mut dice) = (Ways::default(), SeededDice::new(3));
        let seconds = |pause: Option<Duration>| pause.unwrap().as_secs();
        assert_eq!(seconds(ways.failed(&"a", at(0), &mut dice)), 5);
        ways.worked(&"a", at(6));
        assert_eq!(seconds(ways.failed(&"a", at(7), &mut dice)), 10);
        ways.worked(&"a", at(20));
        assert_eq!(seconds(ways.failed(&"a", at(31), &mut dice)), 5, "it held for as long as it was left");
    }

    #[test]
    fn a_way_that_is_no_more_is_forgotten() {
        let (mut ways, mut dice) = (Ways::default(), SeededDice::new(5));
        for way in ["a", "b", "c"] {
            ways.failed(&way, at(0), &mut dice);
        }
        ways.worked(&"c", at(1));
        assert_eq!(ways.begin_probe(&["a", "b"], 1, at(9)), Some(0));
        assert_eq!(ways.keep_only(&BTreeSet::from(["b"])), ["a"]);
        assert!(!ways.is_left(&"a") && ways.is_left(&"b"));
        assert_eq!(ways.probed(&"a", true, at(9), &mut dice), None);
        assert_eq!(ways.begin_probe(&["b", "c"], 1, at(9)), Some(0));
    }

    /// What happens to a few ways, one step after the other.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        /// A call connects, and after so many seconds the next thing happens.
        Call(u64),
        /// This way changes between working and not.
        Turn(usize),
        /// The look that is under way ends.
        Probed,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => (0_u64..400).prop_map(Act::Call),
            1 => (0_usize..3).prop_map(Act::Turn),
            2 => Just(Act::Probed),
        ];
        proptest::collection::vec(act, 0..200)
    }

    /// Ways of which a test knows whether they work.
    struct World {
        ways: Ways<usize>,
        dice: SeededDice,
        works: [bool; 3],
        probed: Option<usize>,
        now: u64,
    }

    impl World {
        const ALL: [usize; 3] = [0, 1, 2];

        /// One call: the way by which it went in the end, where there was one.
        fn call(&mut self) -> Option<usize> {
            let now = at(self.now);
            let taken = self.ways.next(&Self::ALL, &[]).unwrap();
            if let Some(probe) = self.ways.begin_probe(&Self::ALL, taken, now) {
                assert_eq!(self.probed.replace(probe), None, "one look at a time");
                assert!(self.ways.is_left(&probe));
            }
            let mut tried = Vec::new();
            while let Some(way) = self.ways.next(&Self::ALL, &tried) {
                assert!(!tried.contains(&way), "none twice");
                if self.works[way] {
                    self.ways.worked(&way, now);
                    return Some(way);
                }
                self.ways.failed(&way, now, &mut self.dice);
                tried.push(way);
            }
            assert_eq!(tried.len(), 3, "none skipped");
            None
        }

        fn end_probe(&mut self) {
            if let Some(way) = self.probed.take() {
                self.ways.probed(&way, self.works[way], at(self.now), &mut self.dice);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_call_fails_while_a_way_works_and_the_first_is_found_again(acts in acts(), seed: u64) {
            let dice = SeededDice::new(seed);
            let mut world = World { ways: Ways::default(), dice, works: [true; 3], probed: None, now: 0 };
            for act in acts {
                match act {
                    Act::Call(then) => {
                        let works = world.works.contains(&true);
                        prop_assert_eq!(world.call().is_some(), works);
                        world.now += then;
                    }
                    Act::Turn(way) => world.works[way] = !world.works[way],
                    Act::Probed => world.end_probe(),
                }
            }
            // Whatever came before: the first way works from now on, and a call comes each second.
            world.works[0] = true;
            let end = world.now + 302;
            while world.now < end {
                world.call();
                world.end_probe();
                world.now += 1;
            }
            prop_assert_eq!(world.call(), Some(0));
        }
    }
}
