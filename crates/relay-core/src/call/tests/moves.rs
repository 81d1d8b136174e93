//! Calls that another upstream could take.

use super::*;

fn fails(play: &mut Play, failure: Failure, other: Option<Duration>) {
    assert!(matches!(play.go(), Step::Send { .. }), "{:?}", play.seen);
    play.call.failed_beside(failure, other, play.now, &mut NoChance);
    play.note();
}

fn own_wait(play: &Play) -> Option<Duration> {
    play.call.waiting().unwrap().not_before.map(|at| at.since(play.now))
}

#[test]
fn a_pause_that_one_asks_for_is_none_where_another_takes_the_call() {
    for profile in [in_lane(Profile::interactive()), plan(Profile::interactive())] {
        let mut play = Play::new(profile);
        fails(&mut play, asks_for(seconds(3600)), Some(Duration::ZERO));
        assert_eq!(own_wait(&play), None);
        fails(&mut play, asks_for(seconds(3600)), Some(seconds(7)));
        assert_eq!(own_wait(&play), Some(seconds(7)));
        fails(&mut play, asks_for(seconds(3600)), None);
        assert_eq!(play.end(), "gave up FloorTooFar throttled");
    }
}

#[test]
fn a_shorter_wait_of_its_own_is_kept() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    fails(&mut play, asks_for(seconds(3)), Some(seconds(7)));
    assert_eq!(own_wait(&play), Some(seconds(3)));
}

#[test]
fn what_may_have_run_goes_nowhere_without_a_right_and_a_definite_error_never_does() {
    let mut strict = Play::new(plan(Profile::strict()));
    fails(&mut strict, lost(), Some(Duration::ZERO));
    assert_eq!(strict.end(), "refused MayHaveRun broken_stream");
    let mut wrong = Play::new(plan(Profile::interactive()));
    fails(&mut wrong, bad_request(), Some(Duration::ZERO));
    assert_eq!(wrong.end(), "passed bad_request");
    let mut slow = Play::new(plan(Profile::interactive()));
    fails(&mut slow, silent(), Some(Duration::ZERO));
    assert_eq!(slow.end(), "refused StillRunning no_answer");
}

#[test]
fn what_bars_one_upstream_bars_no_other() {
    let barred =
        |bar| Failure { barred: Some(bar), ..Failure::of_transport(Fault::NeverSent, Evidence::NeverSent) };
    for bar in [Bar::Certificate, Bar::Proxy] {
        let mut play = Play::new(plan(Profile::interactive()));
        fails(&mut play, barred(bar), Some(Duration::ZERO));
        assert!(play.call.waiting().is_some());
        fails(&mut play, barred(bar), None);
        assert_eq!(play.end(), format!("refused Barred({bar:?}) never_sent"));
    }
    let mut unfit = Play::new(plan(Profile::interactive()));
    let failure = Failure { barred: Some(Bar::Unfit), ..lost() };
    fails(&mut unfit, failure, Some(Duration::ZERO));
    assert_eq!(unfit.end(), "refused Barred(Unfit) broken_stream");
}

#[test]
fn all_upstreams_together_have_the_one_budget() {
    let mut play = Play::new(plan(Profile { sends: Some(3), ..Profile::interactive() }));
    for _ in 0..3 {
        fails(&mut play, busy(), Some(Duration::ZERO));
    }
    assert_eq!(play.end(), "gave up SendsSpent at_capacity");
    assert_eq!(play.closing().sends, 3);
    // Those that may fail, too.
    let mut play = Play::new(plan(Profile { failed_sends: 2, ..Profile::interactive() }));
    fails(&mut play, failed(), Some(Duration::ZERO));
    fails(&mut play, failed(), Some(Duration::ZERO));
    assert_eq!(play.end(), "returned server_failed");
}

#[test]
fn a_move_keeps_what_was_waited() {
    for profile in [in_lane(Profile::interactive()), plan(Profile::interactive())] {
        let patience = profile.profile.patience;
        let mut play = Play::new(profile);
        fails(&mut play, busy(), None);
        let before = play.call.waiting().unwrap().until;
        play.now = play.now + seconds(20);
        play.call.moves(Some(play.now + seconds(5)), play.now);
        let waiting = play.call.waiting().unwrap();
        assert_eq!(waiting.not_before, Some(play.now + seconds(5)));
        assert!(waiting.until <= before.max(OPENED + patience), "{waiting:?} {before:?}");
        assert_eq!(play.closing().waited, seconds(20));
        play.call.moves(Some(play.now), play.now);
        assert_eq!(own_wait(&play), None, "that is over");
    }
}

#[test]
fn a_call_that_every_breaker_shuts_out_ends_with_what_it_met_last() {
    let mut play = Play::new(in_lane(Profile::interactive()));
    fails(&mut play, failed(), Some(seconds(5)));
    let patience = play.call.patience();
    assert!(play.call.bears_until(play.now + seconds(5), play.now));
    assert!(!play.call.bears_until(play.now + patience + seconds(60), play.now));
    play.call.shut_out(play.now);
    assert_eq!(play.end(), "gave up CircuitsOpen server_failed");
    assert_eq!(play.closing().why, Some("circuits_open"));
    assert!(play.call.bequest(false).gave_up);
}
