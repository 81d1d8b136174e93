//! A call whose client is shown that it is held.

use super::*;

/// A notice ends nothing: the call waits as long, is charged as much, and is as patient as without.
#[test]
fn a_held_call_is_told_of_and_waits_on() {
    let notices = Some(Notices::new(seconds(3), false, 2));
    let mut play = Play::new(Plan { notices, ..plan(Profile::interactive()) });
    play.send(seconds(1), busy()).send(seconds(0), busy());
    let held = OPENED + seconds(1);
    assert_eq!(play.call.notice_due(), Some(held + seconds(3)));
    let before = play.call.waiting();
    play.call.noticed();
    play.note();
    assert_eq!((play.call.waiting(), play.seen.last().unwrap().as_str()), (before, "notice 1 before 3"));
    // It is held on, however often it is sent in between.
    play.send(seconds(0), busy());
    assert_eq!(play.call.notice_due(), Some(held + seconds(300)));
    play.commit();
    play.call.noticed();
    assert_eq!((play.call.notice_due(), play.call.take_events()), (None, vec![]), "nothing is held any more");
    assert_eq!(play.now.since(OPENED), seconds(1 + 1 + 2 + 4));
    assert_eq!(play.closing().waited, seconds(7));
}

/// A call that waited in line and was let go is not held while it is sent.
#[test]
fn a_call_that_was_let_go_is_not_held_any_more() {
    let notices = Some(Notices::new(seconds(3), false, 2));
    let mut play = Play::new(Plan { notices, ..in_lane(Profile::interactive()) });
    assert!(matches!(play.call.next(play.now), Step::Wait(_)));
    assert_eq!(play.call.notice_due(), Some(OPENED + seconds(3)));
    play.now = play.now + seconds(60);
    play.call.granted(play.now);
    assert_eq!(play.call.notice_due(), None);
    play.send(seconds(1), busy());
    assert_eq!(play.call.notice_due(), Some(OPENED + seconds(60 + 1 + 3)));
    assert_eq!(Call::new(in_lane(Profile::interactive()), OPENED).notice_due(), None);
}
