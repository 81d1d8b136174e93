//! The capacity gate of one lane: an upstream, a credential and a model. Calls that may not be sent yet wait here, a
//! few of them ask, and the rest follow when one is accepted.
//!
//! What it does, part by part; each part is a file, and those from `completions` on can be left out ([`Rules`]):
//!
//! | part | what it says |
//! |---|---|
//! | `backoff`, `sessions` | A refusal is news about its call and its session first: it alone waits, others pass. |
//! | `line` | Whose turn it is. Sessions with more in flight give way. |
//! | `run` | Different sessions refused in a row, with nothing accepted between them, shut the lane. |
//! | `probing`, `ramp` | A shut lane is asked now and then, by a call that waits. An accepted one lets others follow. |
//! | `completions` | A call of ours that ended left a place: the next one takes it. |
//! | `parking` | A spent quota that names when there is one again holds all until then; one asks first. |
//! | `room` | How many ran when the lane was full is remembered, and not run into again at once. |
//! | `random` | Where shutting predicts nothing, the service refuses at random: such a lane stays open. |
//! | `rate` | A rate limit shuts nothing. It is measured, and sends are spaced by it. |
//! | suspicion ([`Gate::poll`]) | A send that stays silent for longer than any before makes the lane careful. |
//! | `recovery` | How long shut times last is learned, and the asking is spaced by it. |
//! | presumption ([`Gate::poll`]) | A send that outlives every usual refusal counts as accepted until more is known. |
//!
//! A pure state machine: the moment and the dice are handed in. Tell it what happened, then ask [`Gate::poll`] until it
//! has nothing more to send; ask again at the moment that it names. Every event costs a logarithm of the calls that
//! wait and of the sends that are under way. `tests/gate_world` holds it to what it promises.

mod backoff;
mod completions;
mod learned;
mod line;
mod numbers;
mod outcomes;
mod pace;
mod parking;
mod poll;
mod probing;
mod ramp;
mod random;
mod rate;
mod recovery;
mod report;
mod room;
mod run;
mod sends;
mod sessions;
mod terms;
mod view;

pub use learned::Learned;
pub use parking::Parked;
pub use sends::Reason;
pub use terms::{Preset, Terms};
pub use view::{Place, Shut, View};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::CallId;
use crate::fault::Fault;
use crate::moment::Moment;

use completions::Completions;
use line::{Line, Waiting};
use numbers::{Share, Usual};
use pace::Pace;
use ramp::Ramp;
use random::Judgement;
use rate::Rate;
use recovery::Recovery;
use room::Room;
use run::Run;
use sends::Sends;
use sessions::Sessions;

/// Which parts there are, and what is stated of the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Own completions let calls follow.
    pub completions: bool,
    /// How many ran when the lane was full is remembered.
    pub room: bool,
    /// Lanes that refuse at random are found out.
    pub random: bool,
    /// Rate limits are measured.
    pub rate: bool,
    /// Silence makes a lane careful.
    pub suspicion: bool,
    /// The time to recovery is learned.
    pub recovery: bool,
    /// Sends that outlive every usual refusal count as accepted until more is known.
    pub presumption: bool,
    /// The most calls that the upstream runs at once, as its owner says.
    pub max_running: Option<usize>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            completions: true,
            room: true,
            random: true,
            rate: true,
            suspicion: true,
            recovery: true,
            presumption: true,
            max_running: None,
        }
    }
}

/// A call that comes to wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The call.
    pub call: CallId,
    /// The client's conversation; a call without one is its own.
    pub session: u64,
    /// When it came first: its rank.
    pub since: Moment,
    /// Whoever waits until then is taken out by the caller.
    pub deadline: Option<Moment>,
    /// Whose interest it is in.
    pub preset: Preset,
    /// What it weighs beside a small call, which weighs 1.
    pub weight: f64,
    /// The sends it has made.
    pub sends: u32,
    /// The most sends it may make.
    pub budget: Option<u32>,
    /// Its own wait.
    pub not_before: Option<Moment>,
    /// It asks for a stream, so that the first byte of its answer tells of acceptance.
    pub streams: bool,
    /// It waits by its own wait alone, whatever the lane does; only a stated number of places holds it.
    pub plain: bool,
}

/// What a refusal was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A want of capacity.
    Capacity(Fault),
    /// A rate limit.
    Rate,
}

impl Class {
    /// The fault that it shuts a lane with.
    const fn fault(self) -> Fault {
        match self {
            Self::Capacity(fault) => fault,
            Self::Rate => Fault::Throttled,
        }
    }
}

