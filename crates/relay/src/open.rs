//! An open call as the relay holds it: the deciding core's [`Call`], the body by which a re-send would be known,
//! and the duty to say how it ended. Whatever drops it, the end is told exactly once.

mod waits;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use relay_core::call::Call;
use relay_core::client::Client;
use relay_core::event::{CallId, Closing, Detour, Event, Outcome};
use relay_core::evidence::Nature;
use relay_core::failure::Failure;
use relay_core::gate::{Refusal, Report, Settled};
use relay_core::ledger::Identity;
use relay_core::trace::Trace;
use relay_core::usage::Usage;
use relay_core::{Evidence, Fault, Moment};

pub(crate) use self::waits::Waited;

use self::waits::Around;
use crate::call_report::{By, CallReport};
use crate::clock::{RealDice, wall_ms};
use crate::kept::KeptBody;
use crate::lanes::{Lane, Ticket, Turn};
use crate::observe::Observer as _;
use crate::quota::{Remembered, Spent};
use crate::sessions::Session;
use crate::shared::Shared;
use crate::snapshots::{Answered, Draft};

/// An open call.
pub(crate) struct OpenCall {
    shared: Arc<Shared>,
    id: CallId,
    call: Call,
    client: Client,
    body: Arc<KeptBody>,
    idle: Duration,
    ticket: Ticket,
    around: Around,
    place: Place,
    model: Option<Box<str>>,
    /// Its place in a trace, where traces are recorded.
    trace: Option<Trace>,
    /// What its lane said when it went back into the line.
    turn: Option<Turn>,
    /// When the model that it asks for failed it first, while nobody drives it.
    turned_away: Option<Moment>,
    /// Its failures count for a breaker.
    breaks: bool,
    /// The session of a client that somebody started.
    session: Option<Arc<Session>>,
    carried: Carried,
    /// What would be kept of it.
    draft: Option<Box<Draft>>,
    /// What its client is told of it.
    report: Option<Box<CallReport>>,
    closed: bool,
}

/// What went to the client, for the summary.
#[derive(Debug, Clone, Copy, Default)]
struct Carried {
    status: Option<u16>,
    received: u64,
    sent: u64,
    usage: Option<Usage>,
}

