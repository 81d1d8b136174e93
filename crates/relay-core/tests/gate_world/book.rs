//! What a careful observer writes down about a gate, from outside and in the plainest way: where every call is, what
//! every session has under way, how many refusals came in a row. What the gate does is held against it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use relay_core::event::CallId;
use relay_core::gate::{Arrival, Class, Gate, Poll, Reason, Refusal, Report, Rules, Settled};
use relay_core::gate::{Shut, View};
use relay_core::{Moment, SeededDice};

/// Nothing, or which law fell.
pub(crate) type Kept = Result<(), String>;

pub(crate) fn law(holds: bool, name: &str) -> Kept {
    if holds { Ok(()) } else { Err(format!("fell: {name}")) }
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum State {
    Waits,
    Sent {
        at: Moment,
        reason: Reason,
        /// Its session was not being refused, or was alone.
        news: bool,
    },
    Runs,
}

#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) arrival: Arrival,
    pub(crate) state: State,
    pub(crate) sends: u32,
    /// Neither its client nor the upstream wants it sent before.
    pub(crate) earliest: Moment,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Session {
    /// In thousandths of a small call.
    pub(crate) load: u64,
    pub(crate) refused: u32,
    sent: Option<Moment>,
}

impl Session {
    pub(crate) const fn sent(&mut self, now: Moment) {
        self.sent = Some(now);
    }
}

/// Refusals in a row.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    count: usize,
    first: Moment,
    last: Option<Moment>,
}

/// What a walk consisted of.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) events: u32,
    pub(crate) sends: u32,
    /// Sends by reason: open, timer, follow-up, completion, plain.
    pub(crate) by: [u32; 5],
    pub(crate) shut: u32,
    pub(crate) slow: u32,
    pub(crate) full: u32,
    pub(crate) opened: u32,
    pub(crate) stale: u32,
    pub(crate) rates: u32,
    pub(crate) asked: u32,
    pub(crate) unsent: u32,
    pub(crate) expired: u32,
    pub(crate) honest: u32,
    pub(crate) random: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { events, sends, by, shut, slow, full, opened, stale, rates, .. } = other;
        for (sum, part) in [
            (&mut self.events, events),
            (&mut self.sends, sends),
            (&mut self.shut, shut),
            (&mut self.slow, slow),
            (&mut self.full, full),
            (&mut self.opened, opened),
            (&mut self.stale, stale),
            (&mut self.rates, rates),
            (&mut self.asked, &other.asked),
            (&mut self.unsent, &other.unsent),
            (&mut self.expired, &other.expired),
            (&mut self.honest, &other.honest),
            (&mut self.random, &other.random),
        ] {
            *sum += part;
        }
        for (sum, part) in self.by.iter_mut().zip(by) {
            *sum += part;
        }
    }
}

pub(crate) struct Book {
    pub(crate) gate: Gate,
    pub(crate) rules: Rules,
    pub(crate) dice: SeededDice,
    pub(crate) now: Moment,
    /// Calls that are not gone.
    pub(crate) calls: BTreeMap<CallId, Known>,
    pub(crate) sessions: BTreeMap<u64, Session>,
    pub(crate) pending: usize,
    pub(crate) running: usize,
    /// Waiting calls that are not plain.
    pub(crate) gated: usize,
    /// When the time of waiting calls is up.
    pub(crate) deadlines: BTreeSet<(Moment, CallId)>,
    run: Run,
    pub(crate) refused_sent: Option<Moment>,
    pub(crate) accepted_sent: Option<Moment>,
    completion_refused: bool,
    /// The last thing heard of a shut lane was an acceptance.
    pub(crate) hopeful: bool,
    /// The upstream asked for silence until then, and with the scatter at most until then.
    pub(crate) hold: (Moment, Moment),
    /// The rate limit says so.
    pub(crate) rate_next: Moment,
    /// A refusal with a wait for its call says so.
    pub(crate) floor: Moment,
    pub(crate) asked: bool,
    /// Acceptances that let calls follow, since the lane last refused.
    pub(crate) evidence: u32,
    /// The most that own completions can have earned.
    pub(crate) credit: f64,
    /// What the pace can still give.
    pub(crate) paced: (f64, Moment),
    pub(crate) last_timer: Option<Moment>,
    /// A lane that was shut by a refusal is asked by then.
    pub(crate) first_by: Option<Moment>,
    /// The line is looked at before each poll, and the order of those that go is judged.
    pub(crate) watchful: bool,
    /// Calls of several presets wait: what a hasty one took, a slow one waits for.
    pub(crate) mixed: bool,
    pub(crate) tally: Tally,
    /// What the last polls sent.
    pub(crate) sent: Vec<(CallId, Reason)>,
    /// What the last poll said, where nothing has happened since.
    pub(crate) rest: Option<Poll>,
}

