//! `steady-relay replay`: decides recorded calls again, with the present settings, and tells what would differ.
//!
//! ```text
//!  records --> rebuild (failures, nature, client) --> again (the core's `Call`, in virtual time) --> compare --> report
//! ```
//! What decides is [`relay_core::call::Call`], as for live calls. A record does not hold everything, so some of it is
//! inferred; `docs/replay.md` says what, and what it cannot know.

mod again;
pub mod compare;
pub mod read;
mod rebuild;
pub mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use relay_core::Config;

use crate::diagnose::span;
use crate::history::record::CallRecord;
use compare::{Compared, compare};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// Recorded calls as JSON lines, or a report of `diagnose`; `-` for standard input
    #[arg(conflicts_with = "since")]
    pub file: Option<PathBuf>,
    /// Replay the calls of the last hours or days from the history: 12h, 7d
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub since: Option<Duration>,
    /// The seed of chance, for waits that were not recorded [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replayed {
    /// The calls that were decided again.
    pub calls: usize,
    /// Those that were still open, or never came to be decided about.
    pub passed_over: usize,
    /// Those that differ, in the order of the records.
    pub differing: Vec<Compared>,
}

/// Decides these calls again.
#[must_use]
pub fn replay(calls: &[CallRecord], config: &Config, seed: u64) -> Replayed {
    let mut all = Replayed::default();
    for call in calls {
        match again::again(call, config, seed) {
            None => all.passed_over += 1,
            Some(now) => {
                all.calls += 1;
                all.differing.extend(compare(call, now));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
