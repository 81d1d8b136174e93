//! Keeps the history's file open for one run, and goes on where that cannot be: what could not be written waits, as far
//! as there is room for it, and is tried again ever later. A file that was taken away is begun anew.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use relay_core::Moment;

use crate::clock::{Clock, wall_ms};
use crate::history::recent::Known;
use crate::history::store::{Bounds, Run, Store, StoreError};
use crate::words::{self, lang};

/// How often what is too old is removed.
const PRUNE: Duration = Duration::from_secs(600);
/// The most calls that wait for a file that cannot be written.
const UNWRITTEN: usize = 1_000;
/// After the first failure it is tried again so soon, and each time twice as late: a lock passes in a moment.
const FIRST: Duration = Duration::from_secs(1);
/// And never later than this: a disk that has room again is found within it.
const LONGEST: Duration = Duration::from_secs(60);

/// The history's file, and what is yet to be written to it.
pub struct File {
    path: PathBuf,
    /// The run, and when it began.
    began: (Run, u64),
    bounds: Bounds,
    clock: Arc<dyn Clock>,
    say: Box<dyn Fn(String) + Send>,
    /// The file, and the number of the run in it.
    open: Option<(Store, i64)>,
    pruned: Option<Moment>,
    trouble: Option<Trouble>,
    unwritten: BTreeMap<u64, Arc<Known>>,
}

/// What is in the way of writing, which was said.
struct Trouble {
    why: String,
    /// When it is tried again, and how long that is after the last time.
    again: Moment,
    pause: Duration,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "history at {} ({} to be written)", self.path.display(), self.unwritten.len())
    }
}

impl File {
    /// The file for a run that begins now, opened where that can be done already; `say` tells what a person should
    /// know of it.
    #[must_use]
    pub fn new(
        path: PathBuf,
        run: Run,
        bounds: Bounds,
        clock: Arc<dyn Clock>,
        say: Box<dyn Fn(String) + Send>,
    ) -> Self {
        let began = (run, wall_ms(&*clock));
        let (open, pruned, trouble, unwritten) = (None, None, None, BTreeMap::new());
        let mut file = Self { path, began, bounds, clock, say, open, pruned, trouble, unwritten };
        file.try_now();
        file
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.as_ref().map(|trouble| trouble.why.clone())
    }

    pub(super) fn run(&self) -> Option<i64> {
        self.open.as_ref().map(|(_, run)| *run)
    }

    /// How long the machine's clock takes until it is tried again.
    pub(super) fn next_try(&self) -> Option<Duration> {
        let left = self.trouble.as_ref()?.again.since(self.clock.now());
        Some(self.clock.real(left))
    }

    pub(super) fn write(&mut self, calls: Vec<Arc<Known>>) -> u64 {
        self.unwritten.extend(calls.into_iter().map(|call| (call.record.call, call)));
        if self.next_try().is_none_or(|wait| wait.is_zero()) {
            self.try_now();
        }
        let mut lost = 0;
        while self.unwritten.len() > UNWRITTEN && self.unwritten.pop_first().is_some() {
            lost += 1;
        }
        lost
    }

    fn try_now(&mut self) {
        match self.try_to_write() {
            Ok(()) => {
                self.unwritten.clear();
                if self.trouble.take().is_some() {
                    (self.say)(words::history::recorded_again(lang()));
                }
            }
            Err(why) => {
                if matches!(why, StoreError::Damaged { .. }) {
                    // Whoever opens it next puts it aside.
                    self.open = None;
                }
                let why = why.to_string();
                let pause = self.trouble.as_ref().map_or(FIRST, |trouble| (trouble.pause * 2).min(LONGEST));
                let again = self.clock.now() + pause;
                if self.trouble.replace(Trouble { why: why.clone(), again, pause }).is_none() {
                    (self.say)(words::history::not_recorded(lang(), &why));
                }
            }
        }
    }

    fn try_to_write(&mut self) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(|(store, _)| !store.is_in_place()) {
            // It is closed before another is opened: what SQLite locks belongs to the process.
            self.open = None;
            (self.say)(words::history::gone(lang(), &self.path.display().to_string()));
        }
        let (store, run) = if let Some(open) = &mut self.open {
            open
        } else {
            let (opened, run) = Store::open_for(&self.path, &self.began.0, self.began.1)?;
            if let Some(damaged) = opened.damaged {
                (self.say)(words::history::damaged(lang(), &damaged.display().to_string()));
            }
            self.open.insert((opened.store, run))
        };
        if !self.unwritten.is_empty() {
            store.write(*run, self.unwritten.values().map(|call| &call.record))?;
        }
        let now = self.clock.now();
        if self.pruned.is_none_or(|pruned| now.since(pruned) >= PRUNE) {
            self.pruned = Some(now);
            store.prune(self.bounds, wall_ms(&*self.clock))?;
        }
        Ok(())
    }

    pub(super) fn end(mut self) {
        if !self.unwritten.is_empty() {
            self.try_now();
        }
        if let Some((store, run)) = &mut self.open {
            // A run that has no end in the file was killed, or could not write it: both are told the same way.
            let _best_effort = store.end(*run, wall_ms(&*self.clock));
        }
    }
}

#[cfg(test)]
mod tests;
