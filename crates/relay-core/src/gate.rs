//! The capacity gate of one lane: an upstream, a credential and a model. Calls that may not be sent yet wait here, a
//! few of them ask, and the rest follow when one is accepted.
//!
//! What it does, part by part; each part is a file, and each but the first two can be left out ([`Rules`]):
//!
//! | part | what it says |
//! |---|---|
//! | `backoff`, `sessions` | A refusal is news about its call and its session first: it alone waits, others pass. |
//! | `line` | Whose turn it is. Sessions with more in flight give way. |
//! | `run` | Different sessions refused in a row, with nothing accepted between them, shut the lane. |
//! | `probing`, `ramp` | A shut lane is asked now and then, by a call that waits. An accepted one lets others follow. |
//! | `completions` | A call of ours that ended left a place: the next one takes it. |
//! | `room` | How many ran when the lane was full is remembered, and not run into again at once. |
//! | `random` | Where shutting predicts nothing, the service refuses at random: such a lane stays open. |
//! | `rate` | A rate limit shuts nothing. It is measured, and sends are spaced by it. |
//! | suspicion ([`Gate::poll`]) | A send that stays silent for longer than any before makes the lane careful. |
//! | `recovery` | How long shut times last is learned, and the asking is spaced by it. |
//! | presumption ([`Gate::poll`]) | A send that outlives every usual refusal counts as accepted until more is known. |
//!
//! A pure state machine: the moment and the dice are handed in. Tell it what happened, then ask [`Gate::poll`] until it
//! has nothing more to send; ask again at the moment that it names. Every event costs a logarithm of the calls that
//! wait, and a look at the sends that are under way.

mod backoff;
mod completions;
mod learned;
mod line;
mod numbers;
mod pace;
mod probing;
mod ramp;
mod random;
mod rate;
mod recovery;
mod room;
mod run;
mod sends;
mod sessions;
mod terms;
mod view;

pub use learned::Learned;
pub use sends::Reason;
pub use terms::{Preset, Terms};
pub use view::{Place, Shut, View};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dice::Dice;
use crate::event::CallId;
use crate::fault::Fault;
use crate::moment::Moment;

use completions::Completions;
use line::{Line, Turn, Waiting};
use numbers::{Share, Usual, span};
use pace::Pace;
use probing::Spacing;
use ramp::Ramp;
use random::Judgement;
use rate::Rate;
use recovery::Recovery;
use room::Room;
use run::Run;
use sends::{Presumed, Sends, Sent};
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
    /// When the last send was made that was the lane's refusal, and the last that was accepted.
    refused_sent: Option<Moment>,
    accepted_sent: Option<Moment>,
    refusal_takes: Usual,
    acceptance_takes: Usual,
    /// Sends after own completions that were accepted.
    completions_accepted: u32,
    /// A person asks: the next call is sent whatever holds it.
    ask_now: bool,
}

/// Whoever is silent for longer than this, and than others usually are, is slow.
const SLOW: f64 = 4.0;

