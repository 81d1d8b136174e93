//! What the capacity gate of one lane costs with many calls in it: time per event with the poll that follows, and
//! memory per call that waits. No socket, no runtime: the gate alone.

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use relay_core::event::CallId;
use relay_core::gate::{Arrival, Class, Gate, Poll, Preset, Reason, Refusal, Report, Rules, Settled};
use relay_core::{Fault, Moment, SeededDice};

use crate::report::percentile;

const SIZES: [u64; 4] = [100, 1000, 10_000, 100_000];

/// So often each event is measured.
const TIMES: usize = 4000;

/// From a hundred calls to ten thousand, an event may become as much dearer as the logarithm does, twice.
const GROWTH: f64 = 4.0;
const KIB_PER_CALL: f64 = 8.0;
const P99_MS: f64 = 1.0;

/// What a lane with many calls is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// A shut lane, and all that wait are one session's.
    OneSession,
    /// A shut lane, and each that waits is its own session.
    OwnSessions,
    /// A server of one's own with so many places, all taken.
    Places,
    /// An open lane, and all calls are under way without a sign.
    UnderWay,
    /// A shut lane in which all calls were let follow and are under way without a sign.
    Follow,
}

const CASES: [(Case, &str); 5] = [
    (Case::OneSession, "shut, one session waits"),
    (Case::OwnSessions, "shut, many sessions wait"),
    (Case::Places, "own server, 64 places"),
    (Case::UnderWay, "open, all under way"),
    (Case::Follow, "shut, all under way"),
];

/// Nanoseconds of each event.
type Times = BTreeMap<&'static str, Vec<f64>>;

/// Measures all cases and prints the table.
#[expect(clippy::print_stdout, reason = "the table is what was asked for")]
pub(crate) fn run() -> Result<()> {
    println!(
        "{:<26} {:<16} {:>9} {:>9} {:>9} {:>9}  p99 of the most, us",
        "ns per event and poll", "", 100, 1000, 10_000, 100_000
    );
    let mut missed = memory()?;
    for (case, name) in CASES {
        let sizes: Vec<Times> = SIZES.iter().map(|size| measure(case, *size)).collect();
        for event in sizes[0].keys() {
            let medians: Vec<f64> = sizes
                .iter()
                .map(|times| percentile(&mut times.get(event).cloned().unwrap_or_default(), 0.5))
                .collect();
            let p99 = percentile(&mut sizes[3].get(event).cloned().unwrap_or_default(), 0.99) / 1000.0;
            let cells: Vec<String> = medians.iter().map(|median| format!("{median:>9.0}")).collect();
            println!("{name:<26} {event:<16} {}  {p99:.1}", cells.join(" "));
            if medians[2] > GROWTH * medians[0].max(200.0) || p99 > P99_MS * 1000.0 {
                missed.push(format!("{name}: {event}"));
            }
        }
    }
    ensure!(missed.is_empty(), "goals were missed: {}", missed.join(", "));
    Ok(())
}

/// A lane with its clock.
struct Lane {
    gate: Gate,
    dice: SeededDice,
    now: Moment,
    next: u64,
    case: Case,
    /// Those that have a place, the first of them first.
    running: VecDeque<CallId>,
}

const REFUSAL: Refusal = Refusal {
    class: Class::Capacity(Fault::AtCapacity),
    told: None,
    floor: Duration::ZERO,
    first_wait: Duration::from_secs(1),
};

impl Lane {
    /// A lane with so many calls in it.
    fn with(case: Case, size: u64, times: &mut Times) -> Self {
        let max_running = (case == Case::Places).then_some(64);
        let mut lane = Self {
            gate: Gate::new(Rules { max_running, ..Rules::default() }),
            dice: SeededDice::new(3),
            now: Moment::after_start(Duration::from_secs(1000)),
            next: 0,
            case,
            running: VecDeque::new(),
        };
        match case {
            Case::OneSession | Case::OwnSessions | Case::Follow => lane.shut(),
            Case::Places | Case::UnderWay => {}
        }
        for number in 0..size {
            if case == Case::UnderWay {
                let mut calls = Times::new();
                let times = if number + 2000 < size { &mut calls } else { &mut *times };
                if let Some(call) = lane.timed(times, "is sent", |lane| _ = lane.arrive()) {
                    lane.gate.heard(call);
                }
                lane.passes(20_000);
            } else {
                lane.arrive();
                lane.sends();
            }
        }
        if case == Case::Follow {
            lane.let_follow();
        }
        lane
    }

    /// Two calls of different sessions are refused; they stay away.
    fn shut(&mut self) {
        let calls = [self.arrive(), self.arrive()];
        self.sends();
        self.passes(200_000);
        for call in calls {
            self.settled(call, Report::Refused(REFUSAL), None);
        }
    }

    /// Probes are accepted, and a few of those that follow, until nobody waits; nothing is heard of the others.
    fn let_follow(&mut self) {
        loop {
            match self.gate.poll(self.now, &mut self.dice) {
                Poll::Send(call) => {
                    if self.gate.reason(call) == Some(Reason::Timer) || call.0.is_multiple_of(20) {
                        self.passes(50_000);
                        self.gate.accepted(call, self.now);
                    }
                }
                Poll::Wait(at) => self.now = at,
                Poll::Idle => return,
            }
        }
    }

