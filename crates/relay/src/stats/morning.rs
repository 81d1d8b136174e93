//! A night in one line: `8 h: 37 refusals, 2 h 14 min waited, 0 turns lost, 61 sends, 1 may have been billed twice`. The
//! closing line of `run` is made of the same words.

use relay_core::Lang;

use super::tally::Sums;
use crate::words::{span, stats as words};

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Morning {
    /// How long it was, in milliseconds.
    pub took: u64,
    /// Sends that were refused for want of capacity.
    pub refusals: u64,
    /// How long calls waited, in milliseconds.
    pub waited: u64,
    /// Calls that were not served: refused, given up, handed back, broken off, or left by a client that had to wait.
    pub lost: u64,
    /// All sends.
    pub sends: u64,
    /// Those of them that may have been billed twice.
    pub billed_twice: u64,
}

impl Morning {
    /// That of these sums.
    #[must_use]
    pub fn of(sums: &Sums, took: u64) -> Self {
        Self {
            took,
            refusals: sums.refusals,
            waited: sums.waits.sum(),
            lost: sums.judged - sums.served,
            sends: sums.sends,
            billed_twice: sums.second_runs,
        }
    }

    /// The line.
    #[must_use]
    pub fn line(&self, lang: Lang) -> String {
        let parts = [
            words::refusals(lang, self.refusals),
            words::waited(lang, &span::whole(lang, self.waited)),
            words::turns_lost(lang, self.lost),
            words::sends(lang, self.sends),
        ];
        let twice = (self.billed_twice > 0).then(|| words::billed_twice(lang, self.billed_twice));
        let all = parts.into_iter().chain(twice).reduce(|all, part| words::and(lang, &all, &part));
        words::in_all(lang, &span::whole(lang, self.took), &all.unwrap_or_default())
    }

    /// What it took, as the end of another line: `14 s waited, 61 sends, 1 may have been billed twice`.
    #[must_use]
    pub fn spent(&self, lang: Lang) -> String {
        let waited = words::waited(lang, &span::whole(lang, self.waited));
        let spent = words::and(lang, &waited, &words::sends(lang, self.sends));
        match self.billed_twice {
            0 => spent,
            twice => words::and(lang, &spent, &words::billed_twice(lang, twice)),
        }
    }
}