/// A session is alone where no other has sent for so long.
const ALONE: Duration = Duration::from_secs(60);

impl Book {
    pub(crate) fn new(rules: Rules, seed: u64, now: Moment) -> Self {
        Self {
            gate: Gate::new(rules.clone()),
            rules,
            dice: SeededDice::new(seed),
            now,
            calls: BTreeMap::new(),
            sessions: BTreeMap::new(),
            pending: 0,
            running: 0,
            gated: 0,
            deadlines: BTreeSet::new(),
            run: Run::default(),
            refused_sent: None,
            accepted_sent: None,
            completion_refused: false,
            hopeful: false,
            hold: (Moment::ZERO, Moment::ZERO),
            rate_next: Moment::ZERO,
            floor: Moment::ZERO,
            asked: false,
            evidence: 0,
            credit: 0.0,
            paced: (0.0, now),
            last_timer: None,
            first_by: None,
            watchful: false,
            mixed: false,
            tally: Tally::default(),
            sent: Vec::new(),
            rest: None,
        }
    }

    /// Waiting calls: those of the lane, and plain ones.
    pub(crate) fn waiting(&self) -> usize {
        self.calls.len() - self.pending - self.running
    }

    pub(crate) fn has_place(&self) -> bool {
        self.rules.max_running.is_none_or(|most| self.pending + self.running < most)
    }

    /// Sends of the lane that have this reason and no sign yet.
    pub(crate) fn unsure(&self, wanted: impl Fn(Reason, Moment) -> bool) -> usize {
        let sent = self.calls.values().filter_map(|known| match known.state {
            State::Sent { at, reason, .. } => Some((reason, at)),
            State::Waits | State::Runs => None,
        });
        sent.filter(|(reason, at)| wanted(*reason, *at)).count()
    }

    pub(crate) fn is_alone(&self, session: u64) -> bool {
        let mut others = self.sessions.iter().filter(|(key, _)| **key != session);
        others.all(|(_, other)| other.sent.is_none_or(|sent| self.now.since(sent) > ALONE))
    }

    fn event(&mut self) {
        self.tally.events += 1;
        self.rest = None;
    }

    /// A call waits from now on, or no more.
    pub(crate) fn waits(&mut self, arrival: &Arrival, begins: bool) {
        if !arrival.plain {
            self.gated = if begins { self.gated + 1 } else { self.gated - 1 };
        }
        if let Some(deadline) = arrival.deadline {
            let key = (deadline, arrival.call);
            let _ = if begins { self.deadlines.insert(key) } else { self.deadlines.remove(&key) };
        }
    }

    // ---- what happens to the gate ----

    pub(crate) fn arrive(&mut self, arrival: Arrival) -> Kept {
        self.event();
        let shut = self.gate.shut();
        self.gate.arrive(arrival.clone(), self.now);
        self.waits(&arrival, true);
        let (sends, earliest) = (arrival.sends, arrival.not_before.unwrap_or(self.now).max(self.now));
        self.calls.insert(arrival.call, Known { arrival, state: State::Waits, sends, earliest });
        law(self.gate.shut() == shut, "an arrival moves no gate")
    }

    pub(crate) fn heard(&mut self, call: CallId) -> Kept {
        self.event();
        let shut = self.gate.shut();
        self.gate.heard(call);
        law(self.gate.shut() == shut, "a head moves no gate")
    }

    pub(crate) fn ask_now(&mut self) {
        self.event();
        self.tally.asked += 1;
        self.gate.ask_now();
        if self.gated == 0 {
            self.hold = (Moment::ZERO, Moment::ZERO);
        }
        self.asked = self.gated > 0 && self.has_place();
    }

    pub(crate) fn accepted(&mut self, call: CallId) -> Kept {
        self.event();
        let Some(known) = self.calls.get_mut(&call) else { return Err(format!("{call} is unknown")) };
        let State::Sent { at, reason, .. } = known.state else {
            return Err(format!("{call} is not under way"));
        };
        let session = known.arrival.session;
        known.state = State::Runs;
        (self.pending, self.running) = (self.pending - 1, self.running + 1);
        let before = self.gate.shut();
        self.gate.accepted(call, self.now);
        let after = self.gate.shut();
        if reason == Reason::Plain {
            return law(before == after, "a plain call says nothing about the lane");
        }
        self.pace_given_back(reason);
        self.sessions.entry(session).or_default().refused = 0;
        let is_fresh = self.refused_sent.is_none_or(|refused| at > refused);
        let tells = reason != Reason::Completion || self.completion_refused;
        self.accepted_sent = self.accepted_sent.max(Some(at));
        if at >= self.run.first {
            self.run.count = self.run.count.saturating_sub(1);
        }
        let is_over = is_fresh && tells && self.run.last.is_none_or(|last| at > last);
        if is_over {
            self.run.count = 0;
        }
        if before.is_some() {
            let at_once = is_over && self.gate.view(0, self.now).random;
            law(after.is_none() == at_once, "an acceptance opens a random lane alone")?;
        } else {
            law(after.is_none(), "an acceptance shuts no lane")?;
        }
        if after.is_some() && is_fresh {
            self.hopeful = true;
            self.evidence += u32::from(tells);
        }
        self.moved(before);
        Ok(())
    }

