//! How a call waits: for its turn, for what it was told, for what it is sent with; and what of that is patience.

use std::time::Duration;

use super::{Call, Ending, State, Stop, Why, code_of};
use crate::dice::Dice;
use crate::event::{Event, HeldBy};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::profile::Profile;
use crate::wait;

/// How a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// By itself it waits until then; `None`: for nothing but its lane.
    pub not_before: Option<Moment>,
    /// Its patience ends then.
    pub until: Moment,
    /// It bears a pause of its lane until then.
    pub bears: Moment,
    /// It waits by its own curve alone, whatever its lane does.
    pub plain: bool,
    /// Its lane says when its turn comes; else its own wait is all there is.
    pub in_line: bool,
    /// Where its lane is parked it waits, if it bears that; else nobody wants it to.
    pub parks: bool,
}

impl Waiting {
    /// When it ends, if it does by itself.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        (self.until < Moment::LAST).then_some(self.until)
    }
}

/// So long a call waits for a place at an upstream that would have kept it waiting itself: as long as the most patient
/// profile.
const FOR_A_PLACE: Duration = Profile::patient().patience;

/// So late the end of a wait may be noticed.
const GRACE: Duration = Duration::from_millis(100);

impl Call {
    /// How it waits, if it does.
    #[must_use]
    pub const fn waiting(&self) -> Option<Waiting> {
        match self.state {
            State::Waiting(waiting) => Some(waiting),
            State::New | State::Ready | State::Flying | State::Done(_) => None,
        }
    }

    /// When its client is to be shown that it is held.
    #[must_use]
    pub fn notice_due(&self) -> Option<Moment> {
        self.waiting().and(self.notices.as_ref())?.due(self.held?)
    }

    /// Its client is shown that it is held, and asks again at once. The call waits on meanwhile.
    pub fn noticed(&mut self) {
        if let (Some(notices), State::Waiting(_)) = (&mut self.notices, &self.state) {
            let notices = notices.give();
            let fault = self.last_fault();
            self.events.push(Event::NoticeGiven { send: self.budget.own_sends() + 1, notices, fault });
        }
    }

    /// Its turn has not come; so many calls wait in its lane, it among them. `parked`: nothing is sent there for so long.
    pub fn stands_in_line(&mut self, waiting: usize, parked: Option<Duration>) {
        if let State::Waiting(Waiting { in_line: true, .. } | Waiting { not_before: None, .. }) = &self.state
        {
            let last = self.last.as_deref();
            self.events.push(Event::InLine {
                send: self.budget.own_sends() + 1,
                waiting,
                parked,
                fault: last.map(|failure| failure.fault),
                status: last.and_then(|failure| failure.status),
                code: last.and_then(code_of),
            });
        }
    }

    /// Its turn has come.
    pub fn granted(&mut self, now: Moment) {
        if matches!(self.state, State::Waiting(_)) {
            self.over(now);
            self.state = State::Ready;
            if self.last.is_none() {
                self.held = None;
            }
        }
    }

    /// It waits for another upstream from now on, and is not to be sent there before `own`. What it has waited so far
    /// is spent.
    pub fn moves(&mut self, own: Option<Moment>, now: Moment) {
        if matches!(self.state, State::Waiting(_)) {
            let wait = now.since(self.since);
            self.waited = self.waited.saturating_add(wait);
            if !self.waits_for_a_place() {
                self.borne = self.borne.saturating_add(wait);
            }
            self.fresh = false;
            self.wait(own.filter(|own| *own > now), self.profile.gate.is_some(), now);
        }
    }

    /// What it is sent with has to be had first. That is a part of sending, as the making of a connection is: whatever
    /// its patience, it waits for so long, once, however often it has to. Until when it waits now.
    pub fn prepares(&mut self, at_least: Duration, now: Moment) -> Moment {
        let by = self.at_least(at_least, now);
        self.rests = true;
        match &mut self.state {
            State::Waiting(waiting) => {
                waiting.until = waiting.until.max(by);
                waiting.until
            }
            State::New | State::Ready | State::Flying | State::Done(_) => now,
        }
    }

    fn at_least(&mut self, span: Duration, now: Moment) -> Moment {
        let by = *self.prepared_by.get_or_insert(now + span);
        self.deadline.map_or(by, |deadline| by.min(deadline))
    }

    /// That takes its time, so long as far as that is known: it is told of once.
    pub fn is_prepared_slowly(&mut self, wait: Option<Duration>) {
        self.held_back(HeldBy::Credential, wait);
    }

    /// That was not had in time, or cannot be had at all. Whoever had an answer gets that.
    pub fn unprepared(&mut self, failure: Failure, now: Moment) {
        if matches!(self.state, State::Waiting(_)) {
            self.over(now);
            let barred = failure.barred;
            let last = self.last.get_or_insert_with(|| Box::new(failure)).clone();
            self.state = State::Done(match barred {
                Some(bar) if last.barred.is_some() => Ending::Refused(Why::Barred(bar), last),
                Some(_) | None => self.given_up(Stop::PatienceSpent),
            });
        }
    }

    /// It waited so long, during its send, for what may be worth another one.
    pub fn renews(&mut self, wait: Duration) {
        self.waited = self.waited.saturating_add(wait);
        self.borne = self.borne.saturating_add(wait);
    }

