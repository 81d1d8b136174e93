//! A call once more: the core's [`Call`] in virtual time, with the answers and the turns in line that were recorded.

use std::time::Duration;

use relay_core::call::{Call, Ending, PARKED, Step, Waiting};
use relay_core::config::Config;
use relay_core::event::Outcome;
use relay_core::failure::Failure;
use relay_core::{Evidence, Moment, SeededDice, wait};

use super::rebuild::{self, Fallen, Fell};
use crate::history::record::{CallRecord, SendRecord};

/// A turn that was recorded this close to the end of the patience came at its end: clocks and timers are not exact.
const CLOSE: Duration = Duration::from_millis(300);

/// How a call would end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Why, where the relay would end it.
    pub why: Option<String>,
    /// After so many sends.
    pub sends: u32,
    /// Having waited so many milliseconds.
    pub waited: u64,
    /// Sends that might have been the second to run.
    pub granted: u32,
}

/// What is known of the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It would end like this.
    Known(String),
    /// It would be sent again, or wait on, where the recorded call ended; what comes of that nobody knows.
    GoesOn,
}

/// What a call would come to. `None`: there is nothing to decide, since it is open, was turned away, or is of a program
/// that knows other names.
pub(super) fn again(record: &CallRecord, config: &Config, seed: u64) -> Option<Ended> {
    let closed = record.closed.as_ref()?;
    if record.sends.is_empty() && closed.outcome != "gave_up" {
        return None;
    }
    let mut plan = rebuild::plan(record, config)?;
    let steps = rebuild::steps_before(record, config, &plan.profile);
    plan.before.steps = steps;
    let call = Call::new(plan, Moment::ZERO);
    let dice = SeededDice::new(seed ^ record.call ^ record.opened.rotate_left(32));
    let mut sends: Vec<_> = record.sends.iter().collect();
    sends.sort_by_key(|of| of.send);
    let again = Again { record, sends, config, call, now: Moment::ZERO, dice, steps };
    again.runs()
}

struct Again<'a> {
    record: &'a CallRecord,
    /// Its sends by their numbers: a file may have any number of them, in any order.
    sends: Vec<&'a SendRecord>,
    config: &'a Config,
    call: Call,
    now: Moment,
    dice: SeededDice,
    /// The steps that the call has taken on its curves.
    steps: wait::Steps,
}

impl<'a> Again<'a> {
    fn runs(mut self) -> Option<Ended> {
        loop {
            match self.call.next(self.now) {
                Step::End(ending) => return Some(self.ended(ending.outcome().name(), &ending)),
                Step::Wait(waiting) => {
                    if let Some(end) = self.waits(waiting) {
                        return Some(end);
                    }
                }
                Step::Send { number, .. } => {
                    if let Some(end) = self.sends(number)? {
                        return Some(end);
                    }
                }
            }
        }
    }

    /// Waits as the recorded call did, or by its own curve; some end, where the call ends meanwhile.
    fn waits(&mut self, waiting: Waiting) -> Option<Ended> {
        let next = self.call.sends() + 1;
        let recorded = self.send(next).and_then(|of| of.wait.as_ref());
        // A first turn that was there at once is no wait of a record.
        let at_once = self.send(next).filter(|_| next == 1 && recorded.is_none()).and_then(|of| of.began);
        let took = recorded.map_or(at_once, |wait| wait.took).map(Duration::from_millis);
        let took = took.unwrap_or_default();
        let own = waiting.not_before.unwrap_or(self.now).max(self.now);
        let until = match recorded {
            // Its turn comes when it came.
            _ if waiting.in_line => own.max(self.now + took),
            // What its lane added to its curve.
            Some(wait) if !wait.why.is_in_line() => {
                let added = took.saturating_sub(Duration::from_millis(wait.planned.unwrap_or(0)));
                if added > CLOSE { own + added } else { own }
            }
            // A line that there is none of any more, and turns that nobody has recorded.
            Some(_) | None => own,
        };
        let closed = self.record.closed.as_ref()?;
        // What is sent again at once, with a newer credential, waits without a word; its client may leave even then.
        let left_at_once = closed.outcome == "client_left" && closed.sends < next;
        let never_sent =
            (recorded.is_some() || left_at_once) && self.send(next).is_none_or(|of| of.began.is_none());
        // A turn in line that nobody waited for to its end is as long as they waited; and no timer is exact.
        let broken_off = never_sent && (waiting.in_line || until + CLOSE >= self.end()?);
        if let Some(left) = self.leaves(if broken_off { Moment::LAST } else { until }) {
            return Some(left);
        }
        if never_sent && closed.outcome == "gave_up" {
            return self.gives_up_waiting(waiting, until, closed.why.as_deref());
        }
        if until >= waiting.until && until.since(waiting.until) > CLOSE {
            self.now = waiting.until;
        } else {
            self.now = until;
            self.call.granted(until);
        }
        None
    }

