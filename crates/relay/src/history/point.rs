//! A call as those see it who add up many: the few columns that sums are made of.

use super::fate::Fate;
use super::record::CallRecord;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// When it was accepted, in milliseconds since 1970.
    pub opened: u64,
    /// The model.
    pub model: Option<String>,
    /// How it ended; `None`: it has not, or nobody saw it.
    pub fate: Option<Fate>,
    /// How many sends it took.
    pub sends: u32,
    /// How long it waited between them, in milliseconds.
    pub waited: u64,
    /// How often it was told of a want of capacity.
    pub capacity_faults: u32,
}

impl Point {
    /// Of a call.
    #[must_use]
    pub fn of(call: &CallRecord) -> Self {
        let closed = call.closed.as_ref();
        Self {
            opened: call.opened,
            model: call.model.clone(),
            fate: Fate::of_call(call),
            sends: closed.map_or(0, |closed| closed.sends),
            waited: closed.map_or(0, |closed| closed.waited),
            capacity_faults: closed.map_or(0, |closed| closed.capacity_faults),
        }
    }
}
