//! What a lane as a whole does, event by event.

mod parked;
mod shut;

use super::numbers::span;
use super::poll::UNHEARD;
use super::*;
use crate::dice::SeededDice;

/// A lane, and a clock that only goes on when it is told to.
struct Lane {
    gate: Gate,
    dice: SeededDice,
    now: Moment,
}

const HOUR: f64 = 3600.0;

fn lane(rules: Rules) -> Lane {
    Lane { gate: Gate::new(rules), dice: SeededDice::new(5), now: Moment::after_start(span(1000.0)) }
}

/// Nothing is presumed and nothing suspected, so that each thing stands alone.
fn plain_rules() -> Rules {
    Rules { presumption: false, suspicion: false, ..Rules::default() }
}

fn arrival(call: u64, session: u64, now: Moment) -> Arrival {
    Arrival {
        call: CallId(call),
        session,
        since: now,
        deadline: None,
        preset: Preset::Interactive,
        weight: 1.0,
        sends: 0,
        budget: None,
        not_before: None,
        streams: true,
        plain: false,
    }
}

const REFUSAL: Refusal = Refusal {
    class: Class::Capacity(Fault::AtCapacity),
    told: None,
    floor: Duration::ZERO,
    first_wait: Duration::from_secs(1),
};

impl Lane {
    fn passes(&mut self, seconds: f64) {
        self.now = self.now + span(seconds);
    }

    fn arrive(&mut self, call: u64, session: u64) {
        self.gate.arrive(arrival(call, session, self.now), self.now);
    }

    fn poll(&mut self) -> Poll {
        self.gate.poll(self.now, &mut self.dice)
    }

    /// All that are sent now, and why.
    fn sent(&mut self) -> Vec<(u64, Reason)> {
        std::iter::from_fn(|| match self.gate.poll(self.now, &mut self.dice) {
            Poll::Send(call) => Some((call.0, self.gate.reason(call).unwrap())),
            Poll::Wait(_) | Poll::Idle => None,
        })
        .collect()
    }

    fn refused(&mut self, call: u64, refusal: Refusal) {
        let settled = Settled { report: Report::Refused(refusal), back: Some(self.now) };
        self.gate.settled(CallId(call), settled, self.now, &mut self.dice);
    }

    fn accepted(&mut self, call: u64) {
        self.gate.accepted(CallId(call), self.now);
    }

    fn left(&mut self, call: u64) {
        self.gate.left(CallId(call), false, self.now);
    }

    /// Calls from 1 on, each its own session, are sent and refused until the lane is shut.
    fn shut(&mut self, calls: u64) {
        for call in 1..=calls {
            self.arrive(call, call);
        }
        assert_eq!(self.sent().len() as u64, calls);
        self.passes(0.2);
        for call in 1..=calls {
            self.refused(call, REFUSAL);
        }
        assert!(self.gate.shut().is_some());
    }

    /// Goes on to the next probe.
    fn probe(&mut self) -> u64 {
        self.now = self.gate.view(0, self.now).next.unwrap();
        let sent = self.sent();
        assert!(matches!(sent[..], [(_, Reason::Timer)]), "{sent:?}");
        sent[0].0
    }

    fn is_open(&self) -> bool {
        self.gate.shut().is_none()
    }

    /// The lane has found out that it refuses at random.
    fn is_random(&mut self) {
        self.gate.judgement.ends = Share { yes: 8.0, all: 10.0 };
        assert!(self.gate.is_random());
    }
}

// ---- what shuts a lane ----

#[test]
fn two_sessions_in_a_row_shut_a_lane_and_one_does_not() {
    let mut lane = lane(plain_rules());
    lane.arrive(9, 9);
    lane.sent();
    for call in 1..=5 {
        lane.arrive(call, 1);
        assert_eq!(lane.sent(), [(call, Reason::Open)]);
        lane.refused(call, REFUSAL);
        lane.left(call);
        assert!(lane.is_open(), "all of one session");
    }
    lane.refused(9, REFUSAL);
    assert_eq!(lane.gate.shut(), Some((Shut::Refused(Fault::AtCapacity), lane.now)));
}

#[test]
fn a_session_that_is_alone_shuts_a_lane_by_itself() {
    let mut lane = lane(plain_rules());
    lane.arrive(1, 1);
    for _ in 0..2 {
        assert!(lane.is_open());
        lane.passes(10.0);
        assert_eq!(lane.sent().len(), 1);
        lane.refused(1, REFUSAL);
    }
    assert!(!lane.is_open());
}

