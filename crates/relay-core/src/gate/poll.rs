//! What a lane does next: nothing, or a send, and for which reason.

use std::time::Duration;

use super::line::{Turn, Waiting};
use super::numbers::span;
use super::probing::Spacing;
use super::sends::{Presumed, Reason, Sent};
use super::terms::{Preset, Terms};
use super::view::Shut;
use super::{Gate, Poll, ShutState, recovery};
use crate::dice::Dice;
use crate::event::CallId;
use crate::moment::Moment;

/// Whoever is silent for longer than this, and than others usually are, is slow.
const SLOW: f64 = 4.0;

/// So long after its head an answer counts as accepted, in seconds, where it is not known how long a refusal takes.
pub(super) const UNHEARD: f64 = 3.0;

impl Gate {
    /// A person asks for a send now: the next call goes, whatever holds it. False where none waits, or all places are
    /// taken. Where none waits, a pause is over, and the lane parked no more: those that come would hear of it at once,
    /// and never wait to be asked with.
    pub fn ask_now(&mut self) -> bool {
        self.seat_newcomer();
        if self.line.is_empty() {
            self.hold = Moment::ZERO;
            self.unpark();
        }
        self.ask_now = !self.line.is_empty() && self.has_place();
        self.ask_now
    }

    /// What to do next. A send that it names is made: it counts as under way from here on.
    pub fn poll(&mut self, now: Moment, dice: &mut dyn Dice) -> Poll {
        if let Some((waiting, at)) = self.newcomer.take() {
            if self.passes(&waiting, now) {
                return Poll::Send(waiting.call);
            }
            self.push(waiting, at);
        }
        self.line.ripen(now);
        self.plain.ripen(now);
        let has_place = self.has_place();
        let plain = self.plain.next().filter(|_| has_place);
        if let Some((turn, call)) = plain
            && !self.gives_way(turn)
        {
            return self.send(call, Reason::Plain, now);
        }
        let next = self.poll_lane(has_place, now, dice);
        match (next, plain, self.plain.next_ready().filter(|_| has_place)) {
            (Poll::Send(call), ..) => Poll::Send(call),
            // Whoever was before it in line may not go yet.
            (Poll::Wait(_) | Poll::Idle, Some((_, call)), _) => self.send(call, Reason::Plain, now),
            (Poll::Idle, None, None) => Poll::Idle,
            (Poll::Idle, None, Some(at)) => Poll::Wait(at),
            (Poll::Wait(at), None, other) => Poll::Wait(other.map_or(at, |other| other.min(at)).max(now)),
        }
    }

    fn has_place(&self) -> bool {
        self.rules.max_running.is_none_or(|most| self.sends.len() + self.running.len() < most)
    }

    /// Makes the send of a call that has just come, if nothing holds it: it spares the line, which is for those that
    /// wait. What would be done with it there is the same.
    fn passes(&mut self, waiting: &Waiting, now: Moment) -> bool {
        let is_first = self.line.is_empty() && self.plain.is_empty() && waiting.not_before <= now;
        if !is_first || !self.has_place() {
            return false;
        }
        if waiting.plain {
            self.make(*waiting, Reason::Plain, now);
            return true;
        }
        let is_held = self.hold(now).is_some() || (self.rules.rate && self.rate.holds_until(now).is_some());
        let is_open = self.shut.is_none() && !self.completions.may_send() && self.doubt(now).is_none();
        let passes = is_open && !is_held && self.pace.take(waiting.preset.terms(), now).is_ok();
        if passes {
            self.make(*waiting, Reason::Open, now);
        }
        passes
    }

    /// Whether a place, of which there are so many, is first another call's than that of a plain one with this turn.
    fn gives_way(&self, turn: Turn) -> bool {
        self.rules.max_running.is_some() && self.line.next().is_some_and(|(other, _)| other < turn)
    }

