//! What is kept of calls that end badly.

use crate::event::Outcome;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is kept of calls that end badly, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// Whether anything is kept. Off: a request holds what people wrote, secrets taken out or not.
    pub enabled: bool,
    /// The folder. `None`: the usual one in the state folder, where there is such a folder.
    pub folder: Option<PathBuf>,
    /// Of which ends. All that cost somebody an answer; a cut makes Codex go on, and who leaves has a reason.
    pub outcomes: BTreeSet<Outcome>,
    /// The most bytes of one file. 256 KiB hold what decides; the texts of a longer one are shortened.
    pub max_size: u64,
    /// The most files; the oldest go first. 100 are more than anybody reads.
    pub max_count: u32,
    /// The most bytes of all files. 16 MiB, as 64 of the largest.
    pub max_total: u64,
}

impl Default for SnapshotSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            folder: None,
            outcomes: [
                Outcome::Passed,
                Outcome::Returned,
                Outcome::Refused,
                Outcome::GaveUp,
                Outcome::Broken,
            ]
            .into(),
            max_size: 256 << 10,
            max_count: 100,
            max_total: 16 << 20,
        }
    }
}