/// What an open call begins with.
pub(crate) struct Opening {
    pub(crate) id: CallId,
    pub(crate) call: Call,
    pub(crate) client: Client,
    pub(crate) body: Arc<KeptBody>,
    pub(crate) lane: Arc<Lane>,
    pub(crate) place: Place,
    /// The model that it asks for, as a label.
    pub(crate) model: Option<Box<str>>,
    pub(crate) trace: Option<Trace>,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) draft: Option<Box<Draft>>,
    /// Its failures count for a breaker: where nothing could stand in for its upstream there is none.
    pub(crate) breaks: bool,
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
        let Opening { id, call, client, body, lane, place, model, trace, session, draft, breaks } = opening;
        let idle = match client.limit {
            Some(limit) => shared.config.timeouts.idle.max(limit),
            None => shared.config.timeouts.idle,
        };
        let ticket = Ticket::new(lane, id);
        let carried = Carried { received: body.len() as u64, ..Carried::default() };
        Self {
            shared,
            id,
            call,
            client,
            body,
            idle,
            ticket,
            around: Around::Not,
            place,
            model,
            trace,
            turn: None,
            turned_away: None,
            breaks,
            session,
            carried,
            draft,
            report: None,
            closed: false,
        }
    }

    /// The same, whose client is told how it goes.
    pub(crate) fn told(mut self, report: Option<Box<CallReport>>) -> Self {
        self.report = report;
        self
    }

    /// Whether a request that came again may take this call up: it would wait in the same lane.
    pub(crate) fn is_in(&self, lane: &Arc<Lane>) -> bool {
        self.ticket.is_in(lane)
    }

    /// When the model that it asks for failed it first; until then it is told here, since what drives it ends.
    pub(crate) const fn turned_away(&mut self, at: Option<Moment>) {
        self.turned_away = at;
    }

    /// When the model that it asks for failed it first, as it was told.
    pub(crate) const fn was_turned_away(&self) -> Option<Moment> {
        self.turned_away
    }

    /// The client is back, with the request as it sends it now.
    pub(crate) fn taken_up(&mut self, client: Client, nature: Nature, body: Arc<KeptBody>) {
        (self.client, self.body) = (client, body);
        // Over another connection it may carry all of its input, or no more.
        self.call.taken_up(nature);
    }

    /// Its number.
    pub(crate) const fn id(&self) -> CallId {
        self.id
    }

    /// Its send begins.
    pub(crate) fn sends(&mut self) {
        self.ticket.sends();
    }

    /// Its send went by another way than the first.
    pub(crate) fn detoured(&self, detour: Option<Detour>) {
        if let Some(detour) = detour {
            self.emit(&Event::WayTaken { send: self.call.sends(), detour });
        }
    }

    /// The head of an answer came.
    pub(crate) fn head_arrived(&mut self, status: http::StatusCode, request_id: Option<Box<str>>) {
        self.call.head_arrived(status.as_u16(), request_id);
        if status.is_success() {
            self.ticket.heard();
        }
        self.emit_pending();
    }

    /// What it was answered, for those that come to its lane while that is parked.
    pub(crate) fn remember(&self, spent: Spent) {
        self.ticket.remember(spent);
    }

    /// What was answered when its lane was parked.
    pub(crate) fn remembered(&self) -> Remembered {
        self.ticket.remembered()
    }

    /// Its send failed.
    pub(crate) fn failed(&mut self, failure: Failure) {
        let (report, _) = self.fails(failure, None);
        self.settles(report, true);
    }

    /// Its send failed, and another upstream takes it after `other`. What its lane is to hear, and how long it would
    /// have waited there.
    pub(crate) fn fails(&mut self, failure: Failure, other: Option<Duration>) -> (Report, Option<Duration>) {
        let (now, mut dice) = (self.now(), RealDice::default());
        let report = match self.call.parks(&failure) {
            Some(told) => Report::Spent(told),
            None => Report::of(&failure, self.call.profile(), &mut dice),
        };
        self.breaks(&failure);
        let own = self.call.failed_beside(failure, other, now, &mut dice);
        self.emit_pending();
        (report, own)
    }

    fn breaks(&mut self, failure: &Failure) {
        self.ticket.failed(failure, self.breaks.then_some(&self.shared.config.breaker));
    }

    /// Its lane hears how its send ended; `stays`: it waits there again, if it does at all.
    pub(crate) fn settles(&mut self, report: Report, stays: bool) {
        let now = self.now();
        let waiting = self.call.waiting().filter(|_| stays && self.around != Around::Now);
        if self.around == Around::Now {
            // Whatever it waits for now, it does in its lane.
            self.around = Around::Was;
        }
        let back = waiting.map(|waiting| waiting.not_before.unwrap_or(now));
        self.turn = self.ticket.settled(Settled { report, back }, waiting);
    }

    /// A failure was told after output, and the answer ended with it.
    pub(crate) fn refused_late(&mut self, failure: &Failure) {
        let refusal = Refusal::late(failure, self.call.profile(), &mut RealDice::default());
        if let (Some(refusal), false) = (refusal, self.closed) {
            self.ticket.refused_late(refusal);
        }
    }

    /// Whether its client is told how it went.
    pub(crate) const fn is_reported(&self) -> bool {
        self.report.is_some()
    }

    /// Tells the client how it went, where it asked for that; `by`: whose answer it gets.
    pub(crate) fn report(&mut self, outcome: Outcome, by: By, head: &mut HeaderMap) {
        if let Some(report) = self.report.take() {
            self.emit_pending();
            report.tell(self.id, &self.call.closing(outcome, self.now()), by, head);
        }
    }

    /// The client gets an answer with this status.
    pub(crate) const fn answers(&mut self, status: u16) {
        self.carried.status = Some(status);
    }

    /// So much of the answer's body goes to the client.
    pub(crate) const fn passes(&mut self, bytes: usize) {
        self.carried.sent = self.carried.sent.saturating_add(bytes as u64);
    }

    /// What the answer says it took.
    pub(crate) const fn used(&mut self, usage: Option<Usage>) {
        self.carried.usage = usage;
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

    /// What its next send says of its trace, where the settings want that.
    pub(crate) fn propagates(&self) -> Option<(Trace, u32)> {
        let trace = self.trace.filter(|_| self.shared.config.otlp.propagate)?;
        Some((trace, self.call.sends()))
    }

    /// The longest silence that is borne.
    pub(crate) const fn idle(&self) -> Duration {
        self.idle
    }

    pub(crate) fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    /// Shows an event of this call.
    pub(crate) fn emit(&self, event: &Event) {
        let now = self.now();
        if let Some(session) = &self.session {
            session.status.see(self.id, now, event);
        }
        if let Some(draft) = &self.draft {
            draft.see(self.id, now, event);
        }
        if let Some(report) = &self.report {
            report.see(self.id, now, event);
        }
        self.shared.observers.see(self.id, now, event);
    }

    /// Shows what the core has seen since the last time.
    pub(crate) fn emit_pending(&mut self) {
        for event in self.call.take_events() {
            self.emit(&event);
        }
    }

    /// The answer belongs to the client from here on, and the body is not needed any more.
    pub(crate) fn commit(&mut self) {
        self.ticket.accepted();
        self.hands_over();
    }

    /// The same of an answer that nobody reads, whose head says that it is this failure: that says nothing of its lane.
    /// What its client asked to have as it comes is handed back, unless it is a definite error.
    pub(crate) fn commit_refusal(&mut self, failure: Failure) -> Outcome {
        self.ticket.settled(Settled { report: Report::Other, back: None }, None);
        let may_heal = self.call.passes_failed(failure);
        self.hands_over();
        if may_heal { Outcome::Returned } else { Outcome::Passed }
    }

    fn hands_over(&mut self) {
        self.call.committed();
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
        self.cut_and_resume(fault, None);
    }

    fn cut_and_resume(&mut self, fault: &Failure, not_before: Option<Moment>) {
        let now = self.now();
        let earlier = self.client.turn.as_ref().map_or(0, |turn| self.shared.ledger().cuts(turn, now));
        let wait = self.call.wait_after_cut(fault, earlier, &mut RealDice::default());
        let not_before = not_before.unwrap_or(now + wait);
        let cuts =
            self.client.turn.as_ref().map_or(0, |turn| self.shared.ledger().cut(turn, not_before, now));
        self.emit(&Event::StreamCut { fault: fault.fault, cuts });
        self.close(Outcome::Cut);
    }

    /// Whether its client may be made to send the whole input over a new connection: as often as a turn may be cut.
    pub(crate) fn may_resume(&self) -> bool {
        let Some(turn) = &self.client.turn else { return false };
        let most = self.shared.config.client(self.client.kind).cuts;
        self.shared.ledger().may_cut(turn, most, self.now())
    }

    /// The client is made to send the whole input over a new connection, since what the call goes on from is lost. It is
    /// the same call then, and waits as this one would have: until `not_before`, if it does already. Whatever failed was
    /// told to the lane before.
    pub(crate) fn resumed(&mut self, fault: &Failure, not_before: Option<Moment>) {
        if self.closed {
            return;
        }
        let spent = self.call.bequest(false);
        self.cut_and_resume(fault, not_before);
        if let Some(turn) = &self.client.turn {
            self.shared.ledger().bequeath(turn, spent);
        }
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
                self.ticket.served();
                if let Some(body) = self.body.known_hash() {
                    let mut ledger = self.shared.ledger();
                    ledger.forget(&Identity::new(&self.client, self.body.credential(), body));
                }
            }
            // Once output was seen, a re-send is a call of its own.
            Outcome::Broken => {
                let failure = Failure::of_transport(Fault::BrokenStream, Evidence::Committed);
                self.breaks(&failure);
            }
            Outcome::Cut => {}
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
        let Carried { status, received, sent, usage } = self.carried;
        let closing = self.call.closing(outcome, now);
        self.emit(&Event::CallClosed(Closing { status, received, sent, usage, ..closing }));
        self.ticket.leave();
        self.keep(outcome);
        self.body.drop_bytes();
    }

    /// Keeps what is wanted of a call that ended like this.
    fn keep(&mut self, outcome: Outcome) {
        let Some(draft) = self.draft.take().filter(|draft| draft.wants(outcome)) else { return };
        let run = self.shared.recorder.as_ref().and_then(|recorder| recorder.run());
        if let Some(job) = draft.ended(self.id, run, self.body.take_bytes(), wall_ms(&*self.shared.clock)) {
            self.shared.snapshots.push(job);
        }
    }

    /// This answer tells how it ends.
    pub(crate) fn answered(&mut self, answered: impl FnOnce() -> Answered) {
        if let Some(draft) = &mut self.draft {
            draft.answered(answered());
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // Nobody said how it ended: the client went away and took the future with it.
        self.close(Outcome::ClientLeft);
    }
}