    fn poll_lane(&mut self, has_place: bool, now: Moment, dice: &mut dyn Dice) -> Poll {
        let mut presumed_next = self.presume(now);
        if self.line.is_empty() {
            self.rate.idle();
            self.ask_now = false;
        }
        if !has_place {
            return Poll::Idle;
        }
        let hold = self.hold(now);
        let accepted_last = self.shut.is_some_and(|shut| shut.hopeful) && self.parked(now).is_none();
        if accepted_last && self.line.ready() == 0 && !self.sends.any_after(self.accepted_sent) {
            self.open();
        }
        if std::mem::take(&mut self.ask_now) {
            if self.line.ready() == 0 {
                self.line.ripen_first(now);
            }
            if let Some(call) = self.line.next_probe() {
                return self.probe(call, now, dice);
            }
        }
        let rate = if self.rules.rate { self.rate.holds_until(now) } else { None };
        let held = rate.max(hold);
        if self.shut.is_none()
            && held.is_none()
            && self.completions.may_send()
            && let Some(call) = self.line.next_least_tried()
        {
            self.completions.take_all();
            return self.send(call, Reason::Completion, now);
        }
        if self.line.ready() == 0 {
            // What is presumed accepted by then may open the lane.
            let presumed_next = presumed_next.filter(|_| self.shut.is_some_and(|shut| shut.hopeful));
            let next =
                self.line.next_ready().into_iter().chain(presumed_next).chain(self.next_in_place(held));
            return next.min().map_or(Poll::Idle, Poll::Wait);
        }
        if let Some(until) = held {
            return Poll::Wait(until);
        }
        if self.shut.is_none() {
            self.be_careful(now, dice);
            presumed_next = self.presume(now);
        }
        match self.shut {
            None => self.poll_open(now),
            Some(shut) => self.poll_shut(shut, presumed_next, now, dice),
        }
    }

    /// Sends that have outlived every usual refusal count as accepted in a shut lane. Where it is not known how long a
    /// refusal takes, or takes long, something must have been heard of them: a model may think for a minute after its
    /// answer's head.
    fn presume(&mut self, now: Moment) -> Option<Moment> {
        if !self.rules.presumption || self.shut.is_none() || self.parked(now).is_some() {
            return None;
        }
        let usual = self.refusal_takes.at_most(4.0).max(0.3);
        let is_usual = self.refusal_takes.count >= 3 && usual < UNHEARD;
        let age = span(if is_usual { usual } else { UNHEARD });
        let which = Presumed {
            since: self.refused_sent,
            age,
            heard: !is_usual,
            completions: self.completions.is_news(),
        };
        let (presumed, next) = self.sends.presume(which, now);
        for _ in 0..presumed {
            self.ramp.accepted();
        }
        if presumed > 0
            && let Some(shut) = &mut self.shut
        {
            shut.hopeful = true;
        }
        next
    }

    /// When a call may take the place that one of ours left in an open lane.
    fn next_in_place(&self, held: Option<Moment>) -> Option<Moment> {
        if self.shut.is_some() || !self.completions.may_send() {
            return None;
        }
        let next = self.line.next_bound().map(|at| held.map_or(at, |held| held.max(at)));
        if self.line.next_least_tried().is_some() { held } else { next }
    }

    fn poll_open(&mut self, now: Moment) -> Poll {
        let Some((_, call)) = self.line.next() else { return Poll::Idle };
        match self.pace.take(self.terms_of(call), now) {
            Ok(()) => self.send(call, Reason::Open, now),
            Err(later) => Poll::Wait(later),
        }
    }

    fn poll_shut(
        &mut self,
        shut: ShutState,
        presumed_next: Option<Moment>,
        now: Moment,
        dice: &mut dyn Dice,
    ) -> Poll {
        if self.ramp.may_follow()
            && let Some((_, call)) = self.line.next()
        {
            return match self.pace.take(self.terms_of(call), now) {
                Ok(()) => {
                    self.ramp.take();
                    self.send(call, Reason::Follow, now)
                }
                Err(later) => Poll::Wait(later),
            };
        }
        if self.completions.may_send()
            && let Some(call) = self.line.next_in_place()
        {
            self.completions.take();
            return self.send(call, Reason::Completion, now);
        }
        let Some(call) = self.line.next_probe() else { return Poll::Idle };
        let terms = self.terms_of(call);
        let slow = self.slow();
        let next = if self.sends.timers() >= terms.unsure + self.line.len() / 10 {
            None
        } else {
            let young = self.sends.too_young(terms.young, self.refused_sent, slow, now);
            let at = young.map_or(shut.due(), |at| at.max(shut.due()));
            if at <= now {
                return self.probe(call, now, dice);
            }
            Some(at)
        };
        // One of another preset may ask earlier.
        let next = next.into_iter().chain(presumed_next).chain(self.line.next_ready()).min();
        next.map_or(Poll::Idle, Poll::Wait)
    }

