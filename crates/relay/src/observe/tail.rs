//! The last lines of the log, for those who look at the relay while it runs.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// The most lines that are kept.
const MOST: usize = 500;
/// The most characters of one.
const LONGEST: usize = 2_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, from 1.
    pub n: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How important it is.
    pub level: &'static str,
    /// What it says.
    pub text: String,
}

/// The last lines.
#[derive(Debug, Default)]
pub struct Tail(Mutex<(u64, VecDeque<Line>)>);

impl Tail {
    /// One more.
    pub(super) fn push(&self, at: u64, level: &'static str, mut text: String) {
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(end);
            text.push('…');
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, lines) = &mut *kept;
        *last += 1;
        if lines.len() == MOST {
            lines.pop_front();
        }
        lines.push_back(Line { n: *last, at, level, text });
    }

    /// The number of the last one, and those after this one, the oldest first.
    #[must_use]
    pub fn since(&self, line: u64) -> (u64, Vec<Line>) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, lines) = &*kept;
        // A number from an earlier run of the relay says nothing.
        let from = if line > *last { 0 } else { line };
        (*last, lines.iter().filter(|line| line.n > from).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_no_more() {
        let tail = Tail::default();
        assert_eq!(tail.since(0), (0, Vec::new()));
        for nth in 1..=MOST as u64 + 2 {
            tail.push(nth, "info", nth.to_string());
        }
        let (last, lines) = tail.since(0);
        assert_eq!((last, lines.len(), lines[0].n), (502, MOST, 3));
        assert_eq!(tail.since(501).1, [Line { n: 502, at: 502, level: "info", text: "502".to_owned() }]);
        assert!(tail.since(502).1.is_empty());
        assert_eq!(tail.since(9_999).1.len(), MOST, "a number of another run");
        tail.push(0, "warn", "é".repeat(LONGEST + 1));
        assert_eq!(tail.since(502).1[0].text.chars().count(), LONGEST + 1);
    }
}
