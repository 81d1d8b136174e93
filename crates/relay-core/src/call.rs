//! The life of one call: when it is sent, how long it waits, and how it ends. It owns the one counter of sends.
//!
//! ```text
//!  Waiting --granted--> Ready --send--> Flying --committed--> Done(Served)
//!    ^ |                                |  \--final, or no right to another send--> Done(Passed | Returned | Refused)
//!    | '--patience spent--> Done(GaveUp)|
//!    '----------------------------------'--budget spent--> Done(GaveUp)      any --client gone--> Done(ClientLeft)
//! ```
//!
//! The caller asks [`Call::next`], does that one thing, and tells what came of it. Every send is preceded by a wait in
//! the call's lane ([`crate::gate`]), which may be over at once.

use std::time::Duration;

use crate::budget::{Budget, Spent};
use crate::decide::{Right, right};
use crate::dice::Dice;
use crate::event::{Closing, Event, Outcome};
use crate::evidence::{Evidence, Nature, Operation};
use crate::failure::{Failure, Told, label};
use crate::fault::Fault;
use crate::moment::Moment;
use crate::notice::Notices;
use crate::profile::{ClientLimit, Profile};
use crate::retry_after::Advice;
use crate::wait;

mod ending;
mod waits;

pub use ending::{Ending, PARKED, Stop, Why};
pub use waits::Waiting;

/// What a call is told at its start.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The numbers that bound it.
    pub profile: Profile,
    /// What the request does.
    pub nature: Nature,
    /// The longest the client waits for an answer's head, less the margin that our answer needs.
    pub client_limit: Option<Duration>,
    /// What earlier sends of the same call have spent.
    pub before: Spent,
    /// The first send waits until then: the call resumes one that was cut.
    pub not_before: Option<Moment>,
    /// Its upstream has a stated number of places, and would let the client wait for one just as long: until its first
    /// failure no patience is spent, and it waits for six hours.
    pub places: bool,
    /// What its client is shown meanwhile; `None`: it shows nothing.
    pub notices: Option<Notices>,
}

impl Plan {
    /// That of a call by itself: nothing was spent on it before, no client is known, and it is sent at once. Its
    /// profile's gate is left out, so that its own curve says when it is sent again.
    #[must_use]
    pub fn alone(profile: Profile, nature: Nature) -> Self {
        Self {
            profile: Profile { gate: None, ..profile },
            nature,
            client_limit: None,
            before: Spent::default(),
            not_before: None,
            places: false,
            notices: None,
        }
    }
}

/// The one thing to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send the request; it has been counted.
    Send {
        /// The number of the send within the call, from 1.
        number: u32,
        /// A pooled connection may be as dead as the last one: take a new one.
        fresh: bool,
    },
    /// Wait for its turn in its lane.
    Wait(Waiting),
    /// The call has ended like this.
    End(Ending),
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Nobody has asked for it yet.
    New,
    Waiting(Waiting),
    Ready,
    Flying,
    Done(Ending),
}

/// One call.
#[derive(Debug)]
pub struct Call {
    profile: Profile,
    nature: Nature,
    budget: Budget,
    state: State,
    opened: Moment,
    patience: Duration,
    deadline: Option<Moment>,
    /// The waits that are over.
    waited: Duration,
    /// What of them was patience.
    borne: Duration,
    /// When the present wait began.
    since: Moment,
    places: bool,
    notices: Option<Notices>,
    /// Since when it is held: it waits, or has waited since it was last let go in vain.
    held: Option<Moment>,
    /// When the first call began that this one is a re-send of, or it itself.
    first_opened: Moment,
    fresh: bool,
    /// It was sent again with a newer credential, which is done once.
    renewed: bool,
    capacity_faults: u32,
    /// Until when it waits at least for what it is sent with.
    prepared_by: Option<Moment>,
    /// It waits for something beside its lane.
    rests: bool,
    /// It was told what holds it beside its lane, before this send.
    held_back: Option<u32>,
    last: Option<Box<Failure>>,
    /// The last failure that an answer told.
    answered: Option<Box<Failure>>,
    events: Vec<Event>,
}

