//! What goes on in a shut lane: who asks, who follows, and what opens it.

use super::*;
use crate::gate::line::Left;

#[test]
fn a_shut_lane_is_asked_by_one_and_each_probe_puts_off_the_next() {
    let mut lane = lane(plain_rules());
    lane.shut(4);
    assert_eq!(lane.sent(), []);
    let mut last = lane.now;
    for _ in 0..8 {
        let asks = lane.probe();
        assert!(lane.now.since(last) > span(0.4) || last == lane.gate.shut().unwrap().1);
        last = lane.now;
        lane.passes(0.2);
        lane.refused(asks, REFUSAL);
        assert_eq!(lane.sent(), []);
    }
    // The refusal of another send puts the next one off too.
    let asks = lane.probe();
    lane.gate.ask_now();
    let [(other, Reason::Timer)] = lane.sent()[..] else { unreachable!("who asks is sent") };
    lane.gate.left(CallId(asks), false, lane.now);
    lane.passes(0.2);
    let floor = Duration::from_secs(40);
    lane.refused(other, Refusal { floor, ..REFUSAL });
    assert!(lane.gate.view(0, lane.now).next.unwrap() >= lane.now + floor, "a floor puts off every probe");
}

#[test]
fn an_accepted_probe_lets_two_follow_and_more_after_each() {
    let mut lane = lane(plain_rules());
    lane.shut(9);
    let asks = lane.probe();
    lane.accepted(asks);
    let follows = lane.sent();
    assert!(matches!(follows[..], [(_, Reason::Follow), (_, Reason::Follow)]), "{follows:?}");
    lane.accepted(follows[0].0);
    assert!(lane.gate.ramp.growth > 2.5);
    assert_eq!(lane.sent().len(), 3);
}

#[test]
fn a_refusal_that_is_the_lane_s_takes_all_credit() {
    let mut lane = lane(plain_rules());
    lane.shut(2);
    for call in 11..=29 {
        lane.arrive(call, call);
    }
    let asks = lane.probe();
    lane.passes(0.1);
    lane.accepted(asks);
    let first = lane.sent();
    lane.passes(0.1);
    lane.accepted(first[0].0);
    let later = lane.sent();
    assert_eq!((first.len(), later.len()), (2, 3));
    lane.gate.ramp.accepted();
    let growth = lane.gate.ramp.growth;
    lane.refused(later[0].0, REFUSAL);
    assert!(lane.gate.ramp.may_follow(), "one alone is its session's");
    lane.refused(later[1].0, REFUSAL);
    assert!(!lane.gate.ramp.may_follow() && (lane.gate.ramp.growth - growth / 2.0).abs() < 1e-9);
    lane.accepted(later[2].0);
    assert_eq!(lane.sent(), [], "it was sent no later than what was refused");
}

#[test]
fn a_call_of_ours_that_ends_lets_one_take_its_place_and_that_is_no_news() {
    for rules in [plain_rules(), Rules { completions: false, ..plain_rules() }] {
        let counts = rules.completions;
        let mut lane = lane(rules);
        lane.arrive(100, 100);
        lane.arrive(101, 101);
        lane.sent();
        lane.accepted(100);
        lane.accepted(101);
        lane.passes(1.0);
        lane.shut(9);
        lane.left(100);
        let sent = lane.sent();
        assert_eq!(sent.len(), usize::from(counts));
        let [(first, Reason::Completion)] = sent[..] else { continue };
        lane.accepted(first);
        assert_eq!(lane.sent(), [], "a place of our own came back, no more");
        // One is refused, so that the acceptance of the next is news.
        lane.left(101);
        let [(second, Reason::Completion)] = lane.sent()[..] else { unreachable!("a place was left") };
        lane.passes(0.1);
        lane.refused(second, REFUSAL);
        lane.left(first);
        assert_eq!(lane.sent(), [], "it is worth half a send now");
        let asks = lane.probe();
        lane.accepted(asks);
        lane.sent();
        lane.left(asks);
        let [(third, Reason::Completion), ..] = lane.sent()[..] else { unreachable!("two halves") };
        let before = lane.gate.ramp;
        lane.accepted(third);
        assert_ne!(format!("{before:?}"), format!("{:?}", lane.gate.ramp));
    }
}