/// A refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What it was about.
    pub class: Class,
    /// The wait that the upstream asked for, for everybody.
    pub told: Option<Duration>,
    /// The shortest wait of this call, where the upstream named one that says nothing.
    pub floor: Duration,
    /// A lane that shuts is asked no later than this.
    pub first_wait: Duration,
}

/// What became of a send that is over and was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// It was refused before it ran.
    Refused(Refusal),
    /// There is no quota for so long: the lane is parked.
    Spent(Duration),
    /// Nothing about the lane: it failed, never arrived, or was answered for good.
    Other,
}

/// How a send ended that was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// What became of it.
    pub report: Report,
    /// Its call waits again, by itself until then; `None`: it has left.
    pub back: Option<Moment>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Send this call now, then ask again.
    Send(CallId),
    /// Ask again then, or after the next event.
    Wait(Moment),
    /// Ask again after the next event.
    Idle,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    session: u64,
    weight: u64,
    plain: bool,
    preset: Preset,
    sent: Moment,
}

#[derive(Debug, Clone, Copy)]
struct ShutState {
    why: Shut,
    since: Moment,
    /// The last thing heard was an acceptance.
    hopeful: bool,
    next_probe: Moment,
    /// It was not asked yet, and is by then.
    first_by: Option<Moment>,
    /// Nor is it asked before.
    floor: Moment,
    /// When it was last asked by the clock, or shut.
    asked: Moment,
}

impl ShutState {
    /// When it is asked next.
    fn due(&self) -> Moment {
        self.first_by.map_or(self.next_probe, |by| by.min(self.next_probe)).max(self.floor)
    }
}

/// The gate of one lane.
#[derive(Debug)]
pub struct Gate {
    rules: Rules,
    line: Line,
    /// Calls that wait by their own curve alone.
    plain: Line,
    sends: Sends,
    running: BTreeMap<CallId, Running>,
    /// The call that came last, until something else happens: most are sent at once, which spares them the line.
    newcomer: Option<(Waiting, Moment)>,
    sessions: Sessions,
    run: Run,
    shut: Option<ShutState>,
    judgement: Judgement,
    ramp: Ramp,
    completions: Completions,
    room: Room,
    rate: Rate,
    recovery: Recovery,
    pace: Pace,
    hold: Moment,
    /// Its quota is spent, or was when it was last asked.
    parked: Option<Parked>,
    /// When the last send was made that was the lane's refusal, and the last that was accepted.
    refused_sent: Option<Moment>,
    accepted_sent: Option<Moment>,
    refusal_takes: Usual,
    acceptance_takes: Usual,
    /// Sends after own completions that were accepted.
    completions_accepted: u32,
    /// A person asks: the next call is sent whatever holds it.
    ask_now: bool,
    /// When a call last came or went.
    busy: Moment,
}

