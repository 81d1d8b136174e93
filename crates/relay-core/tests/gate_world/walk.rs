//! Random walks: whatever can happen to a gate happens, in any order and at any time, and a [`Book`] is kept of it.

use std::time::Duration;

use relay_core::event::CallId;
use relay_core::gate::{Arrival, Class, Preset, Refusal, Report, Rules};
use relay_core::{Dice as _, Fault, Moment, SeededDice};

use crate::book::{Book, Kept, Known, State, Tally, law};

/// What a walk is like.
struct Manner {
    presets: &'static [Preset],
    budgets: &'static [Option<u32>],
    /// Calls come from so many sessions; `None`: each is its own.
    sessions: Option<u64>,
    most: usize,
    plain: f64,
    rate: f64,
    told: f64,
    floor: f64,
    endless: f64,
    own_wait: f64,
    /// A send that comes back was accepted so often; it changes now and then.
    good: f64,
    /// Or the service has so many places, and takes whoever finds one free.
    places: Option<usize>,
    /// How often somebody arrives; it changes now and then.
    busy: f64,
}

struct Walk {
    book: Book,
    dice: SeededDice,
    manner: Manner,
    next: u64,
    log: u64,
}

/// Walks for so many events. Returns what happened, and a number that stands for all that the gate decided.
pub(crate) fn walk(seed: u64, events: u32) -> Result<(Tally, u64), String> {
    let mut dice = SeededDice::new(seed);
    let manner = Manner::any(&mut dice);
    let rules = any_rules(&mut dice);
    let start = Moment::after_start(Duration::from_secs(10_000));
    let mut book = Book::new(rules, dice.bits(), start);
    (book.watchful, book.mixed) = (manner.most <= 16, manner.presets.len() > 1);
    let mut walk = Walk { book, dice, manner, next: 0, log: 0 };
    while walk.book.tally.events < events {
        walk.step().map_err(|why| {
            let view = walk.book.gate.view(6, walk.book.now);
            let book = &walk.book;
            format!("{why}\nevent {}, {:?}, {:?}\n{view:#?}", book.tally.events, book.now, book.rules)
        })?;
    }
    walk.ends()?;
    Ok((walk.book.tally, walk.log))
}

fn any_rules(dice: &mut SeededDice) -> Rules {
    let mut is_on = |share: f64| dice.share() < share;
    Rules {
        completions: is_on(0.9),
        room: is_on(0.9),
        random: is_on(0.9),
        rate: is_on(0.9),
        suspicion: is_on(0.8),
        recovery: is_on(0.8),
        presumption: is_on(0.5),
        max_running: if is_on(0.3) { Some([1, 3, 8][pick(dice, 3)]) } else { None },
    }
}

fn pick(dice: &mut SeededDice, from: usize) -> usize {
    usize::try_from(dice.bits() % from as u64).unwrap_or(0)
}

impl Manner {
    fn any(dice: &mut SeededDice) -> Self {
        const BUDGETS: [&[Option<u32>]; 4] =
            [&[None], &[Some(40)], &[Some(3), Some(8)], &[None, Some(3), Some(8), Some(40), Some(60)]];
        const PRESETS: [&[Preset]; 4] =
            [&[Preset::Interactive], &[Preset::Interactive], &[Preset::Strict], &Preset::ALL];
        Self {
            presets: PRESETS[pick(dice, 4)],
            budgets: BUDGETS[pick(dice, 4)],
            sessions: [Some(1), Some(2), Some(4), Some(12), None][pick(dice, 5)],
            most: [6, 16, 16, 60, 150][pick(dice, 5)],
            plain: [0.0, 0.0, 0.2, 0.6][pick(dice, 4)],
            rate: [0.0, 0.0, 0.05, 0.5][pick(dice, 4)],
            told: [0.0, 0.05, 0.3][pick(dice, 3)],
            floor: [0.0, 0.3][pick(dice, 2)],
            endless: [0.0, 0.5, 1.0][pick(dice, 3)],
            own_wait: [0.0, 0.2][pick(dice, 2)],
            good: dice.share(),
            places: [None, None, Some(2), Some(8)][pick(dice, 4)],
            busy: 0.3 * dice.share(),
        }
    }
}

impl Walk {
    fn chance(&mut self, share: f64) -> bool {
        self.dice.share() < share
    }

