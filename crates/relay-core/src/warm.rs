//! When a model of a server of one's own is loaded before calls need it, and how often that is tried. Pure: whoever does
//! it says what time it is and what came of it. Not the request itself, and not the waiting of calls (their gate does
//! that as ever).
//!
//! ```text
//!            asked                   begun               loaded, or hopeless
//!  Resting ---------> Due(moment) ---------> Trying --------------------------> Resting(until)
//!   (until)              ^                     | not yet
//!                        '---------------------'
//! ```

use std::time::Duration;

use crate::dice::Dice;
use crate::moment::Moment;
use crate::profile::Curve;
use crate::wait::raised;

/// The waits between tries. Two seconds: a server that is just being started listens after some. At most thirty: nobody
/// pays for a try, and whoever starts the server in the meantime waits no longer than that for it to be noticed.
const CURVE: Curve = Curve {
    base: Duration::from_secs(2),
    factor: 2.0,
    cap: Duration::from_secs(30),
    jitter: Duration::from_secs(1),
};
/// How long one try may take: as long as Ollama itself lets a model load (`OLLAMA_LOAD_TIMEOUT`, five minutes).
pub const TRY_WITHIN: Duration = Duration::from_secs(300);
/// How long tries go on: two loads that take their whole time, or a server that somebody has to start by hand.
const PATIENCE: Duration = Duration::from_secs(600);
/// After a load, answers that were under way may still tell of it.
const REST_WARM: Duration = Duration::from_secs(10);
/// After giving up, the next call that meets a cold model is asked to try again no sooner than this.
const REST_GIVEN_UP: Duration = Duration::from_secs(60);

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// The model is loaded.
    Loaded,
    /// Not yet: another try may do it.
    NotYet,
    /// The server says no, and would say so again.
    Hopeless,
}

impl Tried {
    /// By the answer's status, if there was an answer, and whether its body told of an error.
    #[must_use]
    pub const fn of(status: Option<u16>, told_error: bool) -> Self {
        match status {
            Some(200..=299) if !told_error => Self::Loaded,
            // Too early, a conflict or a limit are matters of time.
            None | Some(200..=299 | 408 | 409 | 425 | 429 | 500..) => Self::NotYet,
            Some(_) => Self::Hopeless,
        }
    }
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until it is asked for.
    Rest,
    /// A try, at this moment or after it.
    TryAt(Moment),
    /// One is under way.
    Wait,
}

/// What is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It is being loaded.
    Loading,
    /// That did not do it; the next try comes after this wait.
    Again {
        /// The wait.
        wait: Duration,
        /// The tries so far.
        tries: u32,
    },
    /// It is loaded.
    Ready {
        /// Since it was asked for.
        after: Duration,
        /// The tries.
        tries: u32,
    },
    /// It is not, and it is not tried any more.
    GaveUp {
        /// The server said no.
        hopeless: bool,
        /// Since it was asked for.
        after: Duration,
        /// The tries.
        tries: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody is heard until this moment.
    Resting(Moment),
    Due(Moment),
    Trying,
}

/// The warm-up of one model at one upstream: never more than one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warmer {
    phase: Phase,
    asked: Moment,
    tries: u32,
}

impl Default for Warmer {
    fn default() -> Self {
        Self { phase: Phase::Resting(Moment::ZERO), asked: Moment::ZERO, tries: 0 }
    }
}

impl Warmer {
    /// The model is cold, or will be needed. News where that begins something.
    pub fn ask(&mut self, now: Moment) -> Option<News> {
        match self.phase {
            Phase::Resting(until) if now >= until => {
                *self = Self { phase: Phase::Due(now), asked: now, tries: 0 };
                Some(News::Loading)
            }
            Phase::Resting(_) | Phase::Due(_) | Phase::Trying => None,
        }
    }

    /// What is to be done.
    #[must_use]
    pub const fn next(&self) -> Next {
        match self.phase {
            Phase::Resting(_) => Next::Rest,
            Phase::Due(at) => Next::TryAt(at),
            Phase::Trying => Next::Wait,
        }
    }

    /// A try begins.
    pub const fn begin(&mut self) {
        self.phase = Phase::Trying;
        self.tries = self.tries.saturating_add(1);
    }