impl Call {
    /// A call that was accepted at `now`.
    #[must_use]
    pub fn new(plan: Plan, now: Moment) -> Self {
        let Plan { profile, nature, client_limit, before, not_before, places, notices } = plan;
        let (patience, deadline) = match (profile.client_limit, client_limit) {
            (ClientLimit::Replaces, Some(limit)) => (Duration::MAX, Some(now + limit)),
            (ClientLimit::Shortens, Some(limit)) => (profile.patience, Some(now + limit)),
            (ClientLimit::Ignored, Some(_)) | (_, None) => (profile.patience, None),
        };
        let mut call = Self {
            budget: Budget::new(&profile, before),
            profile,
            nature,
            state: State::New,
            opened: now,
            patience,
            deadline,
            waited: Duration::ZERO,
            borne: Duration::ZERO,
            since: now,
            places,
            notices,
            held: None,
            first_opened: before.since.unwrap_or(now).min(now),
            fresh: false,
            renewed: false,
            capacity_faults: 0,
            prepared_by: None,
            rests: false,
            held_back: None,
            last: None,
            answered: None,
            events: Vec::new(),
        };
        if let Some(until) = not_before.filter(|until| *until > now) {
            if call.bears(until.since(now), now) {
                call.wait(Some(until), false, now);
                // The turn was cut for a want of capacity, which is what this wait is for.
                call.events.push(Event::WaitStarted {
                    send: 1,
                    wait: until.since(now),
                    fault: Fault::AtCapacity,
                    status: None,
                    code: None,
                });
            } else {
                call.state = State::Done(Ending::GaveUp(Stop::FloorTooFar, None));
            }
        }
        call
    }

    /// What to do next.
    ///
    /// # Panics
    /// Where a send is under way: whoever has lost track of it must not send twice.
    pub fn next(&mut self, now: Moment) -> Step {
        if self.state == State::New && self.budget.is_spent() {
            // It would wait for a turn that it may not take.
            return self.end(Ending::GaveUp(Stop::SendsSpent, None));
        }
        if self.state == State::New {
            // From here on it is kept waiting: what came before was its own upload.
            self.wait(None, self.profile.gate.is_some(), now);
        }
        match &self.state {
            State::Waiting(waiting) if now < waiting.until => return Step::Wait(*waiting),
            State::Waiting(_) => {
                self.over(now);
                let ending = self.given_up(Stop::PatienceSpent);
                return self.end(ending);
            }
            State::Done(ending) => return Step::End(ending.clone()),
            State::New | State::Ready | State::Flying => {}
        }
        assert!(self.state != State::Flying, "a send is under way: tell how it ended first");
        if !self.budget.take_send() {
            return self.end(Ending::GaveUp(Stop::SendsSpent, self.last.clone()));
        }
        self.state = State::Flying;
        let number = self.budget.own_sends();
        self.events.push(Event::SendStarted { send: number });
        Step::Send { number, fresh: self.fresh }
    }

    /// Its client sends the request again, which is of this nature now.
    pub const fn taken_up(&mut self, nature: Nature) {
        self.nature = nature;
    }

    /// What it is held for.
    #[must_use]
    pub fn last_fault(&self) -> Option<Fault> {
        self.last.as_ref().map(|failure| failure.fault)
    }

    /// When it was accepted.
    #[must_use]
    pub const fn opened(&self) -> Moment {
        self.opened
    }

    /// It is not sent again. A definite answer that was waited out in vain is its answer.
    fn given_up(&self, stop: Stop) -> Ending {
        match &self.last {
            Some(failure) if failure.evidence.is_none() => Ending::Passed(failure.clone()),
            last => Ending::GaveUp(stop, last.clone()),
        }
    }

    /// For how long this failure of its parks its lane; `None`: it does not. What asks no model for an answer shares a
    /// lane with much else; and one of stated places is for all credentials, of which one that is spent says nothing
    /// about the others.
    #[must_use]
    pub fn parks(&self, failure: &Failure) -> Option<Duration> {
        let asks = self.nature.operation == Operation::Generation && !self.places;
        failure.renews.filter(|_| asks && self.profile.parks())
    }

    /// The sends that earlier tries of this call have made.
    #[must_use]
    pub const fn earlier_sends(&self) -> u32 {
        self.budget.spent().sends.saturating_sub(self.budget.own_sends())
    }

    /// The head of an answer arrived.
    pub fn head_arrived(&mut self, status: u16, request_id: Option<Box<str>>) {
        self.events.push(Event::HeadArrived { send: self.budget.own_sends(), status, request_id });
    }

    /// The answer belongs to the client from here on.
    pub fn committed(&mut self) {
        if self.state != State::Flying {
            return;
        }
        self.events.push(Event::Committed { send: self.budget.own_sends() });
        self.state = State::Done(Ending::Committed);
    }

    /// The answer goes to the client whatever it is, unread, since the client asked for that, and its head says that the
    /// send failed so. Whether that is no definite error: then it counts as one that was met, and nothing is done about it.
    pub fn passes_failed(&mut self, failure: Failure) -> bool {
        let may_heal = failure.evidence.is_some();
        if self.state == State::Flying && may_heal {
            self.meets(&failure);
            self.last = Some(Box::new(failure));
        }
        may_heal
    }

    /// The send failed. Where none is under way nothing happens: what was committed stays so.
    pub fn failed(&mut self, failure: Failure, now: Moment, dice: &mut dyn Dice) {
        let _own = self.failed_beside(failure, None, now, dice);
    }