#[test]
fn an_acceptance_between_two_refusals_keeps_a_lane_open() {
    let mut lane = lane(plain_rules());
    for call in 1..=3 {
        lane.arrive(call, call);
        lane.passes(0.01);
        lane.sent();
    }
    lane.refused(1, REFUSAL);
    lane.accepted(2);
    lane.refused(3, REFUSAL);
    assert!(lane.is_open());
}

#[test]
fn sends_that_a_shut_lane_would_have_refused_by_now_keep_it_open() {
    for (silent, shuts) in [(0, true), (1, false)] {
        let mut lane = lane(plain_rules());
        lane.arrive(1, 1);
        for call in 3..3 + silent {
            lane.arrive(call, call);
        }
        lane.sent();
        lane.passes(0.2);
        lane.refused(1, REFUSAL);
        lane.left(1);
        lane.passes(1.0);
        lane.arrive(2, 2);
        lane.sent();
        lane.passes(0.2);
        lane.refused(2, REFUSAL);
        assert_eq!(!lane.is_open(), shuts, "{silent} silent");
    }
}

#[test]
fn a_stale_refusal_changes_nothing_but_its_own_wait() {
    let mut lane = lane(plain_rules());
    lane.arrive(10, 10);
    lane.sent();
    lane.passes(0.1);
    lane.shut(3);
    let asks = lane.probe();
    lane.accepted(asks);
    let follows = lane.sent();
    assert_eq!(follows.len(), 2);
    lane.passes(0.1);
    let before = (lane.gate.shut, lane.gate.run, lane.gate.ramp);
    lane.refused(10, REFUSAL);
    let after = (lane.gate.shut, lane.gate.run, lane.gate.ramp);
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    // While the lane is open, it is the same.
    for (call, _) in follows {
        lane.accepted(call);
    }
    lane.passes(20.0);
    lane.sent();
    assert!(lane.is_open());
    lane.arrive(20, 20);
    lane.arrive(21, 21);
    lane.sent();
    lane.passes(0.1);
    lane.arrive(22, 22);
    lane.sent();
    lane.accepted(22);
    for call in [20, 21] {
        lane.refused(call, REFUSAL);
    }
    assert!(lane.is_open() && !lane.gate.run.is_long());
}

#[test]
fn silence_shuts_a_lane_where_a_first_byte_would_have_told() {
    for (heard, streams, shuts) in [(false, true, true), (true, true, false), (false, false, false)] {
        let mut lane = lane(Rules::default());
        lane.gate.arrive(Arrival { streams, ..arrival(1, 1, lane.now) }, lane.now);
        lane.sent();
        if heard {
            lane.gate.heard(CallId(1));
        }
        lane.passes(3.9);
        lane.arrive(2, 2);
        assert_eq!(lane.sent(), [(2, Reason::Open)]);
        lane.passes(0.2);
        lane.arrive(3, 3);
        let sent = lane.sent();
        assert_eq!(sent.is_empty(), shuts, "heard {heard}, streams {streams}");
        assert_eq!(lane.gate.shut().map(|shut| shut.0), shuts.then_some(Shut::Slow));
    }
    let mut lane = lane(Rules { suspicion: false, ..Rules::default() });
    lane.arrive(1, 1);
    lane.sent();
    lane.passes(HOUR);
    lane.arrive(2, 2);
    assert_eq!(lane.sent(), [(2, Reason::Open)]);
}

#[test]
fn silence_before_the_last_acceptance_is_nobody_s_fault() {
    let mut lane = lane(Rules::default());
    lane.arrive(1, 1);
    lane.sent();
    lane.passes(1.0);
    lane.arrive(2, 2);
    lane.sent();
    lane.accepted(2);
    lane.passes(60.0);
    lane.arrive(3, 3);
    assert_eq!(lane.sent(), [(3, Reason::Open)]);
}

#[test]
fn a_lane_that_is_full_again_is_shut_before_it_refuses() {
    let full = |rules: Rules| {
        let mut lane = lane(rules);
        lane.gate.room.full_at(3, lane.now);
        lane.gate.completions_accepted = 3;
        lane.gate.judgement.after_completion = Share { yes: 0.0, all: 40.0 };
        for call in 1..=4 {
            lane.arrive(call, call);
            lane.sent();
            lane.accepted(call);
        }
        lane
    };
    let mut lane = full(plain_rules());
    assert_eq!(lane.gate.shut().map(|shut| shut.0), Some(Shut::Full));
    assert!(lane.gate.waits(CallId(4)));
    lane.left(1);
    assert_eq!(lane.sent(), [(4, Reason::Completion)]);
    lane.accepted(4);
    assert_eq!(lane.sent(), []);
    assert!(lane.is_open(), "nobody waits, and it accepted last");
    assert!(full(Rules { room: false, ..plain_rules() }).is_open());
}

