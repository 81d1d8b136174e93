use super::*;
use crate::dice::SeededDice;
use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

fn at(seconds: u64) -> Moment {
    Moment::after_start(Duration::from_secs(seconds))
}

const OPEN: Standing = Standing {
    weight: 1,
    load: 0,
    open: true,
    hold: None,
    circuit: Circuit::Closed,
    failures: 0,
    not_before: None,
};

fn in_order(standings: &[Standing]) -> Choice {
    choose(Strategy::InOrder, standings)
}

fn choose(strategy: Strategy, standings: &[Standing]) -> Choice {
    let all: Vec<_> = standings.iter().copied().map(Some).collect();
    order(strategy, standings.len(), 1).choose(strategy, &all, at(100))
}

fn order(strategy: Strategy, legs: usize, session: u64) -> Order {
    Order::draw(strategy, &vec![1; legs], session, &mut SeededDice::new(session))
}

#[test]
fn the_first_that_takes_calls_goes() {
    let shut = Standing { open: false, ..OPEN };
    let held = Standing { hold: Some(at(101)), ..OPEN };
    let broken = Standing { circuit: Circuit::Open(at(101)), ..OPEN };
    assert_eq!(in_order(&[OPEN, OPEN]), Choice::Leg(0));
    for first in [shut, held, broken, Standing { not_before: Some(at(101)), ..OPEN }] {
        assert_eq!(in_order(&[first, OPEN, OPEN]), Choice::Leg(1), "{first:?}");
    }
    assert_eq!(in_order(&[Standing { hold: Some(at(100)), ..OPEN }, OPEN]), Choice::Leg(0), "that is over");
}

#[test]
fn one_that_failed_this_call_comes_after_those_that_did_not() {
    let failed = |failures| Standing { failures, ..OPEN };
    assert_eq!(in_order(&[failed(1), failed(0)]), Choice::Leg(1));
    assert_eq!(in_order(&[failed(1), failed(1)]), Choice::Leg(0), "a new round begins");
    assert_eq!(in_order(&[failed(2), failed(1), failed(1)]), Choice::Leg(1));
}

#[test]
fn legs_that_come_later_come_after_all_others_and_only_where_they_are_allowed() {
    let shut = Standing { open: false, ..OPEN };
    let order = order(Strategy::Sticky, 2, 7).and(2);
    let choose = |standings: &[Option<Standing>]| order.choose(Strategy::Sticky, standings, at(100));
    let first = order.first().unwrap();
    assert_eq!(choose(&[Some(OPEN), Some(OPEN), Some(OPEN), Some(OPEN)]), Choice::Leg(first));
    assert_eq!(choose(&[Some(shut), Some(shut), Some(OPEN), Some(OPEN)]), Choice::Leg(2));
    assert_eq!(choose(&[Some(shut), Some(shut), Some(shut), Some(OPEN)]), Choice::Leg(3));
    assert_eq!(choose(&[Some(shut), Some(shut), None, None]), Choice::Leg(first));
}

#[test]
fn where_none_takes_calls_the_one_that_is_expected_first_is_waited_for() {
    let held = |until| Standing { hold: Some(at(until)), open: false, ..OPEN };
    assert_eq!(in_order(&[held(160), held(110)]), Choice::Leg(1));
    let shut = Standing { open: false, ..OPEN };
    assert_eq!(in_order(&[held(160), shut]), Choice::Leg(1), "it may open at any time");
    let broken = Standing { circuit: Circuit::Open(at(105)), ..OPEN };
    assert_eq!(in_order(&[broken, held(160)]), Choice::Leg(1));
    assert_eq!(in_order(&[held(160), Standing { not_before: Some(at(120)), ..OPEN }]), Choice::Leg(1));
}

#[test]
fn where_every_breaker_is_open_nothing_goes_before_the_first_pause_is_over() {
    let broken = |until| Standing { circuit: Circuit::Open(at(until)), ..OPEN };
    assert_eq!(in_order(&[broken(130), broken(120)]), Choice::Later(at(120)));
    assert_eq!(in_order(&[]), Choice::Nowhere);
    let none = order(Strategy::InOrder, 2, 1).choose(Strategy::InOrder, &[None, None], at(100));
    assert_eq!(none, Choice::Nowhere, "the guard allows none");
}

#[test]
fn the_least_loaded_for_its_weight_goes() {
    let loaded = |load, weight| Standing { load, weight, ..OPEN };
    assert_eq!(choose(Strategy::LeastWaiting, &[loaded(3, 1), loaded(2, 1)]), Choice::Leg(1));
    assert_eq!(choose(Strategy::LeastWaiting, &[loaded(3, 2), loaded(2, 1)]), Choice::Leg(0));
    assert_eq!(choose(Strategy::LeastWaiting, &[loaded(2, 1), loaded(2, 1)]), Choice::Leg(0));
    assert_eq!(choose(Strategy::InOrder, &[loaded(3, 1), loaded(2, 1)]), Choice::Leg(0));
}

