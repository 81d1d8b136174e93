use super::*;
use crate::evidence::Evidence;
use proptest::prelude::*;

fn at(seconds: u64) -> Moment {
    Moment::after_start(Duration::from_secs(seconds))
}

/// The rule of the tool that the relay began with: more than 10 failures in 5 minutes close a URL for 10 minutes.
fn ten_in_five() -> Rules {
    let minutes = |many: u64| Duration::from_secs(60 * many);
    Rules { failures: 11, window: minutes(5), pause: minutes(10), alone: true }
}

#[test]
fn more_than_ten_failures_in_five_minutes_pause_for_ten() {
    let (rules, mut breaker) = (ten_in_five(), Breaker::default());
    for second in 0..10 {
        assert_eq!(breaker.failed(Fault::ServerFailed, false, &rules, at(second)), None);
        assert_eq!(breaker.circuit(at(second)), Circuit::Closed);
    }
    let opened = breaker.failed(Fault::ServerFailed, false, &rules, at(290));
    assert_eq!(opened, Some(Change::Opened { failures: 11, until: at(890) }));
    assert_eq!(breaker.circuit(at(889)), Circuit::Open(at(890)));
    assert_eq!(breaker.circuit(at(890)), Circuit::HalfOpen);
}

#[test]
fn failures_that_lie_further_back_than_the_window_do_not_count() {
    let (rules, mut breaker) = (ten_in_five(), Breaker::default());
    for second in 0..10 {
        assert_eq!(breaker.failed(Fault::ServerFailed, false, &rules, at(second)), None);
    }
    assert_eq!(breaker.failed(Fault::ServerFailed, false, &rules, at(301)), None);
    assert_eq!(breaker.circuit(at(301)), Circuit::Closed);
}

#[test]
fn a_success_between_begins_the_count_anew() {
    let (rules, mut breaker) = (ten_in_five(), Breaker::default());
    for second in 0..10 {
        breaker.failed(Fault::NeverSent, false, &rules, at(second));
    }
    assert_eq!(breaker.succeeded(at(10)), None);
    assert_eq!(breaker.failed(Fault::NeverSent, false, &rules, at(11)), None);
}

fn opened(rules: &Rules) -> Breaker {
    let mut breaker = Breaker::default();
    for _ in 0..rules.failures {
        breaker.failed(Fault::NeverSent, false, rules, at(0));
    }
    breaker
}

#[test]
fn one_probe_goes_and_what_it_meets_decides() {
    let rules = Rules::default();
    let mut breaker = opened(&rules);
    assert!(!breaker.sends(at(29)));
    assert!(breaker.sends(at(30)));
    assert_eq!(breaker.circuit(at(31)), Circuit::Open(at(32)), "a second one would be no probe");
    let again = breaker.failed(Fault::NeverSent, true, &rules, at(32));
    assert_eq!(again, Some(Change::StaysOpen { until: at(62) }));
    assert_eq!(breaker.circuit(at(61)), Circuit::Open(at(62)));
    assert!(breaker.sends(at(62)));
    assert_eq!(breaker.succeeded(at(63)), Some(Change::Closed { after: Duration::from_secs(63) }));
    assert_eq!(breaker.circuit(at(63)), Circuit::Closed);
}

#[test]
fn answers_that_begin_and_break_off_are_failures_all_the_same() {
    let (rules, mut breaker) = (Rules { failures: 3, ..Rules::default() }, Breaker::default());
    for second in 0..2 {
        assert_eq!(breaker.answered(at(second)), None);
        assert_eq!(breaker.failed(Fault::BrokenStream, false, &rules, at(second)), None);
    }
    assert_eq!(breaker.answered(at(2)), None);
    assert!(breaker.failed(Fault::BrokenStream, false, &rules, at(2)).is_some());
    // A probe that is answered lets others through, before it is known how that ends.
    assert!(breaker.sends(at(32)));
    assert!(matches!(breaker.answered(at(32)), Some(Change::Closed { .. })));
    assert_eq!(breaker.circuit(at(32)), Circuit::Closed);
}

#[test]
fn who_goes_past_a_breaker_is_no_probe_while_one_is_under_way() {
    let mut breaker = opened(&Rules::default());
    assert_eq!(breaker.passes(at(30)), Passage::Probe);
    assert!(!breaker.sends(at(31)), "it was not asked, and goes all the same");
    breaker.said_nothing(false);
    assert_eq!(breaker.passes(at(32)), Passage::Barred);
    assert!(breaker.sends(at(90)), "the first is not waited for any longer");
}

