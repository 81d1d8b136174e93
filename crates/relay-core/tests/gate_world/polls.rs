//! The gate is polled, and every answer judged: who may be sent, in which order, and how long it may rest.

use std::time::Duration;

use relay_core::event::CallId;
use relay_core::gate::{Poll, Reason, Shut, View};
use relay_core::{Dice as _, Moment};

use crate::book::{Book, Kept, Known, State, law, thousandths};

/// A probe that is younger than this is never slow, nor presumed accepted.
const SLOW: Duration = Duration::from_secs(4);
const PRESUMED: Duration = Duration::from_millis(300);

impl Book {
    /// Polls until nothing more is sent.
    pub(crate) fn drain(&mut self) -> Kept {
        self.sent.clear();
        for _ in 0..=self.waiting() {
            let line = self.looks().then(|| self.gate.view(usize::MAX, self.now));
            let before = self.gate.shut();
            let poll = self.gate.poll(self.now, &mut self.dice);
            self.turned(before, poll)?;
            let Poll::Send(call) = poll else {
                self.rest = Some(poll);
                return self.rests(poll);
            };
            self.sent(call, line.as_ref())?;
        }
        Err("fell: a poll comes to rest".to_owned())
    }

    /// A look at the line costs more than all the rest, so it is taken now and then.
    const fn looks(&self) -> bool {
        self.watchful && self.tally.events.is_multiple_of(3)
    }

    /// While nothing happens, nobody is sent before the moment that the gate named.
    pub(crate) fn rests_until(&mut self, until: Moment) -> Kept {
        let until = match self.rest {
            None | Some(Poll::Send(_)) => return Ok(()),
            // Whose turn comes next may have another pace.
            Some(Poll::Wait(at)) if self.mixed && at <= self.now + Duration::from_secs(1) => return Ok(()),
            // A token of the pace is there a little before it is whole.
            Some(Poll::Wait(at)) => until.min(at - Duration::from_millis(1)),
            Some(Poll::Idle) => until,
        };
        let between = self.now + self.dice.up_to(until.since(self.now));
        if between >= until {
            return Ok(());
        }
        self.now = between;
        self.tally.honest += 1;
        let before = self.gate.shut();
        let poll = self.gate.poll(self.now, &mut self.dice);
        self.turned(before, poll)?;
        law(!matches!(poll, Poll::Send(_)), "a rest lasts as long as was said")?;
        self.rest = Some(poll);
        self.rests(poll)
    }

    /// A poll may open a lane, and shut it where it became careful.
    fn turned(&mut self, before: Option<(Shut, Moment)>, poll: Poll) -> Kept {
        let after = self.gate.shut();
        let sent = match poll {
            Poll::Send(call) => self.gate.reason(call),
            Poll::Wait(_) | Poll::Idle => None,
        };
        match (before, after) {
            (Some(_), None) => {
                law(self.hopeful || self.rules.presumption, "a lane opens after an acceptance")?;
                let others = matches!(sent, Some(Reason::Open | Reason::Timer | Reason::Follow));
                law(!others || self.asked, "a lane opens when nobody is ready")?;
            }
            (None, Some((Shut::Refused(_) | Shut::Spent, _))) => law(false, "a poll refuses nobody")?,
            (None, Some((Shut::Slow, _))) => law(self.rules.suspicion, "suspicion is left out")?,
            (None, Some((Shut::Full, _))) => law(self.rules.room, "the room is left out")?,
            (Some(_), Some(_)) | (None, None) => law(before == after, "a poll says why once")?,
        }
        self.moved(before);
        Ok(())
    }

    fn sent(&mut self, call: CallId, line: Option<&View>) -> Kept {
        self.tally.sends += 1;
        let now = self.now;
        let reason = self.gate.reason(call).ok_or("what is sent is not under way")?;
        let Some(known) = self.calls.get(&call).cloned() else {
            return Err(format!("fell: {call} left and was sent"));
        };
        law(known.state == State::Waits, "a call is in one place at a time")?;
        law(!self.gate.waits(call), "what is sent does not wait")?;
        law(known.arrival.budget.is_none_or(|most| known.sends < most), "sends <= budget")?;
        law(
            known.arrival.deadline.is_none_or(|deadline| now < deadline),
            "nobody is sent after the deadline",
        )?;
        law(self.has_place(), "pending + running <= max_running")?;
        law(known.arrival.plain == (reason == Reason::Plain), "a plain call is sent as one")?;
        let asked = reason != Reason::Plain && std::mem::take(&mut self.asked);
        if asked {
            self.first_by = None;
        } else {
            law(known.earliest <= now, "never early: its own wait")?;
            self.may_go(&known, reason)?;
            if let Some(line) = line {
                self.in_turn(&known, reason, line)?;
            }
        }
        let session = known.arrival.session;
        let news = self.refusals(&known) == 0 || self.is_alone(session);
        let entry = self.sessions.entry(session).or_default();
        entry.load += thousandths(&known.arrival);
        entry.sent(now);
        self.pending += 1;
        self.waits(&known.arrival, false);
        if let Some(known) = self.calls.get_mut(&call) {
            known.state = State::Sent { at: now, reason, news };
            known.sends += 1;
        }
        let kind = match reason {
            Reason::Open => 0,
            Reason::Timer => 1,
            Reason::Follow => 2,
            Reason::Completion => 3,
            Reason::Plain => 4,
        };
        self.tally.by[kind] += 1;
        self.sent.push((call, reason));
        Ok(())
    }