impl Gate {
    /// An open lane of which nothing is known.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let by_load = rules.max_running.is_some();
        Self {
            rules,
            line: Line::new(by_load),
            plain: Line::new(by_load),
            sends: Sends::default(),
            running: BTreeMap::new(),
            newcomer: None,
            sessions: Sessions::default(),
            run: Run::default(),
            shut: None,
            judgement: Judgement::default(),
            ramp: Ramp::new(),
            completions: Completions::new(),
            room: Room::default(),
            rate: Rate::new(None),
            recovery: Recovery::default(),
            pace: Pace::new(),
            hold: Moment::ZERO,
            parked: None,
            refused_sent: None,
            accepted_sent: None,
            refusal_takes: Usual::guessed(0.0, 0.0),
            acceptance_takes: Usual::guessed(1.5, 0.5),
            completions_accepted: 0,
            ask_now: false,
            busy: Moment::ZERO,
        }
    }

    /// An open lane that knows what it learned before.
    #[must_use]
    pub fn with(rules: Rules, learned: &Learned) -> Self {
        let share = |[yes, all]: [f64; 2]| Share { yes, all };
        let learned = learned.sound();
        let mut gate = Self::new(rules);
        gate.recovery = Recovery { seen: learned.recoveries, exposure: learned.exposure };
        gate.rate = Rate::new(learned.rate);
        gate.ramp.growth = learned.growth;
        gate.completions.each = learned.per_completion;
        gate.judgement.after_completion = share(learned.after_completion);
        gate.judgement.probes = share(learned.probes);
        gate.judgement.ends = share(learned.ends);
        gate
    }

    /// What is worth keeping; `None` where nothing was learned.
    #[must_use]
    pub fn learned(&self) -> Option<Learned> {
        let pair = |share: &Share| [share.yes, share.all];
        let learned = |recovery: &Recovery, rate, judgement: &Judgement, growth, per_completion| Learned {
            recoveries: recovery.seen,
            exposure: recovery.exposure,
            rate,
            growth,
            per_completion,
            after_completion: pair(&judgement.after_completion),
            probes: pair(&judgement.probes),
            ends: pair(&judgement.ends),
        };
        let known = learned(
            &self.recovery,
            self.rate.known(),
            &self.judgement,
            self.ramp.growth,
            self.completions.each,
        );
        let fresh = Self::new(Rules::default());
        let nothing =
            learned(&fresh.recovery, None, &fresh.judgement, fresh.ramp.growth, fresh.completions.each);
        (known != nothing).then_some(known)
    }

    /// A call comes to wait.
    pub fn arrive(&mut self, arrival: Arrival, now: Moment) {
        let terms = arrival.preset.terms();
        let waiting = Waiting {
            call: arrival.call,
            session: arrival.session,
            rank: arrival.since + terms.gives_way,
            deadline: arrival.deadline,
            preset: arrival.preset,
            weight: thousandths(arrival.weight),
            sends: arrival.sends,
            budget: arrival.budget,
            tries: 0,
            not_before: arrival.not_before.unwrap_or(now),
            floor: arrival.not_before.unwrap_or(now),
            streams: arrival.streams,
            plain: arrival.plain,
        };
        self.seat_newcomer();
        if let Some(shut) = &mut self.shut
            && self.line.is_empty()
            && self.sends.is_empty()
        {
            // While nobody waited nobody looked: that time says nothing about how long the lane was shut.
            shut.asked = shut.asked.max(now);
        }
        self.newcomer = Some((waiting, now));
        self.busy = now;
    }

    /// The call that came last waits like all others.
    fn seat_newcomer(&mut self) {
        if let Some((waiting, at)) = self.newcomer.take() {
            self.push(waiting, at);
        }
    }

    fn push(&mut self, waiting: Waiting, now: Moment) {
        let session = self.sessions.get(waiting.session);
        let line = if waiting.plain { &mut self.plain } else { &mut self.line };
        line.push(waiting, session, now);
    }

    fn is_random(&self) -> bool {
        self.rules.random && self.judgement.is_random()
    }

    fn session_changed(&mut self, session: u64) {
        let known = self.sessions.get(session);
        self.line.session_changed(session, known);
        self.plain.session_changed(session, known);
    }

    /// Whether nobody waits and nothing is under way or running.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.sends.is_empty() && self.running.is_empty()
    }

    /// Whether a call waits here.
    #[must_use]
    pub fn waits(&self, call: CallId) -> bool {
        let is_new = self.newcomer.is_some_and(|(waiting, _)| waiting.call == call);
        is_new || self.line.contains(call) || self.plain.contains(call)
    }

    /// What allowed the send of a call that is under way; `None`: it waits, runs or is gone.
    #[must_use]
    pub fn reason(&self, call: CallId) -> Option<Reason> {
        self.sends.reason(call)
    }

    /// How many calls wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.line.len() + self.plain.len() + usize::from(self.newcomer.is_some())
    }

    /// The most calls that the upstream runs at once, where its owner says so.
    #[must_use]
    pub const fn max_running(&self) -> Option<usize> {
        self.rules.max_running
    }

    /// The same, changed; a lane that has no such number gets none.
    pub fn set_max_running(&mut self, most: usize) {
        if let Some(known) = &mut self.rules.max_running {
            *known = most;
        }
    }

    /// Why the lane is shut, and since when.
    #[must_use]
    pub fn shut(&self) -> Option<(Shut, Moment)> {
        self.shut.map(|shut| (shut.why, shut.since))
    }

    /// Nothing is sent before then, whoever it is.
    #[must_use]
    pub fn hold(&self, now: Moment) -> Option<Moment> {
        let parked = self.parked.map_or(Moment::ZERO, |parked| parked.until);
        Some(self.hold.max(parked)).filter(|hold| *hold > now)
    }
}

fn thousandths(weight: f64) -> u64 {
    /// A call as heavy as a thousand small ones is as heavy as can be.
    const HEAVIEST: f64 = 1e6;
    let weight = (weight * 1000.0).clamp(1.0, HEAVIEST);
    Duration::from_secs_f64(if weight.is_nan() { 1000.0 } else { weight }).as_secs()
}

#[cfg(test)]
mod tests;