    /// Up to so many seconds.
    fn seconds(&mut self, most: f64) -> Duration {
        self.dice.up_to(Duration::from_secs_f64(most))
    }

    fn step(&mut self) -> Kept {
        let before = self.book.tally.events;
        match self.dice.share() {
            r if r < self.manner.busy => self.arrives()?,
            r if r < 0.95 => self.something()?,
            r if r < 0.952 => self.book.ask_now(),
            r if r < 0.96 => self.stray()?,
            r if r < 0.97 => {
                self.manner.good = [0.0, 0.3, 0.9, 1.0][pick(&mut self.dice, 4)];
                self.manner.busy = [0.03, 0.1, 0.3][pick(&mut self.dice, 3)];
            }
            r if r < 0.98 => self.book.keeps_what_it_learned()?,
            r if r < 0.99 => {
                let most = pick(&mut self.dice, 20);
                self.book.shows_what_is(most)?;
                self.book.tally.random += u32::from(self.book.gate.view(0, self.book.now).random);
            }
            _ => {}
        }
        // Several things may happen in one moment, before the gate is asked.
        if self.book.tally.events > before && self.chance(0.9) {
            self.drain()?;
        }
        self.time_passes()
    }

    fn drain(&mut self) -> Kept {
        let sends = self.book.tally.sends;
        self.book.drain()?;
        let said = u64::from(self.book.tally.sends - sends);
        self.log = self.log.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(said) ^ self.log.rotate_left(17);
        for by in self.book.tally.by {
            self.log = self.log.rotate_left(7).wrapping_add(u64::from(by));
        }
        Ok(())
    }

    /// The clock goes on, or stands still, or jumps; whoever's time is up is taken out.
    fn time_passes(&mut self) -> Kept {
        let step = match self.dice.share() {
            r if r < 0.35 => Duration::ZERO,
            r if r < 0.75 => self.seconds(0.3),
            r if r < 0.97 => self.seconds(3.0),
            r if r < 0.998 => self.seconds(40.0),
            _ => self.seconds(20_000.0),
        };
        let until = self.book.now + step;
        loop {
            let expired = self.book.deadlines.first().copied().filter(|(deadline, _)| *deadline <= until);
            let goal = expired.map_or(until, |(deadline, _)| deadline);
            if self.chance(0.5) {
                self.book.rests_until(goal)?;
            }
            if self.book.now > goal {
                return Err("the clock of a walk runs backwards".to_owned());
            }
            self.book.now = goal;
            if let Some((_, call)) = expired {
                self.book.tally.expired += 1;
                self.book.left(call, false)?;
            } else {
                return if step.is_zero() { Ok(()) } else { self.drain() };
            }
        }
    }

    fn arrives(&mut self) -> Kept {
        if self.book.waiting() >= self.manner.most {
            return Ok(());
        }
        let (call, now) = (self.next, self.book.now);
        self.next += 1;
        let session = self.manner.sessions.map_or(call, |most| self.dice.bits() % most);
        let budget = self.manner.budgets[pick(&mut self.dice, self.manner.budgets.len())];
        let endless = self.manner.endless;
        let deadline = if self.chance(endless) { None } else { Some(now + self.seconds(200.0)) };
        let (plain, own_wait) = (self.manner.plain, self.manner.own_wait);
        let since = if self.chance(0.1) { now - self.seconds(60.0) } else { now };
        let arrival = Arrival {
            call: CallId(call),
            session,
            since,
            deadline: deadline.filter(|deadline| *deadline > now),
            preset: self.manner.presets[pick(&mut self.dice, self.manner.presets.len())],
            weight: [1.0, 1.0, 1.0, 0.5, 3.0][pick(&mut self.dice, 5)],
            sends: match budget {
                Some(most) if self.chance(0.1) => {
                    u32::try_from(pick(&mut self.dice, most as usize)).unwrap_or(0)
                }
                Some(_) | None => 0,
            },
            budget,
            not_before: if self.chance(own_wait) { Some(now + self.seconds(20.0)) } else { None },
            streams: self.chance(0.8),
            plain: self.chance(plain),
        };
        self.book.arrive(arrival)
    }

    /// A call, whichever, by its number.
    fn someone(&mut self) -> Option<Known> {
        let (first, last) = (self.book.calls.first_key_value()?.0.0, self.book.calls.last_key_value()?.0.0);
        let from = CallId(first + self.dice.bits() % (last - first + 1));
        self.book.calls.range(from..).next().map(|(_, known)| known.clone())
    }