#[test]
fn a_late_refusal_counts_for_its_session_as_it_is_now() {
    let mut lane = lane(plain_rules());
    for call in 1..=3 {
        lane.arrive(call, 1 + call / 3);
        lane.sent();
        lane.accepted(call);
    }
    for (call, open) in [(1, true), (2, true), (3, false)] {
        lane.passes(1.0);
        lane.gate.refused_late(CallId(call), REFUSAL, lane.now, &mut lane.dice);
        assert_eq!(lane.is_open(), open, "call {call}");
    }
    assert!(lane.gate.is_idle(), "their calls are over");
    assert_eq!(lane.gate.refusal_takes.count, 0, "it says nothing of how long a refusal takes");
}

// ---- paces, rates, holds and floors ----

#[test]
fn ten_are_sent_at_once_and_what_is_accepted_makes_room_for_more() {
    let mut lane = lane(plain_rules());
    for call in 1..=30 {
        lane.arrive(call, call);
    }
    assert_eq!(lane.sent().len(), 10);
    for call in 1..=4 {
        lane.accepted(call);
    }
    assert_eq!(lane.sent().len(), 4);
    lane.left(5);
    assert_eq!(lane.sent().len(), 1, "one that is gone is no burst");
    let other = Settled { report: Report::Other, back: None };
    lane.gate.settled(CallId(6), other, lane.now, &mut lane.dice);
    assert_eq!(lane.sent().len(), 1, "nor is one that was answered for good");
    lane.refused(7, REFUSAL);
    assert_eq!(lane.sent(), [], "a refusal is");
}

#[test]
fn a_rate_limit_neither_shuts_nor_puts_its_call_off() {
    let mut lane = lane(plain_rules());
    for call in 1..=6 {
        lane.arrive(call, call);
    }
    lane.sent();
    lane.passes(0.2);
    for call in 1..=6 {
        lane.refused(call, Refusal { class: Class::Rate, ..REFUSAL });
    }
    assert!(lane.is_open() && lane.gate.line.ready() == 6);
    assert_eq!((lane.gate.view(0, lane.now).rate, lane.sent()), (Some(1.0), vec![]));
    assert_eq!(lane.poll(), Poll::Wait(lane.now + span(1.0)));
    lane.passes(1.0);
    assert_eq!(lane.sent().len(), 1);
    let mut other = self::lane(Rules { rate: false, ..plain_rules() });
    for call in 1..=2 {
        other.arrive(call, call);
    }
    other.sent();
    for call in 1..=2 {
        other.refused(call, Refusal { class: Class::Rate, ..REFUSAL });
    }
    assert_eq!(other.gate.shut().map(|shut| shut.0), Some(Shut::Refused(Fault::Throttled)));
}

#[test]
fn what_the_upstream_asks_of_one_holds_for_all_and_is_never_shortened() {
    let mut lane = lane(plain_rules());
    for call in 1..=3 {
        lane.arrive(call, call);
    }
    lane.sent();
    let told = |seconds| Refusal { told: Some(Duration::from_secs(seconds)), ..REFUSAL };
    lane.refused(1, told(30));
    let hold = lane.gate.hold(lane.now).unwrap();
    assert!((30.0..30.56).contains(&hold.since(lane.now).as_secs_f64()));
    lane.refused(2, told(2));
    assert_eq!(lane.gate.hold(lane.now), Some(hold));
    lane.arrive(4, 4);
    assert_eq!(lane.poll(), Poll::Wait(hold));
    lane.now = hold;
    assert!(!lane.sent().is_empty());
    assert_eq!(lane.gate.hold(lane.now), None);
}

#[test]
fn nobody_takes_a_place_before_its_floor() {
    let mut lane = lane(plain_rules());
    lane.is_random();
    lane.arrive(1, 1);
    lane.arrive(2, 2);
    lane.arrive(3, 3);
    lane.sent();
    lane.accepted(3);
    let floor = Duration::from_secs(9);
    lane.refused(1, Refusal { floor, ..REFUSAL });
    let asked_for = lane.now + floor;
    let later = lane.now + Duration::from_secs(20);
    let settled = Settled { report: Report::Other, back: Some(later) };
    lane.gate.settled(CallId(2), settled, lane.now, &mut lane.dice);
    lane.left(3);
    assert!(lane.gate.completions.may_send());
    assert_eq!(lane.poll(), Poll::Wait(asked_for));
    lane.now = asked_for;
    assert_eq!(lane.sent(), [(1, Reason::Completion)]);
    // The gate's own wait is another matter: whoever was tried least takes the place.
    lane.refused(1, REFUSAL);
    assert_eq!(lane.gate.line.ready(), 0);
    lane.gate.completions.each = 1.0;
    lane.gate.completions.ended_while_random();
    assert_eq!(lane.sent(), [(1, Reason::Completion)]);
}

