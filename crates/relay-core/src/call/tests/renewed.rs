//! Credentials of the relay's own: one that is had before a send, and a newer one after a refusal.

use super::*;

/// A 401 for which the relay has a newer credential.
fn renewed() -> Failure {
    let refused = answered(401, Fault::Authentication, Evidence::Refused);
    Failure { evidence: None, renewed: true, ..refused }
}

#[test]
fn a_newer_credential_is_worth_one_send_at_once() {
    for profile in [Profile::interactive(), Profile { gate: None, ..Profile::interactive() }] {
        let mut play = Play::new(plan(profile));
        play.sends([renewed()]);
        assert!(matches!(play.call.next(play.now), Step::Wait(Waiting { not_before: None, .. })));
        // It is a send like any other, and the last of its kind.
        play.sends([renewed()]);
        assert_eq!(play.end(), "passed authentication");
        assert_eq!((play.closing().sends, play.closing().waited), (2, Duration::ZERO));
    }
}

#[test]
fn a_newer_credential_is_of_no_use_where_nothing_may_be_sent_again() {
    let lost = Nature { kept: false, ..GENERATION };
    let mut play = Play::new(Plan { nature: lost, ..plan(Profile::interactive()) });
    play.sends([renewed()]);
    assert_eq!(play.end(), "passed authentication");
    let one = ProfileOverrides { sends: Some(Some(1)), ..ProfileOverrides::default() };
    let mut play = Play::new(plan(one.apply(&Profile::interactive()).unwrap()));
    play.sends([renewed()]);
    assert_eq!(play.end(), "passed authentication");
    // What is no generation was refused as surely, and no patience is needed.
    let other = Nature { operation: Operation::Other, ..GENERATION };
    let hurried = Profile { patience: Duration::ZERO, ..Profile::interactive() };
    let mut play = Play::new(Plan { nature: other, ..plan(hurried) });
    play.sends([renewed(), bad_request()]);
    assert_eq!(play.end(), "passed bad_request");
}

#[test]
fn what_has_to_be_had_first_is_waited_for_whatever_the_patience() {
    let hurried = Profile { patience: Duration::ZERO, ..Profile::interactive() };
    for profile in [hurried.clone(), Profile { gate: None, ..hurried }] {
        let mut play = Play::new(in_lane(profile));
        assert!(matches!(play.call.next(play.now), Step::Wait(_)));
        for _ in 0..2 {
            let until = play.call.prepares(seconds(10), play.now);
            assert_eq!(until, OPENED + seconds(10), "asked for twice, it is no longer");
            play.now = play.now + seconds(4);
        }
        // At another upstream it begins to wait anew, and has no longer for it in all.
        play.call.moves(None, play.now);
        assert_eq!(play.call.prepares(seconds(10), play.now), OPENED + seconds(10));
        play.now = play.now + seconds(1);
        play.commit();
        assert_eq!(play.closing().waited, seconds(9));
    }
}

#[test]
fn a_client_that_leaves_sooner_is_told_sooner() {
    let mut play = Play::new(Plan { client_limit: Some(seconds(5)), ..plan(Profile::interactive()) });
    assert!(matches!(play.call.next(play.now), Step::Wait(_)));
    assert_eq!(play.call.prepares(seconds(10), play.now), OPENED + seconds(5));
    assert_eq!(play.call.renews_by(seconds(10), play.now), OPENED + seconds(5));
}

#[test]
fn who_does_not_wait_for_it_any_longer_is_told_why_or_what_was_answered_before() {
    let lacking = || Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    let mut play = Play::new(in_lane(Profile::interactive()));
    assert!(matches!(play.call.next(play.now), Step::Wait(_)));
    play.now = play.now + seconds(3);
    play.call.unprepared(lacking(), play.now);
    assert_eq!(play.end(), "gave up PatienceSpent never_sent");
    assert_eq!((play.closing().sends, play.closing().waited), (0, seconds(3)));
    let mut play = Play::new(in_lane(Profile::interactive()));
    play.sends([busy()]);
    play.call.unprepared(lacking(), play.now);
    assert_eq!(play.end(), "gave up PatienceSpent at_capacity");
    let mut play = Play::new(in_lane(Profile::interactive()));
    play.sends([renewed()]);
    play.call.unprepared(lacking(), play.now);
    assert_eq!(play.end(), "gave up PatienceSpent authentication");
}

#[test]
fn having_it_takes_nothing_from_the_having_of_a_newer_one() {
    let mut play = Play::new(in_lane(Profile { patience: Duration::ZERO, ..Profile::interactive() }));
    assert!(matches!(play.call.next(play.now), Step::Wait(_)));
    play.call.prepares(seconds(10), play.now);
    play.now = play.now + seconds(1);
    play.call.granted(play.now);
    assert!(matches!(play.call.next(play.now), Step::Send { .. }));
    assert!(play.call.may_renew(play.now));
    assert!(!play.call.may_renew(OPENED + seconds(10)));
}

#[test]
fn what_cannot_be_had_at_all_bars_the_call() {
    let mut lacking = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    lacking.barred = Some(Bar::Credential);
    let mut play = Play::new(in_lane(Profile::interactive()));
    assert!(matches!(play.call.next(play.now), Step::Wait(_)));
    play.call.unprepared(lacking.clone(), play.now);
    assert_eq!(play.end(), "refused Barred(Credential) never_sent");
    assert_eq!(play.closing().sends, 0);
    let mut play = Play::new(in_lane(Profile::interactive()));
    play.sends([busy()]);
    play.call.unprepared(lacking, play.now);
    assert_eq!(play.end(), "gave up PatienceSpent at_capacity");
}

#[test]
fn what_it_waits_for_beside_its_lane_is_patience_on_any_profile() {
    let bounded = Profile { patience: seconds(20), gate: None, ..Profile::interactive() };
    let mut play = Play::new(in_lane(bounded));
    assert!(matches!(play.call.next(play.now), Step::Wait(_)));
    play.call.prepares(seconds(10), play.now);
    play.now = play.now + seconds(15);
    play.call.granted(play.now);
    play.send(Duration::ZERO, busy());
    assert!(play.call.waiting().is_some_and(|waiting| waiting.until <= play.now + seconds(5)));
}

#[test]
fn the_wait_for_a_newer_one_is_patience() {
    let mut play = Play::new(in_lane(Profile { patience: seconds(20), ..Profile::interactive() }));
    assert!(matches!(play.go(), Step::Send { .. }));
    assert_eq!(play.call.renews_by(seconds(10), play.now), play.now + seconds(20));
    play.now = play.now + seconds(15);
    play.call.renews(seconds(15));
    assert_eq!(play.call.renews_by(seconds(10), play.now), play.now + seconds(5));
    play.call.failed(renewed(), play.now, &mut NoChance);
    assert!(play.call.waiting().is_some_and(|waiting| waiting.until == play.now + seconds(5)));
    assert_eq!(play.closing().waited, seconds(15));
}
