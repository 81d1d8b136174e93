//! What writes records to the history's file, and goes on where that fails: what could not be written is tried again
//! with what comes next, as far as there is room for it.

use super::record::CallRecord;

#[cfg(feature = "history")]
pub use with_file::File;

/// Writes records, or nothing.
#[derive(Debug, Default)]
pub struct Writer {
    #[cfg(feature = "history")]
    file: Option<File>,
    /// Why there is no file, where there should be one.
    #[cfg(feature = "history")]
    lack: Option<String>,
}

#[cfg(feature = "history")]
impl Writer {
    /// Writes to this file.
    #[must_use]
    pub const fn to(file: File) -> Self {
        Self { file: Some(file), lack: None }
    }

    /// Writes nothing, since that is in the way.
    #[must_use]
    pub const fn without(lack: String) -> Self {
        Self { file: None, lack: Some(lack) }
    }

    /// What is in the way of writing now.
    pub(super) fn trouble(&self) -> Option<String> {
        self.file.as_ref().map_or_else(|| self.lack.clone(), |file| file.trouble.clone())
    }

    /// The number of the run, where it is written.
    pub(super) fn run(&self) -> Option<i64> {
        self.file.as_ref().map(|file| file.run)
    }

    /// Writes these as they are now; how many were lost for good.
    pub(super) fn write(&mut self, calls: &[CallRecord]) -> u64 {
        self.file.as_mut().map_or(0, |file| file.write(calls))
    }

    /// There will be no more.
    pub(super) fn end(self) {
        if let Some(file) = self.file {
            file.end();
        }
    }
}

#[cfg(not(feature = "history"))]
impl Writer {
    #[expect(clippy::unused_self, reason = "with a history there may be something")]
    pub(super) const fn trouble(&self) -> Option<String> {
        None
    }

    #[expect(clippy::unused_self, reason = "with a history it has a number")]
    pub(super) const fn run(&self) -> Option<i64> {
        None
    }

    #[expect(clippy::unused_self, reason = "with a history it writes")]
    pub(super) const fn write(&mut self, _calls: &[CallRecord]) -> u64 {
        0
    }

    #[expect(clippy::unused_self, reason = "with a history it writes")]
    pub(super) const fn end(self) {}
}

#[cfg(feature = "history")]
mod with_file {
    use std::collections::BTreeMap;
    use std::fmt;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use relay_core::Moment;

    use crate::clock::{Clock, wall_ms};
    use crate::history::record::CallRecord;
    use crate::history::store::{Bounds, Run, Store, StoreError};
    use crate::words::{self, lang};

    /// How often what is too old is removed.
    const PRUNE: Duration = Duration::from_secs(600);
    /// The most calls that wait for a file that cannot be written.
    const UNWRITTEN: usize = 1_000;

    /// The history's file, and what is yet to be written to it.
    pub struct File {
        store: Store,
        pub(super) run: i64,
        bounds: Bounds,
        clock: Arc<dyn Clock>,
        pruned: Option<Moment>,
        say: Box<dyn Fn(String) + Send>,
        /// What is in the way of writing, which was said.
        pub(super) trouble: Option<String>,
        unwritten: BTreeMap<u64, CallRecord>,
    }

    impl fmt::Debug for File {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "history at {} ({} to be written)", self.store.path().display(), self.unwritten.len())
        }
    }

    impl File {
        /// Opens the file for a run that begins now; `say` tells what a person should know of it.
        ///
        /// # Errors
        /// Where there can be none.
        pub fn open(
            path: &Path,
            run: &Run,
            bounds: Bounds,
            clock: Arc<dyn Clock>,
            say: Box<dyn Fn(String) + Send>,
        ) -> Result<Self, StoreError> {
            let (opened, run) = Store::open_for(path, run, wall_ms(&*clock))?;
            if let Some(damaged) = opened.damaged {
                say(words::history::damaged(lang(), &damaged.display().to_string()));
            }
            let store = opened.store;
            let unwritten = BTreeMap::new();
            Ok(Self { store, run, bounds, clock, pruned: None, say, trouble: None, unwritten })
        }

        pub(super) fn write(&mut self, calls: &[CallRecord]) -> u64 {
            // As a rule nothing waits, and nothing has to be copied.
            let together: Vec<_>;
            let all = if self.unwritten.is_empty() {
                calls
            } else {
                self.keep(calls);
                together = self.unwritten.values().cloned().collect();
                &together
            };
            let written = self.store.write(self.run, all).and_then(|()| self.prune());
            match written {
                Ok(()) => {
                    self.unwritten.clear();
                    if self.trouble.take().is_some() {
                        (self.say)(words::history::recorded_again(lang()));
                    }
                    0
                }
                Err(why) => {
                    self.keep(calls);
                    if self.trouble.replace(why.to_string()).is_none() {
                        (self.say)(words::history::not_recorded(lang(), &why.to_string()));
                    }
                    let mut lost = 0;
                    while self.unwritten.len() > UNWRITTEN && self.unwritten.pop_first().is_some() {
                        lost += 1;
                    }
                    lost
                }
            }
        }

        /// They wait for the file.
        fn keep(&mut self, calls: &[CallRecord]) {
            self.unwritten.extend(calls.iter().map(|call| (call.call, call.clone())));
        }

        fn prune(&mut self) -> Result<(), StoreError> {
            let now = self.clock.now();
            if self.pruned.is_some_and(|pruned| now.since(pruned) < PRUNE) {
                return Ok(());
            }
            self.pruned = Some(now);
            self.store.prune(self.bounds, wall_ms(&*self.clock))
        }

        pub(super) fn end(mut self) {
            if !self.unwritten.is_empty() {
                let _lost = self.write(&[]);
            }
            // A run that has no end in the file was killed, or could not write it: both are told the same way.
            let _best_effort = self.store.end(self.run, wall_ms(&*self.clock));
        }
    }
}