#[test]
fn weights_are_kept_by_chance_and_by_session() {
    for strategy in [Strategy::Weighted, Strategy::Sticky] {
        let mut counts = [0_u32; 2];
        let mut dice = SeededDice::new(5);
        for session in 0..10_000 {
            let session = SeededDice::new(session).bits();
            counts[Order::draw(strategy, &[3, 1], session, &mut dice).first().unwrap()] += 1;
        }
        assert!((7300..7700).contains(&counts[0]), "{strategy:?} {counts:?}");
    }
}

#[test]
fn a_session_keeps_its_own_and_a_new_member_moves_only_what_becomes_its_own() {
    let of = |weights: &[u32], session| {
        let mut dice = SeededDice::new(session ^ 77);
        Order::draw(Strategy::Sticky, weights, session, &mut dice).first().unwrap()
    };
    let mut moved = 0;
    for session in (0..3000).map(|number| SeededDice::new(number).bits()) {
        let (before, after) = (of(&[1, 1], session), of(&[1, 1, 1], session));
        assert_eq!(before, of(&[1, 1], session));
        assert!(after == before || after == 2);
        moved += u32::from(after != before);
    }
    assert!((900..1100).contains(&moved), "{moved}");
}

#[test]
fn the_one_that_served_the_session_before_is_preferred() {
    let order = order(Strategy::InOrder, 3, 1).preferring(2);
    assert_eq!(order, Order(vec![2, 0, 1]));
    assert_eq!(order.clone().preferring(9), order);
}

#[test]
fn how_long_until_another_one_takes_the_call() {
    let order = order(Strategy::InOrder, 2, 1);
    let other = |standing| order.other_in(0, &[Some(OPEN), standing], at(100));
    let seconds = |many| Some(Duration::from_secs(many));
    assert_eq!(other(Some(OPEN)), seconds(0));
    assert_eq!(other(None), None);
    assert_eq!(other(Some(Standing { open: false, ..OPEN })), None, "nobody knows");
    assert_eq!(other(Some(Standing { open: false, hold: Some(at(107)), ..OPEN })), seconds(7));
    assert_eq!(other(Some(Standing { circuit: Circuit::Open(at(130)), ..OPEN })), seconds(30));
    assert_eq!(other(Some(Standing { circuit: Circuit::HalfOpen, ..OPEN })), seconds(0));
}

fn standing() -> impl proptest::strategy::Strategy<Value = Option<Standing>> {
    let moment = || prop::option::of((0_u64..200).prop_map(at));
    let circuit = prop_oneof![
        Just(Circuit::Closed),
        Just(Circuit::HalfOpen),
        (101_u64..200).prop_map(|until| Circuit::Open(at(until)))
    ];
    (1_u32..5, 0_usize..9, any::<bool>(), moment(), circuit, 0_u32..4, moment()).prop_map(
        |(weight, load, open, hold, circuit, failures, not_before)| {
            Some(Standing { weight, load, open, hold, circuit, failures, not_before })
        },
    )
}

proptest! {
    /// Whatever the strategy: every leg is in the order once, a leg is chosen where any may be, never one whose breaker
    /// is open, and one that takes calls now before one that does not.
    #[test]
    fn whoever_can_take_a_call_gets_it(
        standings in prop::collection::vec(prop_oneof![Just(None), standing()], 0..6),
        kind in 0_usize..4,
        session in any::<u64>(),
    ) {
        let (strategy, now) = (Strategy::ALL[kind], at(100));
        let weights: Vec<u32> = standings.iter().map(|known| known.map_or(1, |known| known.weight)).collect();
        let order = Order::draw(strategy, &weights, session, &mut SeededDice::new(session));
        let mut sorted = order.0.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..standings.len()).collect::<Vec<_>>());
        let known: Vec<_> = standings.iter().flatten().collect();
        let broken = |standing: &Standing| matches!(standing.circuit, Circuit::Open(_));
        match order.choose(strategy, &standings, now) {
            Choice::Leg(leg) => {
                let chosen = standings[leg].unwrap();
                prop_assert!(!broken(&chosen));
                let ready: Vec<_> = known.iter().filter(|standing| standing.takes_now(now)).collect();
                if let Some(least) = ready.iter().map(|standing| standing.failures).min() {
                    prop_assert!(chosen.takes_now(now) && chosen.failures == least);
                }
            }
            Choice::Later(until) => {
                prop_assert!(!known.is_empty() && known.iter().all(|standing| broken(standing)) && until > now);
            }
            Choice::Nowhere => prop_assert!(known.is_empty()),
        }
    }
}
