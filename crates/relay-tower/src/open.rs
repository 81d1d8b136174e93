//! A call that is under way: its events go to the observer as they come, and its end is told exactly once, whatever
//! becomes of the future or the body that holds it.

use std::sync::Arc;

use relay_core::Moment;
use relay_core::call::Call;
use relay_core::event::{CallId, Closing, Event, Outcome};
use relay_core::usage::Usage;

use crate::clock::Clock;
use crate::told::{Attempts, Summary};

/// Who hears of what happens. It is called where it happens: it returns at once.
pub(crate) type Observer = Arc<dyn Fn(CallId, &Event) + Send + Sync>;

/// One call.
pub(crate) struct Open {
    id: CallId,
    call: Call,
    clock: Clock,
    observer: Option<Observer>,
    attempts: Attempts,
    received: u64,
    sent: u64,
    status: Option<u16>,
    usage: Option<Usage>,
    is_closed: bool,
}

impl Open {
    pub(crate) fn new(
        (id, observer): (CallId, Option<Observer>),
        call: Call,
        clock: Clock,
        received: u64,
    ) -> Self {
        Self {
            id,
            call,
            clock,
            observer,
            attempts: Attempts::new(),
            received,
            sent: 0,
            status: None,
            usage: None,
            is_closed: false,
        }
    }

    pub(crate) const fn call(&mut self) -> &mut Call {
        &mut self.call
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Whether anybody hears.
    pub(crate) const fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Tells what the call has to tell.
    pub(crate) fn tell(&mut self) {
        let now = self.clock.now();
        for event in self.call.take_events() {
            self.attempts.note(&event, now);
            self.emit(&event);
        }
    }

    pub(crate) fn emit(&self, event: &Event) {
        if let Some(observer) = &self.observer {
            observer(self.id, event);
        }
    }

    /// How it ended, for the caller.
    pub(crate) fn summary(&self, outcome: Outcome) -> Summary {
        let Closing { why, sends, waited, maybe_billed_twice, took, .. } =
            self.call.closing(outcome, self.clock.now());
        let (attempts, left_out) = self.attempts.list();
        Summary { outcome, why, sends, waited, took, maybe_billed_twice, attempts, left_out }
    }

    /// The caller gets an answer with this status.
    pub(crate) const fn answers(&mut self, status: u16) {
        self.status = Some(status);
    }

    /// So much of the answer went to the caller.
    pub(crate) const fn sends_on(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// What the answer says that it took.
    pub(crate) const fn usage(&mut self, usage: Option<Usage>) {
        self.usage = usage;
    }

    /// It is over, like this; what comes later changes nothing.
    pub(crate) fn close(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.tell();
        let closing = Closing {
            status: self.status,
            received: self.received,
            sent: self.sent,
            usage: self.usage,
            ..self.call.closing(outcome, self.clock.now())
        };
        self.emit(&Event::CallClosed(closing));
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close(Outcome::ClientLeft);
    }
}