    /// The send failed, and another upstream takes the call after `other`: it waits no longer than that. How long it is
    /// not to be sent to this one, if it may be sent at all.
    pub fn failed_beside(
        &mut self,
        mut failure: Failure,
        other: Option<Duration>,
        now: Moment,
        dice: &mut dyn Dice,
    ) -> Option<Duration> {
        if self.state != State::Flying {
            return None;
        }
        failure.renewed &= self.may_renew(now);
        if failure.renewed {
            failure.evidence = Some(Evidence::Refused);
        }
        self.meets(&failure);
        if failure.told == Told::ByTransport {
            failure.earlier.clone_from(&self.answered);
        } else {
            self.answered = Some(Box::new(failure.clone()));
        }
        let failure = Box::new(failure);
        self.last = Some(failure.clone());
        match self.go_on(failure, other, now, dice) {
            Ok(own) => Some(own),
            Err(ending) => {
                self.state = State::Done(ending);
                None
            }
        }
    }

    /// Whether it is worth a newer credential that its present send was refused: once in a call, where it can be sent
    /// again and a send is left.
    #[must_use]
    pub fn may_renew(&self, now: Moment) -> bool {
        let has_time = self.bears(Duration::ZERO, now) || self.prepared_by.is_some_and(|by| now < by);
        !self.renewed && self.nature.kept && !self.budget.is_spent() && has_time
    }

    /// It is told, and counts.
    fn meets(&mut self, failure: &Failure) {
        self.events.push(Event::FaultSeen {
            send: self.budget.own_sends(),
            fault: failure.fault,
            evidence: failure.evidence,
            status: failure.status,
            code: failure.code.clone(),
            rule: failure.rule.clone(),
            told: failure.renews.or(match failure.advice {
                Advice::Wait(told) => Some(told),
                Advice::Useless | Advice::Silent => None,
            }),
            usage: failure.usage,
        });
        self.capacity_faults += u32::from(failure.fault.is_capacity());
    }

    fn go_on(
        &mut self,
        mut failure: Box<Failure>,
        other: Option<Duration>,
        now: Moment,
        dice: &mut dyn Dice,
    ) -> Result<Duration, Ending> {
        if failure.renewed {
            self.again_at_once(now);
            return Ok(Duration::ZERO);
        }
        let Some(evidence) = failure.evidence else { return self.wait_out(failure, other, now) };
        if let Some(bar) = failure.barred {
            if other.is_none() || evidence != Evidence::NeverSent {
                return Err(Ending::Refused(Why::Barred(bar), failure));
            }
            // It stands in the way to this upstream alone.
            failure.barred = None;
        }
        let harmless = self.nature.operation == Operation::Pure;
        if evidence == Evidence::MaybeRan && !self.budget.grants_any() && !harmless {
            return Err(Ending::Refused(Why::MayHaveRun, failure));
        }
        match right(evidence, &self.nature, &failure) {
            Right::Free => {}
            Right::Failed if self.budget.take_failure() => {}
            Right::Grant if self.budget.take_grant() => {}
            Right::Failed | Right::Grant => return Err(Ending::Returned(failure)),
            Right::Never if evidence == Evidence::NoAnswer => {
                return Err(Ending::Refused(Why::StillRunning, failure));
            }
            Right::Never => return Err(Ending::Returned(failure)),
        }
        let counted_out = evidence == Evidence::Refused && !self.budget.take_refusal(failure.fault);
        if counted_out || self.budget.is_spent() {
            return Err(Ending::GaveUp(Stop::SendsSpent, Some(failure)));
        }
        // A refusal is spaced by the gate of its lane, where there is one; all else by its own curve.
        let gated = evidence == Evidence::Refused && self.profile.gate.is_some();
        // Where it may come back to this one, no gate knows how often it was here.
        let own = if gated && other.is_none() {
            wait::floor(failure.advice, &self.profile)
        } else {
            wait::after(&failure, self.budget.steps(), &self.profile, dice)
        };
        let wait = other.map_or(own, |other| own.min(other));
        if !self.bears(wait, now) {
            let stop = match failure.advice {
                Advice::Wait(told) if self.bears(Duration::ZERO, now) && !self.bears(told, now) => {
                    Stop::FloorTooFar
                }
                Advice::Wait(_) | Advice::Useless | Advice::Silent => Stop::PatienceSpent,
            };
            return Err(Ending::GaveUp(stop, Some(failure)));
        }
        self.fresh = failure.told == Told::ByTransport;
        let send = self.budget.own_sends() + 1;
        if evidence == Evidence::MaybeRan {
            self.events.push(Event::GrantTaken { send });
        }
        if !gated && (other.is_none() || !wait.is_zero()) {
            let Failure { fault, status, .. } = *failure;
            self.events.push(Event::WaitStarted { send, wait, fault, status, code: code_of(&failure) });
        }
        self.wait((!wait.is_zero()).then_some(now + wait), gated, now);
        Ok(own)
    }