    pub(crate) fn settled(&mut self, call: CallId, report: Report, back: Option<Moment>) -> Kept {
        self.event();
        let Some(known) = self.calls.get_mut(&call) else { return Err(format!("{call} is unknown")) };
        let State::Sent { at, reason, news } = known.state else {
            return Err(format!("{call} is not under way"));
        };
        let (session, weight) = (known.arrival.session, thousandths(&known.arrival));
        self.pending -= 1;
        if report == Report::Other && matches!(reason, Reason::Open | Reason::Follow) {
            self.paced.0 -= 1.0;
        }
        let refusal = match report {
            Report::Refused(refusal) if reason != Reason::Plain => Some(refusal),
            Report::Refused(_) | Report::Spent(_) | Report::Other => None,
        };
        if let Some(own) = back {
            known.state = State::Waits;
            known.earliest = own.max(self.now + refusal.map_or(Duration::ZERO, |refusal| refusal.floor));
            let arrival = known.arrival.clone();
            self.waits(&arrival, true);
        } else {
            self.calls.remove(&call);
        }
        self.sessions.entry(session).or_default().load -= weight;
        let (before, view) = (self.gate.shut(), self.gate.view(0, self.now));
        self.gate.settled(call, Settled { report, back }, self.now, &mut self.dice);
        match refusal {
            None => law(self.gate.shut() == before, "what is no refusal of the lane's moves no gate"),
            Some(refusal) => self.refused(session, (at, reason, news), refusal, &view),
        }
    }

    pub(crate) fn refused_late(&mut self, call: CallId, refusal: Refusal) -> Kept {
        self.event();
        let Some(known) = self.calls.remove(&call) else { return Err(format!("{call} is unknown")) };
        let session = known.arrival.session;
        self.running -= 1;
        let news = self.sessions.get(&session).is_none_or(|known| known.refused == 0);
        let news = news || self.is_alone(session);
        self.sessions.entry(session).or_default().load -= thousandths(&known.arrival);
        let (before, view) = (self.gate.shut(), self.gate.view(0, self.now));
        self.gate.refused_late(call, refusal, self.now, &mut self.dice);
        if known.arrival.plain {
            return law(self.gate.shut() == before, "a plain call says nothing about the lane");
        }
        self.refused(session, (self.now, Reason::Open, news), refusal, &view)
    }

    pub(crate) fn left(&mut self, call: CallId, unsent: bool) -> Kept {
        self.event();
        let Some(known) = self.calls.remove(&call) else { return Err(format!("{call} is unknown")) };
        let before = self.gate.shut();
        if known.state != State::Waits {
            self.sessions.entry(known.arrival.session).or_default().load -= thousandths(&known.arrival);
        }
        match known.state {
            State::Waits => self.waits(&known.arrival, false),
            State::Sent { reason, .. } => {
                self.pending -= 1;
                self.pace_given_back(reason);
                if unsent {
                    self.tally.unsent += 1;
                    self.given_back(reason);
                }
            }
            State::Runs => {
                self.running -= 1;
                let random = before.is_none() && self.gated > 0 && self.gate.view(0, self.now).random;
                if !known.arrival.plain && self.rules.completions {
                    if before.is_some() {
                        self.credit = (self.credit + 1.0).min(4.0);
                    } else if random {
                        self.credit = (self.credit + 1.0).min(1.0);
                    }
                }
            }
        }
        self.gate.left(call, unsent, self.now);
        law(self.gate.shut() == before, "a call that leaves moves no gate")
    }

    fn pace_given_back(&mut self, reason: Reason) {
        if matches!(reason, Reason::Open | Reason::Follow) {
            self.paced.0 -= 1.0;
        }
    }

    const fn given_back(&mut self, reason: Reason) {
        match reason {
            Reason::Follow => self.evidence += 1,
            Reason::Completion => self.credit += 1.0,
            Reason::Timer => self.last_timer = None,
            Reason::Open | Reason::Plain => {}
        }
    }

