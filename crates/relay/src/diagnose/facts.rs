//! What was found out, as plain values. Nothing here holds a credential.

use crate::doctor::facts::Facts as Way;
use crate::history::record::CallRecord;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Now, in milliseconds since 1970.
    pub now: u64,
    /// From when on calls were looked at.
    pub since: u64,
    /// The calls of that time, of all sessions, the oldest first.
    pub calls: Vec<CallRecord>,
    /// How many more there were, which were too many.
    pub more_calls: usize,
    /// When the last call before that time was accepted.
    pub before: Option<u64>,
    /// The history's file.
    pub history: History,
    /// The settings, who is at the relay's address, and the way to the services.
    pub way: Way,
}

/// What became of the history's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum History {
    /// It was read.
    #[default]
    Read,
    /// The settings have none, or this program has none.
    Off,
    /// It cannot be read.
    Unreadable(String),
}