    /// Whether the lane may send a call for this reason.
    fn may_go(&mut self, known: &Known, reason: Reason) -> Kept {
        let (now, shut) = (self.now, self.gate.shut());
        if reason == Reason::Plain {
            return Ok(());
        }
        law(now >= self.hold.0, "never early: the hold of the lane")?;
        law(now >= self.rate_next, "never early: the rate of the lane")?;
        match reason {
            Reason::Open => {
                law(shut.is_none(), "only an open lane sends as one")?;
                self.in_pace()
            }
            Reason::Follow => {
                law(shut.is_some(), "only in a shut lane calls follow")?;
                let most = if self.rules.presumption { u32::MAX } else { 64 * self.evidence };
                law(most > 0, "calls follow an acceptance since the last refusal")?;
                self.in_pace()
            }
            Reason::Completion => {
                law(self.credit >= 1.0, "a call of ours ended for each that takes a place")?;
                self.credit = if shut.is_some() { self.credit - 1.0 } else { 0.0 };
                law(depth(known) < 2, "the reserve of sends is kept")
            }
            Reason::Timer => self.may_probe(known),
            Reason::Plain => Ok(()),
        }
    }

    fn may_probe(&mut self, known: &Known) -> Kept {
        let now = self.now;
        law(self.gate.shut().is_some(), "only a shut lane is asked")?;
        let terms = known.arrival.preset.terms();
        let counts = |at: Moment| !self.rules.presumption || now.since(at) < PRESUMED;
        let all = self.unsure(|reason, at| reason == Reason::Timer && counts(at));
        law(all < terms.unsure + self.gated / 10, "probes without a sign <= P_all + N/10")?;
        let young = self.unsure(|reason, at| reason == Reason::Timer && counts(at) && now.since(at) < SLOW);
        law(young < terms.young, "young probes <= P_young")?;
        // The least spacing there is: the shortest recovery that can be learned, the largest crowd, the least chance.
        let least = Duration::from_millis(if self.rules.recovery { 480 } else { 1180 });
        let apart = self.last_timer.is_none_or(|last| now.since(last) >= least);
        law(apart, "probes are spaced")?;
        (self.last_timer, self.first_by) = (Some(now), None);
        Ok(())
    }

    /// At most ten at once and fifty a second, those apart that are accepted meanwhile.
    fn in_pace(&mut self) -> Kept {
        let (taken, at) = self.paced;
        let taken = (taken - 50.0 * self.now.since(at).as_secs_f64()).max(0.0) + 1.0;
        self.paced = (taken, self.now);
        law(taken <= 10.01, "sends are paced")
    }

    /// Whether it was this call's turn, by the plainest look at all that wait.
    fn in_turn(&self, known: &Known, reason: Reason, line: &View) -> Kept {
        let ready = line.line.iter().filter(|place| place.not_before.is_none());
        let all = ready.filter_map(|place| self.calls.get(&place.call));
        let all = all.filter(|other| other.arrival.plain == known.arrival.plain);
        match reason {
            Reason::Open | Reason::Follow | Reason::Plain => {
                let rank = |known: &Known| known.arrival.since + known.arrival.preset.terms().gives_way;
                let alike = |other: &Known| {
                    other.arrival.session == known.arrival.session && depth(other) == depth(known)
                };
                let mut own = all.clone().filter(|other| alike(other));
                law(own.all(|other| rank(known) <= rank(other)), "a session's calls go as they came")?;
                let first = all.map(|other| self.turn(other)).min();
                law(first == Some(self.turn(known)), "those go first whose turn it is")
            }
            Reason::Timer => {
                let by = |other: &Known| (depth(other), self.refusals(other), self.turn(other));
                law(all.map(by).min() == Some(by(known)), "who is refused least asks first")
            }
            Reason::Completion if self.gate.shut().is_some() => {
                let by = |other: &Known| (depth(other), self.turn(other));
                law(all.map(by).min() == Some(by(known)), "a place goes to those whose turn it is")
            }
            Reason::Completion => Ok(()),
        }
    }

