//! What a lane does whose quota is spent.

use std::collections::BTreeSet;

use super::*;
use crate::dice::Dice as _;
use proptest::prelude::*;

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

impl Lane {
    /// There is no quota for so long; the call waits on.
    fn spent(&mut self, call: u64, told: Duration) {
        let settled = Settled { report: Report::Spent(told), back: Some(self.now) };
        self.gate.settled(CallId(call), settled, self.now, &mut self.dice);
    }

    /// Call 1 of two finds the quota spent; both wait.
    fn park(&mut self) {
        self.arrive(1, 1);
        assert_eq!(self.sent(), [(1, Reason::Open)]);
        self.passes(0.2);
        self.spent(1, HALF_AN_HOUR);
        self.arrive(2, 2);
        self.arrive(3, 3);
        assert_eq!(self.sent(), []);
    }

    fn until(&self) -> Moment {
        self.gate.parked(self.now).unwrap().until
    }
}

#[test]
fn a_parked_lane_sends_nothing_until_its_time_and_then_one() {
    let mut lane = lane(plain_rules());
    lane.park();
    let view = lane.gate.view(9, lane.now);
    let until = lane.until();
    assert!((HALF_AN_HOUR..HALF_AN_HOUR + Duration::from_secs(1)).contains(&until.since(lane.now)));
    assert_eq!((view.shut, view.next, view.hold), (Some((Shut::Spent, lane.now)), Some(until), Some(until)));
    assert_eq!(lane.poll(), Poll::Wait(until), "a pause is cut to ten minutes, and this is none");
    lane.now = until - Duration::from_millis(1);
    assert_eq!(lane.sent(), []);
    lane.now = until;
    let [(first, Reason::Timer)] = lane.sent()[..] else { panic!("one asks") };
    assert_eq!(lane.sent(), [], "the others wait for what it hears");
    lane.passes(0.3);
    lane.accepted(first);
    assert_eq!(lane.gate.parked(lane.now), None);
    assert_eq!(lane.sent().len(), 2);
    assert_eq!(lane.gate.learned(), None, "how long a quota was spent says nothing about shut times");
}

#[test]
fn another_such_answer_parks_it_anew() {
    let mut lane = lane(plain_rules());
    lane.park();
    lane.now = lane.until();
    let [(first, _)] = lane.sent()[..] else { panic!("one asks") };
    lane.passes(0.3);
    lane.spent(first, Duration::from_secs(60));
    assert_eq!(lane.sent(), []);
    assert!((60..=61).contains(&lane.until().since(lane.now).as_secs()));
    assert_eq!(lane.gate.learned(), None);
}

#[test]
fn of_several_that_were_under_way_the_longest_time_holds() {
    let mut lane = lane(plain_rules());
    for call in 1..=6 {
        lane.arrive(call, call);
    }
    assert_eq!(lane.sent().len(), 6);
    lane.passes(0.2);
    lane.spent(1, HALF_AN_HOUR);
    let (since, until) = (lane.now, lane.until());
    lane.passes(0.2);
    lane.spent(2, Duration::from_secs(5));
    let parked = lane.gate.parked(lane.now).unwrap();
    assert_eq!((parked.since, parked.until), (since, until));
    // What was sent before says nothing of the time after.
    for call in 4..=6 {
        lane.refused(call, REFUSAL);
    }
    lane.accepted(3);
    assert_eq!((lane.gate.shut(), lane.until()), (Some((Shut::Spent, since)), until));
    lane.left(3);
    assert_eq!(lane.sent(), [], "nor does the place that it leaves");
    lane.now = until;
    assert_eq!(lane.sent().len(), 1);
}

#[test]
fn a_person_who_asks_ends_it_where_the_answer_is_one() {
    let mut lane = lane(plain_rules());
    lane.park();
    lane.passes(60.0);
    assert!(lane.gate.ask_now());
    let [(first, Reason::Timer)] = lane.sent()[..] else { panic!("one asks") };
    assert_eq!(lane.sent(), []);
    lane.passes(0.3);
    // It is still spent, and for less long than was said before.
    lane.spent(first, Duration::from_secs(600));
    assert!((600..=601).contains(&lane.until().since(lane.now).as_secs()));
    lane.passes(60.0);
    lane.gate.ask_now();
    let [(next, _)] = lane.sent()[..] else { panic!("one asks") };
    lane.passes(0.3);
    lane.accepted(next);
    assert_eq!((lane.gate.parked(lane.now), lane.sent().len()), (None, 2));
}

