//! When the desktop is told, and what. Pure: the time and what is held are handed in.
//!
//! A model that is short of capacity is one thing, however many calls wait for it: it is told once when a call of it has
//! been held for [`AFTER`], and once more when none is held any more. A thing that comes and goes is told again no sooner
//! than [`QUIET`] after it was, and between two notices there is [`GAP`]; what happens meanwhile is in the next one.

use std::collections::BTreeMap;
use std::time::Duration;

use relay_core::{Lang, Moment};

use super::{line_and_more, span};
use crate::sessions::said::Held;
use crate::words::held as words;

/// How long a call is held before it is told. Nobody is to wonder for more than 20 s, and whoever looks does so once in a
/// second or two.
const AFTER: f64 = 18.0;
/// The shortest time between two notices.
const GAP: Duration = Duration::from_secs(10);
/// The shortest time until the same thing is told of anew.
const QUIET: Duration = Duration::from_secs(60);
/// The most lines of a notice: desktops show no more.
const MOST: usize = 4;

/// What a notice says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// One line.
    pub(crate) title: String,
    /// A sentence or two.
    pub(crate) body: String,
}

/// What calls wait for: an upstream, and the model where it is known.
type Thing = (String, Option<String>);

#[derive(Debug)]
struct Told {
    at: Moment,
    /// The longest that a call was held, as long as one is.
    longest: Option<f64>,
}

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    things: BTreeMap<Thing, Told>,
    last: Option<Moment>,
}

impl Telling {
    /// Whether there is nothing more to tell of what was told.
    pub(super) fn is_done(&self) -> bool {
        self.things.values().all(|told| told.longest.is_none())
    }

    /// What is to be told `now`, when these calls are held: of those that their own client does not show, or of `all`.
    pub(crate) fn look(&mut self, lang: Lang, now: Moment, held: &[Held], all: bool) -> Option<Message> {
        let mut by_thing = BTreeMap::<Thing, Vec<&Held>>::new();
        for call in held {
            let thing = (call.upstream.clone(), call.model.clone());
            by_thing.entry(thing).or_default().push(call);
        }
        for (thing, told) in &mut self.things {
            let calls = by_thing.get(thing).into_iter().flatten();
            told.longest = told.longest.map(|longest| calls.fold(longest, |all, call| all.max(call.held_s)));
        }
        if self.last.is_some_and(|last| now.since(last) < GAP) {
            return None;
        }
        let over = self.over(lang, &by_thing);
        self.things.retain(|_, told| told.longest.is_some() || now.since(told.at) < QUIET);
        let counts = |call: &Held| all || !call.noticed;
        let begun = self.begun(lang, now, by_thing, counts);
        let title = if begun.is_empty() { words::is_over(lang) } else { words::holds(lang) };
        let mut lines = [begun, over].concat();
        if lines.is_empty() {
            return None;
        }
        self.last = Some(now);
        if lines.len() > MOST {
            let more = words::more(lang, lines.len() - MOST + 1);
            lines.truncate(MOST - 1);
            lines.push(more);
        }
        Some(Message { title, body: lines.join("\n") })
    }

    /// The things that were told, and that no call waits for any more.
    fn over(&mut self, lang: Lang, held: &BTreeMap<Thing, Vec<&Held>>) -> Vec<String> {
        let gone = self.things.iter_mut().filter(|(thing, _)| !held.contains_key(*thing));
        let told = gone.filter_map(|((upstream, model), told)| {
            let longest = told.longest.take()?;
            let name = model.as_ref().unwrap_or(upstream);
            Some(words::none_held(lang, name, &span(lang, longest)))
        });
        told.collect()
    }