    /// It ended.
    pub fn tried(&mut self, how: Tried, now: Moment, dice: &mut dyn Dice) -> News {
        let (after, tries) = (now.since(self.asked), self.tries);
        let wait = raised(&CURVE, tries.saturating_sub(1)) + dice.up_to(CURVE.jitter);
        match how {
            Tried::Loaded => {
                self.phase = Phase::Resting(now + REST_WARM);
                News::Ready { after, tries }
            }
            Tried::NotYet if after + wait < PATIENCE => {
                self.phase = Phase::Due(now + wait);
                News::Again { wait, tries }
            }
            Tried::NotYet | Tried::Hopeless => {
                self.phase = Phase::Resting(now + REST_GIVEN_UP);
                News::GaveUp { hopeless: how == Tried::Hopeless, after, tries }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SeededDice;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    /// Plays it against a server that is ready at this time; every try takes so long. The moments of the tries, and the
    /// last news.
    fn play(ready: u64, takes: u64, seed: u64) -> (Vec<u64>, News) {
        let (mut warmer, mut dice) = (Warmer::default(), SeededDice::new(seed));
        let mut now = at(1000);
        assert_eq!(warmer.ask(now), Some(News::Loading));
        let mut tries = Vec::new();
        loop {
            let Next::TryAt(due) = warmer.next() else { panic!("{warmer:?}") };
            now = due.max(now);
            tries.push(now.since(at(1000)).as_secs());
            warmer.begin();
            assert_eq!((warmer.next(), warmer.ask(now)), (Next::Wait, None), "one at a time");
            now = now + Duration::from_secs(takes);
            let how = if now >= at(1000 + ready) { Tried::Loaded } else { Tried::NotYet };
            match warmer.tried(how, now, &mut dice) {
                News::Again { wait, .. } => assert_eq!(warmer.next(), Next::TryAt(now + wait)),
                last @ (News::Loading | News::Ready { .. } | News::GaveUp { .. }) => return (tries, last),
            }
        }
    }

    #[test]
    fn a_server_that_comes_late_is_met_and_one_that_never_comes_is_given_up() {
        for seed in 0..200 {
            let (tries, last) = play(25, 0, seed);
            assert!(matches!(last, News::Ready { after, .. } if after < Duration::from_secs(64)), "{last:?}");
            assert!(tries.windows(2).all(|pair| (2..=31).contains(&(pair[1] - pair[0]))), "{tries:?}");
            let (tries, last) = play(u64::MAX - 1000, 0, seed);
            let News::GaveUp { hopeless: false, after, .. } = last else { panic!("{last:?}") };
            assert!(after < PATIENCE && tries.len() < 30, "{tries:?}");
            // Two whole loads are waited for, whatever chance says.
            let (tries, _) = play(u64::MAX - 1000, TRY_WITHIN.as_secs(), seed);
            assert_eq!(tries.len(), 2);
        }
    }

    #[test]
    fn who_asks_meanwhile_begins_nothing_and_a_rest_follows() {
        let (mut warmer, mut dice) = (Warmer::default(), SeededDice::new(1));
        assert_eq!(warmer.next(), Next::Rest);
        assert_eq!((warmer.ask(at(5)), warmer.ask(at(5))), (Some(News::Loading), None));
        warmer.begin();
        let news = warmer.tried(Tried::Loaded, at(28), &mut dice);
        assert_eq!(news, News::Ready { after: Duration::from_secs(23), tries: 1 });
        assert_eq!((warmer.ask(at(37)), warmer.ask(at(38))), (None, Some(News::Loading)));
        warmer.begin();
        let news = warmer.tried(Tried::Hopeless, at(39), &mut dice);
        assert_eq!(news, News::GaveUp { hopeless: true, after: Duration::from_secs(1), tries: 1 });
        assert_eq!((warmer.ask(at(98)), warmer.ask(at(99))), (None, Some(News::Loading)));
    }

    #[test]
    fn an_answer_says_whether_another_try_helps() {
        let rows = [
            (Some(200), false, Tried::Loaded),
            (Some(200), true, Tried::NotYet),
            (None, false, Tried::NotYet),
            (Some(503), false, Tried::NotYet),
            (Some(429), true, Tried::NotYet),
            (Some(404), true, Tried::Hopeless),
            (Some(400), false, Tried::Hopeless),
            (Some(302), false, Tried::Hopeless),
        ];
        for (status, told, how) in rows {
            assert_eq!(Tried::of(status, told), how, "{status:?}");
        }
    }
}