    fn refusals(&self, known: &Known) -> u32 {
        self.sessions.get(&known.arrival.session).map_or(0, |session| session.refused)
    }

    fn turn(&self, known: &Known) -> (u64, Moment) {
        let load = self.sessions.get(&known.arrival.session).map_or(0, |session| session.load);
        let rank = known.arrival.since + known.arrival.preset.terms().gives_way;
        if self.rules.max_running.is_some() {
            // Those that have as much under way take turns, which goes by what the lane remembers of them.
            return (load, Moment::ZERO);
        }
        (0, rank + Duration::from_millis(5 * load))
    }

    /// Whether the gate may rest as it stands.
    fn rests(&mut self, poll: Poll) -> Kept {
        let (now, has_place) = (self.now, self.has_place());
        law(!matches!(poll, Poll::Wait(at) if at <= now), "a rest is not over at once")?;
        law(self.gate.waiting() == self.waiting(), "nobody is lost and nobody is there twice")?;
        if self.gated == 0 {
            self.asked = false;
        }
        law(!self.asked || !has_place, "who asks is sent")?;
        let waits = |known: &Known| known.state == State::Waits && known.earliest <= now;
        let plain = self.waiting() > self.gated
            && has_place
            && self.calls.values().any(|known| known.arrival.plain && waits(known));
        law(!plain, "a plain call waits for a place alone")?;
        if !self.looks() || !has_place {
            return Ok(());
        }
        let view = self.gate.view(usize::MAX, now);
        let own = |place: &relay_core::gate::Place| {
            place.not_before.is_none()
                && self.calls.get(&place.call).is_some_and(|known| !known.arrival.plain)
        };
        let ready = view.line.iter().filter(|place| own(place)).count();
        if view.shut.is_some() && self.hopeful && ready == 0 {
            let later = self.unsure(|reason, at| reason != Reason::Plain && self.accepted_sent < Some(at));
            law(later > 0, "a lane that accepted last opens when nobody is ready")?;
        }
        if ready == 0 || view.hold.is_some() || view.rate.is_some() {
            return Ok(());
        }
        match view.shut {
            None => {
                let soon = now + Duration::from_millis(if self.mixed { 701 } else { 101 });
                law(matches!(poll, Poll::Wait(at) if at <= soon), "an open lane keeps nobody but by its pace")
            }
            Some(_) => {
                let timers = self.unsure(|reason, _| reason == Reason::Timer);
                law(poll != Poll::Idle || timers >= 2 + self.gated / 10, "a shut lane is asked again")?;
                let asking = self.unsure(|reason, _| matches!(reason, Reason::Timer | Reason::Open));
                let due = self.first_by.is_some_and(|by| by.max(self.floor) <= now);
                // One that follows an accepted one goes in a moment: its pace alone keeps it.
                let follows = matches!(poll, Poll::Wait(at) if at <= now + Duration::from_millis(701));
                law(!due || asking > 0 || follows, "a lane that is shut anew is asked within the first wait")
            }
        }
    }

    /// What a person is shown is so.
    pub(crate) fn shows_what_is(&mut self, most: usize) -> Kept {
        let view = self.gate.view(most, self.now);
        let holds = view.waiting == self.waiting()
            && view.pending == self.pending
            && view.running == self.running
            && view.line.len() == most.min(self.waiting())
            && view.line.iter().zip(1..).all(|(place, position)| place.position == position)
            && view.line.iter().all(|place| {
                self.gate.waits(place.call)
                    && self.calls.get(&place.call).is_some_and(|known| {
                        let shown = place.not_before.unwrap_or(self.now);
                        known.arrival.session == place.session && (shown >= known.earliest || self.asked)
                    })
            })
            && (view.shut == self.gate.shut() || (view.shut.is_none() && self.is_forgotten()))
            && view.hold == self.gate.hold(self.now)
            && (self.waiting() > 0 || view.next.is_none())
            && (view.shut.is_none() || self.gated == 0 || view.next.is_some());
        law(holds, "a person sees what is")
    }

    /// Nobody asks the lane, it asks for no pause, and it has been shut for a minute at least.
    fn is_forgotten(&self) -> bool {
        self.waiting() == 0
            && self.pending == 0
            && self.gate.hold(self.now).is_none()
            && self.gate.shut().is_some_and(|(_, since)| self.now >= since + Duration::from_secs(60))
    }
}

/// 0: probes may use it; 1: where there is no other; 2: what is left is kept for the time when the lane opens.
fn depth(known: &Known) -> usize {
    let Some(budget) = known.arrival.budget else { return 0 };
    let reserve = known.arrival.preset.terms().reserve.min(budget / 4);
    match known.sends {
        sends if 2 * sends < budget => 0,
        sends if sends < budget - reserve => 1,
        _ => 2,
    }
}
