//! When long jobs are best run: the hours of the day in which the fewest sends are refused, where enough is known.

use super::tally::{Cell, Hours};

/// An hour is known from so many sends on.
pub const SENDS: u64 = 20;
/// And on so many days: one bad evening is no rule.
pub const DAYS: usize = 3;
/// So many hours are known before they are compared.
pub const HOURS: usize = 6;
/// Hours that differ by less are the same.
const DIFFERENCE: f64 = 0.05;
/// What lies that near to the best, of the way to the worst, is as good; and the other way round.
const NEAR_BEST: f64 = 0.1;
const NEAR_WORST: f64 = 0.25;
/// The longest time that is named.
const LONGEST: usize = 8;

/// When it is best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Best {
    /// Too little is known; of so many hours there is enough.
    Unknown {
        /// How many.
        known: usize,
    },
    /// All hours are about the same.
    Even(Cell),
    /// These.
    Hours {
        /// The best.
        quiet: Span,
        /// The worst.
        busy: Span,
    },
}

/// Some hours of the day that follow on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The first one.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
    /// What is known of them.
    pub cell: Cell,
}

/// When it is best.
#[must_use]
pub fn best(hours: &Hours) -> Best {
    let known: [Option<f64>; 24] = std::array::from_fn(|hour| {
        let (cell, days) = hours.of_day(hour);
        cell.share().filter(|_| cell.sends >= SENDS && days >= DAYS)
    });
    let shares = || known.iter().enumerate().filter_map(|(hour, share)| Some((hour, (*share)?)));
    let by_share = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let (Some((quiet, low)), Some((busy, high))) = (shares().min_by(by_share), shares().max_by(by_share))
    else {
        return Best::Unknown { known: 0 };
    };
    match shares().count() {
        count if count < HOURS => Best::Unknown { known: count },
        _ if high - low < DIFFERENCE => Best::Even(hours.all()),
        _ => {
            let (good, bad) = (low + (high - low) * NEAR_BEST, high - (high - low) * NEAR_WORST);
            let is_quiet = |hour: usize| known[hour].is_some_and(|share| share <= good);
            let is_busy = |hour: usize| known[hour].is_some_and(|share| share >= bad);
            Best::Hours { quiet: span(hours, quiet, &is_quiet), busy: span(hours, busy, &is_busy) }
        }
    }
}

/// The hours around this one that are like it.
fn span(hours: &Hours, around: usize, is_like: &dyn Fn(usize) -> bool) -> Span {
    let (mut from, mut to, mut length) = (around, (around + 1) % 24, 1);
    loop {
        let (before, after) = ((from + 23) % 24, to);
        if length < LONGEST && is_like(after) {
            to = (to + 1) % 24;
        } else if length < LONGEST && is_like(before) {
            from = before;
        } else {
            break;
        }
        length += 1;
    }
    let within = (0..length).map(|at| hours.of_day((from + at) % 24).0);
    Span { from, to, cell: within.fold(Cell::default(), Cell::and) }
}
