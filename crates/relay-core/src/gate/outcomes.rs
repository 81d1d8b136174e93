//! What became of sends and calls, and what a lane makes of it.

use std::time::Duration;

use super::backoff;
use super::line::Waiting;
use super::numbers::span;
use super::sends::{Reason, Sent};
use super::view::Shut;
use super::{Class, Gate, Refusal, Report, Running, Settled, ShutState};
use crate::dice::Dice;
use crate::event::CallId;
use crate::moment::Moment;

/// A pause that the upstream asks for holds the whole lane for no longer: then one call asks, which may hear of another
/// one. The call that was told so itself is not sent before.
const LONGEST_HOLD: Duration = Duration::from_secs(600);

impl Gate {
    /// The head of an answer came that tells of no refusal. That is less than acceptance, which the first event of the
    /// answer tells, but the send is not silent any more.
    pub fn heard(&mut self, call: CallId) {
        self.sends.heard(call);
    }

    /// The first sign of acceptance: a success, and its first event is no error.
    pub fn accepted(&mut self, call: CallId, now: Moment) {
        let Some(sent) = self.sends.take(call) else { return };
        self.seat_newcomer();
        let Sent { at, reason, presumed, .. } = sent;
        let Waiting { session, weight, plain, streams, preset, .. } = sent.waiting;
        self.running.insert(call, Running { session, weight, plain, preset, sent: at });
        let was_parked = self.parked.is_some();
        self.unpark_by(at);
        if reason == Reason::Plain {
            return;
        }
        self.give_pace_back(reason);
        let is_fresh = self.refused_sent.is_none_or(|refused| at > refused);
        self.rate.accepted(now);
        self.run.accepted(at);
        if streams {
            self.acceptance_takes.saw(now.since(at).as_secs_f64());
        }
        self.accepted_sent = self.accepted_sent.max(Some(at));
        if !was_parked {
            self.outcome(&sent, false);
        }
        self.sessions.accepted(session);
        self.session_changed(session);
        let tells = reason != Reason::Completion || self.completions.is_news();
        if is_fresh && self.run.is_over(at) && tells {
            if !was_parked && (self.shut.is_some() || self.run.is_long()) {
                self.judgement.ended(now);
            }
            self.run.end();
            if self.is_random() {
                self.open();
            }
        }
        if let (Some(shut), true) = (&mut self.shut, is_fresh) {
            shut.hopeful = true;
            if reason == Reason::Follow {
                self.ramp.followed(true);
            }
            if reason == Reason::Timer {
                self.ramp.probed();
            }
            if tells && !presumed {
                self.ramp.accepted();
            }
        }
        self.room.holds(self.running.len(), now);
    }

    /// A send is over and was not accepted.
    pub fn settled(&mut self, call: CallId, settled: Settled, now: Moment, dice: &mut dyn Dice) {
        let Settled { report, back } = settled;
        let Some(sent) = self.sends.take(call) else { return };
        self.seat_newcomer();
        self.busy = now;
        let Waiting { session, weight, .. } = sent.waiting;
        self.sessions.ended(session, weight);
        if report == Report::Other {
            self.give_pace_back(sent.reason);
        }
        let refusal = match report {
            Report::Refused(refusal) if sent.reason != Reason::Plain => Some(refusal),
            Report::Refused(_) | Report::Spent(_) | Report::Other => None,
        };
        if let Some(own) = back {
            let floor = own.max(refusal.map_or(now, |refusal| now + refusal.floor));
            self.push(Waiting { not_before: floor, floor, ..sent.waiting }, now);
        }
        if let Some(refusal) = refusal {
            self.refused(&sent, refusal, now, dice);
        }
        if let Report::Spent(told) = report {
            self.park(sent.at, told, now, dice);
        }
        self.session_changed(session);
    }

    /// The refusal of a send. Where the lane is not to blame, its call waits by itself.
    fn refused(&mut self, sent: &Sent, refusal: Refusal, now: Moment, dice: &mut dyn Dice) {
        if let Some(told) = refusal.told.filter(|told| !told.is_zero()) {
            if told > LONGEST_HOLD && self.shut.is_none() {
                let shut = self.close(Shut::Refused(refusal.class.fault()), now, dice);
                self.shut = Some(ShutState { next_probe: now, ..shut });
            }
            let told = told.min(LONGEST_HOLD);
            self.hold = self.hold.max(now + told + backoff::spread(told, dice));
        }
        if refusal.class == Class::Rate && self.rules.rate {
            self.rate.refused(sent.at, refusal.told, || self.sends.after(sent.at), now);
            return;
        }
        self.refusal_takes.saw(now.since(sent.at).as_secs_f64());
        if self.parked.is_none() {
            self.outcome(sent, true);
        }
        // Of many that a session had under way, the first refusal is news.
        let news = sent.news && self.sessions.is_news(sent.waiting.session, now);
        self.sessions.refused(sent.waiting.session, now);
        if self.is_to_blame(sent, news, now) {
            self.blame(sent, refusal, now, dice);
            return;
        }
        self.line.change(sent.waiting.call, now, |waiting| {
            waiting.tries = waiting.tries.saturating_add(1);
            let alone = backoff::own(sent.at, waiting.tries, now, dice);
            waiting.not_before = waiting.not_before.max(alone);
        });
    }