    /// Asks a shut lane with a call.
    fn probe(&mut self, call: CallId, now: Moment, dice: &mut dyn Dice) -> Poll {
        let Some(shut) = self.shut else { return self.send(call, Reason::Open, now) };
        // The first one may come early; those after it come when they would have come without it.
        let from = if shut.first_by.is_some() { shut.next_probe.max(now) } else { now };
        let next_probe = from + self.spacing(shut.since, now, dice);
        let sent = self.send(call, Reason::Timer, now);
        self.shut = Some(ShutState { next_probe, first_by: None, asked: now, ..shut });
        sent
    }

    /// An open lane shuts without a refusal where it is as full as it was when it refused, or where a send stays silent.
    fn be_careful(&mut self, now: Moment, dice: &mut dyn Dice) {
        if let Some(why) = self.doubt(now) {
            let shut = self.close(why, now, dice);
            self.shut = Some(ShutState { hopeful: why == Shut::Full, ..shut });
        }
    }

    /// Why it would shut without a refusal.
    fn doubt(&self, now: Moment) -> Option<Shut> {
        let taken = self.sends.len() + self.running.len();
        let places_tell = self.completions_accepted >= 3 && self.judgement.refused_after_completion() < 0.05;
        if self.rules.room && places_tell && self.room.is_full(taken, now) {
            return Some(Shut::Full);
        }
        let is_slow = self.rules.suspicion && self.sends.any_slow(self.accepted_sent, self.slow(), now);
        is_slow.then_some(Shut::Slow)
    }

    pub(super) fn send(&mut self, call: CallId, reason: Reason, now: Moment) -> Poll {
        let taken = self.line.remove(call).or_else(|| self.plain.remove(call));
        let Some(waiting) = taken else { return Poll::Idle };
        self.make(waiting, reason, now);
        Poll::Send(call)
    }

    /// A send is made: from here on it is under way.
    fn make(&mut self, mut waiting: Waiting, reason: Reason, now: Moment) {
        waiting.sends = waiting.sends.saturating_add(1);
        let session = waiting.session;
        let news = self.sessions.sent(session, waiting.weight, now);
        let watched = self.shut.map(|shut| shut.asked).max(self.refused_sent);
        let exposure = watched.map_or(Duration::ZERO, |watched| now.since(watched));
        if reason != Reason::Plain {
            self.rate.sent(now);
        }
        self.sends.add(Sent { at: now, reason, waiting, presumed: false, exposure, news });
        self.session_changed(session);
    }

    pub(super) fn close(&mut self, why: Shut, now: Moment, dice: &mut dyn Dice) -> ShutState {
        self.completions.start();
        self.ramp.stop();
        let next_probe = now + self.spacing(now, now, dice);
        let shut =
            ShutState { why, since: now, hopeful: false, next_probe, first_by: None, floor: now, asked: now };
        self.shut = Some(shut);
        shut
    }

    pub(super) fn open(&mut self) {
        if self.shut.take().is_some() {
            self.ramp.drop_permits();
        }
    }

    /// The time until the next probe of a lane that is shut since then.
    pub(super) fn spacing(&self, since: Moment, now: Moment, dice: &mut dyn Dice) -> Duration {
        let preset = self.line.next_probe().and_then(|call| self.line.preset(call));
        let recovery = if self.rules.recovery { self.recovery.mean() } else { recovery::FIXED };
        let spacing = Spacing {
            recovery,
            refusal_takes: self.refusal_takes.mean,
            ready: self.line.ready(),
            shut_for: now.since(since),
            left: self.line.left(),
        };
        spacing.next(preset.unwrap_or(Preset::Interactive).terms(), now, dice)
    }

    pub(super) fn slow(&self) -> Duration {
        span(self.acceptance_takes.at_most(4.0).max(SLOW))
    }

    fn terms_of(&self, call: CallId) -> &'static Terms {
        self.line.preset(call).unwrap_or(Preset::Interactive).terms()
    }
}
