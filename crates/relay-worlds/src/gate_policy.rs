//! The gate of the core as a policy of these worlds.

use crate::admission::Admission;

/// The gate is not part of the core yet: no cell of its column can be filled.
#[must_use]
pub fn admission(_setup: &Setup) -> Option<Box<dyn Admission>> {
    None
}

/// Which gate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setup {
    /// How hard the calls ask.
    pub preset: Preset,
    /// Parts that are taken out.
    pub without: Vec<Part>,
    /// The operator says that no more than this run at once.
    pub max_running: Option<usize>,
}

/// How hard a call asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Preset {
    /// A person waits: 40 sends.
    #[default]
    Interactive,
    /// Nobody waits for a single one: 60 sends.
    Batch,
    /// As few wasted sends as can be: 12 sends.
    Strict,
}

/// A part of the gate that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A call of our own that ends frees its place for the next.
    Completions,
    /// How many ran when the lane was full.
    RememberedLimit,
    /// A lane that refuses at random stays open.
    Random,
    /// A rate limit is paced, not shut out.
    Rate,
    /// A send that stays silent for too long shuts the lane.
    Suspicion,
    /// The lane learns how long it takes to recover.
    Recovery,
}