    /// What every outcome of a send teaches.
    fn outcome(&mut self, sent: &Sent, refused: bool) {
        match sent.reason {
            Reason::Completion => {
                self.judgement.completion_used(refused);
                self.completions.came_back(!refused);
                self.completions_accepted = self.completions_accepted.saturating_add(u32::from(!refused));
            }
            Reason::Timer => {
                self.judgement.probed(refused);
                self.recovery.probed(!refused, sent.exposure);
            }
            Reason::Open | Reason::Follow | Reason::Plain => {}
        }
        if sent.news && sent.reason != Reason::Completion {
            self.judgement.came_back(sent.at, refused);
        }
    }

    /// Whether a refusal is the lane's, and not its call's alone. One that was sent before another that was accepted is
    /// stale.
    fn is_to_blame(&mut self, sent: &Sent, news: bool, now: Moment) -> bool {
        if self.accepted_sent.is_some_and(|accepted| sent.at < accepted) {
            return false;
        }
        if news {
            self.run.refused(sent.at);
        }
        if self.shut.is_some() {
            return self.run.shuts(0, 0);
        }
        let usual = span(self.refusal_takes.at_most(2.0));
        let most = self.run.matters();
        let silent = self.sends.silent(self.run.first(), usual, most, now);
        let young = self.sends.young(usual, 4 * most, now);
        self.run.shuts(silent, young) && !self.is_random()
    }

    /// The lane shuts, or stays shut.
    fn blame(&mut self, sent: &Sent, refusal: Refusal, now: Moment, dice: &mut dyn Dice) {
        let why = self.shut_by(Shut::Refused(refusal.class.fault()), sent.at);
        self.refused_sent = self.refused_sent.max(Some(sent.at));
        self.ramp.stop();
        match sent.reason {
            Reason::Follow => self.ramp.followed(false),
            Reason::Completion => self.completions.was_refused(),
            Reason::Open | Reason::Timer | Reason::Plain => {}
        }
        let mut shut = match self.shut {
            Some(shut) if sent.reason == Reason::Timer => shut,
            Some(shut) => {
                let next_probe = sent.at + self.spacing(shut.since, now, dice);
                ShutState { next_probe: next_probe.max(shut.next_probe), ..shut }
            }
            None => {
                let shut = self.close(why, now, dice);
                let next_probe = (shut.next_probe - now.since(sent.at)).max(now);
                ShutState { next_probe, first_by: Some(now + refusal.first_wait), ..shut }
            }
        };
        (shut.why, shut.hopeful) = (why, false);
        if !refusal.floor.is_zero() {
            shut.floor = shut.floor.max(now + refusal.floor);
        }
        self.shut = Some(shut);
        self.room.full_at(self.running.len(), now);
    }

    /// A want of capacity came after output of an accepted call, which ends with it: its session is refused now.
    pub fn refused_late(&mut self, call: CallId, refusal: Refusal, now: Moment, dice: &mut dyn Dice) {
        let Some(Running { session, weight, plain, preset, sent }) = self.running.remove(&call) else {
            return;
        };
        self.seat_newcomer();
        self.busy = now;
        self.sessions.ended(session, weight);
        if !plain {
            let news = self.sessions.is_news(session, now);
            let waiting = Waiting {
                call,
                session,
                rank: now,
                deadline: None,
                preset,
                weight,
                sends: 0,
                budget: None,
                tries: 0,
                not_before: now,
                floor: now,
                streams: false,
                plain: false,
            };
            // A rate limit is about when it was sent: many that are cut together are one adjustment.
            let is_rate = self.rules.rate && refusal.class == Class::Rate;
            let at = if is_rate { sent } else { now };
            let sent =
                Sent { at, reason: Reason::Open, waiting, presumed: false, exposure: Duration::ZERO, news };
            let takes = self.refusal_takes;
            self.refused(&sent, refusal, now, dice);
            // It says nothing about how long a refusal takes.
            self.refusal_takes = takes;
        }
        self.session_changed(session);
    }

    /// A call is gone, wherever it was. One that waits leaves the line; one under way tells nothing; one that ran has
    /// left its place. `unsent`: it was to be sent and was not.
    pub fn left(&mut self, call: CallId, unsent: bool, now: Moment) {
        if self.waits(call) || self.reason(call).is_some() || self.running.contains_key(&call) {
            self.seat_newcomer();
            self.busy = now;
        }
        if let Some(waiting) = self.line.remove(call).or_else(|| self.plain.remove(call)) {
            debug_assert_eq!(waiting.call, call, "a call leaves as itself");
        } else if let Some(sent) = self.sends.take(call) {
            self.sessions.ended(sent.waiting.session, sent.waiting.weight);
            self.give_pace_back(sent.reason);
            if unsent {
                self.give_back(sent.reason, now);
            }
            self.session_changed(sent.waiting.session);
        } else if let Some(running) = self.running.remove(&call) {
            self.sessions.ended(running.session, running.weight);
            self.session_changed(running.session);
            if self.rules.completions && !running.plain && self.parked.is_none() {
                if self.shut.is_some() {
                    self.completions.ended_while_shut();
                } else if !self.line.is_empty() && self.is_random() {
                    self.completions.ended_while_random();
                }
            }
        }
    }

    /// What was answered, but for refusals, or is gone is no burst any more, however quickly the next one comes.
    fn give_pace_back(&mut self, reason: Reason) {
        if matches!(reason, Reason::Open | Reason::Follow) {
            self.pace.give_back();
        }
    }

    fn give_back(&mut self, reason: Reason, now: Moment) {
        if reason != Reason::Plain {
            self.rate.give_back();
        }
        match reason {
            Reason::Follow => self.ramp.give_back(),
            Reason::Completion => self.completions.give_back(),
            Reason::Timer => {
                if let Some(shut) = &mut self.shut {
                    shut.next_probe = now;
                }
            }
            Reason::Open | Reason::Plain => {}
        }
    }
}
