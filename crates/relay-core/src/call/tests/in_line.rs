//! A call whose refusals wait in the gate of its lane.

use super::*;

fn waiting(play: &mut Play) -> Waiting {
    match play.call.next(play.now) {
        Step::Wait(waiting) => waiting,
        other @ (Step::Send { .. } | Step::End(_)) => panic!("{other:?}"),
    }
}

/// The lane lets it go so much later.
fn granted_after(play: &mut Play, wait: Duration) {
    let _waits = waiting(play);
    play.now = play.now + wait;
    play.call.granted(play.now);
    assert!(matches!(play.call.next(play.now), Step::Send { .. }));
}

fn refused(play: &mut Play) {
    play.call.failed(busy(), play.now, &mut NoChance);
}

#[test]
fn a_refusal_waits_for_its_lane_and_takes_no_step_on_the_curve() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, Duration::ZERO);
    for others in 1..=9 {
        refused(&mut play);
        let patience_ends = OPENED + seconds(120);
        let (until, bears) = (patience_ends, patience_ends);
        let wait = Waiting { not_before: None, until, bears, plain: false, in_line: true, parks: false };
        assert_eq!(waiting(&mut play), wait);
        play.call.stands_in_line(others, None);
        granted_after(&mut play, seconds(3));
    }
    play.call.committed();
    play.note();
    assert_eq!(play.seen.iter().filter(|line| line.starts_with("wait")).count(), 0);
    assert_eq!(play.seen[2..4], ["in line for 2 of 1", "send 2"]);
    assert_eq!((play.closing().sends, play.closing().waited), (10, seconds(27)));
}

#[test]
fn patience_ends_a_wait_in_line_with_the_last_answer() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, seconds(20));
    play.now = play.now + seconds(50);
    refused(&mut play);
    play.now = waiting(&mut play).until;
    assert_eq!(play.now, OPENED + seconds(170), "a running send is no patience");
    assert_eq!(play.end(), "gave up PatienceSpent at_capacity");
    assert_eq!(play.closing().waited, seconds(120));
    assert!(play.call.bequest(false).gave_up);
}

#[test]
fn a_call_that_was_never_sent_ends_with_its_patience_too() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    play.now = waiting(&mut play).until;
    assert_eq!((play.now, play.end().as_str()), (OPENED + seconds(120), "gave up PatienceSpent -"));
    let mut held = Play::new(in_lane(Profile::interactive()));
    let _waits = waiting(&mut held);
    held.call.held_for_too_long(held.now);
    assert_eq!(held.end(), "gave up FloorTooFar -");
}

#[test]
fn what_waits_for_a_stated_place_spends_no_patience_until_it_fails() {
    let places = Plan { places: true, ..in_lane(Profile::interactive()) };
    let mut play = Play::new(places.clone());
    assert_eq!(waiting(&mut play).until, OPENED + seconds(6 * 3600), "never for ever");
    assert_eq!(waiting(&mut play).bears, OPENED + seconds(120), "a pause is no place");
    granted_after(&mut play, seconds(3600));
    refused(&mut play);
    assert_eq!(waiting(&mut play).until, play.now + seconds(120));
    let mut limited = Play::new(Plan { client_limit: Some(seconds(300)), ..places });
    assert_eq!(waiting(&mut limited).until, OPENED + seconds(300), "the client hangs up then");
}

#[test]
fn failures_and_what_was_never_sent_wait_by_themselves() {
    for (failure, wait) in [
        (failed(), seconds(1)),
        (Failure::of_transport(Fault::NeverSent, Evidence::NeverSent), Duration::from_millis(150)),
        (lost(), seconds(1)),
    ] {
        let mut play = Play::new(in_lane(Profile::interactive()));
        granted_after(&mut play, Duration::ZERO);
        play.call.failed(failure, play.now, &mut NoChance);
        let Waiting { not_before, in_line, .. } = waiting(&mut play);
        assert_eq!((not_before, in_line), (Some(OPENED + wait), false));
        play.call.stands_in_line(1, None);
        play.note();
        assert!(!play.seen.iter().any(|line| line.starts_with("in line")));
    }
}

#[test]
fn a_floor_is_the_least_that_it_waits_and_one_beyond_patience_ends_it() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, Duration::ZERO);
    play.call.failed(asks_for(seconds(20)), play.now, &mut NoChance);
    assert_eq!(waiting(&mut play).not_before, Some(OPENED + seconds(20)));
    granted_after(&mut play, seconds(20));
    play.call.failed(asks_for(seconds(101)), play.now, &mut NoChance);
    assert_eq!(play.end(), "gave up FloorTooFar throttled");
    let useless = Failure { advice: Advice::Useless, ..busy() };
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, Duration::ZERO);
    play.call.failed(useless, play.now, &mut NoChance);
    assert_eq!(waiting(&mut play).not_before, Some(OPENED + Duration::from_millis(1500)));
}

#[test]
fn a_re_send_keeps_its_place_in_time() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, Duration::ZERO);
    refused(&mut play);
    let before = play.call.bequest(true);
    let mut heir = Call::new(Plan { before, ..in_lane(Profile::interactive()) }, OPENED + seconds(60));
    assert_eq!(heir.waiting(), None);
    assert_eq!((heir.first_opened(), heir.counted()), (OPENED, (1, Some(40))));
    heir.drain(OPENED + seconds(60));
    assert_eq!(heir.bequest(false).since, Some(OPENED));
}

#[test]
fn a_slow_upload_is_no_wait() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    play.now = play.now + seconds(500);
    assert_eq!(waiting(&mut play).until, OPENED + seconds(620));
    granted_after(&mut play, seconds(1));
    assert_eq!(play.closing().waited, seconds(1));
}

#[test]
fn what_its_lane_adds_to_a_wait_of_its_own_is_patience_too() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, Duration::ZERO);
    let unsent = || Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    play.call.failed(unsent(), play.now, &mut NoChance);
    granted_after(&mut play, seconds(100));
    play.call.failed(unsent(), play.now, &mut NoChance);
    assert_eq!(waiting(&mut play).until, play.now + seconds(20), "never for ever");
    // Nor is a place that others take, for a call that waits by its curve.
    let mut plain = Play::new(Plan { places: true, ..plan(Profile::interactive()) });
    granted_after(&mut plain, Duration::ZERO);
    plain.call.failed(failed(), plain.now, &mut NoChance);
    granted_after(&mut plain, seconds(100));
    plain.call.failed(failed(), plain.now, &mut NoChance);
    assert_eq!(waiting(&mut plain).until, plain.now + seconds(20));
    // A timer that is a little late is not.
    let mut play = Play::new(in_lane(Profile::interactive()));
    granted_after(&mut play, Duration::ZERO);
    play.call.failed(failed(), play.now, &mut NoChance);
    granted_after(&mut play, Duration::from_millis(1090));
    play.call.failed(failed(), play.now, &mut NoChance);
    assert_eq!(waiting(&mut play).until, play.now + seconds(119));
}

#[test]
fn what_may_not_be_sent_waits_for_no_turn() {
    let before = Spent { sends: 3, gave_up: true, ..Spent::default() };
    let mut play = Play::new(Plan { before, ..in_lane(Profile::strict()) });
    assert_eq!(play.end(), "gave up SendsSpent -");
    assert_eq!((play.closing().sends, play.closing().waited), (0, Duration::ZERO));
}
