//! What happened to one call, for whoever wants its record at its end, which is seldom: events are kept as they come and
//! put together only then. Of a call to which more happens they are put together now and then, so that none grows.

use std::sync::{Mutex, PoisonError};

use relay_core::Moment;
use relay_core::event::{CallId, Event};

use super::assemble::Assembler;
use super::record::CallRecord;

/// So many are kept before they are put together.
const KEPT: usize = 8;
/// So many happen to a call that goes well before its end: there is room for them from the beginning.
const AS_A_RULE: usize = 4;

/// The events of one call.
#[derive(Debug, Default)]
pub(crate) struct Single(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    kept: Vec<(Moment, Event)>,
    before: Assembler,
}

impl Default for Seen {
    fn default() -> Self {
        Self { kept: Vec::with_capacity(AS_A_RULE), before: Assembler::default() }
    }
}

impl Seen {
    fn put_together(&mut self, call: CallId) {
        for (at, event) in self.kept.drain(..) {
            self.before.see(call, at, &event);
        }
    }
}

impl Single {
    /// Something happened to the call.
    pub(crate) fn see(&self, call: CallId, at: Moment, event: &Event) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.kept.len() == KEPT {
            seen.put_together(call);
        }
        seen.kept.push((at, event.clone()));
    }

    /// Its record, as it is now.
    pub(crate) fn record(self, call: CallId) -> Option<CallRecord> {
        let mut seen = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        seen.put_together(call);
        seen.before.take_changed().pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::State;
    use crate::history::tests::{opened, served};

    #[test]
    fn however_much_happens_the_record_is_that_of_all_events() {
        for more in [0, 1, KEPT as u32, 40] {
            let (single, mut all) = (Single::default(), Assembler::default());
            let mut see = |event: &Event| {
                single.see(CallId(7), Moment::ZERO, event);
                all.see(CallId(7), Moment::ZERO, event);
            };
            see(&opened());
            for send in 1..=more {
                see(&Event::SendStarted { send });
            }
            see(&served(more, 0));
            let record = single.record(CallId(7)).unwrap();
            assert_eq!(Some(&record), all.take_changed().last());
            assert_eq!((record.state, record.sends.len()), (State::Closed, more as usize));
        }
    }
}