#[test]
fn a_probe_that_says_nothing_makes_room_for_the_next() {
    let mut breaker = opened(&Rules::default());
    assert!(breaker.sends(at(30)));
    breaker.said_nothing(false);
    assert_eq!(breaker.circuit(at(31)), Circuit::Open(at(32)), "that was another send");
    breaker.said_nothing(true);
    assert_eq!(breaker.circuit(at(31)), Circuit::HalfOpen);
}

#[test]
fn a_person_may_end_the_pause() {
    let mut breaker = opened(&Rules::default());
    assert!(breaker.ask_now(at(5)));
    assert_eq!(breaker.circuit(at(5)), Circuit::HalfOpen);
    assert!(breaker.ask_now(at(6)), "nobody has come yet");
    assert!(breaker.sends(at(7)));
    assert!(!breaker.ask_now(at(8)), "one is on its way");
    let again = breaker.failed(Fault::NeverSent, true, &Rules::default(), at(9));
    assert_eq!(again, Some(Change::StaysOpen { until: at(39) }));
    assert_eq!(breaker.circuit(at(10)), Circuit::Open(at(39)), "it fails as any probe");
    assert!(!Breaker::default().ask_now(at(0)));
}

#[test]
fn a_probe_that_never_ends_shuts_nobody_out_for_ever() {
    let mut breaker = opened(&Rules::default());
    assert!(breaker.sends(at(30)));
    assert_eq!(breaker.circuit(at(89)), Circuit::Open(at(90)));
    assert_eq!(breaker.circuit(at(90)), Circuit::HalfOpen);
}

#[test]
fn what_was_under_way_when_it_opened_does_not_prolong_the_pause() {
    let rules = Rules::default();
    let mut breaker = opened(&rules);
    assert_eq!(breaker.failed(Fault::NeverSent, false, &rules, at(20)), None);
    assert_eq!(breaker.circuit(at(30)), Circuit::HalfOpen);
}

#[test]
fn capacity_quota_and_what_is_wrong_with_a_request_are_no_hard_failures() {
    let hard: Vec<_> = Fault::ALL
        .into_iter()
        .filter(|fault| is_hard(&Failure::of_transport(*fault, Evidence::Failed)))
        .collect();
    assert_eq!(hard, [Fault::ServerFailed, Fault::BrokenStream, Fault::NoAnswer, Fault::NeverSent]);
    let mut without_a_key = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    without_a_key.code = Some(CREDENTIAL.into());
    assert!(!is_hard(&without_a_key), "the upstream was not asked");
}

proptest! {
    /// Whatever happens: it is never open for longer than its pause and the time for a probe, keeps no more than it has
    /// to count, and lets one probe through at a time.
    #[test]
    fn it_always_comes_back(steps in prop::collection::vec((0_u8..4, 0_u64..40), 1..200), failures in 1_u32..12) {
        let rules = Rules { failures, ..Rules::default() };
        let (mut breaker, mut now) = (Breaker::default(), 0);
        let mut probes: Vec<bool> = Vec::new();
        for (step, pause) in steps {
            now += pause;
            let circuit = breaker.circuit(at(now));
            if let Circuit::Open(until) = circuit {
                prop_assert!(until > at(now) && until <= at(now) + rules.pause.max(PROBE));
            }
            match step {
                0 if !matches!(circuit, Circuit::Open(_)) => {
                    let passage = breaker.passes(at(now));
                    let probe = passage == Passage::Probe;
                    prop_assert!(probe == (circuit == Circuit::HalfOpen) && passage != Passage::Barred);
                    probes.push(probe);
                    if probe {
                        prop_assert!(matches!(breaker.circuit(at(now)), Circuit::Open(_)));
                        prop_assert_eq!(breaker.passes(at(now)), Passage::Barred);
                    }
                }
                1 => if let Some(probed) = probes.pop() {
                    breaker.failed(Fault::NeverSent, probed, &rules, at(now));
                },
                2 => if probes.pop().is_some() {
                    breaker.succeeded(at(now));
                    prop_assert_eq!(breaker.circuit(at(now)), Circuit::Closed);
                },
                _ => if let Some(probed) = probes.pop() {
                    breaker.said_nothing(probed);
                },
            }
            prop_assert!(breaker.failures.len() < usize::try_from(failures).unwrap());
        }
        let circuit = breaker.circuit(at(now) + rules.pause.max(PROBE));
        prop_assert!(!matches!(circuit, Circuit::Open(_)));
    }
}