#[test]
fn a_person_is_shown_when_the_next_call_goes() {
    let mut lane = lane(plain_rules());
    let next = |lane: &mut Lane| lane.gate.view(0, lane.now).next;
    assert_eq!(next(&mut lane), None, "nobody waits");
    lane.shut(2);
    let probe = next(&mut lane).unwrap();
    assert!(probe > lane.now && probe <= lane.now + REFUSAL.first_wait);
    lane.gate.hold = lane.now + span(60.0);
    assert_eq!(next(&mut lane), Some(lane.gate.hold), "the hold is longer");
    lane.passes(61.0);
    let asks = next(&mut lane).unwrap();
    assert!(asks <= lane.now, "it is due");
    lane.left(1);
    lane.left(2);
    let own = lane.now + span(200.0);
    lane.gate.arrive(Arrival { not_before: Some(own), ..arrival(3, 3, lane.now) }, lane.now);
    assert_eq!(next(&mut lane), Some(own), "the only one waits by itself");
}

// ---- plain calls, places, and a person who asks ----

#[test]
fn a_plain_call_is_held_by_a_lack_of_places_alone() {
    let mut lane = lane(Rules { max_running: Some(3), ..plain_rules() });
    lane.shut(2);
    lane.gate.hold = lane.now + Duration::from_secs(600);
    lane.passes(1.0);
    let plain = |call, lane: &Lane| Arrival { plain: true, ..arrival(call, call, lane.now) };
    for call in 10..14 {
        lane.gate.arrive(plain(call, &lane), lane.now);
    }
    let sent = lane.sent();
    assert_eq!(sent, [(10, Reason::Plain), (11, Reason::Plain), (12, Reason::Plain)]);
    assert_eq!(lane.poll(), Poll::Idle);
    lane.refused(10, Refusal { told: Some(Duration::from_secs(900)), ..REFUSAL });
    assert_eq!(lane.sent(), [(10, Reason::Plain)], "its refusal told the lane nothing");
    lane.left(11);
    assert_eq!(lane.sent(), [(13, Reason::Plain)]);
    assert_eq!(lane.gate.hold(lane.now), Some(lane.now + span(599.0)));
}

#[test]
fn a_pause_of_an_hour_is_asked_about_after_ten_minutes() {
    let mut lane = lane(plain_rules());
    lane.gate.arrive(arrival(1, 1, lane.now), lane.now);
    assert_eq!(lane.sent(), [(1, Reason::Open)]);
    let told = Some(Duration::from_secs(3600));
    lane.refused(1, Refusal { told, ..REFUSAL });
    let hold = lane.gate.hold(lane.now).unwrap().since(lane.now);
    assert!((600..=601).contains(&hold.as_secs()), "{hold:?}");
}

#[test]
fn a_person_who_asks_while_nobody_waits_ends_a_pause() {
    let mut lane = lane(plain_rules());
    lane.gate.hold = lane.now + Duration::from_secs(600);
    assert!(!lane.gate.ask_now());
    lane.arrive(1, 1);
    assert_eq!(lane.sent(), [(1, Reason::Open)]);
}

#[test]
fn a_person_who_asks_gets_one_send_whatever_holds_it() {
    let mut lane = lane(plain_rules());
    lane.shut(3);
    lane.gate.hold = lane.now + Duration::from_secs(600);
    lane.gate.ask_now();
    let sent = lane.sent();
    assert!(matches!(sent[..], [(_, Reason::Timer)]), "{sent:?}");
    assert_eq!(lane.sent(), []);
    // Who is not there any more cannot be sent, and nobody goes in its place later.
    for call in 1..=3 {
        lane.left(call);
    }
    lane.gate.ask_now();
    lane.arrive(4, 4);
    assert_eq!(lane.sent(), []);
    lane.gate.ask_now();
    lane.left(4);
    assert_eq!(lane.poll(), Poll::Idle);
    lane.arrive(5, 5);
    assert_eq!(lane.sent(), []);
}