    /// Until when its send may wait for that: as for what is had before a send.
    pub fn renews_by(&mut self, at_least: Duration, now: Moment) -> Moment {
        let by = now + self.patience.saturating_sub(self.borne);
        let by = self.deadline.map_or(by, |deadline| by.min(deadline));
        by.max(self.at_least(at_least, now))
    }

    /// Whether it waits until then, if it has to.
    #[must_use]
    pub fn bears_until(&self, at: Moment, now: Moment) -> bool {
        self.waiting().is_some_and(|waiting| at <= waiting.until.min(waiting.bears.max(now)))
    }

    /// Every upstream is cut off by its breaker until then, which it waits for. That may be put off while it does, as each
    /// probe fails: it is told of once.
    pub fn cut_off(&mut self, until: Moment, now: Moment) {
        self.rests = true;
        self.held_back(HeldBy::Circuits, Some(until.since(now)));
    }

    pub(super) fn held_back(&mut self, by: HeldBy, wait: Option<Duration>) {
        let send = self.budget.own_sends() + 1;
        if matches!(self.state, State::Waiting(_)) && self.held_back.replace(send) != Some(send) {
            self.events.push(Event::HeldBack { send, by, wait, fault: self.last_fault() });
        }
    }

    /// Every upstream is cut off by its breaker, for longer than it waits.
    pub fn shut_out(&mut self, now: Moment) {
        if matches!(self.state, State::Waiting(_)) {
            self.over(now);
            self.state = State::Done(Ending::GaveUp(Stop::CircuitsOpen, self.last.clone()));
        }
    }

    /// Its lane holds everybody for longer than it waits.
    pub fn held_for_too_long(&mut self, now: Moment) {
        if matches!(self.state, State::Waiting(_)) {
            self.over(now);
            self.state = State::Done(self.given_up(Stop::FloorTooFar));
        }
    }

    /// Its lane is parked for longer than it waits; another call was answered like this. Whoever had such an answer
    /// itself gets its own.
    pub fn held_parked(&mut self, answered: Failure, now: Moment) {
        if matches!(self.state, State::Waiting(_)) {
            self.over(now);
            let own = self.last.clone().filter(|failure| failure.evidence.is_none());
            self.state = State::Done(own.map_or_else(|| Ending::Parked(Box::new(answered)), Ending::Passed));
        }
    }

    pub(super) fn over(&mut self, now: Moment) {
        let wait = now.since(self.since);
        let State::Waiting(Waiting { not_before, in_line, plain, .. }) = self.state else { return };
        // Its curve is what it is charged with: no timer is on time to the microsecond. What its lane adds is no such
        // lateness.
        let curve = not_before.map_or(Duration::ZERO, |own| own.since(self.since));
        let is_held = in_line || self.rests || ((self.places || !plain) && wait > curve + GRACE);
        let charged = if is_held { wait } else { wait.min(curve) };
        self.waited = self.waited.saturating_add(if not_before.is_some() { charged } else { wait });
        if !self.waits_for_a_place() {
            self.borne = self.borne.saturating_add(charged);
        }
    }

    const fn waits_for_a_place(&self) -> bool {
        self.places && self.last.is_none()
    }

    /// It takes its next turn, whatever is left of its patience: what refused it was no want of capacity, and is mended.
    pub(super) fn again_at_once(&mut self, now: Moment) {
        self.renewed = true;
        self.fresh = false;
        self.wait(None, self.profile.gate.is_some(), now);
        if let State::Waiting(waiting) = &mut self.state {
            waiting.until = waiting.until.max(now + GRACE);
        }
    }

    /// A wait begins; `own`: until then by itself.
    pub(super) fn wait(&mut self, own: Option<Moment>, in_line: bool, now: Moment) {
        (self.since, self.rests) = (now, false);
        self.held.get_or_insert(now);
        let patience = if self.waits_for_a_place() { self.patience.max(FOR_A_PLACE) } else { self.patience };
        let mut until =
            if patience == Duration::MAX { Moment::LAST } else { now + patience.saturating_sub(self.borne) };
        if let Some(deadline) = self.deadline {
            until = until.min(deadline);
        }
        // A wait that is borne to the last moment is not cut short by that moment, and the first turn is always taken.
        match own {
            Some(own) if !in_line => until = until.max(own + GRACE),
            None if self.last.is_none() => until = until.max(now + GRACE),
            Some(_) | None => {}
        }
        let plain = self.profile.gate.is_none();
        // A pause is no wait for a place, whatever else it waits for.
        let bears = until.min(now + self.patience.saturating_sub(self.borne));
        let parks = self.profile.parks();
        self.state = State::Waiting(Waiting { not_before: own, until, bears, plain, in_line, parks });
    }

    pub(super) fn bears(&self, wait: Duration, now: Moment) -> bool {
        self.borne.saturating_add(wait) <= self.patience && self.deadline.is_none_or(|by| now + wait <= by)
    }

    /// The wait of a turn that is cut and resumed: one step further on the curve with each of its `earlier` cuts.
    pub fn wait_after_cut(&mut self, failure: &Failure, earlier: u32, dice: &mut dyn Dice) -> Duration {
        // A handful at most: the settings bound the cuts of a turn.
        for _ in 0..earlier.min(16) {
            let _taken = wait::after(failure, self.budget.steps(), &self.profile, dice);
        }
        wait::after(failure, self.budget.steps(), &self.profile, dice)
    }
}