/// So long after its head an answer counts as accepted, in seconds, where it is not known how long a refusal takes.
const UNHEARD: f64 = 3.0;

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
            refused_sent: None,
            accepted_sent: None,
            refusal_takes: Usual::guessed(0.0, 0.0),
            acceptance_takes: Usual::guessed(1.5, 0.5),
            completions_accepted: 0,
            ask_now: false,
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
        self.push(waiting, now);
    }

    fn push(&mut self, waiting: Waiting, now: Moment) {
        let session = self.sessions.get(waiting.session);
        let line = if waiting.plain { &mut self.plain } else { &mut self.line };
        line.push(waiting, session, now);
    }

    /// The head of an answer came that tells of no refusal. That is less than acceptance, which the first event of the
    /// answer tells, but the send is not silent any more.
    pub fn heard(&mut self, call: CallId) {
        self.sends.heard(call);
    }

    /// The first sign of acceptance: a success, and its first event is no error.
    pub fn accepted(&mut self, call: CallId, now: Moment) {
        let Some(sent) = self.sends.take(call) else { return };
        let Sent { at, reason, presumed, .. } = sent;
        let Waiting { session, weight, plain, streams, preset, .. } = sent.waiting;
        self.running.insert(call, Running { session, weight, plain, preset });
        if reason == Reason::Plain {
            return;
        }
        let is_fresh = self.refused_sent.is_none_or(|refused| at > refused);
        self.rate.accepted(now);
        self.run.accepted(at);
        if streams {
            self.acceptance_takes.saw(now.since(at).as_secs_f64());
        }
        self.accepted_sent = self.accepted_sent.max(Some(at));
        self.outcome(&sent, false);
        self.sessions.accepted(session);
        self.session_changed(session);
        let tells = reason != Reason::Completion || self.completions.is_news();
        if is_fresh && self.run.is_over(at) && tells {
            if self.shut.is_some() || self.run.is_long() {
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
        let Waiting { session, weight, .. } = sent.waiting;
        self.sessions.ended(session, weight);
        let refusal = match report {
            Report::Refused(refusal) if sent.reason != Reason::Plain => Some(refusal),
            Report::Refused(_) | Report::Other => None,
        };
        if let Some(own) = back {
            let floor = own.max(refusal.map_or(now, |refusal| now + refusal.floor));
            self.push(Waiting { not_before: floor, floor, ..sent.waiting }, now);
        }
        if let Some(refusal) = refusal {
            self.refused(&sent, refusal, now, dice);
        }
        self.session_changed(session);
    }

    /// The refusal of a send. Where the lane is not to blame, its call waits by itself.
    fn refused(&mut self, sent: &Sent, refusal: Refusal, now: Moment, dice: &mut dyn Dice) {
        if let Some(told) = refusal.told.filter(|told| !told.is_zero()) {
            self.hold = self.hold.max(now + told + backoff::spread(told, dice));
        }
        if refusal.class == Class::Rate && self.rules.rate {
            self.rate.refused(sent.at, refusal.told, || self.sends.after(sent.at), now);
            return;
        }
        self.refusal_takes.saw(now.since(sent.at).as_secs_f64());
        self.outcome(sent, true);
        self.sessions.refused(sent.waiting.session, now);
        if self.is_to_blame(sent, now) {
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
    fn is_to_blame(&mut self, sent: &Sent, now: Moment) -> bool {
        if self.accepted_sent.is_some_and(|accepted| sent.at < accepted) {
            return false;
        }
        if sent.news {
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
        let why = Shut::Refused(refusal.class.fault());
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
        let Some(Running { session, weight, plain, preset, .. }) = self.running.remove(&call) else { return };
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
            let sent = Sent {
                at: now,
                reason: Reason::Open,
                waiting,
                presumed: false,
                exposure: Duration::ZERO,
                news,
            };
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
        if let Some(waiting) = self.line.remove(call).or_else(|| self.plain.remove(call)) {
            debug_assert_eq!(waiting.call, call, "a call leaves as itself");
        } else if let Some(sent) = self.sends.take(call) {
            self.sessions.ended(sent.waiting.session, sent.waiting.weight);
            if unsent {
                self.give_back(sent.reason, now);
            }
            self.session_changed(sent.waiting.session);
        } else if let Some(running) = self.running.remove(&call) {
            self.sessions.ended(running.session, running.weight);
            self.session_changed(running.session);
            if self.rules.completions && !running.plain {
                if self.shut.is_some() {
                    self.completions.ended_while_shut();
                } else if !self.line.is_empty() && self.is_random() {
                    self.completions.ended_while_random();
                }
            }
        }
    }

    fn give_back(&mut self, reason: Reason, now: Moment) {
        match reason {
            Reason::Open => self.pace.give_back(),
            Reason::Follow => self.ramp.give_back(),
            Reason::Completion => self.completions.give_back(),
            Reason::Timer => {
                if let Some(shut) = &mut self.shut {
                    shut.next_probe = now;
                }
            }
            Reason::Plain => {}
        }
    }

    /// A person asks for a send now: the next call goes, whatever holds it.
    pub fn ask_now(&mut self) {
        self.ask_now = !self.line.is_empty();
    }

    /// What to do next. A send that it names is made: it counts as under way from here on.
    pub fn poll(&mut self, now: Moment, dice: &mut dyn Dice) -> Poll {
        self.line.ripen(now);
        self.plain.ripen(now);
        let has_place =
            self.rules.max_running.is_none_or(|most| self.sends.len() + self.running.len() < most);
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
        let accepted_last = self.shut.is_some_and(|shut| shut.hopeful);
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
        let held = rate.into_iter().chain((now < self.hold).then_some(self.hold)).max();
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
        if !self.rules.presumption || self.shut.is_none() {
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
        let next_probe = now + self.spacing(shut.since, now, dice);
        let sent = self.send(call, Reason::Timer, now);
        self.shut = Some(ShutState { next_probe, first_by: None, asked: now, ..shut });
        sent
    }

    /// An open lane shuts without a refusal where it is as full as it was when it refused, or where a send stays silent.
    fn be_careful(&mut self, now: Moment, dice: &mut dyn Dice) {
        let taken = self.sends.len() + self.running.len();
        let places_tell = self.completions_accepted >= 3 && self.judgement.refused_after_completion() < 0.05;
        if self.rules.room && places_tell && self.room.is_full(taken, now) {
            let shut = self.close(Shut::Full, now, dice);
            self.shut = Some(ShutState { hopeful: true, ..shut });
        } else if self.rules.suspicion && self.sends.any_slow(self.accepted_sent, self.slow(), now) {
            self.close(Shut::Slow, now, dice);
        }
    }

    fn send(&mut self, call: CallId, reason: Reason, now: Moment) -> Poll {
        let taken = self.line.remove(call).or_else(|| self.plain.remove(call));
        let Some(mut waiting) = taken else { return Poll::Idle };
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
        Poll::Send(call)
    }

    fn close(&mut self, why: Shut, now: Moment, dice: &mut dyn Dice) -> ShutState {
        self.completions.start();
        self.ramp.stop();
        let next_probe = now + self.spacing(now, now, dice);
        let shut =
            ShutState { why, since: now, hopeful: false, next_probe, first_by: None, floor: now, asked: now };
        self.shut = Some(shut);
        shut
    }

    fn open(&mut self) {
        if self.shut.take().is_some() {
            self.ramp.drop_permits();
        }
    }

    /// The time until the next probe of a lane that is shut since then.
    fn spacing(&self, since: Moment, now: Moment, dice: &mut dyn Dice) -> Duration {
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

    fn slow(&self) -> Duration {
        span(self.acceptance_takes.at_most(4.0).max(SLOW))
    }

    fn is_random(&self) -> bool {
        self.rules.random && self.judgement.is_random()
    }

    fn terms_of(&self, call: CallId) -> &'static Terms {
        self.line.preset(call).unwrap_or(Preset::Interactive).terms()
    }

    fn session_changed(&mut self, session: u64) {
        let known = self.sessions.get(session);
        self.line.session_changed(session, known);
        self.plain.session_changed(session, known);
    }

    /// Whether nobody waits and nothing is under way or running.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.line.is_empty() && self.plain.is_empty() && self.sends.len() == 0 && self.running.is_empty()
    }

    /// Whether a call waits here.
    #[must_use]
    pub fn waits(&self, call: CallId) -> bool {
        self.line.contains(call) || self.plain.contains(call)
    }

    /// What allowed the send of a call that is under way; `None`: it waits, runs or is gone.
    #[must_use]
    pub fn reason(&self, call: CallId) -> Option<Reason> {
        self.sends.reason(call)
    }

    /// How many calls wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.line.len() + self.plain.len()
    }

    /// Why the lane is shut, and since when.
    #[must_use]
    pub fn shut(&self) -> Option<(Shut, Moment)> {
        self.shut.map(|shut| (shut.why, shut.since))
    }

    /// Nothing is sent before then, whoever it is.
    #[must_use]
    pub fn hold(&self, now: Moment) -> Option<Moment> {
        (self.hold > now).then_some(self.hold)
    }

    /// The lane as it stands, with the first `most` calls of its line. It costs more than a logarithm.
    #[must_use]
    pub fn view(&self, most: usize, now: Moment) -> View {
        let hold = self.hold(now);
        let probe = self.shut.map(|shut| shut.due()).filter(|_| !self.line.is_empty());
        let floor = hold.max(if self.rules.rate { self.rate.holds_until(now) } else { None });
        let own = if self.line.ready() == 0 { self.line.next_ready() } else { None };
        let next = if self.line.is_empty() { None } else { probe.max(floor).max(own) };
        let place = |(index, waiting): (usize, &Waiting)| Place {
            call: waiting.call,
            session: waiting.session,
            position: index + 1,
            not_before: (waiting.not_before > now).then_some(waiting.not_before),
        };
        let mut line = self.line.shown(most);
        line.extend(self.plain.shown(most.saturating_sub(line.len())));
        View {
            shut: self.shut(),
            next,
            hold,
            waiting: self.waiting(),
            line: line.into_iter().enumerate().map(place).collect(),
            pending: self.sends.len(),
            running: self.running.len(),
            max_running: self.rules.max_running,
            recovery: self.recovery.shown(),
            rate: self.rate.known().filter(|_| self.rules.rate),
            random: self.is_random(),
        }
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