    /// The things that calls wait for, and that were not told lately.
    fn begun(
        &mut self,
        lang: Lang,
        now: Moment,
        held: BTreeMap<Thing, Vec<&Held>>,
        counts: impl Fn(&Held) -> bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        for (thing, mut calls) in held {
            if self.things.contains_key(&thing) {
                continue;
            }
            calls.retain(|call| counts(call));
            let longest = calls.iter().max_by(|one, other| one.held_s.total_cmp(&other.held_s));
            let Some(longest) = longest.filter(|call| call.held_s >= AFTER) else { continue };
            lines.push(line_and_more(lang, longest, calls.len() - 1));
            self.things.insert(thing, Told { at: now, longest: Some(longest.held_s) });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::held;
    use super::*;

    /// What is told at this second, of calls that are held for so long.
    fn told(telling: &mut Telling, at: u64, held: &[Held]) -> Option<(String, String)> {
        let now = Moment::after_start(Duration::from_secs(at));
        telling.look(Lang::English, now, held, false).map(|message| (message.title, message.body))
    }

    fn of(model: &str, held_s: f64) -> Held {
        Held { model: Some(model.to_owned()), ..held("c1", held_s) }
    }

    fn holds(body: &str) -> Option<(String, String)> {
        Some(("Steady Relay holds a request".to_owned(), body.to_owned()))
    }

    fn is_over(body: &str) -> Option<(String, String)> {
        Some(("Steady Relay: the wait is over".to_owned(), body.to_owned()))
    }

    #[test]
    fn what_is_held_for_long_is_told_once_and_once_more_when_it_is_over() {
        let mut telling = Telling::default();
        assert_eq!(told(&mut telling, 17, &[held("c1", 17.0)]), None);
        assert!(telling.is_done());
        let two = [held("c1", 18.0), held("c2", 3.0)];
        assert_eq!(
            told(&mut telling, 18, &two),
            holds("gpt-x at capacity, held 18 s, next try in 14 s (+1)")
        );
        // Neither the same call nor another one that waits for the same.
        assert_eq!(told(&mut telling, 60, &[held("c1", 60.0), held("c2", 45.0)]), None);
        assert_eq!(told(&mut telling, 200, &[held("c1", 200.0), held("c3", 3.0)]), None);
        // The first has its answer, and the third still waits.
        assert_eq!(told(&mut telling, 201, &[held("c3", 4.0)]), None);
        assert!(!telling.is_done());
        assert_eq!(told(&mut telling, 202, &[]), is_over("gpt-x: nothing is held any more, after 3 min"));
        assert_eq!(told(&mut telling, 203, &[]), None);
        assert!(telling.is_done());
    }

    #[test]
    fn notices_keep_their_distance() {
        let mut telling = Telling::default();
        assert!(told(&mut telling, 100, &[held("c1", 18.0)]).is_some());
        // Its end and another beginning wait for the gap, and are one notice then.
        assert_eq!(told(&mut telling, 105, &[of("other", 30.0)]), None);
        let both =
            "other at capacity, held 35 s, next try in 14 s\ngpt-x: nothing is held any more, after 18 s";
        assert_eq!(told(&mut telling, 110, &[of("other", 35.0)]), holds(both));
        // What comes back at once is quiet for a minute.
        assert_eq!(told(&mut telling, 130, &[of("other", 60.0), held("c2", 19.0)]), None);
        assert_eq!(told(&mut telling, 159, &[of("other", 89.0), held("c2", 48.0)]), None);
        let again = told(&mut telling, 160, &[of("other", 90.0), held("c2", 49.0)]);
        assert_eq!(again, holds("gpt-x at capacity, held 49 s, next try in 14 s"));
    }

    #[test]
    fn an_hour_of_trouble_is_few_notices() {
        let mut telling = Telling::default();
        // Calls that are held for 25 s each, one after the other, with 5 s between them.
        let count = (0..3600).filter(|at| {
            let held: Vec<_> =
                Some(at % 30).filter(|age| *age < 25).map(|age| held("c", age as f64)).into_iter().collect();
            told(&mut telling, *at, &held).is_some()
        });
        assert!(count.count() <= 120);
    }

    #[test]
    fn what_the_client_shows_is_told_only_where_that_is_wanted() {
        let noticed = [Held { noticed: true, ..held("c1", 40.0) }];
        assert_eq!(told(&mut Telling::default(), 40, &noticed), None);
        let now = Moment::after_start(Duration::from_secs(40));
        assert!(Telling::default().look(Lang::English, now, &noticed, true).is_some());
        // It is still held: what was told of another call is not over.
        let mut telling = Telling::default();
        assert!(told(&mut telling, 40, &[noticed[0].clone(), held("c2", 30.0)]).is_some());
        assert_eq!(told(&mut telling, 60, &noticed), None);
        assert!(!telling.is_done());
    }

    #[test]
    fn a_notice_has_room_for_four_lines() {
        let many: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|model| of(model, 20.0)).collect();
        let (_, body) = told(&mut Telling::default(), 20, &many).unwrap();
        assert_eq!((body.lines().count(), body.lines().last()), (4, Some("and 2 more")));
    }
}
