//! An open call as the relay holds it: the deciding core's [`Call`], the body by which a re-send would be known,
//! and the duty to say how it ended. Whatever drops it, the end is told exactly once.

use std::sync::Arc;
use std::time::Duration;

use relay_core::Moment;
use relay_core::call::{Call, Waiting};
use relay_core::client::{self, Client};
use relay_core::event::{CallId, Event, Outcome};
use relay_core::failure::Failure;
use relay_core::gate::{Arrival, Preset, Refusal, Report, Settled};
use relay_core::ledger::Identity;

use crate::clock::RealDice;
use crate::kept::KeptBody;
use crate::lanes::{Lane, Ticket, Turn};
use crate::shared::Shared;

/// An open call.
pub(crate) struct OpenCall {
    shared: Arc<Shared>,
    id: CallId,
    call: Call,
    client: Client,
    body: Arc<KeptBody>,
    idle: Duration,
    /// The turn that may be cut and resumed.
    cuttable: Option<client::Turn>,
    ticket: Ticket,
    place: Place,
    /// What its lane said when it went back into the line.
    turn: Option<Turn>,
    closed: bool,
}

/// What an open call begins with.
pub(crate) struct Opening {
    pub(crate) id: CallId,
    pub(crate) call: Call,
    pub(crate) client: Client,
    pub(crate) body: Arc<KeptBody>,
    pub(crate) lane: Arc<Lane>,
    pub(crate) place: Place,
}

/// What decides about the place of a call among others that wait.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The client's conversation; a call without one is its own.
    pub(crate) session: u64,
    /// What it weighs beside a small call.
    pub(crate) weight: f64,
    /// It asks for a stream.
    pub(crate) streams: bool,
}

impl OpenCall {
    pub(crate) fn new(shared: Arc<Shared>, opening: Opening) -> Self {
        let Opening { id, call, client, body, lane, place } = opening;
        let idle = match client.limit {
            Some(limit) => shared.config.timeouts.idle.max(limit),
            None => shared.config.timeouts.idle,
        };
        let ticket = Ticket::new(lane, id);
        Self {
            shared,
            id,
            call,
            client,
            body,
            idle,
            cuttable: None,
            ticket,
            place,
            turn: None,
            closed: false,
        }
    }

    /// The call waits in its lane from now on, if it does not yet.
    pub(crate) fn take_turn(&mut self, waiting: &Waiting) -> Turn {
        if let Some(turn) = self.turn.take() {
            return turn;
        }
        let (sends, budget) = self.call.counted();
        let Place { session, weight, streams } = self.place;
        self.ticket.enter(Arrival {
            call: self.id,
            session,
            since: self.call.first_opened(),
            deadline: waiting.deadline(),
            preset: self.call.profile().gate.unwrap_or(Preset::Interactive),
            weight,
            sends,
            budget,
            not_before: waiting.not_before,
            streams,
            plain: waiting.plain,
        })
    }

    /// Its turn has come.
    pub(crate) fn granted(&mut self) {
        let now = self.now();
        self.call.granted(now);
    }

    /// Its turn has not come, and is not waited for any more.
    pub(crate) fn leaves_line(&mut self) {
        self.ticket.leave();
    }

    /// Its send begins.
    pub(crate) const fn sends(&mut self) {
        self.ticket.sends();
    }

    /// The head of an answer came.
    pub(crate) fn head_arrived(&mut self, status: http::StatusCode) {
        self.call.head_arrived(status.as_u16());
        if status.is_success() {
            self.ticket.heard();
        }
        self.emit_pending();
    }

    /// Its send failed.
    pub(crate) fn failed(&mut self, failure: Failure) {
        let (now, mut dice) = (self.now(), RealDice::default());
        let report = Report::of(&failure, self.call.profile(), &mut dice);
        self.call.failed(failure, now, &mut dice);
        self.emit_pending();
        let back = self.call.waiting().map(|waiting| waiting.not_before.unwrap_or(now));
        self.turn = self.ticket.settled(Settled { report, back });
    }

    /// A failure was told after output, and the answer ended with it.
    pub(crate) fn refused_late(&mut self, failure: &Failure) {
        let refusal = Refusal::late(failure, self.call.profile(), &mut RealDice::default());
        if let (Some(refusal), false) = (refusal, self.closed) {
            self.ticket.refused_late(refusal);
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) const fn call(&mut self) -> &mut Call {
        &mut self.call
    }

    pub(crate) fn body(&self) -> &KeptBody {
        &self.body
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// The longest silence that is borne.
    pub(crate) const fn idle(&self) -> Duration {
        self.idle
    }

    pub(crate) fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    pub(crate) fn may_be_cut(&mut self, turn: Option<client::Turn>) {
        self.cuttable = turn;
    }

    /// Shows an event of this call.
    pub(crate) fn emit(&self, event: &Event) {
        self.shared.observers.see(self.id, self.now(), event);
    }

    /// Shows what the core has seen since the last time.
    pub(crate) fn emit_pending(&mut self) {
        for event in self.call.take_events() {
            self.emit(&event);
        }
    }

    /// The answer belongs to the client from here on, and the body is not needed any more.
    pub(crate) fn commit(&mut self) {
        self.call.committed();
        self.ticket.accepted();
        self.emit_pending();
        self.body.drop_bytes();
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::new(&self.client, self.body.credential(), self.body.hash()?))
    }

    /// A fatal capacity event is withheld and the connection cut: the client resumes, but not at once.
    pub(crate) fn cut(&mut self, fault: &Failure) {
        if self.closed {
            return;
        }
        self.refused_late(fault);
        let now = self.now();
        let earlier = self.cuttable.as_ref().map_or(0, |turn| self.shared.ledger().cuts(turn, now));
        let wait = self.call.wait_after_cut(fault, earlier, &mut RealDice::default());
        let cuts = self.cuttable.as_ref().map_or(0, |turn| self.shared.ledger().cut(turn, now + wait, now));
        self.emit(&Event::StreamCut { fault: fault.fault, cuts });
        self.close(Outcome::Cut);
    }

    /// The answer completes its turn, however the call ends: the turn's cuts count anew.
    pub(crate) fn turn_completed(&self) {
        if let (false, Some(turn)) = (self.closed, &self.client.turn) {
            self.shared.ledger().completed(turn);
        }
    }

    /// The call has ended; only the first word counts.
    pub(crate) fn close(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.emit_pending();
        let now = self.now();
        match outcome {
            Outcome::Served => {
                if let Some(body) = self.body.known_hash() {
                    let mut ledger = self.shared.ledger();
                    ledger.forget(&Identity::new(&self.client, self.body.credential(), body));
                }
            }
            // Once output was seen, a re-send is a call of its own.
            Outcome::Broken | Outcome::Cut => {}
            Outcome::Passed
            | Outcome::Returned
            | Outcome::Refused
            | Outcome::GaveUp
            | Outcome::ClientLeft => {
                if let Some(identity) = self.identity() {
                    let spent = self.call.bequest(outcome == Outcome::ClientLeft);
                    self.shared.ledger().remember(&identity, spent, now);
                }
            }
        }
        self.emit(&Event::CallClosed(self.call.closing(outcome, now)));
        self.ticket.leave();
        self.body.drop_bytes();
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // Nobody said how it ended: the client went away and took the future with it.
        self.close(Outcome::ClientLeft);
    }
}