#[test]
fn asking_teaches_an_open_lane_nothing_about_recoveries() {
    let mut lane = lane(plain_rules());
    lane.shut(2);
    let asks = lane.probe();
    lane.accepted(asks);
    for (call, _) in lane.sent() {
        lane.passes(0.1);
        lane.accepted(call);
    }
    assert_eq!((lane.sent().len(), lane.is_open()), (0, true));
    let before = lane.gate.learned();
    lane.passes(5.0 * HOUR);
    lane.gate.hold = lane.now + Duration::from_secs(60);
    lane.arrive(9, 9);
    assert_eq!(lane.sent(), []);
    lane.gate.ask_now();
    assert_eq!(lane.sent(), [(9, Reason::Open)]);
    lane.accepted(9);
    assert_eq!(lane.gate.learned(), before);
}

#[test]
fn a_small_budget_is_spent_on_probes_to_a_half_and_its_reserve_is_kept() {
    let mut lane = lane(plain_rules());
    lane.shut(1 + 1);
    for call in 1..=2 {
        lane.left(call);
    }
    let with = |call, sends| Arrival { sends, budget: Some(8), ..arrival(call, call, lane.now) };
    for arrival in [with(11, 6), with(12, 4), with(13, 3)] {
        lane.gate.arrive(arrival, lane.now);
    }
    let order: Vec<u64> = (0..3)
        .map(|_| {
            let asks = lane.probe();
            lane.left(asks);
            asks
        })
        .collect();
    assert_eq!(order, [13, 12, 11]);
    lane.gate.arrive(Arrival { sends: 6, budget: Some(8), ..arrival(14, 14, lane.now) }, lane.now);
    lane.gate.completions.ended_while_shut();
    assert_eq!(lane.sent(), [], "what is kept for the opening takes no place before");
}

// ---- what is learned, and what is left ----

#[test]
fn a_file_with_nonsense_in_it_stops_no_lane() {
    let damaged = Learned {
        recoveries: -2.0,
        exposure: f64::INFINITY,
        rate: Some(0.0),
        growth: -1.0,
        per_completion: f64::NAN,
        after_completion: [5.0, 1.0],
        probes: [f64::NAN, f64::NAN],
        ends: [-1e300, 1e300],
    };
    let gate = Gate::with(Rules::default(), &damaged);
    assert_eq!(gate.learned(), None);
    let fast = Gate::with(Rules::default(), &Learned { rate: Some(1e300), ..damaged });
    let slow = Gate::with(Rules::default(), &Learned { rate: Some(1e-300), ..damaged });
    assert_eq!((fast.rate.known(), slow.rate.known()), (None, None));
}

#[test]
fn what_was_learned_is_taken_up_again() {
    let learned = Learned {
        recoveries: 3.0,
        exposure: 90.0,
        rate: Some(2.0),
        growth: 4.0,
        per_completion: 0.5,
        after_completion: [5.0, 10.0],
        probes: [9.0, 10.0],
        ends: [8.0, 10.0],
    };
    let mut gate = Gate::with(Rules::default(), &learned);
    assert_eq!(gate.learned(), Some(learned));
    let view = gate.view(0, Moment::ZERO);
    assert!(view.random && view.rate == Some(2.0) && view.recovery == Some(Duration::from_secs(22)));
    assert_eq!(Gate::new(Rules::default()).learned(), None);
}

#[test]
fn nothing_is_kept_of_calls_that_are_gone() {
    let mut lane = lane(Rules::default());
    for round in 0..300 {
        for call in 0..10 {
            let number = 10 * round + call;
            let not_before = (call % 3 == 0).then(|| lane.now + span(5.0));
            let deadline = (call % 2 == 0).then(|| lane.now + span(90.0));
            let arrival =
                Arrival { not_before, deadline, plain: call == 7, ..arrival(number, number, lane.now) };
            lane.gate.arrive(arrival, lane.now);
        }
        for (index, (call, _)) in lane.sent().into_iter().enumerate() {
            if index % 2 == 0 { lane.accepted(call) } else { lane.refused(call, REFUSAL) }
        }
        lane.passes(0.5);
    }
    assert!(!lane.gate.is_idle());
    for call in 0..3000 {
        lane.left(call);
    }
    let Gate { line, plain, sends, running, .. } = &lane.gate;
    let empty = Gate::new(Rules::default());
    assert!(lane.gate.is_idle() && running.is_empty());
    assert_eq!(format!("{line:?}{plain:?}"), format!("{:?}{:?}", empty.line, empty.plain));
    assert_eq!((sends.len(), sends.timers(), sends.any_after(None)), (0, 0, false));
    assert_eq!(lane.poll(), Poll::Idle);
}
