//! What was, beside what would be.

use serde::Serialize;

pub use super::again::{End, Ended};
use crate::history::record::CallRecord;

/// Waits that differ by no more milliseconds, or by no more than this share, are the same: no timer is exact.
const ALIKE: u64 = 300;
const SHARE: u64 = 50;

/// A call that would differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The number of the relay's run.
    pub run: Option<i64>,
    /// The number of the call.
    pub call: u64,
    /// When it was accepted, in milliseconds since 1970.
    pub opened: u64,
    /// The client.
    pub client: String,
    /// The upstream.
    pub upstream: String,
    /// The model.
    pub model: Option<String>,
    /// What was recorded.
    pub was: Side,
    /// What it would be.
    pub would: Side,
    /// It would end in another way.
    pub ends: bool,
}

impl Compared {
    /// Whether its waits differ by more than clocks do.
    #[must_use]
    pub fn waits(&self) -> bool {
        differ(&self.was, &self.would)
    }
}

fn differ(was: &Side, would: &Side) -> bool {
    was.waited.abs_diff(would.waited) > ALIKE.max(was.waited / SHARE)
}

/// One side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// How it ends; `goes_on`: it would be sent again where the recorded call ended.
    pub outcome: String,
    /// Why, where the relay ends it.
    pub why: Option<String>,
    /// The sends.
    pub sends: u32,
    /// The time between them, in milliseconds.
    pub waited: u64,
    /// Sends that may be the second to run.
    pub maybe_billed_twice: u32,
}

/// What differs; `None`: nothing.
pub(super) fn compare(call: &CallRecord, now: Ended) -> Option<Compared> {
    let closed = call.closed.as_ref()?;
    let was = Side {
        outcome: closed.outcome.clone(),
        why: closed.why.clone(),
        sends: closed.sends,
        waited: closed.waited,
        maybe_billed_twice: closed.maybe_billed_twice,
    };
    let outcome = match now.end {
        End::Known(outcome) => outcome,
        End::GoesOn => "goes_on".to_owned(),
    };
    let would =
        Side { outcome, why: now.why, sends: now.sends, waited: now.waited, maybe_billed_twice: now.granted };
    let ends = (&was.outcome, &was.why) != (&would.outcome, &would.why);
    let waits = differ(&was, &would);
    let granted = was.maybe_billed_twice != would.maybe_billed_twice;
    (ends || granted || was.sends != would.sends || waits).then(|| Compared {
        run: call.run,
        call: call.call,
        opened: call.opened,
        client: call.client.clone(),
        upstream: call.upstream.clone(),
        model: call.model.clone(),
        was,
        would,
        ends,
    })
}