#[test]
fn a_probe_that_outlives_every_usual_refusal_lets_others_follow_once() {
    let mut lane = lane(Rules { suspicion: false, ..Rules::default() });
    lane.shut(9);
    let usual = lane.gate.refusal_takes.at_most(4.0).max(0.3);
    let asks = lane.probe();
    lane.passes(usual - 0.01);
    assert_eq!(lane.sent(), []);
    lane.passes(0.02);
    let follows = lane.sent();
    assert!(matches!(follows[..], [(_, Reason::Follow), (_, Reason::Follow)]), "{follows:?}");
    assert_eq!(lane.sent(), [], "it is presumed once");
    lane.accepted(asks);
    assert_eq!(lane.sent(), [], "nor is its acceptance news then");
}

#[test]
fn where_no_refusal_is_known_nothing_is_presumed_of_a_send_that_was_not_heard() {
    let mut lane = lane(Rules { suspicion: false, ..Rules::default() });
    lane.shut(9);
    lane.gate.refusal_takes = Usual::guessed(0.0, 0.0);
    let asks = lane.probe();
    lane.passes(UNHEARD + 0.1);
    assert!(lane.sent().iter().all(|(_, reason)| *reason == Reason::Timer));
    lane.gate.heard(CallId(asks));
    assert!(matches!(lane.sent()[..], [(_, Reason::Follow), (_, Reason::Follow)]));
}

#[test]
fn so_many_probes_are_under_way_and_no_more() {
    for (preset, calls, young, unsure) in
        [(Preset::Interactive, 4, 2, 4), (Preset::Batch, 4, 2, 4), (Preset::Strict, 3, 1, 2)]
    {
        let mut lane = lane(plain_rules());
        lane.shut(4);
        for call in 11..=10 + calls + 4 {
            lane.gate.arrive(Arrival { preset, ..arrival(call, call, lane.now) }, lane.now);
        }
        for call in 1..=4 {
            lane.left(call);
        }
        let mut probes = 0;
        let start = lane.now;
        while let Poll::Wait(at) = lane.poll() {
            lane.now = at;
            let sent = lane.sent().len();
            probes += sent;
            let fresh = lane.gate.sends.too_young(young + 1, None, lane.gate.slow(), lane.now);
            assert_eq!(fresh, None, "{preset:?}: more than {young} are young");
        }
        assert_eq!(probes, unsure, "{preset:?}, after {:?}", lane.now.since(start));
    }
}

#[test]
fn a_lane_that_accepted_last_opens_when_nobody_is_ready() {
    let mut lane = lane(plain_rules());
    lane.shut(2);
    let asks = lane.probe();
    lane.passes(0.1);
    lane.accepted(asks);
    assert_eq!(lane.sent().len(), 1);
    assert!(!lane.is_open(), "one is under way");
    let last = 3 - asks;
    lane.passes(0.1);
    lane.accepted(last);
    assert_eq!(lane.sent(), []);
    assert!(lane.is_open() && !lane.gate.ramp.may_follow());
}

#[test]
fn a_random_lane_does_not_shut_and_opens_at_the_first_acceptance() {
    let mut open = lane(plain_rules());
    open.is_random();
    for call in 1..=5 {
        open.arrive(call, call);
    }
    open.sent();
    for call in 1..=5 {
        open.refused(call, REFUSAL);
    }
    assert!(open.is_open());
    assert!(open.gate.line.next_ready().is_some_and(|at| at > open.now), "each waits by itself");
    let mut shut = lane(plain_rules());
    shut.shut(9);
    shut.is_random();
    let asks = shut.probe();
    shut.accepted(asks);
    assert!(shut.is_open());
    let mut other = lane(Rules { random: false, ..plain_rules() });
    other.shut(9);
    other.gate.judgement = shut.gate.judgement;
    let asks = other.probe();
    other.accepted(asks);
    assert!(!other.is_open());
}

#[test]
fn refused_follow_ups_put_the_next_probe_off() {
    let mut lane = lane(plain_rules());
    lane.shut(2);
    for call in 11..=15 {
        lane.arrive(call, call);
    }
    lane.left(1);
    lane.left(2);
    let asks = lane.probe();
    let next = lane.gate.view(0, lane.now).next.unwrap();
    lane.now = next - span(0.2);
    lane.accepted(asks);
    let follows = lane.sent();
    lane.passes(0.1);
    for (call, _) in &follows {
        lane.refused(*call, REFUSAL);
    }
    let put_off = lane.gate.view(0, lane.now).next.unwrap();
    assert!(put_off > next + span(0.2), "{:?} after {follows:?}", put_off.since(next));
}

