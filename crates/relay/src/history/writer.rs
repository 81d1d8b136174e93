//! What the recorder writes to: the history's file, or nothing.

use std::sync::Arc;
use std::time::Duration;

use super::recent::Known;

#[cfg(feature = "history")]
use super::file::File;

/// Writes records, or nothing.
#[derive(Debug, Default)]
pub struct Writer {
    #[cfg(feature = "history")]
    file: Option<File>,
}

#[cfg(feature = "history")]
impl Writer {
    /// Writes to this file.
    #[must_use]
    pub const fn to(file: File) -> Self {
        Self { file: Some(file) }
    }

    /// What is in the way of writing now.
    pub(super) fn trouble(&self) -> Option<String> {
        self.file.as_ref().and_then(File::trouble)
    }

    /// The number of the run, where it is written.
    pub(super) fn run(&self) -> Option<i64> {
        self.file.as_ref().and_then(File::run)
    }

    /// How long it is until it should be asked to write, though nothing new came.
    pub(super) fn next_try(&self) -> Option<Duration> {
        self.file.as_ref().and_then(File::next_try)
    }

    /// Writes these as they are now, and what is left from before; how many were lost for good.
    pub(super) fn write(&mut self, calls: Vec<Arc<Known>>) -> u64 {
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
#[expect(clippy::unused_self, reason = "with a history there is a file")]
impl Writer {
    pub(super) const fn trouble(&self) -> Option<String> {
        None
    }

    pub(super) const fn run(&self) -> Option<i64> {
        None
    }

    pub(super) const fn next_try(&self) -> Option<Duration> {
        None
    }

    pub(super) fn write(&mut self, _calls: Vec<Arc<Known>>) -> u64 {
        0
    }

    pub(super) const fn end(self) {}
}