    const fn passes(&mut self, micros: u64) {
        self.now = Moment::after_start(self.now.since_start().saturating_add(Duration::from_micros(micros)));
    }

    fn arrive(&mut self) -> CallId {
        self.next += 1;
        let call = CallId(self.next);
        let arrival = Arrival {
            call,
            session: if self.case == Case::OneSession && self.next > 2 { 0 } else { self.next },
            since: self.now,
            deadline: Some(self.now + Duration::from_secs(600)),
            preset: Preset::Interactive,
            weight: 1.0,
            sends: 0,
            budget: Some(40),
            not_before: None,
            streams: self.case != Case::Follow,
            plain: false,
        };
        self.gate.arrive(arrival, self.now);
        call
    }

    fn settled(&mut self, call: CallId, report: Report, back: Option<Moment>) {
        self.gate.settled(call, Settled { report, back }, self.now, &mut self.dice);
    }

    /// Polls until nothing more is sent; accepts it at once where the lane has stated places.
    fn sends(&mut self) -> Vec<CallId> {
        let mut sent = Vec::new();
        while let Poll::Send(call) = self.gate.poll(self.now, &mut self.dice) {
            if self.case == Case::Places {
                self.gate.accepted(call, self.now);
                self.running.push_back(call);
            }
            sent.push(call);
        }
        sent
    }

    /// Goes on until something is sent.
    fn next_send(&mut self) -> Option<CallId> {
        for _ in 0..100 {
            match self.gate.poll(self.now, &mut self.dice) {
                Poll::Send(call) => return Some(call),
                Poll::Wait(at) => self.now = at,
                Poll::Idle => return None,
            }
        }
        None
    }

    /// An event and the poll after it, timed. What the poll sends is returned.
    fn timed(
        &mut self,
        times: &mut Times,
        event: &'static str,
        happens: impl FnOnce(&mut Self),
    ) -> Option<CallId> {
        let start = Instant::now();
        happens(self);
        let poll = black_box(self.gate.poll(self.now, &mut self.dice));
        times.entry(event).or_default().push(start.elapsed().as_nanos() as f64);
        match poll {
            Poll::Send(call) => Some(call),
            Poll::Wait(_) | Poll::Idle => None,
        }
    }
}

fn measure(case: Case, size: u64) -> Times {
    let mut times = Times::new();
    let mut lane = Lane::with(case, size, &mut times);
    for round in 0..TIMES {
        lane.passes(10);
        // One comes and one that waits goes, so that as many stay.
        let mut came = CallId(0);
        let sent = lane.timed(&mut times, "arrives", |lane| came = lane.arrive());
        if let Some(call) = sent {
            lane.gate.heard(call);
        }
        if !matches!(case, Case::UnderWay | Case::Follow) || round % 2 == 0 {
            lane.timed(&mut times, "leaves", |lane| lane.gate.left(came, false, lane.now));
        }
        match case {
            Case::OneSession | Case::OwnSessions | Case::Follow | Case::UnderWay => {
                asks(&mut lane, &mut times, round)
            }
            Case::Places => {
                let Some(oldest) = lane.running.pop_front() else { continue };
                let sent = lane.timed(&mut times, "ends", |lane| lane.gate.left(oldest, false, lane.now));
                if let Some(call) = sent {
                    lane.timed(&mut times, "is accepted", |lane| lane.gate.accepted(call, lane.now));
                    lane.running.push_back(call);
                }
                lane.arrive();
            }
        }
    }
    times
}

/// A call is sent, and is refused or accepted; another one comes for it.
fn asks(lane: &mut Lane, times: &mut Times, round: usize) {
    let Some(call) = lane.next_send() else {
        lane.arrive();
        return;
    };
    lane.passes(200_000);
    let now = lane.now;
    match round % 8 {
        0 => {
            lane.timed(times, "is accepted", |lane| lane.gate.accepted(call, now));
            lane.timed(times, "ends", |lane| lane.gate.left(call, false, now));
            lane.arrive();
        }
        1 => {
            let refusal = Refusal { class: Class::Rate, ..REFUSAL };
            lane.timed(times, "meets a rate", |lane| lane.settled(call, Report::Refused(refusal), Some(now)));
        }
        _ => {
            lane.timed(times, "is refused", |lane| lane.settled(call, Report::Refused(REFUSAL), Some(now)));
        }
    }
}

/// What a call takes: resident memory before and after a lane fills. Returns what is more than it may be. It comes
/// first, and no lane is dropped before all are measured: memory that was given back would be used again.
#[expect(clippy::print_stdout, reason = "the table is what was asked for")]
fn memory() -> Result<Vec<String>> {
    let (mut lanes, mut missed) = (Vec::new(), Vec::new());
    for (case, name) in CASES {
        let before = resident_kib()?;
        lanes.push(Lane::with(case, SIZES[3], &mut Times::new()));
        let kib = (resident_kib()? - before) / SIZES[3] as f64;
        println!("{name:<26} {:.0} bytes per call", kib * 1024.0);
        if kib > KIB_PER_CALL {
            missed.push(format!("{name}: memory"));
        }
    }
    drop(black_box(lanes));
    Ok(missed)
}

fn resident_kib() -> Result<f64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("only Linux tells what a program holds")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? as f64)
}