    /// The recorded call gave up in this wait.
    fn gives_up_waiting(&mut self, waiting: Waiting, until: Moment, why: Option<&str>) -> Option<Ended> {
        let held = why == Some("told_to_wait_longer");
        let told = self.last_told();
        if held && told.is_none_or(|told| self.now + told > waiting.bears) {
            self.now = until;
            self.call.held_for_too_long(until);
            return None;
        }
        if !held && until + CLOSE >= waiting.until {
            self.now = waiting.until;
            return None;
        }
        self.now = until;
        Some(self.goes_on())
    }

    /// What the upstream asked for last.
    fn last_told(&self) -> Option<Duration> {
        let failed = self.send(self.call.sends()).and_then(|of| of.failed.as_ref())?;
        failed.told.map(Duration::from_millis)
    }

    /// Sends, and hears what was recorded. The outer `None`: the record has names that this program does not know.
    fn sends(&mut self, number: u32) -> Option<Option<Ended>> {
        let Some(of) = self.send(number).filter(|of| of.began.is_some()) else {
            return Some(Some(self.goes_on()));
        };
        let closed = self.record.closed.as_ref()?;
        let is_last = number == closed.sends;
        // It was answered, whatever came of the answer; or its client left meanwhile.
        let is_over =
            of.failed.is_none() || (is_last && (self.record.committed.is_some() || closed.outcome == "cut"));
        if is_over {
            let left = closed.outcome == "client_left";
            let why = closed.why.clone();
            self.now = Moment::ZERO + Duration::from_millis(closed.took);
            return Some(Some(if left { self.left() } else { self.known(&closed.outcome, why) }));
        }
        let failed = of.failed.as_ref()?;
        let took = failed.at.saturating_sub(of.began.unwrap_or(failed.at));
        self.now = self.now + Duration::from_millis(took);
        if let Some(left) = self.leaves(self.now) {
            return Some(Some(left));
        }
        let failure: Failure = rebuild::failure(self.record, of, self.config)?;
        let next = self.send(number.saturating_add(1));
        let wait = next.and_then(|next| next.wait.as_ref()).filter(|wait| !wait.why.is_in_line());
        let profile = self.call.profile().clone();
        let fell = match wait.and_then(|wait| wait.planned) {
            Some(planned) => Fell::To(planned),
            // It was not borne, which chance may have decided: then it fell as badly as it can.
            None if is_last && closed.outcome == "gave_up" => Fell::Badly,
            None => Fell::Unknown,
        };
        let in_gate = failure.evidence == Some(Evidence::Refused) && profile.gate.is_some();
        if failure.renewed || in_gate {
            // It is sent at once, or its lane spaces it: no step is taken on a curve.
            self.call.failed(failure, self.now, &mut self.dice);
        } else {
            let mut dice = Fallen::new(&mut self.dice, fell, &failure, (&mut self.steps, &profile));
            self.call.failed(failure, self.now, &mut dice);
        }
        Some(None)
    }

    /// The recorded send of this number. One of those in the middle that a record leaves out is as the one before it.
    fn send(&self, number: u32) -> Option<&'a SendRecord> {
        let at = self.sends.partition_point(|of| of.send < number);
        let of = self.sends.get(at)?;
        if of.send == number {
            return Some(of);
        }
        let is_left_out = self.record.left_out > 0;
        self.sends[..at].last().filter(|_| is_left_out).copied()
    }

    /// When the recorded call ended.
    fn end(&self) -> Option<Moment> {
        Some(Moment::ZERO + Duration::from_millis(self.record.closed.as_ref()?.took))
    }

    /// The client leaves, or the relay is stopped, at its time.
    fn leaves(&self, by: Moment) -> Option<Ended> {
        let closed = self.record.closed.as_ref()?;
        let stopped = closed.why.as_deref() == Some("stopping");
        if !(stopped || closed.outcome == "client_left") || by < self.end()? {
            return None;
        }
        Some(if stopped { self.known(&closed.outcome, closed.why.clone()) } else { self.left() })
    }

    fn left(&self) -> Ended {
        let closed = self.record.closed.as_ref();
        // A wait that was broken off is told as far as it went, which is as far as the record says.
        let waited = closed.map_or(0, |closed| closed.waited);
        let mut ended = self.known(Outcome::ClientLeft.name(), None);
        ended.waited =
            if closed.is_some_and(|closed| closed.sends == ended.sends) { waited } else { ended.waited };
        ended
    }

    fn goes_on(&self) -> Ended {
        Ended { end: End::GoesOn, ..self.known("", None) }
    }

    fn ended(&self, outcome: &str, ending: &Ending) -> Ended {
        let why = match ending {
            Ending::GaveUp(stop, _) => Some(stop.name().to_owned()),
            Ending::Refused(why, _) => Some(why.name().to_owned()),
            Ending::Parked(_) => Some(PARKED.to_owned()),
            Ending::Committed | Ending::Passed(_) | Ending::Returned(_) | Ending::ClientLeft => None,
        };
        self.known(outcome, why)
    }

    fn known(&self, outcome: &str, why: Option<String>) -> Ended {
        let closing = self.call.closing(Outcome::Served, self.now);
        Ended {
            end: End::Known(outcome.to_owned()),
            why,
            sends: closing.sends,
            waited: u64::try_from(closing.waited.as_millis()).unwrap_or(u64::MAX),
            granted: closing.maybe_billed_twice,
        }
    }
}
