//! The oracle: it sees the service as it is, and sends the oldest call in the instant in which it will be accepted.
//! Nobody can do better, and on a pool that others share nobody should: it snatches every slot that becomes free.

use std::collections::VecDeque;

use relay_core::dice::Dice;
use relay_core::event::CallId;
use relay_core::moment::Moment;

use crate::admission::{Admission, Foresight, Newcomer, Poll, Refused};

/// The calls that wait, oldest first.
#[derive(Debug, Default)]
pub struct Oracle {
    line: VecDeque<CallId>,
}

impl Admission for Oracle {
    fn arrive(&mut self, newcomer: Newcomer, _now: Moment) {
        self.line.push_back(newcomer.call);
    }

    fn poll(&mut self, _now: Moment, service: &dyn Foresight, _dice: &mut dyn Dice) -> Poll {
        if self.line.is_empty() {
            return Poll::Idle;
        }
        if !service.would_accept() {
            return service.next_change().map_or(Poll::Idle, Poll::Wait);
        }
        self.line.pop_front().map_or(Poll::Idle, Poll::Send)
    }

    fn refused(&mut self, refused: &Refused, _now: Moment, _dice: &mut dyn Dice) -> bool {
        if !refused.late {
            self.line.push_front(refused.call);
        }
        !refused.late
    }

    fn left(&mut self, call: CallId, _now: Moment) {
        self.line.retain(|waiting| *waiting != call);
    }
}