#[test]
fn a_person_who_asks_while_nobody_waits_ends_it_for_whoever_comes() {
    let mut lane = lane(plain_rules());
    lane.arrive(1, 1);
    lane.sent();
    let settled = Settled { report: Report::Spent(HALF_AN_HOUR), back: None };
    lane.gate.settled(CallId(1), settled, lane.now, &mut lane.dice);
    assert!(!lane.gate.ask_now());
    assert_eq!(lane.gate.parked(lane.now), None);
    lane.passes(3.0);
    lane.arrive(2, 2);
    lane.arrive(3, 3);
    assert_eq!(lane.sent(), [(2, Reason::Timer)]);
    lane.passes(0.1);
    lane.accepted(2);
    assert_eq!(lane.sent().len(), 1);
}

#[test]
fn a_plain_call_waits_for_no_quota_and_its_answer_ends_the_wait_of_the_others() {
    let mut lane = lane(plain_rules());
    lane.park();
    lane.passes(10.0);
    lane.gate.arrive(Arrival { plain: true, ..arrival(7, 7, lane.now) }, lane.now);
    assert_eq!(lane.sent(), [(7, Reason::Plain)]);
    lane.passes(0.1);
    lane.accepted(7);
    assert_eq!(lane.gate.parked(lane.now), None);
    assert!(matches!(lane.sent()[..], [(_, Reason::Timer)]), "one asks first");
}

#[test]
fn a_lane_that_is_asked_in_time_and_lacks_capacity_is_shut_for_that() {
    let mut lane = lane(plain_rules());
    lane.park();
    lane.now = lane.until();
    for _ in 0..3 {
        let asks = lane.sent().first().map(|(call, _)| *call);
        lane.passes(0.2);
        if let Some(call) = asks {
            lane.refused(call, REFUSAL);
        }
        lane.now = lane.gate.view(0, lane.now).next.unwrap();
    }
    assert_eq!(lane.gate.shut().map(|(why, _)| why), Some(Shut::Refused(Fault::AtCapacity)));
    assert_eq!(lane.gate.parked, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Whatever happens in whichever order: while a lane is parked nobody is sent but by a person's word, after its time
    /// one alone until something is heard of it (or may be presumed), and whoever waits is sent in the end.
    #[test]
    fn nothing_is_sent_into_a_spent_quota(seed in any::<u64>(), presumption in any::<bool>()) {
        let mut lane = lane(Rules { presumption, suspicion: presumption, ..Rules::default() });
        let mut dice = SeededDice::new(seed);
        let mut under_way = BTreeSet::new();
        let mut next = 0;
        for _ in 0..200 {
            let someone = under_way.iter().nth(dice.up_to(Duration::from_secs(3)).as_secs() as usize).copied();
            let mut asked = 0;
            match (dice.share(), someone) {
                (r, _) if r < 0.3 => {
                    next += 1;
                    lane.arrive(next, next % 5);
                }
                (r, Some(call)) if r < 0.5 => {
                    lane.accepted(call);
                    lane.left(call);
                    under_way.remove(&call);
                }
                (r, Some(call)) if r < 0.65 => {
                    lane.spent(call, dice.up_to(Duration::from_secs(400)));
                    under_way.remove(&call);
                }
                (r, Some(call)) if r < 0.8 => {
                    lane.refused(call, REFUSAL);
                    under_way.remove(&call);
                }
                (r, _) if r < 0.84 => asked = usize::from(lane.gate.ask_now()),
                _ => lane.passes(dice.share() * 30.0),
            }
            let parked = lane.gate.parked(lane.now).is_some();
            let was_parked = lane.gate.parked.is_some();
            let sent = lane.sent();
            prop_assert!(!parked || sent.len() <= asked, "{sent:?} into a spent quota");
            prop_assert!(presumption || !was_parked || sent.len() <= 1 + asked, "{sent:?}: one asks first");
            prop_assert!(!parked || lane.gate.shut().is_some_and(|(why, _)| why == Shut::Spent));
            under_way.extend(sent.iter().map(|(call, _)| *call));
        }
        // All is well from now on.
        for _ in 0..3000 {
            for call in std::mem::take(&mut under_way) {
                lane.accepted(call);
                lane.left(call);
            }
            under_way.extend(lane.sent().iter().map(|(call, _)| *call));
            if lane.gate.waiting() == 0 && under_way.is_empty() {
                break;
            }
            lane.passes(1.0);
        }
        prop_assert!(lane.gate.is_idle(), "somebody waits for ever");
    }
}