#[test]
fn what_all_have_left_to_send_is_known_as_long_as_each_has_an_end() {
    let mut lane = lane(plain_rules());
    lane.shut(2);
    lane.left(1);
    lane.left(2);
    assert_eq!(lane.gate.line.left(), None, "nobody waits");
    let ends = lane.now + span(90.0);
    let with = |call, sends, deadline| Arrival {
        sends,
        budget: Some(40),
        deadline,
        ..arrival(call, call, lane.now)
    };
    for arrival in [with(11, 0, Some(ends)), with(12, 10, Some(lane.now + span(60.0))), with(13, 0, None)] {
        lane.gate.arrive(arrival, lane.now);
    }
    assert_eq!((lane.sent(), lane.gate.line.left()), (vec![], None), "one has no end");
    lane.left(13);
    assert_eq!(lane.gate.line.left(), Some((Left { free: 38 + 28, all: 40 + 30, total: 76 }, ends)));
    let asks = lane.probe();
    lane.refused(asks, REFUSAL);
    assert_eq!(lane.gate.line.left().map(|(left, _)| left.all), Some(69), "one is spent");
    lane.left(11);
    lane.left(12);
    assert_eq!(lane.gate.line.left(), None);
}

#[test]
fn a_time_in_which_nobody_waited_says_nothing_about_recovery() {
    let mut lane = lane(plain_rules());
    lane.shut(2);
    lane.left(1);
    lane.left(2);
    // The next day somebody comes, and is served.
    lane.passes(14.0 * 3600.0);
    lane.gate.arrive(arrival(3, 3, lane.now), lane.now);
    assert_eq!(lane.sent(), [(3, Reason::Timer)]);
    lane.passes(1.0);
    lane.accepted(3);
    assert!(lane.gate.recovery.mean() < 10.0, "{}", lane.gate.recovery.mean());
}

#[test]
fn after_a_pause_that_is_too_long_to_keep_one_asks_for_all() {
    let mut lane = lane(plain_rules());
    lane.arrive(1, 1);
    lane.sent();
    lane.refused(1, Refusal { told: Some(Duration::from_secs(3600)), ..REFUSAL });
    for call in 2..8 {
        lane.arrive(call, call);
    }
    assert_eq!(lane.sent(), []);
    lane.passes(602.0);
    assert_eq!(lane.sent().len(), 1);
}

#[test]
fn streams_that_a_rate_limit_cuts_together_lower_the_rate_once() {
    let mut lane = lane(plain_rules());
    for call in 1..=5 {
        lane.arrive(call, call);
    }
    assert_eq!(lane.sent().len(), 5);
    for call in 1..=5 {
        lane.accepted(call);
    }
    let rate = Refusal { class: Class::Rate, ..REFUSAL };
    let mut rates = Vec::new();
    for call in 1..=5 {
        lane.passes(0.1);
        lane.gate.refused_late(CallId(call), rate, lane.now, &mut lane.dice);
        rates.push(lane.gate.rate.known().unwrap());
    }
    assert!(rates.windows(2).all(|pair| pair[0] == pair[1]), "{rates:?}");
}

#[test]
fn one_that_nobody_asks_for_a_minute_after_it_may_be_asked_is_shown_as_open() {
    for (told, busy_until) in [(None, 0.0), (Some(span(100.0)), 100.0)] {
        let mut lane = lane(plain_rules());
        lane.shut(2);
        if told.is_some() {
            let asks = lane.probe();
            lane.refused(asks, Refusal { told, ..REFUSAL });
        }
        lane.passes(5.0);
        let last = lane.now;
        assert_eq!(lane.gate.forgotten_at(), None, "calls wait");
        (1..=2).for_each(|call| lane.left(call));
        let forgotten = lane.gate.forgotten_at().unwrap();
        assert!(forgotten >= last + span(60.0) && forgotten <= last + span(busy_until + 70.0));
        lane.now = forgotten;
        assert!(lane.gate.shown_shut(last).is_some());
        assert_eq!((lane.gate.shown_shut(lane.now), lane.gate.view(0, lane.now).shut), (None, None));
        // The next call goes at once, and the one after it waits for what it hears.
        lane.arrive(3, 3);
        lane.arrive(4, 4);
        assert_eq!(lane.sent(), [(3, Reason::Timer)]);
        assert!(lane.gate.shown_shut(lane.now).is_some());
        (3..=4).for_each(|call| lane.left(call));
        assert!(lane.gate.shown_shut(lane.now).is_some(), "somebody has just asked");
    }
}
