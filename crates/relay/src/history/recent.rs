//! The last calls in memory, for those who look at the relay while it runs. Each change has a number; who has seen all up
//! to one asks for what came after it. That makes a stream that can be taken up again at any place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;

use super::record::{CallRecord, State};

/// The most calls that are kept. A usual one takes half a kilobyte, and three times as much while somebody follows.
pub const MOST: usize = 2_000;

/// A call as it was after one of its changes.
#[derive(Debug)]
pub struct Known {
    /// What was known of it then.
    pub record: CallRecord,
    /// The same as JSON, once somebody wanted it.
    json: OnceLock<Box<str>>,
}

impl Known {
    pub(super) fn of(record: CallRecord) -> Arc<Self> {
        Arc::new(Self { record, json: OnceLock::new() })
    }

    /// The record as JSON, put together once for all who follow.
    #[must_use]
    pub fn json(&self) -> &str {
        // Numbers, texts and lists of them can always be written.
        self.json.get_or_init(|| serde_json::to_string(&self.record).unwrap_or_default().into())
    }
}

/// The last calls.
#[derive(Debug)]
pub struct Recent {
    kept: Mutex<Kept>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    calls: BTreeMap<u64, (u64, Arc<Known>)>,
    /// The same by the number of their last change.
    by_change: BTreeMap<u64, u64>,
    /// Those that are over; they go first.
    over: BTreeSet<u64>,
    last: u64,
}

impl Default for Recent {
    fn default() -> Self {
        Self { kept: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Recent {
    /// These are so now. Where somebody follows, what they are told is put together here, on the thread that records, and
    /// not where requests are answered.
    pub(super) fn put(&self, calls: &[Arc<Known>]) {
        if self.changes.receiver_count() > 0 {
            calls.iter().for_each(|call| _ = call.json());
        }
        let mut kept = self.kept();
        for call in calls {
            kept.put(Arc::clone(call));
        }
        let last = kept.last;
        drop(kept);
        self.changes.send_replace(last);
    }

    /// The number of the last change, and what has changed since this one, the oldest change first.
    #[must_use]
    pub fn since(&self, change: u64) -> (u64, Vec<Arc<Known>>) {
        let kept = self.kept();
        // A number from an earlier run of the relay says nothing.
        let from = if change > kept.last { 0 } else { change + 1 };
        let calls =
            kept.by_change.range(from..).filter_map(|(_, call)| Some(Arc::clone(&kept.calls.get(call)?.1)));
        (kept.last, calls.collect())
    }

    /// One call.
    #[must_use]
    pub fn call(&self, number: u64) -> Option<CallRecord> {
        self.kept().calls.get(&number).map(|(_, call)| call.record.clone())
    }

    /// Tells of changes by their numbers.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn put(&mut self, call: Arc<Known>) {
        self.last += 1;
        let number = call.record.call;
        if call.record.state == State::Closed {
            self.over.insert(number);
        }
        if let Some((before, _)) = self.calls.insert(number, (self.last, call)) {
            self.by_change.remove(&before);
        }
        self.by_change.insert(self.last, number);
        while self.calls.len() > MOST {
            let goes = self.over.pop_first().or_else(|| self.calls.keys().next().copied());
            let Some((change, _)) = goes.and_then(|number| self.calls.remove(&number)) else { return };
            self.by_change.remove(&change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::call;

    fn numbers(calls: &[Arc<Known>]) -> Vec<u64> {
        calls.iter().map(|call| call.record.call).collect()
    }

    fn put(recent: &Recent, calls: impl IntoIterator<Item = CallRecord>) {
        recent.put(&calls.into_iter().map(Known::of).collect::<Vec<_>>());
    }

    #[test]
    fn where_somebody_follows_the_recording_thread_puts_the_text_together() {
        let recent = Recent::default();
        put(&recent, [call(1, State::Closed)]);
        let follows = recent.changes();
        put(&recent, [call(2, State::Closed)]);
        drop(follows);
        put(&recent, [call(3, State::Closed)]);
        let all = recent.since(0).1;
        let is_ready: Vec<bool> = all.iter().map(|call| call.json.get().is_some()).collect();
        assert_eq!(is_ready, [false, true, false]);
        for call in all {
            assert_eq!(call.json(), serde_json::to_string(&call.record).unwrap());
        }
    }

    #[test]
    fn who_has_seen_some_gets_the_rest_as_it_is_now() {
        let recent = Recent::default();
        put(&recent, [call(1, State::Sending), call(2, State::Sending)]);
        let (seen, all) = recent.since(0);
        assert_eq!((seen, numbers(&all)), (2, vec![1, 2]));
        assert!(recent.since(seen).1.is_empty());
        put(&recent, [call(1, State::Waiting)]);
        put(&recent, [call(1, State::Closed), call(3, State::Opening)]);
        let (last, fresh) = recent.since(seen);
        assert_eq!((last, numbers(&fresh)), (5, vec![1, 3]));
        assert_eq!(fresh[0].record.state, State::Closed);
        assert_eq!(numbers(&recent.since(4000).1), [2, 1, 3], "a number of another run");
        assert_eq!(*recent.changes().borrow(), 5);
        assert_eq!(recent.call(2).map(|call| call.state), Some(State::Sending));
    }

    #[test]
    fn the_oldest_that_are_over_go_first() {
        let recent = Recent::default();
        put(&recent, [call(1, State::Streaming)]);
        put(&recent, (2..=MOST as u64 + 1).map(|number| call(number, State::Closed)));
        assert!(recent.call(1).is_some() && recent.call(2).is_none() && recent.call(3).is_some());
        assert_eq!(recent.since(0).1.len(), MOST);
        put(&recent, (10_000..20_000).map(|number| call(number, State::Streaming)));
        assert_eq!(recent.since(0).1.len(), MOST, "open ones are bounded, too");
    }
}