    /// A definite answer goes back, but for a spent quota that parks the lane: the call waits for the time that was
    /// named, or for the other upstream that takes it before, if it may be sent again and bears to. Its lane says when
    /// that is, since a person may end it.
    fn wait_out(
        &mut self,
        failure: Box<Failure>,
        other: Option<Duration>,
        now: Moment,
    ) -> Result<Duration, Ending> {
        let may_go_on =
            right(Evidence::Refused, &self.nature, &failure) == Right::Free && !self.budget.is_spent();
        match self.parks(&failure) {
            Some(wait) if may_go_on && self.bears(other.map_or(wait, |other| other.min(wait)), now) => {
                self.fresh = false;
                self.wait(None, true, now);
                Ok(wait)
            }
            Some(_) | None => Err(Ending::Passed(failure)),
        }
    }

    fn end(&mut self, ending: Ending) -> Step {
        self.state = State::Done(ending.clone());
        Step::End(ending)
    }

    /// The relay is being stopped: a call that waits ends, one that is being answered goes on.
    pub fn drain(&mut self, now: Moment) {
        match self.state {
            State::New | State::Ready | State::Waiting(_) => {
                if matches!(self.state, State::Waiting(_)) {
                    self.over(now);
                }
                self.state = State::Done(Ending::GaveUp(Stop::Draining, self.last.clone()));
            }
            State::Flying | State::Done(_) => {}
        }
    }

    /// What a re-send of this call by its client inherits. `left`: the client went away just now; with a send
    /// under way, that send may have run.
    #[must_use]
    pub fn bequest(&self, left: bool) -> Spent {
        let mut spent = self.budget.spent();
        spent.since = Some(self.first_opened);
        match &self.state {
            State::Flying if left => spent.ambiguous = spent.ambiguous.saturating_add(1),
            State::Done(Ending::GaveUp(
                Stop::SendsSpent | Stop::PatienceSpent | Stop::FloorTooFar | Stop::CircuitsOpen,
                _,
            ))
            | State::Done(Ending::Refused(..)) => spent.gave_up = true,
            State::Done(
                Ending::GaveUp(Stop::Draining, _)
                | Ending::Committed
                | Ending::Passed(_)
                | Ending::Parked(_)
                | Ending::Returned(_)
                | Ending::ClientLeft,
            )
            | State::New
            | State::Ready
            | State::Waiting(_)
            | State::Flying => {}
        }
        spent
    }

    /// The profile of the call.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The sends made so far.
    #[must_use]
    pub const fn sends(&self) -> u32 {
        self.budget.own_sends()
    }

    /// When the first call began that this one is a re-send of, or it itself: its rank among those that wait.
    #[must_use]
    pub const fn first_opened(&self) -> Moment {
        self.first_opened
    }

    /// The sends that count against its limit, those of earlier tries included, and the limit.
    #[must_use]
    pub const fn counted(&self) -> (u32, Option<u32>) {
        (self.budget.spent().sends, self.budget.limit())
    }

    /// The longest the client is kept waiting.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.deadline.map_or(self.patience, |by| by.since(self.opened).min(self.patience))
    }

    /// The events since the last time.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The summary.
    #[must_use]
    pub fn closing(&self, outcome: Outcome, now: Moment) -> Closing {
        let not_sent = match &self.state {
            State::Done(Ending::Parked(failure)) => Some(failure.fault),
            State::Done(_) | State::New | State::Ready | State::Waiting(_) | State::Flying => None,
        };
        let last_fault = not_sent.or(self.last_fault());
        let why = match &self.state {
            State::Done(Ending::GaveUp(stop, _)) => Some(stop.name()),
            State::Done(Ending::Refused(why, _)) => Some(why.name()),
            State::Done(Ending::Parked(_)) => Some(PARKED),
            State::Done(_) | State::New | State::Ready | State::Waiting(_) | State::Flying => None,
        };
        Closing {
            why,
            sends: self.budget.own_sends(),
            // A wait that was broken off is told as far as it went.
            waited: match self.state {
                State::Waiting(_) => self.waited.saturating_add(now.since(self.since)),
                State::New | State::Ready | State::Flying | State::Done(_) => self.waited,
            },
            last_fault,
            capacity_faults: self.capacity_faults,
            maybe_billed_twice: self.budget.own_grants(),
            took: now.since(self.opened),
            ..Closing::new(outcome)
        }
    }
}

/// What became of a send that was not answered, as a label.
fn code_of(failure: &Failure) -> Option<Box<str>> {
    failure.code.as_deref().filter(|_| failure.status.is_none()).map(label)
}

#[cfg(test)]
mod tests;