    /// What the refusal of a send of the lane has to do with it; `before`: how the lane was.
    fn refused(
        &mut self,
        session: u64,
        (at, reason, news): (Moment, Reason, bool),
        refusal: Refusal,
        before: &View,
    ) -> Kept {
        let now = self.now;
        if let Some(told) = refusal.told.filter(|told| !told.is_zero()) {
            let scatter = Duration::from_millis(50) + told.min(Duration::from_secs(5)).mul_f64(0.1);
            self.hold = (self.hold.0.max(now + told), self.hold.1.max(now + told + scatter));
        }
        let held = self.gate.hold(now).unwrap_or(now);
        law(held >= self.hold.0 && held <= self.hold.1.max(now), "the hold is what the upstream asked for")?;
        let (was, view) = (before.shut, self.gate.view(0, now));
        if refusal.class == Class::Rate && self.rules.rate {
            self.tally.rates += 1;
            if view.rate != before.rate {
                let rate = view.rate.ok_or("a rate limit is forgotten")?;
                self.rate_next = self.rate_next.max(now + Duration::from_secs_f64(0.999 / rate));
            }
            return law(view.shut == was, "a rate limit shuts nothing");
        }
        // Of many that a session had under way, the first refusal is news.
        let was_served = self.sessions.get(&session).is_none_or(|known| known.refused == 0);
        let news = news && (was_served || self.is_alone(session));
        self.sessions.entry(session).or_default().refused += 1;
        if self.accepted_sent.is_some_and(|accepted| at < accepted) {
            self.tally.stale += 1;
            law(view.shut == was, "a stale refusal moves no gate")?;
            // What a plain call waits for is none of the lane's.
            let told = refusal.told.is_some() || was.is_none() || self.gated <= 1;
            return law(told || view.next <= before.next, "a stale refusal puts off no probe");
        }
        if news {
            self.run.first = if self.run.count == 0 { at } else { self.run.first.min(at) };
            self.run.last = self.run.last.max(Some(at));
            self.run.count += 1;
        }
        let in_a_row = self.run.count >= 2;
        let blamed = if was.is_some() { in_a_row } else { view.shut.is_some() };
        if was.is_none() {
            law(in_a_row || !blamed, "two sessions shut a lane, not one")?;
            let undecided = self.unsure(|reason, _| reason != Reason::Plain) > 0 || view.random;
            law(blamed || undecided || !in_a_row, "two sessions in a row shut a lane")?;
        } else {
            law(view.shut.map(|shut| shut.1) == was.map(|shut| shut.1), "a shut lane stays shut")?;
        }
        if !blamed {
            return law(view.shut == was, "a refusal that is its call's alone moves no gate");
        }
        let fault = match refusal.class {
            Class::Capacity(fault) => fault,
            Class::Rate => relay_core::Fault::Throttled,
        };
        law(
            view.shut.is_some_and(|(why, _)| why == Shut::Refused(fault)),
            "a lane is shut for what it said",
        )?;
        self.moved(was);
        if was.is_none() {
            self.first_by = Some(now + refusal.first_wait);
            self.floor = Moment::ZERO;
        }
        (self.hopeful, self.evidence) = (false, 0);
        self.refused_sent = self.refused_sent.max(Some(at));
        self.floor = self.floor.max(now + refusal.floor);
        self.completion_refused |= was.is_some() && reason == Reason::Completion;
        Ok(())
    }

    /// The lane was so before: it may have opened or shut.
    pub(crate) fn moved(&mut self, before: Option<(Shut, Moment)>) {
        match (before, self.gate.shut()) {
            (None, Some((why, _))) => {
                match why {
                    Shut::Refused(_) => self.tally.shut += 1,
                    Shut::Slow => self.tally.slow += 1,
                    Shut::Full => self.tally.full += 1,
                    Shut::Spent => unreachable!("what parks a lane has walks of its own"),
                }
                (self.credit, self.completion_refused, self.evidence) = (0.0, false, 0);
                (self.last_timer, self.first_by) = (None, None);
                self.hopeful = why == Shut::Full;
            }
            (Some(_), None) => {
                self.tally.opened += 1;
                self.first_by = None;
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// What the lane learned is kept as it is over a restart.
    pub(crate) fn keeps_what_it_learned(&mut self) -> Kept {
        let learned = self.gate.learned();
        let Some(learned) = learned else { return Ok(()) };
        let mut heir = Gate::with(self.rules.clone(), &learned);
        law(heir.learned() == Some(learned), "what is learned survives a restart")?;
        let (heir, mine) = (heir.view(0, self.now), self.gate.view(0, self.now));
        law(heir.random == mine.random && heir.shut.is_none(), "a lane begins open, and as random as it was")
    }
}

pub(crate) fn thousandths(arrival: &Arrival) -> u64 {
    Duration::from_secs_f64(arrival.weight * 1000.0).as_secs()
}