    /// What can happen to a call where it is.
    fn something(&mut self) -> Kept {
        let Some(known) = self.someone() else { return Ok(()) };
        let call = known.arrival.call;
        match known.state {
            State::Waits if self.chance(0.03) => self.book.left(call, false),
            State::Waits => Ok(()),
            State::Runs if self.chance(0.05) => {
                let refusal = self.refusal();
                self.book.refused_late(call, refusal)
            }
            State::Runs if self.chance(0.3) => self.book.left(call, false),
            State::Runs => Ok(()),
            State::Sent { at, .. } if at == self.book.now && self.chance(0.1) => self.book.left(call, true),
            State::Sent { .. } => self.comes_back(&known),
        }
    }

    fn comes_back(&mut self, known: &Known) -> Kept {
        let call = known.arrival.call;
        let good = match self.manner.places {
            Some(places) => f64::from(u8::from(self.book.running < places)),
            None => self.manner.good,
        };
        match self.dice.share() {
            r if r < 0.1 => self.book.heard(call),
            r if r < 0.2 => Ok(()),
            r if r < 0.24 => self.book.left(call, false),
            r if r < 0.30 => {
                let back = self.back(known);
                self.book.settled(call, Report::Other, back)
            }
            _ if self.chance(good) => self.book.accepted(call),
            _ => {
                let (refusal, back) = (self.refusal(), self.back(known));
                self.book.settled(call, Report::Refused(refusal), back)
            }
        }
    }

    /// Who may be sent again comes back, as a rule.
    fn back(&mut self, known: &Known) -> Option<Moment> {
        let now = self.book.now;
        let spent = known.arrival.budget.is_some_and(|most| known.sends >= most)
            || known.arrival.deadline.is_some_and(|deadline| now >= deadline);
        if spent || self.chance(0.03) {
            return None;
        }
        let own_wait = self.manner.own_wait;
        Some(if self.chance(own_wait) { now + self.seconds(10.0) } else { now })
    }

    fn refusal(&mut self) -> Refusal {
        const FAULTS: [Fault; 3] = [Fault::AtCapacity, Fault::Overloaded, Fault::ModelLoading];
        let Manner { rate, told, floor, .. } = self.manner;
        Refusal {
            class: if self.chance(rate) {
                Class::Rate
            } else {
                Class::Capacity(FAULTS[pick(&mut self.dice, FAULTS.len())])
            },
            told: if self.chance(told) { Some(self.seconds(12.0)) } else { None },
            floor: if self.chance(floor) { self.seconds(2.0) } else { Duration::ZERO },
            first_wait: Duration::from_millis([500, 1000, 4000][pick(&mut self.dice, 3)]),
        }
    }

    /// What cannot be said of a call changes nothing.
    fn stray(&mut self) -> Kept {
        let Some(known) = self.someone() else { return Ok(()) };
        let (now, gone) = (self.book.now, CallId(self.next + 7));
        let gate = &mut self.book.gate;
        let before = (gate.view(usize::MAX, now), gate.learned());
        let refusal = Report::Refused(Refusal {
            class: Class::Capacity(Fault::AtCapacity),
            told: Some(Duration::from_secs(900)),
            floor: Duration::ZERO,
            first_wait: Duration::ZERO,
        });
        let settled = relay_core::gate::Settled { report: refusal, back: Some(now) };
        for call in [gone, known.arrival.call] {
            let is_sent = call != gone && matches!(known.state, State::Sent { .. });
            if !is_sent {
                gate.accepted(call, now);
                gate.heard(call);
                gate.settled(call, settled, now, &mut self.dice);
            }
        }
        gate.left(gone, true, now);
        let after = (gate.view(usize::MAX, now), gate.learned());
        law(before == after, "what cannot be said of a call changes nothing")
    }

    /// Everybody leaves, and nothing is left.
    fn ends(&mut self) -> Kept {
        for call in self.book.calls.keys().copied().collect::<Vec<_>>() {
            law(!self.book.gate.is_idle(), "who is there is there")?;
            self.book.left(call, false)?;
        }
        law(self.book.gate.is_idle() && self.book.gate.waiting() == 0, "nobody is left behind")?;
        self.book.drain()?;
        let view = self.book.gate.view(9, self.book.now);
        law(view.pending == 0 && view.running == 0 && view.line.is_empty(), "nothing is left behind")
    }
}
